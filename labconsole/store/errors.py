"""What can go wrong with a database, as sentences for the operator."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from labconsole.trial import TrialError


class StoreError(TrialError):
    """The database cannot be used as asked; the message is one sentence: what is wrong, what to do."""


_SENTENCES = {
    "SQLITE_FULL": "The disk of {path} is full: free some space, or choose a database on another disk.",
    "SQLITE_IOERR": "{path} cannot be read or written ({error}): check the disk and its free space.",
    "SQLITE_READONLY": "{path} cannot be written: allow writing to the file and its directory, or choose another one.",
    "SQLITE_PERM": "{path} may not be accessed: check the rights of the file and its directory.",
    "SQLITE_CANTOPEN": "{path} cannot be opened ({error}): check that the file is there and its directory writable.",
    "SQLITE_BUSY": "{path} is locked by another program: close that program, then try again.",
    "SQLITE_LOCKED": "{path} is locked by another program: close that program, then try again.",
    "SQLITE_NOTADB": "{path} is no database of the lab console: choose another file. It was not changed.",
    "SQLITE_CORRUPT": "{path} is damaged ({error}): keep a copy of it and go on with a backup of it or a new database.",
}


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and of the file system on the database `path` into StoreError sentences."""
    try:
        yield
    except DBAPIError as error:
        raise StoreError(_sentence(path, error.orig)) from error
    except (sqlite3.Error, OSError) as error:
        raise StoreError(_sentence(path, error)) from error


def _sentence(path: Path, error: BaseException | None) -> str:
    if isinstance(error, OSError):
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return _SENTENCES["SQLITE_FULL"].format(path=path)
        return f"{path} cannot be used ({error.strerror}): check the directory and its rights."
    name = str(getattr(error, "sqlite_errorname", ""))  # SQLITE_IOERR_WRITE, say: a primary code and its extension
    primary = "_".join(name.split("_")[:2])
    return _SENTENCES.get(
        primary, "{path} refused the data ({error}): this is a fault of the console, report it."
    ).format(path=path, error=error)
