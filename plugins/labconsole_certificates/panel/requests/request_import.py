"""Imports files of other States in the requests tab: a CSR, a certificate that was issued for us, or a PKCS#12."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QWidget

from labconsole.errors import BadInput
from labconsole.model.operation import Result
from labconsole.security.pki.records import RequestRecord
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509 import parsing
from labconsole.security.x509.csrs import CsrJudgement, judge_csr
from labconsole.security.x509.fingerprints import fingerprint
from labconsole.security.x509.parsing import ContentKind
from labconsole_certificates.describing.description import Description
from labconsole_certificates.describing.pki_objects import describe
from labconsole_certificates.operations.own_csrs import ImportCertificate
from labconsole_certificates.operations.received_csrs import ImportRequest
from labconsole_certificates.panel.requests.import_request_dialog import Answer, NewRequestDialog
from labconsole_certificates.panel.tab import Tab, TabWork

_OTHER_TABS = {ContentKind.CRL: "revocation", ContentKind.CMS: "trust"}


@dataclass(frozen=True)
class ReceivedFile:
    """An inspected file. Only CSRs have all fields."""

    kind: ContentKind
    data: bytes
    path: Path | None
    sha256: str = ""
    description: Description | None = None
    judgement: CsrJudgement | None = None


class RequestImport(QObject):
    """`request_imported` carries the number of a request, `pkcs12_given` the path of a file with a key in it."""

    request_imported = Signal(int)
    pkcs12_given = Signal(object)

    def __init__(self, tab_work: TabWork, page: QWidget) -> None:
        super().__init__(page)
        self._tab_work = tab_work
        self._page = page
        self._snapshot: Snapshot | None = None
        self.dialog: NewRequestDialog | None = None

    def refresh(self, snapshot: Snapshot) -> None:
        """Use the States and requests of this snapshot."""
        self._snapshot = snapshot

    def take_files(self, paths: Sequence[Path]) -> None:
        """Inspect files, one after another."""
        for path in paths:
            self._tab_work.submit(partial(_inspect_file, path), self._arrived)

    def take(self, data: bytes) -> None:
        """Inspect pasted text."""
        self._tab_work.submit(partial(_inspect, data, None, self.tr("The pasted text")), self._arrived)

    def take_known(self, record: RequestRecord, snapshot: Snapshot) -> None:
        """Import a CSR that is in the database already, with the States and the profile that it has there."""
        states = snapshot.state_by_id
        values = {
            "sender": states[record.requester].name,
            "receiver": states[record.issuer].name,
            "profile": str(record.profile),
        }
        self._tab_work.perform_on(ImportRequest(), record.der, values, self._request_imported)

    def _arrived(self, arrival: ReceivedFile) -> None:
        if self._snapshot is None:
            return
        if arrival.kind is ContentKind.CSR:
            self._take_request(self._snapshot, arrival)
        elif arrival.kind is ContentKind.CERTIFICATE:
            self._tab_work.perform_on(ImportCertificate(), arrival.data, {}, self._certificate_imported)
        elif arrival.kind is ContentKind.PKCS12 and arrival.path is not None:
            self.pkcs12_given.emit(arrival.path)
        elif arrival.kind in _OTHER_TABS and arrival.path is not None:
            self._route_files(_OTHER_TABS[arrival.kind], arrival.path)
        else:
            self._tab_work.bad(self.tr("Not a CSR, certificate or PKCS#12 file: nothing was imported."))

    def _route_files(self, key: str, path: Path) -> None:
        """Report that the file belongs to another tab."""
        tab = self._tab_work.services.show_tab(key)
        if isinstance(tab, Tab):
            tab.take([path])

    def _take_request(self, snapshot: Snapshot, arrival: ReceivedFile) -> None:
        """Import a CSR: one created here for another State of this console is known, others need the dialog."""
        known = next((request for request in snapshot.requests if request.sha256 == arrival.sha256), None)
        if known is not None:
            self.take_known(known, snapshot)
            return
        assert arrival.description is not None and arrival.judgement is not None
        dialog = NewRequestDialog(
            self._tab_work.theme, snapshot.states, arrival.description, arrival.judgement, self._page
        )
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.answered.connect(partial(self._take_answered, arrival.data))
        dialog.destroyed.connect(self._forget_dialog)
        self.dialog = dialog
        dialog.open()

    def _take_answered(self, data: bytes, answer: Answer) -> None:
        values = {
            "sender": answer.requester,
            "receiver": answer.issuer,
            "profile": str(answer.profile),
            "add_state": True,
        }
        self._tab_work.perform_on(ImportRequest(), data, values, self._request_imported)

    def _request_imported(self, result: Result) -> None:
        self.request_imported.emit(result.data["request"])

    def _certificate_imported(self, result: Result) -> None:
        self._tab_work.good(
            self.tr("The certificate {name} was imported: it belongs to a key of this console.").format(
                name=result.data["certificate"]
            )
        )

    def _forget_dialog(self) -> None:
        self.dialog = None


def _inspect_file(path: Path) -> ReceivedFile:
    return _inspect(parsing.read_file(path), path, path.name)


def _inspect(data: bytes, path: Path | None, what: str) -> ReceivedFile:
    """Raises BadInput: unknown content, or a damaged CSR."""
    kind = parsing.kind_of(data)
    if kind is ContentKind.UNKNOWN:
        raise BadInput(f"{what} is neither a CSR nor a certificate: ask for it as PEM or DER.")
    if kind is not ContentKind.CSR:
        return ReceivedFile(kind, data, path)
    csr = parsing.read_csr(data, what)
    return ReceivedFile(kind, data, path, fingerprint(csr), describe(csr), judge_csr(csr))
