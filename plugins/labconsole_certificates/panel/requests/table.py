"""The list of requests: from whom, to whose CA, for what, and how far each has come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication

from labconsole.security.pki.records import RequestRecord, RequestStatus
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.certificate_profiles import TEXTS
from labconsole.security.x509.names import short_name
from labconsole_certificates.panel.labels import REQUEST_LOOKS, day, moment
from labconsole_ui.tables.record_table import Field

_translate = QCoreApplication.translate


@dataclass(frozen=True)
class RequestRow:
    """A request with the names of its States."""

    record: RequestRecord
    requester: str
    issuer: str
    subject: str


def rows_of(snapshot: Snapshot, subjects: Mapping[str, str]) -> list[RequestRow]:
    """All requests, the newest first. `subjects` are the names of those that were looked into, by fingerprint."""
    states = snapshot.state_by_id
    return [
        RequestRow(
            request, states[request.requester].name, states[request.issuer].name, subjects.get(request.sha256, "")
        )
        for request in sorted(snapshot.requests, key=lambda request: request.id, reverse=True)
    ]


def subjects_of(snapshot: Snapshot, known: Mapping[str, str]) -> dict[str, str]:
    """Names of the requests that are not `known` yet; takes time, for each is parsed."""
    return {request.sha256: short_name(request.csr) for request in snapshot.requests if request.sha256 not in known}


def status_text(status: RequestStatus) -> str:
    """A request's status in a word or two."""
    return {
        RequestStatus.MADE: _translate("Requests", "made, not sent"),
        RequestStatus.RECEIVED: _translate("Requests", "to be decided"),
        RequestStatus.APPROVED: _translate("Requests", "approved"),
        RequestStatus.REFUSED: _translate("Requests", "refused"),
    }[status]


def fields() -> list[Field[RequestRow]]:
    """The columns."""
    return [
        Field(
            _translate("Requests", "No."),
            lambda row: str(row.record.id),
            sort=lambda row: row.record.id,
            right=True,
        ),
        Field(
            _translate("Requests", "Status"),
            lambda row: status_text(row.record.status),
            icon=lambda row: REQUEST_LOOKS[row.record.status],
            tooltip=lambda row: row.record.reason or status_text(row.record.status),
        ),
        Field(_translate("Requests", "From"), lambda row: row.requester, strong=lambda row: True),
        Field(_translate("Requests", "To CA of"), lambda row: row.issuer),
        Field(_translate("Requests", "For"), lambda row: row.subject),
        Field(_translate("Requests", "Profile"), lambda row: TEXTS[row.record.profile].title),
        Field(
            _translate("Requests", "Since"),
            lambda row: day(row.record.made),
            sort=lambda row: row.record.made,
            tooltip=lambda row: moment(row.record.made),
        ),
    ]
