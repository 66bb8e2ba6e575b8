"""The import dialog of a trust bundle: its contents, and the fingerprint that the other State reads out."""

from __future__ import annotations

from collections.abc import Sequence

from cryptography import x509
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QCheckBox, QDialog, QDialogButtonBox, QFormLayout, QVBoxLayout, QWidget

from labconsole.model.operation import Result
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.names import short_name, shown
from labconsole_certificates.panel.labels import moment
from labconsole_certificates.panel.tab import TabWork
from labconsole_certificates.panel.trust.fingerprint_widgets import FingerprintQuestion
from labconsole_certificates.trust.bundle_import import NO_DOMAIN, ImportBundle
from labconsole_certificates.trust.bundle_inspection import BundleInspection, domain_question, must_be_confirmed
from labconsole_ui.form.editors import WheelIgnoringComboBox
from labconsole_ui.widgets.labels import plain_label
from labconsole_ui.widgets.layouts import fit_height

_WIDTH = 720


class BundleDialog(QDialog):
    """Shows a bundle, asks for the importing State and, for an unknown State, for its fingerprint.

    `imported` carries the result in words. Refusals are shown here, and nothing has changed then.
    """

    imported = Signal(str)

    def __init__(
        self, tab_work: TabWork, snapshot: Snapshot, inspection: BundleInspection, data: bytes, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._tab_work, self._snapshot, self._inspection, self._data = tab_work, snapshot, inspection, data
        self._name = name = shown(inspection.content.state)
        self.setWindowTitle(self.tr("Trust bundle of {state}").format(state=name))
        self.setMinimumWidth(_WIDTH)
        self.importer_box = WheelIgnoringComboBox(self)
        self.importer_box.setAccessibleName(self.tr("Imported by"))
        self.importer_box.addItems(
            [state.name for state in snapshot.states if state.local and state.name != inspection.content.state]
        )
        form = QFormLayout()
        form.addRow(self.tr("Imported by"), self.importer_box)
        for title, text in self._facts(inspection):
            label = plain_label(text, self)
            label.setWordWrap(True)
            form.addRow(title, label)
        self.question = FingerprintQuestion(tab_work.theme, self)
        self.domain_box = QCheckBox(self)
        self.domain_question = plain_label("", self)
        self.domain_question.setWordWrap(True)
        self.domain_question.setProperty("tone", "warning")
        self.known = plain_label(
            self.tr("{state} is known: the bundle is imported if a trusted key has signed it.").format(state=name),
            self,
        )
        self.known.setWordWrap(True)
        self.trouble = plain_label("", self)
        self.trouble.setWordWrap(True)
        self.trouble.setProperty("tone", "bad")
        self.trouble.hide()
        buttons = QDialogButtonBox(self)
        self.take_button = buttons.addButton(self.tr("Import"), QDialogButtonBox.ButtonRole.AcceptRole)
        self.take_button.setProperty("primary", True)
        buttons.addButton(QDialogButtonBox.StandardButton.Cancel)
        buttons.accepted.connect(self._take)
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(18, 16, 18, 14)
        column.setSpacing(12)
        column.addLayout(form)
        column.addWidget(self.domain_question)
        column.addWidget(self.domain_box, 0, Qt.AlignmentFlag.AlignLeft)
        for widget in (self.question, self.known, self.trouble, buttons):
            column.addWidget(widget)
        self.domain_box.toggled.connect(lambda _on: self._allow())
        self.question.changed.connect(self._allow)
        self.importer_box.currentIndexChanged.connect(lambda _index: self._ask())
        self._ask()

    def showEvent(self, event: QShowEvent) -> None:
        """As high as the texts need, which is known from now on."""
        super().showEvent(event)
        fit_height(self)

    def _facts(self, inspection: BundleInspection) -> Sequence[tuple[str, str]]:
        def names(certificates: Sequence[x509.Certificate]) -> str:
            return ", ".join(short_name(found) for found in certificates) or self.tr("none")

        content = inspection.content
        return (
            (
                self.tr("State"),
                shown(content.state),
            ),
            (
                self.tr("Domain"),
                shown(", ".join(content.domain.split())) or self.tr("None claimed: its certificates may have any name"),
            ),
            (self.tr("Sequence"), str(content.sequence)),
            (self.tr("Made"), moment(content.made)),
            (self.tr("Next by"), moment(content.next_update)),
            (self.tr("Roots"), names(content.roots)),
            (self.tr("Intermediates"), names(content.intermediates)),
            (self.tr("Links"), names(content.links)),
            (self.tr("CRLs"), str(len(content.crls))),
            (self.tr("Signed by"), short_name(inspection.signer)),
        )

    def _ask(self) -> None:
        """Ask for the fingerprint of a State without a trusted root."""
        importer = self.importer_box.currentText()
        first = bool(importer) and must_be_confirmed(self._snapshot, importer, self._inspection)
        self.question.setVisible(first)
        self.known.setVisible(not first)
        question = domain_question(self._snapshot, self._inspection, first=first)
        self.domain_question.setText(question)
        self.domain_box.setText(self.tr("{state} has confirmed this domain to me").format(state=self._name))
        self.domain_box.setChecked(False)
        for widget in (self.domain_question, self.domain_box):
            widget.setVisible(bool(question))
        if first:
            self.question.ask(shown(self._inspection.content.state), self._inspection.fingerprint)
        self._allow()
        fit_height(self)

    def _allow(self) -> None:
        confirmed = self.question.isHidden() or self.question.matches
        confirmed = confirmed and (self.domain_box.isHidden() or self.domain_box.isChecked())
        self.take_button.setEnabled(bool(self.importer_box.currentText()) and confirmed)

    def _take(self) -> None:
        self.take_button.setEnabled(False)
        domain = self._inspection.content.domain or NO_DOMAIN if self.domain_box.isChecked() else ""
        self._tab_work.perform_on(
            ImportBundle(),
            self._data,
            {"state": self.importer_box.currentText()},
            self._done,
            self._refused,
            typed=domain if self.question.isHidden() else self.question.typed,
        )

    def _done(self, result: Result) -> None:
        self.imported.emit(result.text)
        self.accept()

    def _refused(self, sentence: str) -> None:
        self.trouble.setText(sentence)
        self.trouble.show()
        self._allow()
