"""The dialog for secrets that neither keyring nor file has: of runs, and of signing keys."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QLabel, QLineEdit, QVBoxLayout, QWidget

from labconsole.security.secrets import Secret, SecretRequest
from labconsole_ui.widgets.labels import plain_label

_WIDTH = 460


class SecretDialog(QDialog):
    """Asks for all `requests` at once, without blocking the window; only complete answers can be accepted.

    `note` states how long the answers are kept; by default, that of runs.
    """

    def __init__(self, parent: QWidget, requests: Sequence[SecretRequest], note: str = "") -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Passphrase needed"))
        self.setMinimumWidth(_WIDTH)
        column = QVBoxLayout(self)
        self.edits: dict[str, QLineEdit] = {}
        for request in requests:
            question = self.tr("Passphrase for {purpose}").format(purpose=request.purpose)
            label, edit = plain_label(question), QLineEdit()
            label.setWordWrap(True)
            label.setBuddy(edit)
            edit.setEchoMode(QLineEdit.EchoMode.Password)
            edit.setAccessibleName(question)
            edit.textChanged.connect(self._judge)
            column.addWidget(label)
            column.addWidget(edit)
            self.edits[request.key] = edit
        kept = self.tr("Neither the keyring nor a file has it. It is kept in memory until the runs are done.")
        label = QLabel(note or kept)
        label.setWordWrap(True)
        label.setProperty("muted", True)
        column.addWidget(label)
        self.buttons = QDialogButtonBox()
        self.continue_button = self.buttons.addButton(self.tr("Continue"), QDialogButtonBox.ButtonRole.AcceptRole)
        self.cancel_button = self.buttons.addButton(self.tr("Cancel"), QDialogButtonBox.ButtonRole.RejectRole)
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        column.addWidget(self.buttons)
        self._judge()

    def pop_secrets(self) -> dict[str, Secret]:
        """Return the entered secrets by the requests' keys, and clear the fields."""
        secrets = {key: Secret(edit.text()) for key, edit in self.edits.items()}
        for edit in self.edits.values():
            edit.clear()
        return secrets

    def _judge(self) -> None:
        self.continue_button.setEnabled(all(edit.text() for edit in self.edits.values()))
