"""What can be done with the run of a run view: compare it with the baseline, report it, export it."""

from __future__ import annotations

from PySide6.QtCore import QSize, Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from labconsole_ui.export_menu import ExportMenu
from labconsole_ui.theme.theme import Theme


class RunButtons(QWidget):
    """A row of buttons. `export_wanted` carries an `ExportFormat`."""

    compare_wanted = Signal()
    report_wanted = Signal()
    export_wanted = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.compare_button = QPushButton(self.tr("Compare"), self)
        theme.bind_icon(self.compare_button, "compare")
        self.compare_button.clicked.connect(self.compare_wanted)
        self.report_button = QPushButton(self.tr("Report ..."), self)
        theme.bind_icon(self.report_button, "report")
        self.report_button.clicked.connect(self.report_wanted)
        self.export_menu = ExportMenu(theme, self)
        self.export_menu.wanted.connect(self.export_wanted)
        self.export_button = QPushButton(self.tr("Export"), self)
        theme.bind_icon(self.export_button, "export")
        self.export_button.setMenu(self.export_menu)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(6)
        for button in (self.compare_button, self.report_button, self.export_button):
            button.setIconSize(QSize(18, 18))
            row.addWidget(button)

    def follow(self, *, over: bool, baseline: int | None) -> None:
        """Enable what can be done: only a run that is over can leave; `baseline` is what it is compared with."""
        self.report_button.setEnabled(over)
        self.export_button.setEnabled(over)
        self.compare_button.setEnabled(over and baseline is not None)
        self.compare_button.setToolTip(
            self.tr("Compare with the baseline, run {0}").format(baseline)
            if baseline is not None
            else self.tr("Pin another run of this trial as baseline in the history first")
        )
