"""The bar below a form: run now, add to the queue, repeats, and the switch for live plots."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSpinBox,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import plain_label, set_tone

MAX_REPEATS = 1000
HELP_AT_RIGHT_FROM = 940


class RunBar(QFrame):
    """`run` and `add` are emitted by their buttons; `problem_clicked` by the sentence of a problem."""

    run = Signal()
    add = Signal()
    campaign = Signal()
    problem_clicked = Signal()
    repeats_changed = Signal()

    def __init__(self, bridge: QueueBridge, theme: Theme, max_width: int, parent: QWidget) -> None:
        super().__init__(parent)
        inner = QWidget(self)
        inner.setMaximumWidth(max_width)
        centred = QHBoxLayout(self)
        centred.setContentsMargins(0, 0, 0, 0)
        centred.addStretch(1)
        centred.addWidget(inner, 1000)
        centred.addStretch(1)
        self._column = column = QVBoxLayout(inner)
        column.setContentsMargins(16, 7, 16, 8)
        column.setSpacing(6)
        self.help_label = QLabel(self.tr("What a field means is said here while it has the focus."))
        self.help_label.setProperty("muted", True)
        self.help_label.setFont(theme.font(FontRole.CAPTION))
        self.help_label.setWordWrap(True)
        self.help_label.setMinimumHeight(self.help_label.fontMetrics().height() * 2 + 2)
        self.help_label.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self.problem_button = QToolButton()
        theme.bind_icon(self.problem_button, "error", "bad")
        self.problem_button.setProperty("problem", True)
        self.problem_button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.problem_button.setToolTip(self.tr("Go to the field"))
        self.problem_button.clicked.connect(self.problem_clicked)
        self.problem_button.hide()
        column.addWidget(self.problem_button)
        self._line = line = QHBoxLayout()
        line.setSpacing(10)
        column.addLayout(line)
        self._help_at_right = True
        self._theme = theme
        self.plan_label = plain_label("")
        self.plan_label.setProperty("muted", True)
        self.plan_label.setFont(theme.font(FontRole.CAPTION))
        self.plan_label.setWordWrap(True)
        self.plan_label.setAccessibleName(self.tr("What the campaign runs"))
        column.insertWidget(column.indexOf(line), self.plan_label)
        self.run_button = QPushButton(self.tr("&Run"))
        self.run_button.setProperty("primary", True)
        self.run_button.setIcon(theme.icon("run", "on_accent"))
        theme.bind_icon(self.run_button, "run", "on_accent")
        self.run_button.setToolTip(self.tr("Run now, before what waits in the queue (Ctrl+Return)"))
        self.run_button.clicked.connect(self.run)
        self.add_button = QPushButton(self.tr("&Add to queue"))
        theme.bind_icon(self.add_button, "queue-add")
        self.add_button.setToolTip(self.tr("Run after what waits in the queue (Ctrl+Shift+Return)"))
        self.add_button.clicked.connect(self.add)
        self.campaign_button = QPushButton()
        theme.bind_icon(self.campaign_button, "campaign")
        self.campaign_button.clicked.connect(self.campaign)
        self.repeats_box = QSpinBox()
        self.repeats_box.setRange(1, MAX_REPEATS)
        self.repeats_box.setPrefix("× ")
        self.repeats_box.setMaximumWidth(90)
        self.repeats_box.setAccessibleName(self.tr("Repeats"))
        self.repeats_box.setToolTip(self.tr("How often the scenario runs; five or more make a comparison sound."))
        self.repeats_box.valueChanged.connect(lambda _value: self.repeats_changed.emit())
        self.live_box = QCheckBox(self.tr("&No live plot"))
        self.live_box.setToolTip(self.tr("The run sends no live figures and is spared the little work that they cost."))
        self.live_box.setChecked(not bridge.live_plots)
        self.live_box.toggled.connect(lambda off: bridge.set_live_plots(not off))
        bridge.live_plots_switched.connect(self._show_live)
        self._ways = [self.run_button, self.add_button, self.campaign_button]
        for widget in (self.run_button, self.repeats_box, self.add_button, self.campaign_button):
            line.addWidget(widget)
        line.addWidget(self.help_label, 1)
        line.addWidget(self.live_box)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show the help next to the buttons, or above them where it would get too narrow."""
        super().resizeEvent(event)
        at_right = event.size().width() >= HELP_AT_RIGHT_FROM
        if at_right == self._help_at_right:
            return
        self._help_at_right = at_right
        if at_right:
            self._line.takeAt(self._line.count() - 2)
            self._line.insertWidget(self._line.count() - 1, self.help_label, 1)
        else:
            self._column.insertWidget(0, self.help_label)
            self._line.insertStretch(self._line.count() - 1, 1)

    def show_problem(self, sentence: str) -> None:
        """Disable the buttons and show the reason, or enable them with an empty sentence."""
        self.problem_button.setText(sentence)
        self.problem_button.setAccessibleName(sentence or self.tr("No problem"))
        self.problem_button.setVisible(bool(sentence))
        for button in self._ways:
            button.setEnabled(not sentence)

    def add_way(self, button: QPushButton, icon: str) -> None:
        """Add another button that starts runs after the first; both are enabled together."""
        self._theme.bind_icon(button, icon)
        self._line.insertWidget(self._line.indexOf(self.add_button), button)
        self._ways.append(button)

    def _show_live(self, on: bool) -> None:
        self.live_box.setChecked(not on)

    def show_campaign(self, runs: int, plan: str, fault: str = "") -> None:
        """Offer a campaign of this many runs, with its `plan` in words, or the `fault` that prevents it.

        Fewer than two runs are not offered.
        """
        self.campaign_button.setText(self.tr("Run &campaign ({runs})").format(runs=runs))
        self.campaign_button.setToolTip(fault or plan)
        self.campaign_button.setVisible(runs > 1)
        self.campaign_button.setEnabled(self.run_button.isEnabled() and not fault)
        self.plan_label.setText(fault or plan)
        set_tone(self.plan_label, "bad" if fault else "muted")
        self.plan_label.setVisible(runs > 1)
