"""Runs of other consoles on the same database, as items of this console's queue."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Collection
from dataclasses import replace

from labconsole.engine.queue_items import Activity, QueueItem, QueueState, waiting_item
from labconsole.processes import Console, Owner, is_alive, parent_of
from labconsole.store.reader import Reader
from labconsole.store.records import LiveRun, RunRow, RunStatus

DEAD_FOR_S = 5.0
"""Seconds after which a dead process is taken over by another console than its own, which does it at once."""


class OtherRuns:
    """Live runs of other consoles, as of the last poll. `ended` has the final status of those that were live before."""

    def __init__(self, reader: Reader) -> None:
        """Raises StoreError."""
        self._reader = reader
        self._version = -1
        self._live: tuple[LiveRun, ...] = ()
        self._rows: dict[int, RunRow] = {}
        self._dead_since: dict[Owner, float] = {}
        self._consoles: dict[Owner, Console] = {}
        self.items: tuple[QueueItem, ...] = ()
        self.ended: dict[int, RunStatus] = {}
        self.poll(())
        self._dead_since = dict.fromkeys(self._dead_since, -math.inf)
        self._show()

    def poll(self, own: Collection[int]) -> bool:
        """Read again which runs other than `own` are live; returns whether any shown item has changed.

        Takes a fraction of a millisecond when nothing was written since. Raises StoreError.
        """
        version = self._reader.data_version()
        if version != self._version:
            self._live = tuple(live for live in self._reader.live_runs() if live.id not in own)
            self._version = version
        else:
            self._live = tuple(live for live in self._live if live.id not in own)
        known = {live.id for live in self._live}
        gone = [number for number in self._rows if number not in known and number not in own]
        self.ended |= self._reader.statuses(gone)
        if known - self._rows.keys():
            self._rows = {row.id: row for row in self._reader.live_rows()}
        self._rows = {number: row for number, row in self._rows.items() if number in known}
        now = time.monotonic()
        dead = [owner for owner in {live.owner for live in self._live} if not is_alive(owner)]
        self._dead_since = {owner: self._dead_since.get(owner, now) for owner in dead}
        return self._show()

    def dead(self, for_s: float = 0.0) -> list[LiveRun]:
        """Runs whose process has been dead for so long."""
        since = time.monotonic() - for_s
        return [live for live in self._live if self._dead_since.get(live.owner, math.inf) <= since]

    @property
    def in_progress(self) -> QueueItem | None:
        """The run that another console conducts now."""
        return next((item for item in self.items if item.console and item.state is QueueState.RUNNING), None)

    @property
    def waiting(self) -> bool:
        """Whether runs of other consoles wait."""
        return any(item.console and item.state is QueueState.WAITING for item in self.items)

    def _show(self) -> bool:
        repeats: dict[int, int] = {}
        for row in self._rows.values():
            repeats[row.campaign_id] = max(row.repeat, repeats.get(row.campaign_id, 1))
        before = self.items
        dead = {live.id for live in self.dead(DEAD_FOR_S)}
        items = []
        for live in self._live:
            row = self._rows[live.id]
            item = replace(waiting_item(row, repeats[row.campaign_id]), status=live.status)
            if live.id in dead:
                item = replace(item, activity=Activity.RECOVERING)
            else:
                item = replace(item, console=self._console(live))
            if live.id in dead or live.status is RunStatus.RUNNING:
                item = replace(item, state=QueueState.RUNNING)
            items.append(item)
        self.items = tuple(items)
        return self.items != before

    def _console(self, live: LiveRun) -> Console:
        """The console of a run: the process that queued it, later the parent of the worker that conducts it."""
        if live.owner not in self._consoles:
            pid = live.owner.pid if live.status is RunStatus.QUEUED else parent_of(live.owner.pid)
            self._consoles[live.owner] = Console(platform.node(), pid)
        return self._consoles[live.owner]
