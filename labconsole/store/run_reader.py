"""Reading one run as its worker does: by plain SQL, without what lists and comparisons of runs take."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labconsole.model.placement import checked_placement
from labconsole.model.series import Event, Level
from labconsole.processes import Owner
from labconsole.store.attachments import StoredAttachments
from labconsole.store.database_file import DatabaseReader
from labconsole.store.errors import DamagedDatabaseError, StoreError
from labconsole.store.records import LIVE, LiveRun, RunStatus
from labconsole.store.run_database import RUN_DATABASE
from labconsole.store.samples import StoredSamples
from labconsole.store.statements import first_record

_TASK = """
SELECT run.id, uuid, kind, parameters, seed, status, reason, warnings, thresholds, placement, owner_pid, owner_started,
       owner_boot
FROM run JOIN scenario ON scenario.id = scenario_id WHERE run.id = ?
"""
_LIVE = "SELECT id, uuid, status, owner_pid, owner_started, owner_boot FROM run WHERE status IN (?, ?) ORDER BY id"
_EVENTS = "SELECT t_ns, source, level, name, message, data FROM event WHERE run_id = ? ORDER BY t_ns, role, seq"
_IDENTITY = "SELECT uuid, definitions FROM run WHERE id = ?"


@dataclass(frozen=True)
class RunTask:
    """What conducts, recovers or collects a run must know of it; the names are those of `RunRow` and `RunDetail`."""

    id: int
    uuid: str
    kind: str
    parameters: Mapping[str, Any]
    seed: int
    status: RunStatus
    reason: str
    owner: Owner | None
    warnings: tuple[str, ...]
    thresholds: Mapping[str, Mapping[str, float]]
    placement: Mapping[str, Any]


class RunReader(DatabaseReader):
    """A read-only connection; threads may use it one at a time. Every method raises StoreError."""

    def __init__(self, path: Path) -> None:
        """Open `path`, which must be a database of this version. Raises StoreError."""
        super().__init__(path, RUN_DATABASE)

    def task(self, run_id: int) -> RunTask:
        """What a worker must know of a run. Raises StoreError if there is no such run."""
        with self.plain_snapshot() as connection:
            row = first_record(connection, _TASK, run_id)
            if row is None:
                raise StoreError(f"There is no run {run_id} in {self.path}.")
            return RunTask(
                row.id,
                row.uuid,
                row.kind,
                json.loads(row.parameters),
                row.seed,
                RunStatus(row.status),
                row.reason,
                _owner(row.owner_pid, row.owner_started, row.owner_boot),
                tuple(json.loads(row.warnings)),
                json.loads(row.thresholds),
                json.loads(checked_placement(row.placement)),
            )

    def events(self, run_id: int) -> tuple[Event, ...]:
        """The events of a run by time; none for a run that is not there."""
        with self.plain_snapshot() as connection:
            return tuple(
                Event(t_ns, source, Level(level), name, message, json.loads(data))
                for t_ns, source, level, name, message, data in connection.execute(_EVENTS, (run_id,))
            )

    def live_runs(self) -> list[LiveRun]:
        """The runs that are queued or running, in the order of their ids."""
        with self.plain_snapshot() as connection:
            return [
                LiveRun(number, uuid, RunStatus(status), Owner(*owner))
                for number, uuid, status, *owner in connection.execute(_LIVE, LIVE)
            ]

    def samples(self, run_id: int) -> StoredSamples:
        """The samples of a run. Raises StoreError if there is no such run."""
        return StoredSamples(self.plain_snapshot, run_id, *self._identity(run_id))

    def attachments(self, run_id: int) -> StoredAttachments:
        """The attachments of a run. Raises StoreError if there is no such run."""
        return StoredAttachments(self.plain_snapshot, run_id, self._identity(run_id)[0])

    def _identity(self, run_id: int) -> tuple[str, int]:
        """Uuid of a run, and version of its metric definitions. Raises StoreError if there is no such run."""
        with self.plain_snapshot() as connection:
            row = first_record(connection, _IDENTITY, run_id)
        if row is None:
            raise StoreError(f"There is no run {run_id} in {self.path}.")
        return row.uuid, row.definitions

    @contextmanager
    def plain_snapshot(self) -> Iterator[sqlite3.Connection]:
        """A read transaction of plain SQL, for the store's own modules: short, never over a turn of an event loop."""
        with self.plain_transaction() as connection:
            try:
                yield connection
            except ValueError as error:  # JSON, a time or a name that is invalid: SQLite does not check our texts
                raise DamagedDatabaseError(self.path, error) from error


def _owner(pid: int | None, started: float | None, boot_id: str | None) -> Owner | None:
    return None if pid is None or started is None or boot_id is None else Owner(pid, started, boot_id)
