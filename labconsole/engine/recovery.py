"""Recovery of runs whose process died: which there are, how each is marked, and the task of the worker that does it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labconsole.clock import wall_now
from labconsole.engine.recorder import leftovers
from labconsole.store.reader import Reader
from labconsole.store.records import LiveRun, RunStatus
from labconsole.store.run_store import Store


@dataclass(frozen=True)
class Recovery:
    """A run whose process died, with the status and reason that it gets unless it has ended already."""

    run_id: int
    status: RunStatus
    reason: str

    def task(self, database: Path) -> dict[str, Any]:
        """The worker's task: store the samples that the run left, and evaluate them."""
        return {
            "t": "recover",
            "database": str(database),
            "run_id": self.run_id,
            "status": self.status,
            "reason": self.reason,
        }


class Recoveries:
    """The recoveries that wait for a worker, in order; each dead run is taken over once."""

    def __init__(self, store: Store, reader: Reader) -> None:
        self._store = store
        self._reader = reader
        self._taken_over: set[int] = set()
        self.waiting: list[Recovery] = []

    def take_over_again(self, in_progress: int | None) -> None:
        """Allow a second recovery of runs whose first one is neither waiting nor `in_progress`."""
        self._taken_over &= {recovery.run_id for recovery in self.waiting} | {in_progress}

    def take_over(self, dead: Collection[LiveRun]) -> bool:
        """Mark runs of dead consoles that never began, and queue the recovery of those that were in progress.

        Returns whether there were any.
        """
        dead = [live for live in dead if live.id not in self._taken_over]
        self._taken_over |= {live.id for live in dead}
        never_began = [live.id for live in dead if live.status is RunStatus.QUEUED]
        if never_began:
            reason = "The console ended before this run began."
            self._store.mark_ended(never_began, RunStatus.QUEUED, RunStatus.CANCELLED, reason, wall_now())
        reason = "Its process ended in mid-run; what it had measured until then is kept."
        self.waiting += [
            Recovery(live.id, RunStatus.INTERRUPTED, reason) for live in dead if live.status is RunStatus.RUNNING
        ]
        return bool(dead)

    def add_leftovers(self) -> None:
        """Queue the recovery of runs that have ended, and whose spools are still on disk."""
        left = set(leftovers(self._store.path)) - {live.uuid for live in self._reader.live_runs()}
        if left:
            ended = [row for row in self._reader.runs(include_trashed=True) if row.uuid in left]
            self.waiting += [Recovery(row.id, row.status, row.reason) for row in ended]
