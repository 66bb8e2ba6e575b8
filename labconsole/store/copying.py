"""A database as a new file: complete and checked, or not there at all."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from labconsole.store.errors import DamagedDatabaseError, StoreError, explained

_PAGES_AT_ONCE = 4096
_ROOM_LEFT = 64 * 1024 * 1024


def copy_database(source: sqlite3.Connection, path: Path, target: Path) -> None:
    """Copy the database `path`, which `source` is connected to, to `target`, as it is at this moment.

    Others may read and write it meanwhile; the copy is one file without a log beside it, with the rights of `path`.

    Raises:
        DamagedDatabaseError: SQLite finds the copy damaged, and so `path` is.
        StoreError: no room, or `target` cannot be written.
    """
    partial = target.with_name(f"{target.name}.partial")
    with explained(path):
        room = shutil.disk_usage(target.absolute().parent).free
        if room < path.stat().st_size + _ROOM_LEFT:
            raise StoreError(f"There is no room for a copy of {path} next to it ({room // 1_000_000:,} MB are free).")
        try:
            partial.unlink(missing_ok=True)
            partial.touch(0o600)
            with closing(sqlite3.connect(partial, isolation_level=None)) as copy:
                source.execute("BEGIN")  # one moment: what others write from now on is not copied
                try:
                    source.backup(copy, pages=_PAGES_AT_ONCE)
                finally:
                    source.execute("ROLLBACK")
                copy.execute("PRAGMA journal_mode = DELETE")
                (found,) = copy.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise DamagedDatabaseError(path, found)
            shutil.copymode(path, partial)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
