"""Identities: a certificate with its key gets the name by which trials take it."""

from __future__ import annotations

from labconsole.errors import UserError
from labconsole.security.pki.records import CertificateRecord, IdentityRecord
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.names import short_name
from labconsole.security.x509.profiles import AUTHORITIES


def name_identity(store: PkiStore, name: str, certificate: CertificateRecord) -> IdentityRecord:
    """Give the certificate a name; a name in use moves over to it. Raises UserError: no key here, a CA, bad name."""
    if certificate.profile in AUTHORITIES:
        raise UserError(f"{short_name(certificate.certificate)} is a CA: trials take end certificates.")
    with store.change() as change:
        return change.name_identity(name, certificate.id)


def forget_identity(store: PkiStore, name: str) -> None:
    """Free the name of an identity; its certificate and key stay. Raises UserError: there is no such identity."""
    with store.change() as change:
        change.forget_identity(name)
