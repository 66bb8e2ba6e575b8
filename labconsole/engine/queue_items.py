"""One run in the queue, as every view shows it, and the protocol of those that listen to the queue."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from labconsole.engine.protocol import LiveFrame
from labconsole.model.trial import Event
from labconsole.processes import Console
from labconsole.store.records import RunRow, RunStatus


class QueueState(StrEnum):
    """Where an item of the queue is on its way."""

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
        """Whether it is this queue's to move, cancel and remove."""
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
    """Hears what happens, on the thread that calls `RunQueue.pump`."""

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
