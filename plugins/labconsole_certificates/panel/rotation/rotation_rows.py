"""The tables of the rotation tab: certificates that expire soon, and rotations in progress or finished."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from PySide6.QtCore import QCoreApplication

from labconsole.security.certificate_status import NOTICES
from labconsole.security.pki.records import CertificateRecord, Origin, RotationStatus
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.certificate_profiles import AUTHORITIES
from labconsole.security.x509.names import short_name
from labconsole_certificates.panel.labels import ROTATION_STYLES, day, days_left, profile_text
from labconsole_certificates.rotation.plan import RotationPlan, due, plan_of
from labconsole_ui.tables.record_table import Field

_translate = QCoreApplication.translate
_UNDER_WAY = frozenset({RotationStatus.PREPARING, RotationStatus.OVERLAP, RotationStatus.SWITCHED})


@dataclass(frozen=True)
class RotatingRow:
    """A certificate with its key here. `notice`: 90, 30, 7, or 0 if it has expired; None if it is valid longer."""

    record: CertificateRecord
    name: str
    issuer: str
    """Name of the issuer; empty for a self-signed certificate."""
    owner: str
    days_left: int
    notice: int | None
    plan: RotationPlan | None
    """The rotation in progress, else the last one."""
    successor: bool = False
    """Whether it is the successor of a rotation."""


def rows_of(snapshot: Snapshot, at: datetime) -> tuple[RotatingRow, ...]:
    """All certificates that could be rotated here, the next to expire on top; takes time, as it reads them all."""
    notices = {entry.record.id: entry.notice for entry in due(snapshot, at)}
    last = {rotation.certificate: rotation for rotation in snapshot.rotations}
    successors = {rotation.successor for rotation in snapshot.rotations}
    local = {state.id: state.name for state in snapshot.states if state.local}
    rows = [
        RotatingRow(
            record,
            short_name(record.certificate),
            _issuer(record),
            local[record.state or 0],
            days_left(record.certificate.not_valid_after_utc, at),
            notices.get(record.id),
            plan_of(snapshot, last[record.id], at) if record.id in last else None,
            record.id in successors,
        )
        for record in snapshot.certificates
        if record.key is not None
        and record.state in local
        and record.origin is not Origin.LINK
        and record.removed is None
        and record.revoked is None
    ]
    return tuple(sorted(rows, key=lambda row: row.record.certificate.not_valid_after_utc))


def under_way(row: RotatingRow) -> bool:
    """Whether it is being rotated."""
    return row.plan is not None and row.plan.rotation.status in _UNDER_WAY


def status_text(status: RotationStatus) -> str:
    """A rotation's status in a few words."""
    return {
        RotationStatus.PREPARING: _translate("Rotation", "preparing"),
        RotationStatus.OVERLAP: _translate("Rotation", "both valid"),
        RotationStatus.SWITCHED: _translate("Rotation", "switched"),
        RotationStatus.FINISHED: _translate("Rotation", "finished"),
        RotationStatus.CANCELLED: _translate("Rotation", "cancelled"),
    }[status]


def fields() -> list[Field[RotatingRow]]:
    """The columns."""
    return [
        Field(
            _translate("Rotation", "Certificate"),
            lambda row: row.name,
            icon=lambda row: ("authority" if row.record.profile in AUTHORITIES else "certificate", "muted"),
            strong=lambda row: True,
        ),
        Field(_translate("Rotation", "Issued by"), lambda row: row.issuer or _translate("Rotation", "itself")),
        Field(_translate("Rotation", "For"), lambda row: profile_text(row.record)),
        Field(_translate("Rotation", "Of"), lambda row: row.owner),
        Field(
            _translate("Rotation", "Days left"),
            lambda row: f"{row.days_left:,}",
            sort=lambda row: row.record.certificate.not_valid_after_utc,
            tooltip=lambda row: day(row.record.certificate.not_valid_after_utc),
            right=True,
            tone=_tone,
        ),
        Field(
            _translate("Rotation", "Rotation"),
            _rotation_text,
            icon=lambda row: None if row.plan is None else ROTATION_STYLES[row.plan.rotation.status],
        ),
    ]


def _tone(row: RotatingRow) -> str | None:
    if row.notice is None:
        return None
    return "bad" if row.notice <= NOTICES[0] else "warning"


def _issuer(record: CertificateRecord) -> str:
    certificate = record.certificate
    return "" if certificate.issuer == certificate.subject else short_name(certificate.issuer)


def _rotation_text(row: RotatingRow) -> str:
    if row.plan is not None:
        return status_text(row.plan.rotation.status)
    return _translate("Rotation", "successor") if row.successor else ""
