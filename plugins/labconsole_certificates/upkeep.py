"""Background work of a running console for the certificates, and its checks in `labconsole doctor`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from labconsole.doctor import Check
from labconsole.security.pki.keys import stray_key_files
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.store.errors import MissingDatabaseError
from labconsole_certificates.revocation.crl_renewal import due_crls, renew_crls


def upkeep() -> None:
    """Renew the CRLs that are due and need no passphrase. Never prompts; does nothing without a database.

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
    """The checks for CRLs of this console's CAs that are out of date, and for stray key files. Raises StoreError."""
    try:
        with PkiReader.open() as reader:
            snapshot, directory = reader.snapshot(), reader.directory
    except MissingDatabaseError:
        return []
    return [*_crl_checks(snapshot), *_key_file_checks(directory, snapshot)]


def _key_file_checks(directory: Path, snapshot: Snapshot) -> list[Check]:
    stray = stray_key_files(directory, snapshot.keys)
    if not stray:
        return []
    files = "One key file belongs" if len(stray) == 1 else f"{len(stray)} key files belong"
    found = f"{files} to no certificate: a process was ended while it created a key. Remove them."
    return [Check("key files", False, found, "no more secrets on disk than needed", "labconsole pki remove-key-files")]


def _crl_checks(snapshot: Snapshot) -> list[Check]:
    purpose = "what the CAs of this console issued"
    due = due_crls(snapshot, datetime.now(UTC))
    if not due:
        return [Check("CRLs", True, "none is due", purpose, "")]
    return [Check("CRL", False, one.sentence(), purpose, "labconsole pki publish-crl") for one in due]
