"""The run database as a kind of file: its tables, and the conditions of its migration."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import Connection

from labconsole.processes import Owner, is_alive
from labconsole.store.database_file import DatabaseKind, core_connection
from labconsole.store.errors import StoreError
from labconsole.store.evidence_sealing import seal_unsealed
from labconsole.store.migrations import MIGRATIONS
from labconsole.store.schema import APPLICATION_ID, VERSION, metadata


@contextmanager
def scratch_database() -> Iterator[Connection]:
    """An empty run database in memory, for as long as the block takes."""
    raw = sqlite3.connect(":memory:", isolation_level=None)
    with closing(raw), closing(core_connection(raw, "BEGIN")) as connection, connection.begin():
        metadata.create_all(connection, checkfirst=False)
        yield connection


def _refuse_live_runs(raw: sqlite3.Connection, path: Path) -> None:
    rows = raw.execute(
        "SELECT id, owner_pid, owner_started, owner_boot FROM run "
        "WHERE status IN ('queued', 'running') AND owner_pid IS NOT NULL"
    )
    for run_id, pid, started, boot in rows:
        if is_alive(Owner(pid, started, boot)):
            raise StoreError(
                f"Run {run_id} in {path} is still in progress in an older console: wait for it to finish, then retry."
            )


RUN_DATABASE = DatabaseKind(
    noun="database",
    first="run a trial first",
    application_id=APPLICATION_ID,
    version=VERSION,
    metadata=metadata,
    migrations=MIGRATIONS,
    may_migrate=_refuse_live_runs,
    after_migration=seal_unsealed,
)
