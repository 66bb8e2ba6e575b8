"""Fingerprints: SHA-256 of the DER, formatted in groups that people read out over the telephone, and compared."""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

if TYPE_CHECKING:
    from cryptography import x509

_BETWEEN_GROUPS = re.compile(r"[\s:.\-]+")


def fingerprint(
    thing: bytes | x509.Certificate | x509.CertificateSigningRequest | x509.CertificateRevocationList,
) -> str:
    """SHA-256 of the DER (of bytes: of themselves), as 64 lower-case hex digits."""
    return hashlib.sha256(thing if isinstance(thing, bytes) else thing.public_bytes(Encoding.DER)).hexdigest()


def key_fingerprint(public_key: PublicKeyTypes) -> str:
    """SHA-256 of the SubjectPublicKeyInfo (RFC 5280, 4.1.2.7), as 64 lower-case hex digits."""
    return fingerprint(public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))


def grouped(digits: str, groups_per_line: int = 0) -> str:
    """Hex digits in groups of four, `0A1B 2C3D ...`, in one line or `groups_per_line` (two blanks between groups)."""
    groups = [digits[start : start + 4].upper() for start in range(0, len(digits), 4)]
    if not groups_per_line:
        return " ".join(groups)
    starts = range(0, len(groups), groups_per_line)
    return "\n".join("  ".join(groups[start : start + groups_per_line]) for start in starts)


def short_fingerprint(sha256: str) -> str:
    """The first 16 digits of a fingerprint, ungrouped: operations accept them for the whole fingerprint."""
    return sha256[:16].upper()


def typed_matches(digits: str, typed: str) -> bool:
    """Whether `typed` is the whole fingerprint; case, blanks, colons and hyphens do not matter."""
    return hmac.compare_digest(_BETWEEN_GROUPS.sub("", typed).lower().encode(), digits.lower().encode())
