"""Removed is hidden: certificates go out of sight and can be restored; rows and audit list stay."""

from __future__ import annotations

from labconsole.security.pki.records import CertificateRecord
from labconsole.security.pki.store import PkiStore


def remove(store: PkiStore, certificate: CertificateRecord) -> CertificateRecord:
    """Hide the certificate. Raises UserError: it is hidden, a State trusts it, or an identity uses it."""
    with store.change() as change:
        return change.remove(certificate.id)


def restore(store: PkiStore, certificate: CertificateRecord) -> CertificateRecord:
    """Show it again. Raises UserError: it is not hidden."""
    with store.change() as change:
        return change.restore(certificate.id)
