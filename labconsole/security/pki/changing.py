"""What every change of the certificate database does: write rows, read them back, and say so in the audit list."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from labconsole.security.pki import rows
from labconsole.security.pki.records import State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.tables import Tables


class Changing(Tables):
    """One transaction: it reads what it has written; all its rows bear the same time."""

    def __init__(self, raw: sqlite3.Connection, directory: Path, before: Snapshot, who: str) -> None:
        """Write by `raw`, which is in a transaction, in the name of `who`; `before` is any earlier snapshot."""
        self.directory = directory
        self.at = datetime.now(UTC)
        self._now = rows.as_number(self.at)
        self._who = who
        self._raw = raw
        self._before = before

    def snapshot(self) -> Snapshot:
        """All rows as this transaction sees them: nobody else changes them before it ends."""
        return self._snapshot(self._before)

    def note(self, what: str, subject: str, fingerprint: str = "", detail: str = "") -> None:
        """Add to the audit list what changes no row here, as "exported certificate"; all else is noted by itself."""
        values = {"at": self._now, "who": self._who, "what": what, "subject": subject}
        self._insert("audit", {**values, "fingerprint": fingerprint, "detail": detail})

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._raw.execute(statement, values).fetchall()

    def _insert(self, table: str, values: Mapping[str, Any]) -> int:
        columns = ", ".join(f'"{name}"' for name in values)
        places = ", ".join("?" * len(values))
        cursor = self._raw.execute(f'INSERT INTO "{table}" ({columns}) VALUES ({places})', tuple(values.values()))
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def _update(self, table: str, number: int, values: Mapping[str, Any]) -> None:
        columns = ", ".join(f'"{name}" = ?' for name in values)
        self._raw.execute(f'UPDATE "{table}" SET {columns} WHERE id = ?', (*values.values(), number))

    def _state(self, number: int) -> State:
        [found] = self._all(f"{rows.STATE} WHERE id = ?", rows.state_of, (number,))
        return found
