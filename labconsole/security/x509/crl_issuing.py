"""Certificate revocation lists (RFC 5280, 5): always complete ones, with authority key identifier and CRL number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from cryptography import x509

from labconsole.errors import BadInput
from labconsole.security.x509.extensions import extension_of
from labconsole.security.x509.issuing import Issuer, authority_key_id
from labconsole.security.x509.key_types import signing_hash
from labconsole.security.x509.names import name_as_text
from labconsole.security.x509.validity import Validity

_NUMBERS = 1 << 159  # twenty octets, with a sign bit of 0


@dataclass(frozen=True)
class Revoked:
    """A revoked certificate; `at` aware, UTC."""

    serial: int
    at: datetime
    reason: x509.ReasonFlags


def issue_crl(
    issuer: Issuer, revoked: Sequence[Revoked], number: int, validity: Validity
) -> x509.CertificateRevocationList:
    """A CRL of all certificates that `issuer` revoked; `validity` is its thisUpdate and nextUpdate.

    No entry is revoked later than thisUpdate, which is the newest entry's date where that is later.

    `number` must be higher than that of the issuer's CRL before (5.2.3); at most 20 octets.

    Raises:
        BadInput: the issuer may not sign CRLs, a serial number is listed twice, or `number` cannot be one.
        TokenError: the issuer's key is in a token that refuses.
    """
    usage = extension_of(issuer.certificate.extensions, x509.KeyUsage)
    if usage is not None and not usage.crl_sign:
        raise BadInput(f"{name_as_text(issuer.certificate.subject)} may not sign CRLs: choose a CA.")
    if not 0 <= number < _NUMBERS:
        raise BadInput(f"{number} cannot be the number of a CRL: choose one from 0 up.")
    if len({entry.serial for entry in revoked}) < len(revoked):
        raise BadInput("One serial number is listed as revoked twice: list each once.")
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(issuer.certificate.subject)
        .last_update(max((validity.not_before, *(_seconds(entry.at) for entry in revoked))))
        .next_update(validity.not_after)
        .add_extension(authority_key_id(issuer.certificate), critical=False)
        .add_extension(x509.CRLNumber(number), critical=False)
    )
    for entry in revoked:
        builder = builder.add_revoked_certificate(_entry(entry))
    return builder.sign(issuer.key, signing_hash(issuer.key))


def _seconds(at: datetime) -> datetime:
    """Whole seconds, as DER has times."""
    return at.replace(microsecond=0)


def _entry(revoked: Revoked) -> x509.RevokedCertificate:
    """One entry. "unspecified" is expressed by no reason; "removeFromCRL" is for delta CRLs only (5.3.1)."""
    if revoked.reason is x509.ReasonFlags.remove_from_crl:
        raise BadInput("The reason removeFromCRL is for delta CRLs only: choose why the certificate was revoked.")
    builder = x509.RevokedCertificateBuilder().serial_number(revoked.serial).revocation_date(_seconds(revoked.at))
    if revoked.reason is not x509.ReasonFlags.unspecified:
        builder = builder.add_extension(x509.CRLReason(revoked.reason), critical=False)
    return builder.build()
