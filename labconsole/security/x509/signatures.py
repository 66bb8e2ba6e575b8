"""Who signed what: names, key identifiers and the signature itself (RFC 5280, 6.1.3)."""

from __future__ import annotations

from functools import lru_cache

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

_REMEMBERED = 10_000
"""Pairs whose result is cached: it never changes, and views check the same certificates repeatedly."""


@lru_cache(maxsize=_REMEMBERED)
def issued_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    """Whether `issuer`'s name and key signed `certificate`; validity and rights are not checked."""
    try:
        certificate.verify_directly_issued_by(issuer)
    except (InvalidSignature, UnsupportedAlgorithm, ValueError, TypeError):
        return False
    return True


def crl_signed_by(crl: x509.CertificateRevocationList, issuer: x509.Certificate) -> bool:
    """Whether the CRL names `issuer` and was signed with its key."""
    if crl.issuer != issuer.subject:
        return False
    try:
        return crl.is_signature_valid(issuer.public_key())  # type: ignore[arg-type]  # of any type; else it raises
    except (UnsupportedAlgorithm, ValueError, TypeError):
        return False
