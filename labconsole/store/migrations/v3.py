"""Version 3: artefacts and evidence of runs, and the pinned baseline of each kind of trial."""

from __future__ import annotations

from sqlalchemy import Connection


def migrate(connection: Connection) -> None:
    """Bring a database of version 2 to version 3. `labconsole.store.opening` seals the runs afterwards."""
    owned = "INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE"
    for columns in (
        f"artefact (run_id {owned}, name TEXT NOT NULL, media_type TEXT NOT NULL, sha256 BLOB NOT NULL, "
        "content BLOB NOT NULL, PRIMARY KEY (run_id, name))",
        f"evidence (run_id {owned}, digest BLOB NOT NULL, sealed TEXT NOT NULL, PRIMARY KEY (run_id))",
        f"baseline (kind TEXT NOT NULL, run_id {owned}, PRIMARY KEY (kind))",
    ):
        connection.exec_driver_sql(f"CREATE TABLE {columns} STRICT")
