"""Certificates that others made, as rows of the database."""

from __future__ import annotations

from collections.abc import Iterable

from cryptography import x509

from labconsole.security.pki.changes import Change
from labconsole.security.pki.records import CertificateRecord, Origin
from labconsole.security.x509.certificate_profiles import CertificateProfile, profile_asked_for
from labconsole.security.x509.extensions import is_ca
from labconsole.security.x509.signatures import issued_by


def profile_of(certificate: x509.Certificate) -> CertificateProfile | None:
    """What a certificate is for, as its extensions say; None if they do not tell."""
    if is_ca(certificate):
        return CertificateProfile.ROOT if issued_by(certificate, certificate) else CertificateProfile.INTERMEDIATE
    return profile_asked_for(certificate.extensions)


def add_chain(change: Change, chain: Iterable[x509.Certificate], state: int | None = None) -> list[CertificateRecord]:
    """Add certificates of others, the last first, so that issuers are there before what they issued."""
    return [
        change.add_certificate(certificate, state=state, profile=profile_of(certificate), origin=Origin.IMPORTED)
        for certificate in reversed(tuple(chain))
    ]
