"""Answers to OCSP requests (RFC 6960, RFC 9654 for nonces): whether a certificate is good, revoked, or unknown here."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from cryptography import x509

from labconsole.security.x509.crls import Revoked
from labconsole.security.x509.issuing import Issuer
from labconsole.security.x509.validity import Validity


class NotRevoked(StrEnum):
    """What the issuer knows of a serial number that it did not revoke (RFC 6960, 2.2)."""

    GOOD = "good"
    """It issued a certificate with it."""
    UNKNOWN = "unknown"
    """It never did."""


StatusOf = Callable[[int], NotRevoked | Revoked]
"""Tells the status of the issuer's certificate with a serial number."""


def answer(
    request_der: bytes, issuer: x509.Certificate, responder: Issuer, status_of: StatusOf, validity: Validity
) -> bytes:
    """The DER of an OCSP response to one OCSP request; what is no request gets the answer "malformedRequest".

    Args:
        issuer: the CA whose certificates are asked for; those of others are answered "unknown".
        responder: who signs: that CA itself, or an OCSP responder that it certified.
        validity: the answer's thisUpdate and nextUpdate.

    Raises:
        TokenError: the responder's key lies in a token that refuses.
    """
    raise NotImplementedError
