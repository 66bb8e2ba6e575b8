"""The dialog that changes a State's domains, which the operator must confirm."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QDialog, QDialogButtonBox, QFormLayout, QLineEdit, QVBoxLayout, QWidget

from labconsole.errors import BadInput
from labconsole.security.pki.domains import claim_question, domains_from_text
from labconsole.security.pki.records import State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole_certificates.operations.states import claim_domain
from labconsole_certificates.panel.tab import TabWork
from labconsole_ui.form.editors import WheelIgnoringComboBox
from labconsole_ui.widgets.labels import plain_label
from labconsole_ui.widgets.layouts import fit_height

_WIDTH = 560


class DomainDialog(QDialog):
    """Names outside its domains are refused in a State's certificates, so nothing changes without the check mark."""

    def __init__(self, tab_work: TabWork, snapshot: Snapshot, chosen: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._tab_work, self._snapshot = tab_work, snapshot
        self.setWindowTitle(self.tr("Domain of a State"))
        self.setMinimumWidth(_WIDTH)
        self.state_box = WheelIgnoringComboBox(self)
        self.state_box.addItems([state.name for state in snapshot.states])
        self.state_box.setCurrentText(chosen)
        self.domain_edit = QLineEdit(self)
        self.domain_edit.setPlaceholderText(self.tr("None: any name is accepted"))
        form = QFormLayout()
        form.setSpacing(8)
        form.addRow(self.tr("&State"), self.state_box)
        form.addRow(self.tr("&Domains"), self.domain_edit)
        self.question = plain_label("", self)
        self.question.setWordWrap(True)
        self.confirm_box = QCheckBox(self.tr("The State has &confirmed this to me"), self)
        buttons = QDialogButtonBox(self)
        self.claim_button = buttons.addButton(self.tr("Change"), QDialogButtonBox.ButtonRole.AcceptRole)
        self.claim_button.setProperty("primary", True)
        buttons.addButton(QDialogButtonBox.StandardButton.Cancel)
        buttons.accepted.connect(self._claim)
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(18, 16, 18, 14)
        column.setSpacing(12)
        column.addLayout(form)
        column.addWidget(self.question)
        column.addWidget(self.confirm_box, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(buttons)
        self.state_box.currentIndexChanged.connect(lambda _index: self._show_state())
        self.domain_edit.textChanged.connect(lambda _text: self._ask())
        self.confirm_box.toggled.connect(lambda _on: self._allow())
        self._show_state()

    @property
    def _state(self) -> State:
        return next(state for state in self._snapshot.states if state.name == self.state_box.currentText())

    def _show_state(self) -> None:
        self.domain_edit.setText(", ".join(self._state.domain.split()))
        self._ask()

    def _ask(self) -> None:
        """Ask for confirmation of the change; another change asks again."""
        self.confirm_box.setChecked(False)
        state = self._state
        try:
            question, tone = claim_question(self._snapshot, state, state.name, self._domains()), "warning"
        except BadInput as error:
            question, tone = str(error), "bad"
        self.question.setText(question or self.tr("Its certificates may have DNS names in these domains alone."))
        self.question.setProperty("tone", tone if question else None)
        self.question.style().unpolish(self.question)
        self.question.style().polish(self.question)
        self.confirm_box.setEnabled(bool(question) and tone == "warning")
        self._allow()
        fit_height(self)

    def _allow(self) -> None:
        self.claim_button.setEnabled(self.confirm_box.isChecked())

    def _domains(self) -> str:
        return domains_from_text(self.domain_edit.text())

    def _claim(self) -> None:
        self._tab_work.do(partial(_claim, self._state, self._domains()), self._done)

    def _done(self, state: State) -> None:
        domains = ", ".join(state.domain.split()) or self.tr("no domain, so that any name is accepted for it")
        self._tab_work.good(f"{state.name}: {domains}")
        self.accept()


def _claim(state: State, domains: str, store: PkiStore) -> State:
    return claim_domain(store, state, domains)
