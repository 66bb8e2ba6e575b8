"""The card of an operation that serves until it is stopped: its state in words, and buttons to start and stop it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from labconsole.engine.operation_process import OperationEnd, Outcome
from labconsole.security.secrets import Secret
from labconsole_ui.operations.operation_runner import OperationRunner
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import IconLabel, plain_label


class ServingCard(QFrame):
    """Runs one operation at a time, in a process of its own, which ends with the window.

    `start_wanted` is emitted by the start button, whose receiver calls `begin`. `serves` carries each change: whether
    it serves from now on, and `said` each report of it.
    """

    start_wanted = Signal()
    serves = Signal(bool)
    said = Signal(str)

    def __init__(self, theme: Theme, title: str, idle: str, parent: QWidget) -> None:
        """`idle` is the sentence before the first start."""
        super().__init__(parent)
        self.setProperty("card", True)
        self._runner = OperationRunner(self)
        self._runner.said.connect(self._show_serving)
        self._runner.ended.connect(self._show_ended)
        self._icon = IconLabel(theme, "stop", 20, "muted")
        heading = plain_label(title, self)
        heading.setFont(theme.font(FontRole.STRONG))
        self.state = plain_label("", self)
        self.state.setWordWrap(True)
        self.state.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.start_button = QPushButton(self.tr("&Start"), self)
        theme.bind_icon(self.start_button, "run")
        self.start_button.clicked.connect(lambda _checked: self.start_wanted.emit())
        self.stop_button = QPushButton(self.tr("Sto&p"), self)
        theme.bind_icon(self.stop_button, "stop")
        self.stop_button.clicked.connect(lambda _checked: self.stop())
        texts = QVBoxLayout()
        texts.setSpacing(2)
        texts.addWidget(heading)
        texts.addWidget(self.state)
        self._settings = QHBoxLayout()
        self._settings.setSpacing(10)
        line = QHBoxLayout(self)
        line.setContentsMargins(14, 8, 12, 8)
        line.setSpacing(10)
        line.addWidget(self._icon)
        line.addLayout(texts, 1)
        line.addLayout(self._settings)
        line.addWidget(self.start_button)
        line.addWidget(self.stop_button)
        self._show_stopped(idle)

    @property
    def running(self) -> bool:
        """Whether it serves, or is about to."""
        return self._runner.running

    def add_setting(self, widget: QWidget) -> None:
        """Add a widget that is locked while the operation runs, before the buttons."""
        self._settings.addWidget(widget)

    def begin(self, name: str, values: Mapping[str, Any], secrets: Mapping[str, Secret] | None = None) -> None:
        """Start the operation `name` with these parameters."""
        self._runner.start(name, values, secrets)
        self._show("waiting", "muted", self.tr("Starting ..."))
        self._lock(running=True)

    def stop(self) -> None:
        """Stop it."""
        self.stop_button.setEnabled(False)
        self._runner.cancel()

    def show_failed(self, sentence: str) -> None:
        """Show why it does not run."""
        self._show_stopped(sentence)
        self._icon.show_icon("error", "bad")

    def _show_serving(self, sentence: str) -> None:
        self.serves.emit(True)
        self._show("running", "good", sentence)
        self.said.emit(sentence)

    def _show_ended(self, end: OperationEnd) -> None:
        (self.show_failed if end.outcome is Outcome.FAILED else self._show_stopped)(end.sentence)

    def _show_stopped(self, sentence: str) -> None:
        self._show("stop", "muted", sentence)
        self._lock(running=False)
        self.serves.emit(False)

    def _show(self, icon: str, meaning: str, sentence: str) -> None:
        self._icon.show_icon(icon, meaning)
        self.state.setText(sentence)

    def _lock(self, *, running: bool) -> None:
        for index in range(self._settings.count()):
            item = self._settings.itemAt(index)
            widget = item.widget() if item is not None else None
            if widget is not None:
                widget.setEnabled(not running)
        self.start_button.setVisible(not running)
        self.stop_button.setVisible(running)
        self.stop_button.setEnabled(True)
