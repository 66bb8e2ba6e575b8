"""Asks for a State of this console that is new: its name, and the domain of its hosts."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QFormLayout, QLabel, QLineEdit, QVBoxLayout, QWidget

from labconsole_ui.widgets.labels import plain_label

_WIDTH = 460


class NewStateDialog(QDialog):
    """`answered` carries name and domain; the dialog stays until `added` says that the State is there."""

    answered = Signal(str, str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("New State"))
        self.setMinimumWidth(_WIDTH)
        text = QLabel(
            self.tr("A State whose keys are stored in this console. Its CA is created or imported in the next step."),
            self,
        )
        text.setWordWrap(True)
        text.setProperty("muted", True)
        self.name_edit, self.domain_edit = QLineEdit(self), QLineEdit(self)
        self.name_edit.setPlaceholderText(self.tr("State A"))
        self.domain_edit.setPlaceholderText(self.tr("a.example"))
        self.domain_edit.setToolTip(self.tr("DNS domains of its hosts, in any script, commas between"))
        note = QLabel(
            self.tr(
                "Certificates of this State may have DNS names in its domain alone. Without a domain, any name is "
                "accepted."
            ),
            self,
        )
        note.setWordWrap(True)
        note.setProperty("muted", True)
        self.trouble = plain_label("", self)
        self.trouble.setProperty("tone", "bad")
        self.trouble.setWordWrap(True)
        self.trouble.hide()
        form = QFormLayout()
        form.setSpacing(8)
        form.addRow(self.tr("&Name"), self.name_edit)
        form.addRow(self.tr("&Domain"), self.domain_edit)
        self.buttons = QDialogButtonBox(self)
        self.add_button = self.buttons.addButton(self.tr("Continue"), QDialogButtonBox.ButtonRole.AcceptRole)
        self.buttons.addButton(self.tr("Cancel"), QDialogButtonBox.ButtonRole.RejectRole)
        self.buttons.accepted.connect(self._answer)
        self.buttons.rejected.connect(self.reject)
        self.name_edit.textChanged.connect(self._judge)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(12)
        column.addWidget(text)
        column.addLayout(form)
        column.addWidget(note)
        column.addWidget(self.trouble)
        column.addWidget(self.buttons)
        self._judge()

    def refuse(self, sentence: str) -> None:
        """It could not be added: say why, and let the operator change it."""
        self.trouble.setText(sentence)
        self.trouble.show()
        self.buttons.setEnabled(True)

    def _answer(self) -> None:
        self.buttons.setEnabled(False)
        self.answered.emit(self.name_edit.text().strip(), self.domain_edit.text().strip())

    def _judge(self) -> None:
        self.trouble.hide()
        self.add_button.setEnabled(bool(self.name_edit.text().strip()))
