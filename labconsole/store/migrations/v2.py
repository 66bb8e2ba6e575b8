"""Version 2: the warnings of a run leave its provenance for a column of their own."""

from __future__ import annotations

from sqlalchemy import Connection


def migrate(connection: Connection) -> None:
    """Bring a database of version 1 to version 2."""
    connection.exec_driver_sql("ALTER TABLE run ADD COLUMN warnings TEXT NOT NULL DEFAULT '[]'")
    connection.exec_driver_sql(
        "UPDATE run SET warnings = json_extract(provenance, '$.warnings'), "
        "provenance = json_remove(provenance, '$.warnings') "
        "WHERE json_type(provenance, '$.warnings') = 'array'"
    )
