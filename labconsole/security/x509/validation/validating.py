"""Validates certificates against roots: accepted only if `cryptography` and OpenSSL, the latter with CRLs, both accept."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from cryptography import x509

from labconsole.security.x509.validation.judgement import Judgement, Purpose


class Validator:
    """Validates any number of end certificates against the same roots, intermediates and CRLs at one time.

    `at` is aware. `crls_required`: a path is refused unless there is a CRL of every issuer in it; otherwise CRLs are
    used where they are known, and the judgement names the issuers without.
    """

    def __init__(
        self,
        roots: Iterable[x509.Certificate],
        intermediates: Iterable[x509.Certificate],
        crls: Iterable[x509.CertificateRevocationList],
        *,
        at: datetime,
        crls_required: bool = False,
    ) -> None:
        raise NotImplementedError

    def validate(self, leaf: x509.Certificate, purpose: Purpose = Purpose.ANY, name: str | None = None) -> Judgement:
        """Judge `leaf` for `purpose`; `name` (DNS name or IP address) must be among its subject alternative names."""
        raise NotImplementedError


def validate(
    leaf: x509.Certificate,
    intermediates: Iterable[x509.Certificate],
    roots: Iterable[x509.Certificate],
    crls: Iterable[x509.CertificateRevocationList] = (),
    *,
    at: datetime,
    purpose: Purpose = Purpose.ANY,
    name: str | None = None,
    crls_required: bool = False,
) -> Judgement:
    """Judge one end certificate: see Validator."""
    return Validator(roots, intermediates, crls, at=at, crls_required=crls_required).validate(leaf, purpose, name)
