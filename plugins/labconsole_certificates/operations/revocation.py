"""Revocation: end a certificate before its time, publish the CRL, take in those of others (RFC 5280, 5)."""

from __future__ import annotations

from cryptography import x509
from labconsole.security.pki.store import PkiStore

from labconsole.security.pki.records import CertificateRecord, CrlRecord, State
from labconsole.security.secrets import Prompt

CRL_DAYS = 7


def revoke(
    store: PkiStore,
    certificate: CertificateRecord,
    reason: x509.ReasonFlags = x509.ReasonFlags.unspecified,
) -> CertificateRecord:
    """Revoke a certificate that a CA of ours issued; peers hear of it with the next CRL.

    Raises TrialError: revoked already, not issued here, or self-signed.
    """
    raise NotImplementedError


def publish_crl(
    store: PkiStore, authority: CertificateRecord, *, days: int = CRL_DAYS, prompt: Prompt | None = None
) -> CrlRecord:
    """Sign a CRL of all that `authority` issued and revoked; its number is one more than the last.

    Raises TrialError: no key here, or the CA is expired or revoked.
    """
    raise NotImplementedError


def take_in_crl(store: PkiStore, data: bytes, sender: State | None = None) -> CrlRecord:
    """Take in a CRL of a CA that is known here; what it lists counts as revoked from then on.

    Raises TrialError: no CRL, of an unknown CA, not signed by it, or older than the one that is here.
    """
    raise NotImplementedError
