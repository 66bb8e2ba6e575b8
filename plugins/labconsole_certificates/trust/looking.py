"""Looks into a trust bundle for the person before it: what it says, and what must be confirmed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cryptography import x509

from labconsole.security.pki.store import Snapshot


@dataclass(frozen=True)
class BundleLook:
    """What a bundle says of itself. Its signature is its signer's; whether that is the State, nobody has checked."""

    state: str
    domain: str
    sequence: int
    made: datetime
    next_update: datetime
    signer: x509.Certificate
    fingerprint: str
    """SHA-256 (hex) of the signer's certificate: what is compared out of band."""
    roots: tuple[x509.Certificate, ...]
    intermediates: tuple[x509.Certificate, ...]
    links: tuple[x509.Certificate, ...]
    crls: tuple[x509.CertificateRevocationList, ...]
    trusted: tuple[str, ...]
    """SHA-256 (hex) of the roots that the State says it trusts."""


def look_into(data: bytes) -> BundleLook:
    """What the bundle `data` says. Raises BadInput: it is none, or is damaged."""
    raise NotImplementedError


def must_be_confirmed(snapshot: Snapshot, importer: str, look: BundleLook) -> bool:
    """Whether `importer` knows the State of `look` by no root yet, so that its fingerprint has to be typed."""
    raise NotImplementedError
