"""The question when the window is closed while runs are in progress or wait."""

from __future__ import annotations

from enum import StrEnum

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QMessageBox, QWidget


class CloseChoice(StrEnum):
    """The answers."""

    WAIT = "wait"
    CANCEL = "cancel"
    STAY = "stay"


class CloseQuestion(QMessageBox):
    """Asks without blocking the window; `choice` is set when `finished` is emitted. Escape means Stay."""

    def __init__(self, parent: QWidget, running: bool, waiting: int) -> None:
        super().__init__(parent)
        tr = QCoreApplication.translate
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setIcon(QMessageBox.Icon.Question)
        self.setWindowTitle(tr("Closing", "Close the lab console?"))
        if running:
            self.setText(tr("Closing", "A run is in progress."))
        else:
            self.setText(tr("Closing", "Runs wait in the queue."))
        detail = tr("Closing", "Runs that wait: {waiting}. What was recorded until now is kept in any case.")
        self.setInformativeText(detail.format(waiting=waiting))
        self.stay_button = self.addButton(tr("Closing", "Stay"), QMessageBox.ButtonRole.RejectRole)
        self.wait_button = self.addButton(tr("Closing", "Close when done"), QMessageBox.ButtonRole.AcceptRole)
        self.cancel_button = self.addButton(tr("Closing", "Cancel and close"), QMessageBox.ButtonRole.DestructiveRole)
        self.setDefaultButton(self.stay_button)
        self.setEscapeButton(self.stay_button)

    @property
    def choice(self) -> CloseChoice:
        """The button that was pressed."""
        clicked = self.clickedButton()
        if clicked is self.wait_button:
            return CloseChoice.WAIT
        return CloseChoice.CANCEL if clicked is self.cancel_button else CloseChoice.STAY
