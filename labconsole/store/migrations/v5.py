"""Version 5: the roles that a run started, with host, clock domain and the files that they read."""

from __future__ import annotations

from sqlalchemy import Connection


def migrate(connection: Connection) -> None:
    """Bring a database of version 4 to version 5; digests sealed before stay as they are."""
    owned = "INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE"
    for columns in (
        f"role (run_id {owned}, name TEXT NOT NULL, host TEXT NOT NULL, clock_domain TEXT NOT NULL, "
        "PRIMARY KEY (run_id, name))",
        f"role_file (run_id {owned}, role TEXT NOT NULL, key TEXT NOT NULL, name TEXT NOT NULL, "
        "size INTEGER NOT NULL, sha256 BLOB NOT NULL, PRIMARY KEY (run_id, role, key))",
    ):
        connection.exec_driver_sql(f"CREATE TABLE {columns} STRICT")
