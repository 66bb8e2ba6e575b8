"""The requests tab: own and imported CSRs with their details, the decision, and the answer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSplitter, QVBoxLayout, QWidget

from labconsole.security.pki.records import RequestRecord, RequestStatus
from labconsole.security.pki.snapshot import Snapshot
from labconsole_certificates.panel.drop_area import DropArea
from labconsole_certificates.panel.requests.methods_dialog import MethodsDialog, methods
from labconsole_certificates.panel.requests.request_details import (
    RequestDetails,
    RequestPane,
    RequestRow,
    fields,
    request_details,
    rows_of,
    subjects_of,
)
from labconsole_certificates.panel.requests.request_forms import RequestForms
from labconsole_certificates.panel.requests.request_import import RequestImport
from labconsole_certificates.panel.tab import DatabaseReading, Tab, TabServices, TabWork
from labconsole_ui.tables.record_table import DataTable, RecordModel


class RequestsView(Tab):
    """As client: create key pair and CSR, export it. As server: import, inspect, decide, return the certificate."""

    key: ClassVar[str] = "requests"
    chapter: ClassVar[str] = "how-to/request-a-certificate.md"
    icon: ClassVar[str] = "request"

    def __init__(self, services: TabServices, parent: QWidget | None = None) -> None:
        super().__init__(services, parent)
        self._tab_work = TabWork(services, self)
        self._snapshot: Snapshot | None = None
        self._subjects: dict[str, str] = {}
        self._chosen: int | None = None
        theme = services.page.theme
        self.forms = RequestForms(services, self)
        self.new_button = QPushButton(self.tr("&New certificate …"), self)
        self.new_button.setProperty("primary", True)
        self.new_button.clicked.connect(lambda _checked: self.choose_method())
        self.drop_box = DropArea(
            theme, self.tr("Drop or paste what another State sent: its CSR, or your certificate"), self
        )
        self._taking_in = RequestImport(self._tab_work, self)
        self.drop_box.files.connect(self._taking_in.take_files)
        self.drop_box.pasted.connect(self._taking_in.take)
        self._taking_in.request_imported.connect(self.show_request)
        self._taking_in.pkcs12_given.connect(self.forms.import_pkcs12)
        self.model = RecordModel(fields(), theme, self)
        self.table = DataTable(self.tr("Requests"), theme, self, fit_width=True)
        self.table.setModel(self.model)
        self.table.selectionModel().currentRowChanged.connect(self._row_chosen)
        self.pane = RequestPane(theme, self)
        self.pane.approve_wanted.connect(self.forms.approve)
        self.pane.refuse_wanted.connect(self.forms.refuse)
        self.pane.receive_wanted.connect(self._receive)
        self.pane.exported.connect(self._note_export)
        self.pane.failed.connect(self._tab_work.bad)
        self._arrange()

    def refresh(self, reading: DatabaseReading) -> None:
        """Show the requests of this snapshot."""
        snapshot = self._snapshot = reading.snapshot
        self.forms.refresh(snapshot)
        self.new_button.setEnabled(any(state.local for state in snapshot.states))
        self._taking_in.refresh(snapshot)
        self._show_rows()
        self._tab_work.submit(partial(subjects_of, snapshot, dict(self._subjects)), self._subjects_known)

    def take(self, paths: Sequence[Path]) -> None:
        """Inspect CSRs, certificates or PKCS#12 files that were dropped on the window."""
        self._taking_in.take_files(list(paths))

    def choose_method(self) -> MethodsDialog:
        """Ask for the method of a new certificate."""
        ways = methods(self.tr, self.forms.make_request, self.forms.make_for_client, self.forms.make_self_signed)
        dialog = MethodsDialog(self.services.page.theme, ways, self)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()
        return dialog

    def show_request(self, number: int) -> None:
        """Choose the request with this number as soon as it is in the list."""
        self._chosen = number
        self._choose_row()

    def _receive(self, record: RequestRecord) -> None:
        """Import a request between two States of this console for the other one."""
        if self._snapshot is not None:
            self._taking_in.take_known(record, self._snapshot)

    def _note_export(self, details: RequestDetails, how: str) -> None:
        """Record an export, by which the exchange assistant knows what was sent."""
        snapshot, record = self._snapshot, details.row.record
        if snapshot is None:
            return
        requester, issuer = snapshot.state_by_id[record.requester], snapshot.state_by_id[record.issuer]
        exported, sender, receiver = (
            (record, requester, issuer) if details.certificate is None else (details.certificate, issuer, requester)
        )
        self._tab_work.note_export([exported], lambda _done: self._tab_work.good(how), sender=sender, receiver=receiver)

    def _subjects_known(self, subjects: dict[str, str]) -> None:
        if subjects:
            self._subjects.update(subjects)
            self._show_rows()

    def _show_rows(self) -> None:
        if self._snapshot is None:
            return
        first = not self.model.rowCount()
        self.model.set_records(rows_of(self._snapshot, self._subjects))
        if first or self._subjects:
            self.table.fit_columns()
        self._choose_row()

    def _choose_row(self) -> None:
        """Keep the chosen request chosen; without one, choose the first that waits for a decision."""
        rows = self.model.records()
        numbers = [row.record.id for row in rows]
        if self._chosen not in numbers:
            waiting = [row.record.id for row in rows if row.record.status is RequestStatus.RECEIVED]
            self._chosen = next(iter(waiting or numbers), None)
        if self._chosen is None:
            self.pane.show_details(None, self._empty_text())
            return
        place = numbers.index(self._chosen)
        self.table.selectionModel().blockSignals(True)
        self.table.selectRow(place)
        self.table.selectionModel().blockSignals(False)
        self.table.viewport().update()
        self._inspect_row(rows[place])

    def _empty_text(self) -> str:
        """The hint for an empty list."""
        if self._snapshot is not None and any(state.local for state in self._snapshot.states):
            return self.tr("No request yet: create one with “New certificate”, or import that of another State.")
        return self.tr("No State of this console yet: create your CA in the tab “Certificates” first.")

    def _row_chosen(self, current: QModelIndex, _before: QModelIndex) -> None:
        if current.isValid():
            row = self.model.record(current.row())
            self._chosen = row.record.id
            self._inspect_row(row)

    def _inspect_row(self, row: RequestRow) -> None:
        if self._snapshot is not None:
            self._tab_work.submit(partial(request_details, row, self._snapshot), self._details_ready)

    def _details_ready(self, details: RequestDetails) -> None:
        if details.row.record.id == self._chosen:
            self.pane.show_details(details)

    def _arrange(self) -> None:
        top = QHBoxLayout()
        top.setSpacing(10)
        top.addWidget(self.drop_box, 1)
        top.addWidget(self.new_button)
        splitter = QSplitter(Qt.Orientation.Horizontal, self)
        splitter.setChildrenCollapsible(False)
        splitter.setHandleWidth(12)
        splitter.addWidget(self.table)
        splitter.addWidget(self.pane)
        splitter.setStretchFactor(0, 3)
        splitter.setStretchFactor(1, 2)
        splitter.setSizes([640, 410])
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 10, 12, 12)
        column.setSpacing(10)
        column.addLayout(top)
        column.addWidget(splitter, 1)
