"""What is to be rotated soon: certificates of this console that run out within 90, 30 or 7 days."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from labconsole.security.certificate_status import NOTICES
from labconsole.security.pki.records import CertificateRecord, Origin, RotationRecord, RotationStatus
from labconsole.security.pki.snapshot import Snapshot


@dataclass(frozen=True)
class Due:
    """A certificate that runs out soon, or has. `notice`: 90, 30, 7, or 0 if it has; `rotation`: that under way."""

    record: CertificateRecord
    notice: int
    days_left: int
    rotation: RotationRecord | None


def due(snapshot: Snapshot, at: datetime) -> tuple[Due, ...]:
    """What of the local States' certificates with their key here runs out within 90 days after `at`, soonest first.

    What was removed, revoked or replaced by a rotation is left out.
    """
    under_way = {rotation.certificate: rotation for rotation in snapshot.rotations if rotation.ended is None}
    replaced = {
        rotation.certificate for rotation in snapshot.rotations if rotation.status is RotationStatus.FINISHED
    } | {record.replaces for record in snapshot.certificates}
    local = {state.id for state in snapshot.states if state.local}
    found = []
    for record in snapshot.certificates:
        ours = record.state in local and record.key is not None and record.origin is not Origin.LINK
        if not ours or record.removed is not None or record.revoked is not None:
            continue
        rotation = under_way.get(record.id)
        if record.id in replaced and rotation is None:
            continue
        left = record.certificate.not_valid_after_utc - at
        notice = 0 if left < timedelta(0) else next((days for days in NOTICES if left <= timedelta(days=days)), None)
        if notice is not None:
            found.append(Due(record, notice, left.days, rotation))
    return tuple(sorted(found, key=lambda one: one.record.certificate.not_valid_after_utc))
