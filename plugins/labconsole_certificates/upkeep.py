"""What a running console does for the certificates by itself, and what its doctor says of them."""

from __future__ import annotations

from datetime import UTC, datetime

from labconsole.doctor import Check
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.store import PkiStore
from labconsole.store.errors import MissingDatabaseError
from labconsole_certificates.revocation.crl_renewal import due_crls, renew_crls


def upkeep() -> None:
    """Renew the CRLs that are due and need no passphrase. Asks nothing; does nothing without a database.

    Raises StoreError.
    """
    try:
        with PkiReader.open() as reader:
            needed = bool(due_crls(reader.snapshot(), datetime.now(UTC)))
    except MissingDatabaseError:
        return
    if needed:
        with PkiStore.open() as store:
            renew_crls(store)


def checks() -> list[Check]:
    """Look whether the CRLs of this console's CAs are current. Raises StoreError."""
    purpose = "what the CAs of this console issued"
    try:
        with PkiReader.open() as reader:
            snapshot = reader.snapshot()
    except MissingDatabaseError:
        return []
    due = due_crls(snapshot, datetime.now(UTC))
    if not due:
        return [Check("CRLs", True, "none is due", purpose, "")]
    return [Check("CRL", False, one.sentence(), purpose, "labconsole pki publish-crl") for one in due]
