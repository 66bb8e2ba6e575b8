"""What is to be rotated soon: certificates of this console that run out within 90, 30 or 7 days."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from labconsole.security.pki.records import CertificateRecord, RotationRecord
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
    raise NotImplementedError
