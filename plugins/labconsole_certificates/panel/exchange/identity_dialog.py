"""The dialog that names a certificate with its key for AMQP trials."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QFormLayout, QLineEdit, QVBoxLayout, QWidget

from labconsole.security.pki.records import CertificateRecord, IdentityRecord, State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.certificate_profiles import AUTHORITIES
from labconsole.security.x509.names import short_name
from labconsole_certificates.operations.identity_names import name_identity
from labconsole_certificates.panel.labels import day, profile_text
from labconsole_certificates.panel.tab import TabWork
from labconsole_ui.form.editors import WheelIgnoringComboBox
from labconsole_ui.widgets.labels import plain_label
from labconsole_ui.widgets.layouts import fit_height

_WIDTH = 580


class IdentityDialog(QDialog):
    """Names an end certificate of these States whose key is stored here; refusals are shown in the dialog."""

    def __init__(
        self, tab_work: TabWork, snapshot: Snapshot, states: Sequence[State], parent: QWidget, chosen: int | None = None
    ) -> None:
        """`chosen` is the id of the certificate that is proposed."""
        super().__init__(parent)
        self._tab_work = tab_work
        self.setWindowTitle(self.tr("Name for AMQP trials"))
        self.setMinimumWidth(_WIDTH)
        names = {state.id: state.name for state in states}
        self._records = [
            record
            for record in reversed(snapshot.certificates)
            if record.key is not None
            and record.removed is None
            and record.profile not in AUTHORITIES
            and record.state in names
        ]
        self.certificate_box = WheelIgnoringComboBox(self)
        self.certificate_box.setSizeAdjustPolicy(
            WheelIgnoringComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        for record in self._records:
            self.certificate_box.addItem(self._said(record, names[record.state or 0]))
        numbers = [record.id for record in self._records]
        self.certificate_box.setCurrentIndex(numbers.index(chosen) if chosen in numbers else 0)
        self.name_edit = QLineEdit(self)
        self.name_edit.setPlaceholderText(self.tr("As in: singapore-broker"))
        hint = plain_label(
            self.tr(
                "Sender, receiver and broker of an AMQP trial can choose this name: certificate, chain, key and trust."
            ),
            self,
        )
        hint.setWordWrap(True)
        hint.setProperty("muted", True)
        form = QFormLayout()
        for title, widget in (
            (self.tr("Certificate"), self.certificate_box),
            (self.tr("Name"), self.name_edit),
        ):
            form.addRow(title, widget)
            widget.setAccessibleName(title)
        self.trouble = plain_label("", self)
        self.trouble.setWordWrap(True)
        self.trouble.setProperty("tone", "bad")
        self.trouble.hide()
        buttons = QDialogButtonBox(self)
        self.name_button = buttons.addButton(self.tr("Name it"), QDialogButtonBox.ButtonRole.AcceptRole)
        buttons.addButton(QDialogButtonBox.StandardButton.Cancel)
        buttons.accepted.connect(self._name)
        buttons.rejected.connect(self.reject)
        self.name_edit.textChanged.connect(lambda _text: self._allow())
        column = QVBoxLayout(self)
        column.setContentsMargins(18, 16, 18, 14)
        column.setSpacing(10)
        column.addWidget(hint)
        column.addLayout(form)
        column.addWidget(self.trouble)
        column.addWidget(buttons)
        self._allow()

    def showEvent(self, event: QShowEvent) -> None:
        """As high as the texts need, which is known from now on."""
        super().showEvent(event)
        fit_height(self)

    def _said(self, record: CertificateRecord, state: str) -> str:
        return self.tr("{state}: {name}, {profile}, until {day}").format(
            state=state,
            name=short_name(record.certificate),
            profile=profile_text(record),
            day=day(record.certificate.not_valid_after_utc),
        )

    def _allow(self) -> None:
        self.name_button.setEnabled(bool(self._records) and bool(self.name_edit.text().strip()))

    def _name(self) -> None:
        record, name = self._records[self.certificate_box.currentIndex()], self.name_edit.text().strip()
        self._tab_work.do(lambda store: name_identity(store, name, record), self._named, self._refused)

    def _named(self, identity: IdentityRecord) -> None:
        self._tab_work.good(self.tr("AMQP trials know it as {name}.").format(name=identity.name))
        self.accept()

    def _refused(self, sentence: str) -> None:
        self.trouble.setText(sentence)
        self.trouble.show()
