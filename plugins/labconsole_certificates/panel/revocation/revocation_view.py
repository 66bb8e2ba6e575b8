"""The revocation tab: revoke with a reason, publish CRLs, import those of peers, and the OCSP responder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import ClassVar

from cryptography import x509
from cryptography.x509.ocsp import OCSPCertStatus
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSplitter, QVBoxLayout, QWidget

from labconsole.engine.operation_process import OperationEnd
from labconsole.model.operation import Result
from labconsole.security.pki.records import CrlRecord
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.parsing import read_crl
from labconsole_certificates.describing.oid_names import REASONS
from labconsole_certificates.operations.certificate_import import Import
from labconsole_certificates.operations.export import Form, exported
from labconsole_certificates.panel.drop_area import DropArea
from labconsole_certificates.panel.export_bar import ExportBar, ExportItem
from labconsole_certificates.panel.form_editors import fixed, one_of
from labconsole_certificates.panel.revocation.ocsp_responder_card import ResponderCard
from labconsole_certificates.panel.revocation.revocation_rows import (
    ISSUER_COLUMN,
    CrlRow,
    IssuedRow,
    RevocationRows,
    crl_fields,
    issued_fields,
    rows_of,
    show_records,
)
from labconsole_certificates.panel.tab import DatabaseReading, Tab, TabServices, TabWork
from labconsole_certificates.revocation.ocsp_check import OcspAnswer, ask
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.tables.record_table import DataTable, RecordModel
from labconsole_ui.theme.theme import FontRole
from labconsole_ui.widgets.labels import plain_label
from labconsole_ui.widgets.message_bar import Message, Tone


class RevocationView(Tab):
    """The tab with certificates, CRLs and the responder; the source lacks revocation."""

    key: ClassVar[str] = "revocation"
    chapter: ClassVar[str] = "how-to/revoke-a-certificate.md"
    icon: ClassVar[str] = "revoked"

    def __init__(self, services: TabServices, parent: QWidget | None = None) -> None:
        super().__init__(services, parent)
        self._tab_work = TabWork(services, self)
        self._snapshot: Snapshot | None = None
        self._wanted: int | None = None
        self._answering = False

    def pieces(self) -> Iterator[None]:
        """Build the tables, then their actions, then the responder."""
        theme = self.services.page.theme
        self.issued = RecordModel(issued_fields(), theme, self)
        self.issued_table = self._table(self.tr("Issued here"), self.issued)
        self.crls = RecordModel(crl_fields(datetime.now(UTC)), theme, self)
        self.crl_table = self._table(self.tr("CRLs"), self.crls)
        yield
        self.revoke_button = self._button(self.tr("&Revoke …"), self.revoke)
        self.ask_button = self._button(self.tr("&Ask OCSP"), self.ask)
        self.ask_button.setToolTip(self.tr("Ask the responder about the chosen certificate"))
        self.publish_button = self._button(self.tr("&Publish CRL …"), self.publish)
        self.export_bar = ExportBar(theme, self)
        self.export_bar.exported.connect(self._crl_exported)
        self.export_bar.failed.connect(self._tab_work.bad)
        self.drop_box = DropArea(theme, self.tr("Drop or paste the CRL of a peer's CA"), self)
        self.drop_box.files.connect(self.take)
        self.drop_box.pasted.connect(self._take_data)
        yield
        self.responder = ResponderCard(self._tab_work, self)
        self.responder.serves.connect(self._responder_answers)
        yield
        self.issued_table.selectionModel().selectionChanged.connect(lambda *_changed: self._allow())
        self.crl_table.selectionModel().selectionChanged.connect(lambda *_changed: self._allow())
        self._arrange()
        self._allow()

    def refresh(self, reading: DatabaseReading) -> None:
        """Show the current certificates and CRLs."""
        self._snapshot = reading.snapshot
        self._tab_work.submit(partial(rows_of, reading.snapshot), self._show)

    def take(self, paths: Sequence[Path]) -> None:
        """Import CRLs: each must be signed by a known CA."""
        for path in paths:
            self._tab_work.read(path, self._take_data)

    def choose(self, certificate: int) -> None:
        """Choose the certificate of this id, as soon as it is in the table."""
        self._wanted = certificate
        self._choose_wanted()

    def revoke(self) -> OperationDialog | None:
        """Ask for the reason, and revoke the chosen certificate."""
        row = self._issued_row
        if row is None:
            return None
        sha256 = row.record.sha256
        shown = self.tr("{name} of {owner}").format(name=row.name, owner=row.owner or self.tr("an unknown State"))
        dialog = self.services.open_action(
            "certificates.revoke", {"certificate": sha256}, {"certificate": fixed(sha256, shown)}
        )
        dialog.ended.connect(self._revoked)
        return dialog

    def ask(self) -> None:
        """Ask the responder about the chosen certificate; only answers that its CA has signed are accepted."""
        row = self._issued_row
        if row is not None:
            self._tab_work.submit(
                partial(ask, self.responder.url, row.record.certificate, row.issuer.certificate), self._answered
            )

    def publish(self) -> OperationDialog:
        """Sign the next CRL of a CA of this console."""
        own = [(row.authority.sha256, f"{row.owner}: {row.name}") for row in self.crls.records() if row.own]
        chosen = self._crl_row
        first = chosen.authority.sha256 if chosen is not None and chosen.own else next((key for key, _ in own), "")
        return self.services.open_action("certificates.publish-crl", {"authority": first}, {"authority": one_of(own)})

    def _responder_answers(self, answering: bool) -> None:
        self._answering = answering
        self._allow()

    def _answered(self, answer: OcspAnswer) -> None:
        tone = Tone.GOOD if answer.status is OCSPCertStatus.GOOD else Tone.WARNING
        self.services.page.show_message(Message(tone, answer.sentence))

    def _publish_now(self) -> None:
        self.publish()

    def _take_data(self, data: bytes) -> None:
        """Import a CRL; certificates are refused here, which the same operation would import."""
        self._tab_work.submit(partial(read_crl, data), partial(self._import_crl, data))

    def _import_crl(self, data: bytes, _crl: x509.CertificateRevocationList) -> None:
        self._tab_work.perform_on(Import(), data, {}, self._crl_imported)

    def _crl_exported(self, how: str) -> None:
        """Record the export, without a receiver: a CRL is for all peers."""
        row = self._crl_row
        crl = None if row is None else row.crl
        if crl is not None:
            self._tab_work.note_export([crl], lambda _noted: self._tab_work.good(how))

    def _crl_imported(self, result: Result) -> None:
        self._tab_work.good(self.tr("CRL {number} was imported.").format(number=result.data["crl"]))

    def _revoked(self, end: OperationEnd) -> None:
        if end.result is None:
            return
        reason = x509.ReasonFlags(end.result.data["reason"])
        sentence = self.tr("It is revoked ({reason}). Peers hear of it with the next CRL.")
        self.services.page.show_message(
            Message(
                Tone.WARNING,
                sentence.format(reason=REASONS[reason]),
                remedy=(self.tr("Publish CRL …"), self._publish_now),
            )
        )

    def _show(self, rows: RevocationRows) -> None:
        # With a single CA this column has no information.
        self.issued_table.setColumnHidden(ISSUER_COLUMN, len({row.issuer.id for row in rows.issued}) < 2)
        show_records(self.issued_table, self.issued, rows.issued)
        show_records(self.crl_table, self.crls, rows.crls)
        self._choose_wanted()
        self.responder.show_authorities(
            [(row.authority.sha256, f"{row.owner}: {row.name}") for row in rows.crls if row.own]
        )
        self._allow()

    def _choose_wanted(self) -> None:
        for place, row in enumerate(self.issued.records()):
            if row.record.id == self._wanted:
                self.issued_table.selectRow(place)
                self._wanted = None

    def _allow(self) -> None:
        issued, crl = self._issued_row, self._crl_row
        self.revoke_button.setEnabled(issued is not None and issued.record.revoked is None)
        self.ask_button.setEnabled(issued is not None and self._answering)
        self.publish_button.setEnabled(any(row.own for row in self.crls.records()))
        self.export_bar.show_item(
            None
            if crl is None or crl.crl is None or self._snapshot is None
            else _export_item(self._snapshot, crl, crl.crl)
        )

    @property
    def _issued_row(self) -> IssuedRow | None:
        rows = self.issued_table.selectionModel().selectedRows()
        return self.issued.record(rows[0].row()) if len(rows) == 1 else None

    @property
    def _crl_row(self) -> CrlRow | None:
        rows = self.crl_table.selectionModel().selectedRows()
        return self.crls.record(rows[0].row()) if len(rows) == 1 else None

    def _arrange(self) -> None:
        splitter = QSplitter(Qt.Orientation.Horizontal, self)
        splitter.setChildrenCollapsible(False)
        splitter.setHandleWidth(12)
        splitter.addWidget(self._part(self.tr("Issued here"), self.issued_table, (self.ask_button, self.revoke_button)))
        splitter.addWidget(
            self._part(self.tr("CRLs of all CAs"), self.crl_table, (self.publish_button, self.export_bar))
        )
        splitter.setStretchFactor(0, 1)
        splitter.setStretchFactor(1, 1)
        splitter.setSizes([580, 460])
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 10, 12, 12)
        column.setSpacing(8)
        for widget, stretch in ((self.drop_box, 0), (splitter, 1), (self.responder, 0)):
            column.addWidget(widget, stretch)

    def _part(self, title: str, table: DataTable, buttons: Sequence[QWidget]) -> QWidget:
        part = QWidget(self)
        head = plain_label(title, part)
        head.setFont(self.services.page.theme.font(FontRole.STRONG))
        line = QHBoxLayout()
        line.setSpacing(8)
        line.addWidget(head, 1)
        for button in buttons:
            line.addWidget(button)
        column = QVBoxLayout(part)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addLayout(line)
        column.addWidget(table, 1)
        return part

    def _table(self, name: str, model: RecordModel[IssuedRow] | RecordModel[CrlRow]) -> DataTable:
        table = DataTable(name, self.services.page.theme, self, fit_width=True)
        table.setModel(model)
        table.setSelectionMode(DataTable.SelectionMode.SingleSelection)
        return table

    def _button(self, text: str, clicked: Callable[[], object]) -> QPushButton:
        button = QPushButton(text, self)
        button.clicked.connect(lambda _checked: clicked())
        return button


def _export_item(snapshot: Snapshot, row: CrlRow, crl: CrlRecord) -> ExportItem:
    return ExportItem(
        f"{row.owner}-{row.name}-{crl.number}",
        f"CRL {crl.number} of {row.name}",
        {"pem": exported(snapshot, crl), "crl": exported(snapshot, crl, Form.DER)},
    )
