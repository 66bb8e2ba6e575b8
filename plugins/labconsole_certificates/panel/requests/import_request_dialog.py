"""The import dialog of a CSR: its contents, and the facts that only the operator knows: its State, CA and purpose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QFormLayout, QVBoxLayout, QWidget

from labconsole.security.pki.domains import refusal
from labconsole.security.pki.records import State
from labconsole.security.x509.certificate_profiles import AUTHORITIES, TEXTS, CertificateProfile
from labconsole.security.x509.csrs import CsrJudgement
from labconsole_certificates.describing.description import Description
from labconsole_certificates.panel.description_view import DescriptionView
from labconsole_ui.form.editors import WheelIgnoringComboBox
from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.labels import plain_label

_WIDTH, _HEIGHT = 680, 620


@dataclass(frozen=True)
class Answer:
    """The requesting State (which may be new), the State whose CA is asked, and the purpose."""

    requester: str
    issuer: str
    profile: CertificateProfile


class NewRequestDialog(QDialog):
    """`answered` carries an `Answer`; nothing is imported before. A CSR without proof of possession is refused."""

    answered = Signal(object)

    def __init__(
        self,
        theme: Theme,
        states: Sequence[State],
        description: Description,
        judgement: CsrJudgement,
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("A request came in"))
        self.resize(_WIDTH, _HEIGHT)
        self._proven = judgement.proof_of_possession
        self.requester_box = WheelIgnoringComboBox(self)
        self.requester_box.setEditable(True)
        self.requester_box.addItems([state.name for state in states])
        self.requester_box.setCurrentIndex(-1)  # the operator must choose: a preset would look like a fact
        line = self.requester_box.lineEdit()
        if line is not None:
            line.setPlaceholderText(self.tr("Name of the State; a new one may be typed"))
        self.issuer_box = WheelIgnoringComboBox(self)
        self.issuer_box.addItems([state.name for state in states if state.local])
        self.profile_box = WheelIgnoringComboBox(self)
        for profile in CertificateProfile:
            if profile not in AUTHORITIES:
                self.profile_box.addItem(TEXTS[profile].title, profile)
        asked = judgement.profile or CertificateProfile.TLS_CLIENT
        self.profile_box.setCurrentIndex(max(0, self.profile_box.findText(TEXTS[asked].title)))
        form = QFormLayout()
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for title, box in (
            (self.tr("Came from"), self.requester_box),
            (self.tr("For the CA of"), self.issuer_box),
            (self.tr("Profile"), self.profile_box),
        ):
            form.addRow(title, box)
            box.setAccessibleName(title)
        self._states, self._judgement = {state.name: state for state in states}, judgement
        self.verdict = plain_label("", self)
        self.verdict.setWordWrap(True)
        reading = DescriptionView(theme, self)
        reading.show_description(description)
        buttons = QDialogButtonBox(self)
        self.take_button = buttons.addButton(self.tr("Import"), QDialogButtonBox.ButtonRole.AcceptRole)
        self.take_button.setProperty("primary", True)
        buttons.addButton(QDialogButtonBox.StandardButton.Cancel)
        buttons.accepted.connect(self._answer)
        buttons.rejected.connect(self.reject)
        self.requester_box.editTextChanged.connect(lambda _text: self._allow())
        self.issuer_box.currentIndexChanged.connect(lambda _index: self._allow())
        column = QVBoxLayout(self)
        column.setContentsMargins(18, 16, 18, 14)
        column.setSpacing(10)
        column.addWidget(self.verdict)
        column.addLayout(form)
        column.addWidget(reading, 1)
        column.addWidget(buttons)
        self._allow()

    def _judge(self, requester: State | None) -> None:
        """Show its problems; names outside the domain of the State that it came from are some."""
        outside = "" if requester is None else refusal(requester, self._judgement.names)
        no_requester = "" if self.issuer_box.count() else self._no_requester()
        problems = [problem for problem in (*self._judgement.problems, outside, no_requester) if problem]
        self.verdict.setText("\n".join(problems) or self._proof())
        self.verdict.setProperty("tone", "bad" if problems else "good")
        self.verdict.style().unpolish(self.verdict)
        self.verdict.style().polish(self.verdict)

    def _proof(self) -> str:
        return self.tr("Its signature proves that the sender has the private key. Nothing speaks against it.")

    def _no_requester(self) -> str:
        return self.tr(
            "No State of this console could decide about it: create your CA in the tab “Certificates” first."
        )

    def _allow(self) -> None:
        requester, issuer = self.requester_box.currentText().strip(), self.issuer_box.currentText()
        self._judge(self._states.get(requester))
        self.take_button.setEnabled(self._proven and bool(requester) and bool(issuer))

    def _answer(self) -> None:
        profile: CertificateProfile = self.profile_box.currentData()
        self.answered.emit(
            Answer(self.requester_box.currentText().strip(), self.issuer_box.currentText(), CertificateProfile(profile))
        )
        self.accept()
