"""Labels, times and icons of the page's views."""

from __future__ import annotations

from datetime import datetime
from types import MappingProxyType

from labconsole.security.certificate_status import StatusKind
from labconsole.security.pki.records import CertificateRecord, RequestStatus, RotationStatus
from labconsole.security.x509.certificate_profiles import TEXTS

DAY_S = 86_400
_UNBROKEN = 24
"""Longest name of a State that is not broken into lines: longer ones would make a card wider."""

STATUS_STYLES = MappingProxyType(
    {
        StatusKind.VALID: ("good", "good"),
        StatusKind.EXPIRING: ("warning", "warning"),
        StatusKind.EXPIRED: ("error", "bad"),
        StatusKind.NOT_YET_VALID: ("waiting", "warning"),
        StatusKind.REVOKED: ("revoked", "bad"),
        StatusKind.UNTRUSTED: ("untrusted", "warning"),
    }
)
"""Icon and colour of a certificate's status."""

REQUEST_STYLES = MappingProxyType(
    {
        RequestStatus.MADE: ("export", "link"),
        RequestStatus.RECEIVED: ("waiting", "warning"),
        RequestStatus.APPROVED: ("good", "good"),
        RequestStatus.REFUSED: ("cancelled", "bad"),
    }
)

ROTATION_STYLES = MappingProxyType(
    {
        RotationStatus.PREPARING: ("waiting", "muted"),
        RotationStatus.OVERLAP: ("running", "link"),
        RotationStatus.SWITCHED: ("running", "link"),
        RotationStatus.FINISHED: ("good", "good"),
        RotationStatus.CANCELLED: ("cancelled", "muted"),
    }
)


def moment(at: datetime) -> str:
    """A time in the operator's own zone, to the minute: `2026-11-21 04:25`."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M")


def day(at: datetime) -> str:
    """A day in the operator's own zone: `2026-11-21`."""
    return at.astimezone().strftime("%Y-%m-%d")


def days_left(until: datetime, now: datetime) -> int:
    """Whole days until then; negative when it has passed."""
    return int((until - now).total_seconds() // DAY_S)


def unbroken(text: str, *names: str) -> str:
    """The text with these names of States kept on one line each, if they are short enough."""
    for name in names:
        if len(name) <= _UNBROKEN:
            text = text.replace(name, name.replace(" ", "\N{NO-BREAK SPACE}"))
    return text


def profile_text(record: CertificateRecord) -> str:
    """The purpose of a certificate in a word or two; empty if unknown."""
    return "" if record.profile is None else TEXTS[record.profile].title
