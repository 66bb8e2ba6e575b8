"""Backups of a database: made next to it when runs are over, and opened as a copy if the database is damaged."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from filelock import FileLock, Timeout

from labconsole.clock import wall_now
from labconsole.processes import Owner, is_alive
from labconsole.store.backup_files import Backup, regular_backup
from labconsole.store.database_file import checked_version, connect, copy_database
from labconsole.store.errors import StoreError, explained
from labconsole.store.run_database import RUN_DATABASE


def back_up(path: Path) -> Path | None:
    """Copy the database to `<name>.backup` in place of the backup before, unless nothing was changed since.

    Returns the backup; None if none was needed, another console is making one, or a run is in progress, whose figures
    it would disturb. Call it after the database was closed, since the last one to close it changes it. Takes about 2 s
    for 1 GB. Raises DamagedDatabaseError, with the backup before still there, and StoreError.
    """
    backup = regular_backup(path)
    with explained(path):
        changed_ns = _last_change_ns(path)
        if backup.exists() and backup.stat().st_mtime_ns == changed_ns:
            return None
        try:
            with (
                FileLock(backup.with_name(f"{backup.name}.lock"), timeout=0),
                closing(connect(path, "ro")) as source,
            ):
                if not checked_version(source, path, RUN_DATABASE) or _run_in_progress(source):
                    return None
                copy_database(source, path, backup)
                os.utime(backup, ns=(changed_ns, changed_ns))
        except Timeout:
            return None
    return backup


def restored_copy(path: Path, backup: Backup) -> Path:
    """Copy `backup` to a new database `<name>-restored-<UTC>.db` next to the damaged one, to continue with.

    The damaged database `path` and the backup stay as they are. Raises StoreError.
    """
    restored = path.with_name(f"{path.stem}-restored-{wall_now():%Y%m%dT%H%M%SZ}.db")
    if restored.exists():
        raise StoreError(f"{restored} is there already: open it, or try again.")
    with explained(backup.path), closing(connect(backup.path, "ro")) as source:
        copy_database(source, backup.path, restored)
    return restored


def _run_in_progress(source: sqlite3.Connection) -> bool:
    owners = source.execute("SELECT owner_pid, owner_started, owner_boot FROM run WHERE status = 'running'")
    return any(is_alive(Owner(*owner)) for owner in owners)


def _last_change_ns(path: Path) -> int:
    """The time of the last change of the database or its write-ahead log."""
    log = path.with_name(f"{path.name}-wal")
    changed = path.stat().st_mtime_ns
    return max(changed, log.stat().st_mtime_ns) if log.exists() and log.stat().st_size else changed
