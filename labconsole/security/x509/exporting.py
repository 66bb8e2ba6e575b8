"""Export formats: certificates, CSRs and CRLs as PEM or DER, chains as PEM."""

from __future__ import annotations

from collections.abc import Sequence

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

Exportable = x509.Certificate | x509.CertificateSigningRequest | x509.CertificateRevocationList


def as_pem(thing: Exportable) -> bytes:
    """PEM (RFC 7468), ASCII, lines end with a newline."""
    return thing.public_bytes(Encoding.PEM)


def as_der(thing: Exportable) -> bytes:
    """DER (X.690)."""
    return thing.public_bytes(Encoding.DER)


def chain_as_pem(certificates: Sequence[x509.Certificate]) -> bytes:
    """Certificates one after the other in PEM, the end certificate first, as TLS and AMQP libraries read them."""
    return b"".join(map(as_pem, certificates))
