"""Signed files: CMS SignedData (RFC 5652) with one signer, made and verified.

Algorithms: RSA (RFC 3370, PKCS #1 v1.5), ECDSA (RFC 5753), Ed25519 (RFC 8419), ML-DSA (RFC 9882). A key in a token signs
like any other: only its `sign` is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from cryptography import x509

from labconsole.security.x509.gate import PrivateKey


@dataclass(frozen=True)
class SignedMessage:
    """A CMS SignedData as it was read: nothing of it is verified."""

    content: bytes
    certificates: tuple[x509.Certificate, ...]
    """What came along; none of them is trusted for that."""
    signer: x509.Certificate
    """The one of `certificates` that the signer information names."""
    signing_time: datetime | None
    """As the signer says; aware, UTC."""
    signature_algorithm: str
    """In words, as in "ECDSA with SHA-256"."""


def sign(
    content: bytes,
    certificate: x509.Certificate,
    key: PrivateKey,
    *,
    chain: Sequence[x509.Certificate] = (),
    at: datetime | None = None,
) -> bytes:
    """DER of a SignedData over `content` (attached, type id-data) by `key`, which belongs to `certificate`.

    `at`: the signing time (default: now). Raises BadInput if key and certificate do not belong together.
    """
    raise NotImplementedError


def read(data: bytes) -> SignedMessage:
    """What a CMS file (DER or PEM) holds, unverified. Raises BadInput."""
    raise NotImplementedError


def verify(data: bytes) -> SignedMessage:
    """What a CMS file holds, if its signature is that of its signer's certificate.

    Whether the signer is anybody whom one trusts is for the caller to judge. Raises BadInput.
    """
    raise NotImplementedError
