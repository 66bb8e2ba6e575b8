"""The run database as a kind of file: its tables, and the steps and conditions of its migration.

Step N brings a database of version N-1 to version N.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from labconsole.processes import Owner, is_alive
from labconsole.store.backup_files import APPLICATION_ID, VERSION
from labconsole.store.database_file import DatabaseKind, core_connection, create_tables
from labconsole.store.errors import StoreError
from labconsole.store.evidence.sealing import seal_unsealed

if TYPE_CHECKING:
    from sqlalchemy import Connection, MetaData


def _tables() -> MetaData:
    # Imported late: a worker opens a database that has its tables already.
    from labconsole.store.schema import metadata

    return metadata


@contextmanager
def scratch_database() -> Iterator[Connection]:
    """An empty run database in memory, for as long as the block takes."""
    raw = sqlite3.connect(":memory:", isolation_level=None)
    with closing(raw), closing(core_connection(raw, "BEGIN")) as connection, connection.begin():
        create_tables(raw, _tables())
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


_OF_RUN = "INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE"


def to_version_2(connection: Connection) -> None:
    """Move the warnings of a run from its provenance into a column of their own."""
    connection.exec_driver_sql("ALTER TABLE run ADD COLUMN warnings TEXT NOT NULL DEFAULT '[]'")
    connection.exec_driver_sql(
        "UPDATE run SET warnings = json_extract(provenance, '$.warnings'), "
        "provenance = json_remove(provenance, '$.warnings') "
        "WHERE json_type(provenance, '$.warnings') = 'array'"
    )


def to_version_3(connection: Connection) -> None:
    """Add artefacts and evidence of runs, and the pinned baseline of each kind of trial.

    `database_file` seals the runs afterwards.
    """
    for columns in (
        f"artefact (run_id {_OF_RUN}, name TEXT NOT NULL, media_type TEXT NOT NULL, sha256 BLOB NOT NULL, "
        "content BLOB NOT NULL, PRIMARY KEY (run_id, name))",
        f"evidence (run_id {_OF_RUN}, digest BLOB NOT NULL, sealed TEXT NOT NULL, PRIMARY KEY (run_id))",
        f"baseline (kind TEXT NOT NULL, run_id {_OF_RUN}, PRIMARY KEY (kind))",
    ):
        connection.exec_driver_sql(f"CREATE TABLE {columns} STRICT")


def to_version_4(connection: Connection) -> None:
    """Add why a figure is not judged, the kind of a verdict, and the version of the metric definitions of a run.

    Digests that were sealed before stay valid.
    """
    for table, column in (
        ("run", "definitions INTEGER NOT NULL DEFAULT 1"),
        ("metric", "not_judged TEXT NOT NULL DEFAULT ''"),
        ("verdict", "kind TEXT NOT NULL DEFAULT 'finding'"),
    ):
        connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN {column}")


def to_version_5(connection: Connection) -> None:
    """Add the roles that a run started, with host, clock domain and the files that they read.

    Digests that were sealed before stay valid.
    """
    for columns in (
        f"role (run_id {_OF_RUN}, name TEXT NOT NULL, host TEXT NOT NULL, clock_domain TEXT NOT NULL, "
        "PRIMARY KEY (run_id, name))",
        f"role_file (run_id {_OF_RUN}, role TEXT NOT NULL, key TEXT NOT NULL, name TEXT NOT NULL, "
        "size INTEGER NOT NULL, sha256 BLOB NOT NULL, PRIMARY KEY (run_id, role, key))",
    ):
        connection.exec_driver_sql(f"CREATE TABLE {columns} STRICT")


def to_version_6(connection: Connection) -> None:
    """Add attachments of runs, files of any size in chunks. Digests that were sealed before stay valid."""
    for columns in (
        f"attachment (id INTEGER NOT NULL, run_id {_OF_RUN}, "
        "role TEXT NOT NULL, name TEXT NOT NULL, media_type TEXT NOT NULL, chunks INTEGER NOT NULL, "
        "size INTEGER NOT NULL, link BLOB NOT NULL, sha256 BLOB, PRIMARY KEY (id), UNIQUE (run_id, role, name))",
        "attachment_chunk (attachment_id INTEGER NOT NULL REFERENCES attachment (id) ON DELETE CASCADE, "
        "seq INTEGER NOT NULL, size INTEGER NOT NULL, sha256 BLOB NOT NULL, payload BLOB NOT NULL, "
        "PRIMARY KEY (attachment_id, seq))",
    ):
        connection.exec_driver_sql(f"CREATE TABLE {columns} STRICT")


def to_version_7(connection: Connection) -> None:
    """Add the hosts that a scenario asks for. Digests that were sealed before stay valid."""
    connection.exec_driver_sql("ALTER TABLE scenario ADD COLUMN placement TEXT NOT NULL DEFAULT '{}'")


def to_version_8(connection: Connection) -> None:
    """Add the uncertainty of figures between clocks. Digests that were sealed before stay valid."""
    connection.exec_driver_sql("ALTER TABLE metric ADD COLUMN uncertainty REAL NOT NULL DEFAULT 0")


RUN_DATABASE = DatabaseKind(
    noun="database",
    first="run a trial first",
    application_id=APPLICATION_ID,
    version=VERSION,
    metadata=_tables,
    migrations={
        2: to_version_2,
        3: to_version_3,
        4: to_version_4,
        5: to_version_5,
        6: to_version_6,
        7: to_version_7,
        8: to_version_8,
    },
    may_migrate=_refuse_live_runs,
    after_migration=seal_unsealed,
)
