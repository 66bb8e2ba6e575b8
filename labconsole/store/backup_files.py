"""The backups next to a database, and whether each can be opened."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

APPLICATION_ID: Final = 0x4C434F4E
"""`PRAGMA application_id` of a run database ("LCON")."""
VERSION: Final = 8
"""`PRAGMA user_version` of the tables in `labconsole.store.schema`, whose description takes SQLAlchemy."""


@dataclass(frozen=True)
class Backup:
    """A backup of a database: `saved` is when that had last been changed, `runs` how many it held."""

    path: Path
    saved: datetime
    runs: int


def regular_backup(path: Path) -> Path:
    """The path of the newest backup of the database `path`, if one was made."""
    return path.with_name(f"{path.name}.backup")


def migration_backup(path: Path, version: int, moment: datetime) -> Path:
    """The path of the copy that is kept when the database `path` is migrated."""
    return path.with_name(f"{path.name}.v{version}-backup-{moment:%Y%m%dT%H%M%SZ}")


def backups_of(path: Path) -> tuple[Backup, ...]:
    """The backups of the database `path`, newest first: those that this console can open."""
    regular = regular_backup(path).name
    named = [file for file in _files_with_prefix(path) if file.name == regular or "-backup-" in file.suffix]
    found = [backup for backup in map(_opened, named) if backup is not None]
    return tuple(sorted(found, key=lambda backup: backup.saved, reverse=True))


def _files_with_prefix(path: Path) -> list[Path]:
    try:
        return [file for file in path.absolute().parent.iterdir() if file.name.startswith(f"{path.name}.")]
    except OSError:  # no directory, no backups
        return []


def _opened(file: Path) -> Backup | None:
    """The backup in this file; None if it cannot be read as a run database of this version or an older one."""
    try:
        saved = datetime.fromtimestamp(file.stat().st_mtime, UTC)
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as raw:
            (application,) = raw.execute("PRAGMA application_id").fetchone()
            (version,) = raw.execute("PRAGMA user_version").fetchone()
            (runs,) = raw.execute("SELECT count(*) FROM run").fetchone()
    except (sqlite3.Error, OSError):
        return None
    return Backup(file, saved, runs) if application == APPLICATION_ID and 0 < version <= VERSION else None
