"""Identities: a certificate with its key gets the name by which trials take it."""

from __future__ import annotations

from labconsole.security.pki.store import PkiStore

from labconsole.security.pki.records import CertificateRecord, IdentityRecord


def name_identity(store: PkiStore, name: str, certificate: CertificateRecord) -> IdentityRecord:
    """Give the certificate a name; a name in use moves over to it. Raises TrialError: no key here, a CA, bad name."""
    raise NotImplementedError
