"""Revoking a certificate: for which reason of RFC 5280, and what must follow so that peers hear of it."""

from __future__ import annotations

from cryptography import x509
from PySide6.QtCore import Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QVBoxLayout, QWidget

from labconsole.model.operation import Confirmation
from labconsole_certificates.describing.oid_names import REASONS
from labconsole_ui.fit_height import fit_height
from labconsole_ui.form.editors import CalmComboBox
from labconsole_ui.operations.confirmation import ConfirmationBox
from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.labels import plain_label

_WIDTH = 500
_NOT_FOR_PEOPLE = frozenset({x509.ReasonFlags.remove_from_crl, x509.ReasonFlags.certificate_hold})
"""Delta CRLs and holds are not offered: what is revoked here stays revoked."""


class RevokeDialog(QDialog):
    """`confirmed` carries the reason; the certificate's name must be typed, since it cannot be taken back."""

    confirmed = Signal(object)

    def __init__(self, theme: Theme, name: str, owner: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Revoke a certificate"))
        self.setMinimumWidth(_WIDTH)
        question = self.tr("Why is it revoked?")
        label = plain_label(question, self)
        self.reason_box = CalmComboBox(self)
        self.reason_box.setAccessibleName(question)
        for reason in x509.ReasonFlags:
            if reason not in _NOT_FOR_PEOPLE:
                self.reason_box.addItem(REASONS[reason], reason)
        self.confirmation = ConfirmationBox(theme, self)
        loss = self.tr(
            "{name} of {owner} will not be accepted any more, as soon as peers have the next CRL: publish it then."
        )
        self.confirmation.ask(Confirmation(name, loss.format(name=name, owner=owner or self.tr("an unknown State"))))
        buttons = QDialogButtonBox(self)
        self.revoke_button = buttons.addButton(self.tr("Revoke"), QDialogButtonBox.ButtonRole.AcceptRole)
        buttons.addButton(QDialogButtonBox.StandardButton.Cancel)
        self.revoke_button.setEnabled(False)
        self.confirmation.changed.connect(lambda: self.revoke_button.setEnabled(self.confirmation.given))
        buttons.accepted.connect(self._confirm)
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(18, 16, 18, 14)
        column.setSpacing(10)
        for widget in (label, self.reason_box, self.confirmation, buttons):
            column.addWidget(widget)

    def showEvent(self, event: QShowEvent) -> None:
        """As high as the texts need, which is known from now on."""
        super().showEvent(event)
        fit_height(self)

    def _confirm(self) -> None:
        self.confirmed.emit(x509.ReasonFlags(self.reason_box.currentData()))
        self.accept()
