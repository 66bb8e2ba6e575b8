"""Version 6: attachments of runs, files of any size in chunks."""

from __future__ import annotations

from sqlalchemy import Connection


def migrate(connection: Connection) -> None:
    """Bring a database of version 5 to version 6; digests sealed before stay as they are."""
    for columns in (
        "attachment (id INTEGER NOT NULL, run_id INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE, "
        "role TEXT NOT NULL, name TEXT NOT NULL, media_type TEXT NOT NULL, chunks INTEGER NOT NULL, "
        "size INTEGER NOT NULL, link BLOB NOT NULL, sha256 BLOB, PRIMARY KEY (id), UNIQUE (run_id, role, name))",
        "attachment_chunk (attachment_id INTEGER NOT NULL REFERENCES attachment (id) ON DELETE CASCADE, "
        "seq INTEGER NOT NULL, size INTEGER NOT NULL, sha256 BLOB NOT NULL, payload BLOB NOT NULL, "
        "PRIMARY KEY (attachment_id, seq))",
    ):
        connection.exec_driver_sql(f"CREATE TABLE {columns} STRICT")
