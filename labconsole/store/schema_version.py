"""What a file says of itself that is a run database: apart from the tables, which take SQLAlchemy to describe."""

from __future__ import annotations

from typing import Final

APPLICATION_ID: Final = 0x4C434F4E
"""`PRAGMA application_id` of a run database ("LCON")."""

VERSION: Final = 8
"""`PRAGMA user_version` of the tables in `labconsole.store.schema`."""
