"""A change of the certificate database: one transaction with all that can be written in it."""

from __future__ import annotations

from labconsole.security.pki.certificate_changes import CertificateChanges
from labconsole.security.pki.key_changes import KeyChanges
from labconsole.security.pki.trust_changes import TrustChanges


class Change(KeyChanges, CertificateChanges, TrustChanges):
    """Made by `PkiStore.change`. Each method adds its row to the audit list.

    Methods take ids of rows, return what the database then holds, and raise StoreError or BadInput; where one
    of these leaves the `change` block, nothing at all is changed.
    """
