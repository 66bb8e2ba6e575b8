"""Certificate revocation lists (RFC 5280, 5): always complete ones, with authority key identifier and CRL number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from cryptography import x509

from labconsole.security.x509.issuing import Issuer
from labconsole.security.x509.validity import Validity


@dataclass(frozen=True)
class Revoked:
    """A certificate that does not hold any more; `at` aware, UTC."""

    serial: int
    at: datetime
    reason: x509.ReasonFlags


def make_crl(
    issuer: Issuer, revoked: Sequence[Revoked], number: int, validity: Validity
) -> x509.CertificateRevocationList:
    """A CRL of all certificates that `issuer` revoked; `validity` is its thisUpdate and nextUpdate.

    `number` must be higher than that of the issuer's CRL before (5.2.3); at most 20 octets.

    Raises:
        BadInput: the issuer may not sign CRLs, a serial number is listed twice, or `number` cannot be one.
        TokenError: the issuer's key lies in a token that refuses.
    """
    raise NotImplementedError
