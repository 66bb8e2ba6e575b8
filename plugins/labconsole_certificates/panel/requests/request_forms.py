"""The dialogs of the requests tab: each action's form, filled with the States of the database."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject

from labconsole.security.pki.records import RequestRecord, State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.names import short_name
from labconsole_certificates.operations.issuing import server_host
from labconsole_certificates.operations.record_lookup import authorities_of
from labconsole_certificates.panel.form_editors import fixed, one_name_of, one_of
from labconsole_certificates.panel.labels import day
from labconsole_certificates.panel.tab import TabServices
from labconsole_ui.form.field_row import EditorFactory
from labconsole_ui.operations.operation_dialog import OperationDialog


class RequestForms(QObject):
    """Opens the dialogs with the States of the last snapshot."""

    def __init__(self, services: TabServices, parent: QObject) -> None:
        super().__init__(parent)
        self._services = services
        self._states: tuple[State, ...] = ()
        self._snapshot: Snapshot | None = None

    def refresh(self, snapshot: Snapshot) -> None:
        """Use the States of this snapshot."""
        self._snapshot = snapshot
        self._states = snapshot.states

    def make_request(self, state: str = "", issuer: str = "") -> OperationDialog:
        """As client: create a key pair and a CSR for another State's CA."""
        client = state or self._first(self._local)
        server = issuer or self._first([name for name in self._names if name != client])
        return self._open(
            "certificates.make-request",
            {"state": client, "issuer": server},
            {"state": one_name_of(self._local), "issuer": one_name_of(self._names)},
        )

    def make_server_request(self, server: State) -> OperationDialog:
        """Request the certificate of a State's server from its own CA, named within its domain."""
        return self._open(
            "certificates.make-request",
            {
                "state": server.name,
                "issuer": server.name,
                "profile": str(CertificateProfile.TLS_SERVER),
                "names": [server_host(server)],
            },
            {
                "state": one_name_of([server.name]),
                "issuer": one_name_of([server.name]),
            },
        )

    def make_for_client(self, issuer: str = "", client: str = "") -> OperationDialog:
        """The No-CSR method: key and certificate for another State in one PKCS#12."""
        server = issuer or self._first(self._local)
        client = client or self._first([name for name in self._names if name != server])
        return self._open(
            "certificates.make-for-client",
            {"issuer": server, "client": client, "file": str(Path.home() / f"{client}-for-{server}.p12")},
            {
                "issuer": one_name_of(self._local),
                "client": one_name_of(self._names),
                "authority": self._authorities(server),
            },
        )

    def make_self_signed(self, state: str = "") -> OperationDialog:
        """An end certificate without any CA."""
        return self._open(
            "certificates.self-signed",
            {"state": state or self._first(self._local)},
            {"state": one_name_of(self._local)},
        )

    def approve(self, record: RequestRecord) -> OperationDialog:
        """As server: issue the certificate, with a chosen profile and validity."""
        issuer = next(state.name for state in self._states if state.id == record.issuer)
        return self._open(
            "certificates.approve-request",
            {"request": record.id, "profile": str(record.profile)},
            {"request": self._fixed_request(record), "authority": self._authorities(issuer)},
        )

    def refuse(self, record: RequestRecord) -> OperationDialog:
        """As server: refuse it, with the reason."""
        return self._open("certificates.refuse", {"request": record.id}, {"request": self._fixed_request(record)})

    def import_pkcs12(self, path: Path) -> OperationDialog:
        """As client: import the PKCS#12 that another State created."""
        return self._open(
            "certificates.import-pkcs12",
            {"state": self._first(self._local), "file": str(path)},
            {
                "state": one_name_of(self._local),
                "sender": one_of([("", self.tr("Not noted")), *((name, name) for name in self._names)]),
            },
        )

    @property
    def _names(self) -> list[str]:
        return [state.name for state in self._states]

    @property
    def _local(self) -> list[str]:
        return [state.name for state in self._states if state.local]

    def _fixed_request(self, record: RequestRecord) -> EditorFactory:
        requester = next(state.name for state in self._states if state.id == record.requester)
        said = self.tr("{number}, of {requester}").format(number=record.id, requester=requester)
        return fixed(record.id, said)

    def _first(self, names: list[str]) -> str:
        return next(iter(names), "")

    def _authorities(self, name: str) -> EditorFactory:
        """The CA certificates with which this State can issue now."""
        choices = [("", self.tr("The newest that can issue"))]
        state = next((state for state in self._states if state.name == name), None)
        if self._snapshot is not None and state is not None:
            for found in authorities_of(self._snapshot, state, datetime.now(UTC)):
                until = day(found.certificate.not_valid_after_utc)
                said = self.tr("{name}, until {day}").format(name=short_name(found.certificate), day=until)
                choices.append((found.sha256, said))
        return one_of(choices)

    def _open(self, name: str, values: Mapping[str, Any], editors: Mapping[str, EditorFactory]) -> OperationDialog:
        return self._services.open_action(name, values, editors)
