"""Errors of databases, as sentences for the operator."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labconsole.errors import UserError
from labconsole.store.backup_files import backups_of


class StoreError(UserError):
    """The database cannot be used as asked; the message is one sentence: cause and remedy."""


class MissingDatabaseError(StoreError):
    """The database does not exist, or its creation was cut off while it was empty."""


class DamagedDatabaseError(StoreError):
    """The database is damaged, as `found` says, and was not changed; `backups`, newest first, can be opened instead."""

    def __init__(self, path: Path, found: object, noun: str = "database") -> None:
        self.path = path
        self.found = str(found)
        self.backups = backups_of(path)
        if self.backups:
            newest = self.backups[0]
            remedy = (
                f"Its newest backup is of {newest.saved:%Y-%m-%d %H:%M} UTC (runs: {newest.runs}): "
                f"`labconsole restore --db {path}` makes a new database of it."
            )
        else:
            remedy = f"There is no backup next to it: keep it, and continue with another {noun}."
        super().__init__(f"{path} is damaged ({found}) and was not changed. {remedy}")


_SENTENCES = {
    "SQLITE_FULL": "The disk of {path} is full: free some space, or choose a {noun} on another disk.",
    "SQLITE_IOERR": "{path} cannot be read or written ({error}): check the disk and its free space.",
    "SQLITE_READONLY": "{path} cannot be written: allow writing to the file and its directory, or choose another one.",
    "SQLITE_PERM": "{path} may not be accessed: check the rights of the file and its directory.",
    "SQLITE_CANTOPEN": "{path} cannot be opened ({error}): check that the file is there and its directory writable.",
    "SQLITE_BUSY": "{path} is locked by another program: close that program, then try again.",
    "SQLITE_LOCKED": "{path} is locked by another program: close that program, then try again.",
    "SQLITE_NOTADB": "{path} is not a {noun} of the lab console: choose another file. It was not changed.",
}


@contextmanager
def explained(path: Path, noun: str = "database") -> Iterator[None]:
    """Turn errors of SQLite and of the file system on the database `path`, called `noun`, into StoreError sentences."""
    try:
        yield
    except Exception as error:
        cause = getattr(error, "orig", error)  # of SQLAlchemy's DBAPIError, which is not imported for its name alone
        if not isinstance(cause, sqlite3.Error | OSError):
            raise
        raise _explanation(path, noun, cause) from error


def _explanation(path: Path, noun: str, error: sqlite3.Error | OSError) -> StoreError:
    if isinstance(error, OSError):
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return StoreError(_SENTENCES["SQLITE_FULL"].format(path=path, noun=noun))
        if error.errno == errno.EROFS:
            return StoreError(
                f"{path} is on read-only media: commands that only read it work, for all others choose another {noun}."
            )
        return StoreError(f"{path} cannot be used ({error.strerror}): check the directory and its rights.")
    if path.is_dir():
        return StoreError(f"{path} is a directory, not a {noun}: name a file in it.")
    name = str(getattr(error, "sqlite_errorname", ""))  # SQLITE_IOERR_WRITE, say: a primary code and its extension
    primary = "_".join(name.split("_")[:2])
    undecodable = not name and str(error).startswith("Could not decode to UTF-8")
    if primary == "SQLITE_CORRUPT" or undecodable or (primary == "SQLITE_NOTADB" and backups_of(path)):
        return DamagedDatabaseError(path, error, noun)
    unknown = "{path} refused the data ({error}): this is a fault of the console, report it."
    return StoreError(_SENTENCES.get(primary, unknown).format(path=path, noun=noun, error=error))
