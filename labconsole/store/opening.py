"""Opening a database: connections, a new file, the check whose it is, migration with a backup beside it.

A database is never opened with `open()`: closing any descriptor of a file drops the locks that SQLite holds on it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Connection, StaticPool, create_engine, event

from labconsole.clock import wall_now
from labconsole.engine.containment import is_alive
from labconsole.store.backup_files import backups_of, migration_backup
from labconsole.store.copying import copy_database
from labconsole.store.errors import DamagedDatabaseError, StoreError
from labconsole.store.migrations import MIGRATIONS
from labconsole.store.records import Owner
from labconsole.store.schema import APPLICATION_ID, VERSION, metadata
from labconsole.store.sealing import seal_unsealed

BUSY_TIMEOUT_S = 30.0
"""How long to wait for a program that locks the database."""


def connect(path: Path, mode: Literal["ro", "rw", "rwc"], busy_timeout_s: float = BUSY_TIMEOUT_S) -> sqlite3.Connection:
    """A plain connection in autocommit mode. Raises sqlite3.Error."""
    raw = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=busy_timeout_s,
        isolation_level=None,
        check_same_thread=False,
    )
    raw.execute("PRAGMA foreign_keys = ON")
    raw.execute("PRAGMA wal_autocheckpoint = 0")
    return raw


def core_connection(raw: sqlite3.Connection, begin: str) -> Connection:
    """SQLAlchemy Core on `raw`; its transactions start with the statement `begin`."""
    engine = create_engine("sqlite://", creator=lambda: raw, poolclass=StaticPool)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine.connect()


@contextmanager
def scratch_database() -> Iterator[Connection]:
    """An empty run database in memory, for as long as the block takes."""
    raw = sqlite3.connect(":memory:", isolation_level=None)
    with closing(raw), closing(core_connection(raw, "BEGIN")) as connection, connection.begin():
        metadata.create_all(connection, checkfirst=False)
        yield connection


def checked_version(raw: sqlite3.Connection, path: Path) -> int:
    """The schema version of a database of this console, 0 for an empty file. Raises StoreError for any other file."""
    application = _value(raw, "PRAGMA application_id")
    version = _value(raw, "PRAGMA user_version")
    empty = not application and not version and not _value(raw, "SELECT count(*) FROM sqlite_master")
    if application != APPLICATION_ID and backups_of(path):
        raise DamagedDatabaseError(path, "it is empty" if empty else "it does not say that it is one of this console's")
    if empty:
        return 0
    if application != APPLICATION_ID:
        raise StoreError(f"{path} is a database of another program: choose another file. It was not changed.")
    if version > VERSION:
        raise StoreError(
            f"{path} was written by a newer lab console (database version {version}, this one reads up to {VERSION}): "
            "update the console or choose another file. It was not changed."
        )
    return int(version)


def bring_up_to_date(path: Path) -> None:
    """Create the database or migrate it, the old one kept beside it. Call with the exclusive lock held.

    Raises StoreError: another program's or a newer file (left untouched), a damaged one, one that is gone while its
    backup is there, live runs in an old one.
    """
    version = 0
    if path.exists():
        with closing(connect(path, "ro")) as raw:
            version = checked_version(raw, path)
    elif backups_of(path):  # a new database would soon be the backup
        raise DamagedDatabaseError(path, "it is missing")
    if version == VERSION:
        return
    if version:
        _back_up(path, version)
    with closing(connect(path, "rwc")) as raw:
        if raw.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
            raise StoreError(f"{path} cannot be shared by two programs on this disk: choose one on a local disk.")
        raw.execute("PRAGMA foreign_keys = OFF")  # so that a migration can rebuild a table
        raw.execute("PRAGMA synchronous = FULL")
        with closing(core_connection(raw, "BEGIN IMMEDIATE")) as connection, connection.begin():
            if not version:
                metadata.create_all(connection, checkfirst=False)
                connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
            else:
                for step in range(version + 1, VERSION + 1):
                    MIGRATIONS[step](connection)
                seal_unsealed(connection)
            connection.exec_driver_sql(f"PRAGMA user_version = {VERSION}")
            if connection.exec_driver_sql("PRAGMA foreign_key_check").first():
                raise DamagedDatabaseError(path, "rows without their run")


def _back_up(path: Path, version: int) -> None:
    """Copy an old database to `<name>.v<version>-backup-<time>`; a copy under that name is always complete."""
    with closing(connect(path, "ro")) as source:
        _refuse_live_runs(source, path)
        copy_database(source, path, migration_backup(path, version, wall_now()))


def _refuse_live_runs(raw: sqlite3.Connection, path: Path) -> None:
    rows = raw.execute(
        "SELECT id, owner_pid, owner_started, owner_boot FROM run "
        "WHERE status IN ('queued', 'running') AND owner_pid IS NOT NULL"
    )
    for run_id, pid, started, boot in rows:
        if is_alive(Owner(pid, started, boot)):
            raise StoreError(
                f"Run {run_id} in {path} is still going on in an older console: wait for its end, then retry."
            )


def _value(raw: sqlite3.Connection, statement: str) -> Any:
    return raw.execute(statement).fetchone()[0]
