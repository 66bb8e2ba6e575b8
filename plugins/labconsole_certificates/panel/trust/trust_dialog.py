"""The dialog for trust in a single root or self-signed end certificate, by a typed or confirmed fingerprint."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QFormLayout, QVBoxLayout, QWidget

from labconsole.model.operation import Result
from labconsole.security.pki.records import CertificateRecord, State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.names import short_name
from labconsole_certificates.operations.self_signed import WARNING
from labconsole_certificates.panel.labels import day
from labconsole_certificates.panel.tab import TabWork
from labconsole_certificates.panel.trust.fingerprint_widgets import FingerprintQuestion
from labconsole_certificates.trust.roots_and_pins import CONFIRMED_HERE, Pin, TrustRoot
from labconsole_ui.form.editors import WheelIgnoringComboBox
from labconsole_ui.widgets.labels import plain_label
from labconsole_ui.widgets.layouts import fit_height

_WIDTH = 720


def is_pinned(record: CertificateRecord) -> bool:
    """Whether trust in it is a pin: a self-signed end certificate."""
    return record.profile is not CertificateProfile.ROOT


def can_be_trusted(snapshot: Snapshot) -> tuple[CertificateRecord, ...]:
    """Roots and self-signed end certificates, the newest first."""
    return tuple(record for record in reversed(snapshot.certificates) if record.removed is None and record.self_signed)


class TrustDialog(QDialog):
    """`trusted` is emitted when it is done; refusals are shown here, and nothing has changed then."""

    trusted = Signal()

    def __init__(
        self,
        tab_work: TabWork,
        snapshot: Snapshot,
        certificates: Sequence[CertificateRecord],
        parent: QWidget,
        truster: str = "",
    ) -> None:
        """`certificates` to choose from; `truster` is the State that shall trust."""
        super().__init__(parent)
        self._tab_work, self._snapshot, self._certificates = tab_work, snapshot, tuple(certificates)
        self.setWindowTitle(self.tr("Trust a root or a self-signed certificate"))
        self.setMinimumWidth(_WIDTH)
        self.truster_box = WheelIgnoringComboBox(self)
        self.truster_box.addItems([state.name for state in snapshot.states if state.local])
        self.truster_box.setCurrentText(truster)
        self.certificate_box = WheelIgnoringComboBox(self)
        for record in self._certificates:
            self.certificate_box.addItem(self._name(record), record.id)
        self.certificate_box.setCurrentIndex(self._first_of_others())
        form = QFormLayout()
        for title, box in ((self.tr("Who trusts"), self.truster_box), (self.tr("Trusts what"), self.certificate_box)):
            form.addRow(title, box)
            box.setAccessibleName(title)
        self.warning = plain_label(WARNING, self)
        self.warning.setWordWrap(True)
        self.warning.setProperty("tone", "warning")
        self.question = FingerprintQuestion(tab_work.theme, self)
        self.trouble = plain_label("", self)
        self.trouble.setWordWrap(True)
        self.trouble.setProperty("tone", "bad")
        self.trouble.hide()
        buttons = QDialogButtonBox(self)
        self.trust_button = buttons.addButton(self.tr("Trust it"), QDialogButtonBox.ButtonRole.AcceptRole)
        self.trust_button.setProperty("primary", True)
        buttons.addButton(QDialogButtonBox.StandardButton.Cancel)
        buttons.accepted.connect(self._trust)
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(18, 16, 18, 14)
        column.setSpacing(12)
        column.addLayout(form)
        for widget in (self.warning, self.question, self.trouble, buttons):
            column.addWidget(widget)
        self.question.changed.connect(self._allow)
        self.certificate_box.currentIndexChanged.connect(lambda _index: self._ask())
        self.truster_box.currentIndexChanged.connect(lambda _index: self._allow())
        self._ask()

    def showEvent(self, event: QShowEvent) -> None:
        """As high as the texts need, which is known from now on."""
        super().showEvent(event)
        fit_height(self)

    def choose(self, certificate: int) -> None:
        """Choose a certificate by its row."""
        self.certificate_box.setCurrentIndex(self.certificate_box.findData(certificate))

    def _first_of_others(self) -> int:
        """Propose the first certificate of another State: trust in an own one is rarely needed."""
        owners = [None if owner is None else owner.name for owner in map(self._owner, self._certificates)]
        return next((place for place, name in enumerate(owners) if name != self.truster_box.currentText()), 0)

    @property
    def _record(self) -> CertificateRecord | None:
        place = self.certificate_box.currentIndex()
        return self._certificates[place] if place >= 0 else None

    def _owner(self, record: CertificateRecord) -> State | None:
        return None if record.state is None else self._snapshot.state_by_id[record.state]

    def _is_own(self, record: CertificateRecord) -> bool:
        owner = self._owner(record)
        return owner is not None and owner.local

    def _name(self, record: CertificateRecord) -> str:
        owner = self._owner(record)
        until = day(record.certificate.not_valid_after_utc)
        said = self.tr("{name}, until {day}").format(name=short_name(record.certificate), day=until)
        return said if owner is None else f"{owner.name}: {said}"

    def _ask(self) -> None:
        record = self._record
        self.question.setVisible(record is not None)
        self.warning.setVisible(record is not None and is_pinned(record))
        if record is not None:
            owner = self._owner(record)
            name = self.tr("its owner") if owner is None else owner.name
            self.question.ask(name, record.sha256, own=self._is_own(record))
        self._allow()
        fit_height(self)

    def _allow(self) -> None:
        self.trust_button.setEnabled(
            self._record is not None and bool(self.truster_box.currentText()) and self.question.matches
        )

    def _trust(self) -> None:
        record = self._record
        if record is None:
            return
        self.trust_button.setEnabled(False)
        self._tab_work.perform(
            Pin() if is_pinned(record) else TrustRoot(),
            {"state": self.truster_box.currentText(), "certificate": record.sha256},
            self._done,
            self._refused,
            typed=CONFIRMED_HERE if self._is_own(record) else self.question.typed,
        )

    def _done(self, _result: Result) -> None:
        self.trusted.emit()
        self.accept()

    def _refused(self, sentence: str) -> None:
        self.trouble.setText(sentence)
        self.trouble.show()
        self._allow()
