"""What every change of the certificate database does: write rows, read them back, and note them in the audit list."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from labconsole.security.pki.records import State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.tables import AUDIT, STATES, Tables
from labconsole.store.rows import Rows


@dataclass(frozen=True)
class AuditedOperation:
    """The operation that makes changes: its name ("certificates.create-root"), and its parameters as JSON."""

    name: str
    parameters: str


class Changing(Tables):
    """One transaction: it reads what it has written; all its rows have the same time."""

    def __init__(
        self, connection: Connection, directory: Path, before: Snapshot, who: str, operation: AuditedOperation | None
    ) -> None:
        """Write by `connection`, in a transaction, in the name of `who`; `before` is any earlier snapshot.

        The first entry of the audit list names the `operation`, and `operation` is None from then on.
        """
        self.directory = directory
        self.at = datetime.now(UTC)
        self._connection = connection
        self._before = before
        self._who = who
        self.operation = operation

    def snapshot(self) -> Snapshot:
        """All rows as this transaction sees them: no other process changes them before it ends."""
        return self._snapshot(self._before)

    def note(self, what: str, subject: str, fingerprint: str = "", detail: str = "") -> None:
        """Add to the audit list what changes no row here, as "exported certificate"; all else is noted by itself."""
        if self.operation is not None:
            operation, self.operation = self.operation, None
            self.note("operation", operation.name, detail=operation.parameters)
        self._insert(
            AUDIT, at=self.at, who=self._who, what=what, subject=subject, fingerprint=fingerprint, detail=detail
        )

    def _transaction(self) -> AbstractContextManager[Connection]:
        return nullcontext(self._connection)

    def _insert(self, rows: Rows[Any], **fields: Any) -> int:
        return rows.insert(self._connection, **fields)

    def _update(self, rows: Rows[Any], number: int, **fields: Any) -> None:
        rows.update(self._connection, number, **fields)

    def _state(self, number: int) -> State:
        return self._one(STATES, f"There is no State {number}.", id=number)
