"""Version 4: why a figure is not judged, what a verdict is about, and by which definitions a run is evaluated."""

from __future__ import annotations

from sqlalchemy import Connection


def migrate(connection: Connection) -> None:
    """Bring a database of version 3 to version 4; digests sealed before stay as they are."""
    for table, column in (
        ("run", "definitions INTEGER NOT NULL DEFAULT 1"),
        ("metric", "not_judged TEXT NOT NULL DEFAULT ''"),
        ("verdict", "kind TEXT NOT NULL DEFAULT 'finding'"),
    ):
        connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN {column}")
