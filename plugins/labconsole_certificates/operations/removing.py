"""Removed is hidden: certificates go out of sight and can be restored; audit list and rows stay."""

from __future__ import annotations

from labconsole.security.pki.store import PkiStore

from labconsole.security.pki.records import CertificateRecord


def remove(store: PkiStore, certificate: CertificateRecord) -> None:
    """Hide the certificate. Raises TrialError: it is hidden, a State trusts it, or an identity uses it."""
    raise NotImplementedError


def restore(store: PkiStore, certificate: CertificateRecord) -> None:
    """Show it again. Raises TrialError: it is not hidden."""
    raise NotImplementedError
