"""Refusing a request: not without a reason, which its sender is told."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QLineEdit, QVBoxLayout, QWidget

from labconsole_ui.fit_height import fit_height
from labconsole_ui.widgets.labels import plain_label

_WIDTH = 480


class RefusalDialog(QDialog):
    """`refused` carries the reason."""

    refused = Signal(str)

    def __init__(self, sender: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Refuse the request"))
        self.setMinimumWidth(_WIDTH)
        question = self.tr("Why is the request of {sender} refused?").format(sender=sender)
        label = plain_label(question, self)
        label.setWordWrap(True)
        self.reason = QLineEdit(self)
        self.reason.setAccessibleName(question)
        self.reason.setPlaceholderText(self.tr("As in: the host name is not yours"))
        label.setBuddy(self.reason)
        buttons = QDialogButtonBox(self)
        self.refuse_button = buttons.addButton(self.tr("Refuse"), QDialogButtonBox.ButtonRole.AcceptRole)
        buttons.addButton(QDialogButtonBox.StandardButton.Cancel)
        self.refuse_button.setEnabled(False)
        self.reason.textChanged.connect(lambda text: self.refuse_button.setEnabled(bool(text.strip())))
        buttons.accepted.connect(self._refuse)
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(18, 16, 18, 14)
        column.setSpacing(10)
        for widget in (label, self.reason, buttons):
            column.addWidget(widget)

    def showEvent(self, event: QShowEvent) -> None:
        """As high as the texts need, which is known from now on."""
        super().showEvent(event)
        fit_height(self)

    def _refuse(self) -> None:
        self.refused.emit(self.reason.text().strip())
        self.accept()
