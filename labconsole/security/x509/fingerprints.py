"""Fingerprints: SHA-256 of the DER, in groups that people read to each other over the telephone."""

from __future__ import annotations

import hashlib
import hmac
import re

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

_BETWEEN_GROUPS = re.compile(r"[\s:.\-]+")


def fingerprint(
    thing: bytes | x509.Certificate | x509.CertificateSigningRequest | x509.CertificateRevocationList,
) -> str:
    """SHA-256 of the DER (of bytes: of themselves), as 64 lower-case hex digits."""
    return hashlib.sha256(thing if isinstance(thing, bytes) else thing.public_bytes(Encoding.DER)).hexdigest()


def key_fingerprint(public_key: PublicKeyTypes) -> str:
    """SHA-256 of the SubjectPublicKeyInfo (RFC 5280, 4.1.2.7), as 64 lower-case hex digits."""
    return fingerprint(public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))


def groups(digits: str) -> str:
    """Hex digits for people: `0A1B 2C3D ...`."""
    return " ".join(digits[start : start + 4].upper() for start in range(0, len(digits), 4))


def typed_matches(digits: str, typed: str) -> bool:
    """Whether somebody has typed the whole fingerprint; case, blanks, colons and hyphens do not matter."""
    return hmac.compare_digest(_BETWEEN_GROUPS.sub("", typed).lower().encode(), digits.lower().encode())
