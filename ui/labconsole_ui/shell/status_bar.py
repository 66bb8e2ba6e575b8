"""The status bar: run in progress, progress, database, and a notice of another console."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QLabel, QProgressBar, QStatusBar, QToolButton

from labconsole.engine.queue import Activity, QueueItem, QueueState
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import IconLabel, plain_label
from labconsole_ui.widgets.status_text import (
    console_name,
    duration,
    progress_fraction,
    queue_item_title,
    rate_text,
    utc_time,
)

PROGRESS_WIDTH = 160


class ConsoleStatusBar(QStatusBar):
    """Shows the state of the queue. `fold_wanted` asks for the panes above to be folded or unfolded."""

    fold_wanted = Signal()

    def __init__(self, bridge: QueueBridge, theme: Theme, database: Path) -> None:
        super().__init__()
        self._bridge = bridge
        self.setSizeGripEnabled(False)
        self._icon = IconLabel(theme, "good", 16, "good")
        self.state_label = plain_label("")
        self.state_label.setContentsMargins(2, 0, 8, 0)
        self.state_label.setAccessibleName(self.tr("State of the engine"))
        self.progress = QProgressBar()
        self.progress.setRange(0, 1000)
        self.progress.setTextVisible(False)
        self.progress.setFixedWidth(PROGRESS_WIDTH)
        self.progress.setAccessibleName(self.tr("Progress of the run"))
        self.figures_label = QLabel()
        self.figures_label.setContentsMargins(8, 0, 0, 0)
        self.figures_label.setFont(theme.font(FontRole.TABLE))
        self.notice_label = QLabel()
        self.notice_label.setProperty("tone", "warning")
        self.notice_label.hide()
        path = plain_label(str(database))
        path.setProperty("muted", True)
        path.setToolTip(self.tr("Database of this window"))
        path.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.setContentsMargins(12, 2, 12, 2)
        for widget in (self._icon, self.state_label, self.progress, self.figures_label):
            self.addWidget(widget)
        self.addPermanentWidget(self.notice_label)
        self.addPermanentWidget(path)
        self.fold_button = QToolButton()
        theme.bind_icon(self.fold_button, "panes", "muted")
        self.fold_button.setIconSize(QSize(16, 16))
        self.fold_button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.fold_button.setAccessibleName(self.tr("Fold the panes beneath the pages"))
        self.fold_button.setToolTip(self.tr("Fold the panes beneath the pages away, or bring them back (Ctrl+J)"))
        self.fold_button.clicked.connect(self.fold_wanted)
        self.addPermanentWidget(self.fold_button)
        bridge.items_changed.connect(self._follow)
        bridge.live.connect(self._follow)
        self._follow()

    def show_notice(self, sentence: str, explanation: str) -> None:
        """Show a lasting notice, such as that of a second console."""
        self.notice_label.setText(sentence)
        self.notice_label.setToolTip(explanation)
        self.notice_label.setVisible(bool(sentence))

    def _follow(self) -> None:
        items = self._bridge.queue.items
        waiting = sum(item.state is QueueState.WAITING for item in items)
        running = next((item for item in items if item.state is QueueState.RUNNING), None)
        self.progress.setVisible(running is not None)
        self.figures_label.setVisible(running is not None)
        if running is None:
            elsewhere = next((item for item in self._bridge.queue.others if item.state is QueueState.RUNNING), None)
            if elsewhere is not None:
                self._icon.show_icon("running", "link")
                self.state_label.setText(self._elsewhere(elsewhere, waiting))
                return
            if (starts := self._bridge.queue.starts) is not None:
                self._icon.show_icon("waiting", "muted")
                text = self.tr("Waiting until {time}, {waiting} in the queue")
                self.state_label.setText(text.format(time=utc_time(starts), waiting=waiting))
                return
            paused = self._bridge.queue.paused
            self._icon.show_icon("pause" if paused else "good", "warning" if paused else "good")
            if paused and waiting:
                self.state_label.setText(self.tr("Queue paused, {waiting} waiting").format(waiting=waiting))
            else:
                self.state_label.setText(self.tr("Queue paused") if paused else self.tr("Ready"))
            return
        self._icon.show_icon("running", "link")
        share = progress_fraction(running)
        self.progress.setRange(0, 1000 if share is not None else 0)
        if share is not None:
            self.progress.setValue(round(share * 1000))
        cancelling = running.activity is Activity.CANCELLING
        text = self.tr("Cancelling run {run}: {name}") if cancelling else self.tr("Run {run}: {name}")
        self.state_label.setText(text.format(run=running.run_id, name=queue_item_title(running)))
        parts = [
            rate_text(running.rate),
            self.tr("{left} left").format(left=duration(running.eta_s)) if running.eta_s is not None else "",
            self.tr("{waiting} waiting").format(waiting=waiting) if waiting else "",
        ]
        self.figures_label.setText("   ".join(part for part in parts if part))

    def _elsewhere(self, item: QueueItem, waiting: int) -> str:
        """The status of a run that is not of this window's queue."""
        if item.console is None:
            return self.tr("Recovering run {run}: {name}").format(run=item.run_id, name=queue_item_title(item))
        text = self.tr("Run {run} of another console ({console}): {name}")
        if waiting:
            text = self.tr("Waiting for run {run} of another console ({console}): {name}")
        return text.format(run=item.run_id, console=console_name(item.console), name=queue_item_title(item))
