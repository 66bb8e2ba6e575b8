"""The status of certificates: valid, expiring, expired, not yet valid, revoked or untrusted, each with its cause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from labconsole.security.pki.records import CertificateRecord

if TYPE_CHECKING:
    from labconsole.security.pki.snapshot import Snapshot

NOTICES = (7, 30, 90)
"""Days before the end of validity at which an expiring certificate is told of, each more pressing than the next."""


class StatusKind(StrEnum):
    """How it stands with a certificate; the worst that applies: revoked, expired, not yet valid, untrusted, expiring."""

    VALID = "valid"
    EXPIRING = "expiring"
    EXPIRED = "expired"
    NOT_YET_VALID = "not-yet-valid"
    REVOKED = "revoked"
    UNTRUSTED = "untrusted"


@dataclass(frozen=True)
class Status:
    """How it stands with a certificate, and why in one sentence. `notice`: 90, 30 or 7 where it is expiring."""

    kind: StatusKind
    cause: str
    notice: int | None = None


def status_of(record: CertificateRecord, snapshot: Snapshot, at: datetime, observer: int | None = None) -> Status:
    """Status of one certificate at time `at` (aware) in the eyes of State `observer`, or of any local State."""
    raise NotImplementedError


def all_statuses(snapshot: Snapshot, at: datetime, observer: int | None = None) -> Mapping[int, Status]:
    """Status of every certificate in the snapshot, by id; about a second for 2,000, so for a background thread."""
    raise NotImplementedError
