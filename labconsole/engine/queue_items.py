"""One run in the queue, as every view shows it, and the protocol of listeners to the queue."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from labconsole.engine.protocol import LiveFrame
from labconsole.model.series import Event
from labconsole.processes import Console, Owner, is_alive, parent_of
from labconsole.store.reader import Reader
from labconsole.store.records import LiveRun, RunRow, RunStatus


class QueueState(StrEnum):
    """The state of an item of the queue."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"


class Activity(StrEnum):
    """What happens to a run while its stored status still says that it is queued or running."""

    CANCELLING = "cancelling"
    RECOVERING = "recovering"
    """Its process died: its samples are stored and evaluated by another one."""


ShownStatus = RunStatus | Activity


@dataclass(frozen=True)
class QueueItem:
    """One run in the queue. `rate` is counts per second of the progress channel since T0.

    `expected_s` is how long the run is expected to take in all, `begun_s` when its process was started and `took_s` how
    long that process lived (all of `time.monotonic`). `console` is the other console whose run it is.
    """

    run_id: int
    campaign_id: int
    campaign: str
    scenario: str
    kind: str
    repeat: int
    repeats: int
    state: QueueState
    status: RunStatus
    reason: str = ""
    done: int = 0
    total: int = 0
    elapsed_s: float = 0.0
    eta_s: float | None = None
    rate: float | None = None
    activity: Activity | None = None
    console: Console | None = None
    expected_s: float | None = None
    begun_s: float | None = None
    took_s: float | None = None

    @property
    def own(self) -> bool:
        """Whether this queue may move, cancel and remove it."""
        return self.console is None and self.activity is not Activity.RECOVERING

    @property
    def shown(self) -> ShownStatus:
        """The status that every view shows."""
        return self.activity or self.status


def waiting_item(row: RunRow, repeats: int, expected_s: float | None = None) -> QueueItem:
    """The item of a queued run."""
    return QueueItem(
        run_id=row.id,
        campaign_id=row.campaign_id,
        campaign=row.campaign,
        scenario=row.scenario,
        kind=row.kind,
        repeat=row.repeat,
        repeats=repeats,
        state=QueueState.WAITING,
        status=RunStatus.QUEUED,
        expected_s=expected_s,
    )


class QueueListener(Protocol):
    """Called with the changes of the queue, on the thread that calls `RunQueue.pump`."""

    def items_changed(self) -> None:
        """Items were added, moved, removed, or changed their state."""

    def live(self, run_id: int, frame: LiveFrame) -> None:
        """A live frame of the run in progress; frames may be dropped."""

    def event(self, run_id: int, event: Event) -> None:
        """Something happened in a run."""

    def log(self, run_id: int, line: str) -> None:
        """A stray line of output of the worker or a role."""

    def finished(self, run_id: int, status: RunStatus) -> None:
        """A run has a final status in the store."""


def time_left_s(items: Sequence[QueueItem], now_s: float) -> float | None:
    """Seconds until all `items` are done at `now_s` (`time.monotonic`); None while that of one is unknown.

    A run takes as long as the newest one of its scenario in this queue, else as earlier runs of the same parameters,
    else as the current run of its kind of trial.
    """
    took = {
        (item.campaign_id, item.scenario): item.took_s
        for item in items
        if item.took_s is not None and item.status is RunStatus.FINISHED
    }
    running = next((item for item in items if item.state is QueueState.RUNNING), None)
    left_s = 0.0
    like_current: float | None = None
    if running is not None:
        expected = took.get((running.campaign_id, running.scenario), running.expected_s)
        so_far = now_s - running.begun_s if running.begun_s is not None else 0.0
        current = running.eta_s if expected is None else max(expected - so_far, 0.0)
        if current is None:
            return None
        left_s, like_current = current, so_far + current
    for item in items:
        if item.state is QueueState.WAITING:
            of_kind = like_current if running is not None and item.kind == running.kind else None
            expected = took.get((item.campaign_id, item.scenario), item.expected_s or of_kind)
            if expected is None:
                return None
            left_s += expected
    return left_s


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
