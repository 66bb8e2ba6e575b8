"""The runs in the queue, as every view shows them, and the protocol of listeners to the queue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from labconsole.clock import wall_now
from labconsole.engine.protocol import LiveFrame
from labconsole.model.series import Event
from labconsole.processes import Console
from labconsole.store.records import RunRow, RunStatus


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
    """One run in the queue. `rate` is counts per second of the progress channel since T0; None if that is time.

    `expected_s` is how long the run is expected to last in all, `begun_s` when its process was started and `took_s` how
    long that process lived (all of `time.monotonic`). `console` is the other console whose run it is. It does not
    begin before `starts`.
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
    starts: datetime | None = None

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


class QueueItems:
    """The items of one queue, in the order in which they run."""

    def __init__(self) -> None:
        self.all: tuple[QueueItem, ...] = ()

    @property
    def run_ids(self) -> set[int]:
        """The runs of all items."""
        return {item.run_id for item in self.all}

    @property
    def waiting(self) -> list[QueueItem]:
        """The items that wait."""
        return [item for item in self.all if item.state is QueueState.WAITING]

    @property
    def due(self) -> QueueItem | None:
        """The first waiting item whose time has come; None: none waits, or each waits for its time."""
        now = wall_now()
        waiting = (item for item in self.all if item.state is QueueState.WAITING)  # asked for at each turn of the queue
        return next((item for item in waiting if item.starts is None or item.starts <= now), None)

    @property
    def starts(self) -> datetime | None:
        """The first time for which an item waits."""
        return min((item.starts for item in self.waiting if item.starts is not None), default=None)

    def waits(self, run_id: int) -> bool:
        """Whether a run waits."""
        return any(item.run_id == run_id for item in self.waiting)

    def find(self, run_id: int) -> QueueItem | None:
        """The item of a run."""
        return next((item for item in self.all if item.run_id == run_id), None)

    def add(self, items: Iterable[QueueItem], *, first: bool = False, after: int | None = None) -> None:
        """Add items at the end, with `first` ahead of all that wait, or `after` the item of another run."""
        place = len(self.all)
        if first and self.waiting:
            place = self.all.index(self.waiting[0])
        elif (other := self.find(after) if after is not None else None) is not None:
            place = self.all.index(other) + 1
        self.all = (*self.all[:place], *items, *self.all[place:])

    def move(self, run_id: int, offset: int) -> None:
        """Move the item of a run that waits by `offset` places among the waiting ones."""
        waiting = self.waiting
        place = next(place for place, item in enumerate(waiting) if item.run_id == run_id)
        waiting.insert(min(max(place + offset, 0), len(waiting) - 1), waiting.pop(place))
        ordered = iter(waiting)
        self.all = tuple(next(ordered) if other.state is QueueState.WAITING else other for other in self.all)

    def remove(self, run_ids: Iterable[int]) -> None:
        """Remove the items of these runs."""
        removed = set(run_ids)
        self.all = tuple(item for item in self.all if item.run_id not in removed)

    def update(self, *run_ids: int, **changes: Any) -> None:
        """Change fields of the items of these runs."""
        changed = set(run_ids)
        self.all = tuple(replace(item, **changes) if item.run_id in changed else item for item in self.all)


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
    """Seconds until all `items` are done at `now_s` (`time.monotonic`); None while that of one is unknown, or a time.

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
            if expected is None or item.starts is not None:
                return None
            left_s += expected
    return left_s
