"""The queue of runs: one at a time, each in a fresh process; the same for the command line and the window."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from labconsole.clock import wall_now
from labconsole.engine.containment import is_alive, this_process
from labconsole.engine.protocol import LiveFrame, event_from_json
from labconsole.engine.supervisor import WorkerProcess
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, RunRow, RunStatus
from labconsole.store.store import Store
from labconsole.trial import Event


class QueueState(StrEnum):
    """Where an item of the queue stands."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"


@dataclass(frozen=True)
class QueueItem:
    """One run in the queue. `rate` is counts per second of the progress channel since T0."""

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


class QueueListener(Protocol):
    """Hears what happens, on the thread that calls `RunQueue.pump`."""

    def items_changed(self) -> None:
        """Items were added, moved, removed, or changed their state."""

    def live(self, run_id: int, frame: LiveFrame) -> None:
        """A live frame of the run that is going on; frames may be dropped."""

    def event(self, run_id: int, event: Event) -> None:
        """Something happened in a run."""

    def log(self, run_id: int, line: str) -> None:
        """A stray line of output of the worker or a role."""

    def finished(self, run_id: int, status: RunStatus) -> None:
        """A run has a final status in the store."""


@dataclass
class _Job:
    """The worker process at work: a run, or the recovery of one (then `outcome` is what to record)."""

    run_id: int
    worker: WorkerProcess
    started: float
    outcome: tuple[RunStatus, str] | None = None
    sentence: str = ""
    ended: tuple[RunStatus, str] | None = None


class RunQueue:
    """Runs waiting and running. All methods belong to one thread; `pump` never blocks on a run."""

    def __init__(self, database: Path, *, live_hz: float = 8.0, wake: Callable[[], None] | None = None) -> None:
        self._database = database
        self._store = Store.open(database)
        self._reader = Reader(database)
        self._live_hz = live_hz
        self._wake = wake or (lambda: None)
        self._items: list[QueueItem] = []
        self._recoveries: list[tuple[int, RunStatus, str]] = []
        self._job: _Job | None = None
        self._paused = False
        self.listeners: list[QueueListener] = []

    @property
    def items(self) -> tuple[QueueItem, ...]:
        """All items, in the order in which they run."""
        return tuple(self._items)

    @property
    def paused(self) -> bool:
        """Whether no further run is started."""
        return self._paused

    @property
    def busy(self) -> bool:
        """Whether a run goes on, or will be started by the next `pump`."""
        return (
            self._job is not None or bool(self._recoveries) or (not self._paused and self._next_waiting() is not None)
        )

    @property
    def store(self) -> Store:
        """The store that this queue writes to."""
        return self._store

    def recover(self) -> None:
        """Take over what dead consoles and workers left in the database: their runs are evaluated and marked."""
        mine = {item.run_id for item in self._items}
        for live in self._store.live_runs():
            if live.id in mine or is_alive(live.owner):
                continue
            if live.status is RunStatus.QUEUED:
                reason = "The console ended before this run began."
                self._store.run_ended(live.id, RunStatus.CANCELLED, reason, wall_now())
            else:
                reason = "Its process ended in mid-run; what it had measured until then is kept."
                self._recoveries.append((live.id, RunStatus.INTERRUPTED, reason))

    def submit(self, campaign: NewCampaign) -> list[int]:
        """Store a campaign and put its runs at the end of the queue. Returns their ids in order."""
        run_ids = self._store.add_campaign(campaign, this_process(), wall_now())
        for run_id in run_ids:
            self._enqueue(self._reader.run(run_id).row)
        self._changed()
        return run_ids

    def repeat(self, run_id: int) -> int:
        """Put another repeat of a run's scenario at the end. Returns the new run's id."""
        new_id = self._store.add_repeat(run_id, this_process(), wall_now())
        self._enqueue(self._reader.run(new_id).row)
        self._changed()
        return new_id

    def pause(self) -> None:
        """Start no further run; the current one goes on."""
        self._paused = True
        self._changed()

    def resume(self) -> None:
        """Start runs again."""
        self._paused = False
        self._changed()

    def move(self, run_id: int, offset: int) -> None:
        """Move a waiting item by `offset` places among the waiting ones."""
        waiting = [index for index, item in enumerate(self._items) if item.state is QueueState.WAITING]
        place = next((place for place, index in enumerate(waiting) if self._items[index].run_id == run_id), None)
        if place is None:
            return
        target = min(max(place + offset, 0), len(waiting) - 1)
        self._items.insert(waiting[target], self._items.pop(waiting[place]))
        self._changed()

    def remove(self, run_id: int) -> None:
        """Take a waiting item out; its run is marked cancelled."""
        if self._item(run_id).state is QueueState.WAITING:
            self._end_item(run_id, RunStatus.CANCELLED, "Removed from the queue before it began.")
            self._items.remove(self._item(run_id))
            self._changed()

    def cancel(self, run_id: int) -> None:
        """Cancel the running item (by the ladder) or remove a waiting one; returns at once."""
        if self._job is not None and self._job.run_id == run_id:
            self._job.worker.cancel()
        else:
            self.remove(run_id)

    def clear_done(self) -> None:
        """Forget the items that are done; their runs stay in the store."""
        self._items = [item for item in self._items if item.state is not QueueState.DONE]
        self._changed()

    def command(self, run_id: int, command: Mapping[str, Any]) -> None:
        """Send a command into the running run."""
        if self._job is not None and self._job.run_id == run_id:
            self._job.worker.send({"t": "command", "command": dict(command)})

    def set_live(self, hz: float) -> None:
        """Live frames per second, 0 for none; for the running and for later runs."""
        self._live_hz = hz
        if self._job is not None:
            self._job.worker.send({"t": "live_hz", "hz": hz})

    def pump(self) -> None:
        """Take what the worker said, and start the next run when there is none."""
        if self._job is not None:
            self._listen(self._job)
        if self._job is None:
            self._start_next()

    def close(self) -> None:
        """Cancel everything; returns when the worker is gone (about ten seconds at most)."""
        self._paused = True
        for item in self.items:
            if item.state is QueueState.WAITING:
                self.remove(item.run_id)
        self._recoveries.clear()
        while self._job is not None:
            if self._job.outcome is None:
                self._job.worker.cancel()
            self.pump()
            time.sleep(0.02)
        self._reader.close()
        self._store.close()

    def _enqueue(self, row: RunRow) -> None:
        same = [
            item.repeat for item in self._items if (item.campaign_id, item.scenario) == (row.campaign_id, row.scenario)
        ]
        repeats = max([row.repeat, *same])
        self._items = [
            replace(item, repeats=repeats)
            if (item.campaign_id, item.scenario) == (row.campaign_id, row.scenario)
            else item
            for item in self._items
        ]
        self._items.append(
            QueueItem(
                run_id=row.id,
                campaign_id=row.campaign_id,
                campaign=row.campaign,
                scenario=row.scenario,
                kind=row.kind,
                repeat=row.repeat,
                repeats=repeats,
                state=QueueState.WAITING,
                status=RunStatus.QUEUED,
            )
        )

    def _start_next(self) -> None:
        if self._recoveries:
            run_id, status, reason = self._recoveries.pop(0)
            self._start_recovery(run_id, status, reason)
            return
        item = None if self._paused else self._next_waiting()
        if item is None:
            return
        other = next((run for run in self._store.live_runs() if run.status is RunStatus.RUNNING), None)
        if other is not None and is_alive(other.owner):
            reason = (
                f"Run {other.id} of another console (process {other.owner.pid}) goes on in this database, and two at "
                "a time would disturb each other's figures: wait for its end, or use another database (--db)."
            )
            self._end_item(item.run_id, RunStatus.FAILED, reason)
            return
        task = {"t": "run", "database": str(self._database), "run_id": item.run_id, "live_hz": self._live_hz}
        self._job = _Job(item.run_id, WorkerProcess(task, self._wake), time.monotonic())
        self._update(item.run_id, state=QueueState.RUNNING, status=RunStatus.RUNNING)
        self._changed()

    def _start_recovery(self, run_id: int, status: RunStatus, reason: str) -> None:
        task = {
            "t": "recover",
            "database": str(self._database),
            "run_id": run_id,
            "status": status,
            "reason": reason,
        }
        self._job = _Job(run_id, WorkerProcess(task, self._wake), time.monotonic(), outcome=(status, reason))

    def _listen(self, job: _Job) -> None:
        job.worker.climb()
        ended = job.worker.ended
        for message in job.worker.take_messages():
            self._take(job, message)
        frame = job.worker.take_frame()
        if frame is not None:
            self._take_frame(job.run_id, frame)
        if ended:
            job.worker.close()
            self._job = None
            self._settle(job)

    def _take(self, job: _Job, message: dict[str, Any]) -> None:
        match message["t"]:
            case "log":
                for listener in self.listeners:
                    listener.log(job.run_id, message["line"])
            case "event":
                event = event_from_json(message["event"])
                for listener in self.listeners:
                    listener.event(job.run_id, event)
            case "error":
                job.sentence = message["sentence"]
            case "ended":
                job.ended = (RunStatus(message["status"]), message["reason"])

    def _take_frame(self, run_id: int, frame: LiveFrame) -> None:
        elapsed = 0.0 if frame.begin_ns is None else (frame.t_ns - frame.begin_ns) / 1e9
        rate = frame.done / elapsed if elapsed > 0 and frame.done else None
        eta = (frame.total - frame.done) / rate if rate and frame.total else None
        self._update(run_id, done=frame.done, total=frame.total, elapsed_s=elapsed, rate=rate, eta_s=eta)
        for listener in self.listeners:
            listener.live(run_id, frame)

    def _settle(self, job: _Job) -> None:
        """Bring the run of a worker that is gone to its end."""
        if job.ended is not None:
            self._show_end(job.run_id, *job.ended)
        elif job.outcome is not None or job.sentence:
            # The worker could not open the run, or even its recovery failed: at least its end is recorded.
            status, reason = job.outcome or (RunStatus.FAILED, job.sentence)
            self._end_item(job.run_id, status, " ".join(dict.fromkeys(filter(None, (reason, job.sentence)))))
        elif job.worker.cancelled:
            reason = "Cancelled by the operator; its process did not end by itself and was killed."
            self._start_recovery(job.run_id, RunStatus.CANCELLED, reason)
        else:
            self._start_recovery(job.run_id, RunStatus.INTERRUPTED, job.worker.how_it_ended())

    def _end_item(self, run_id: int, status: RunStatus, reason: str) -> None:
        self._store.run_ended(run_id, status, reason, wall_now())
        self._show_end(run_id, status, reason)

    def _show_end(self, run_id: int, status: RunStatus, reason: str) -> None:
        self._update(run_id, state=QueueState.DONE, status=status, reason=reason, eta_s=None)
        self._changed()
        for listener in self.listeners:
            listener.finished(run_id, status)

    def _next_waiting(self) -> QueueItem | None:
        return next((item for item in self._items if item.state is QueueState.WAITING), None)

    def _item(self, run_id: int) -> QueueItem:
        return next(item for item in self._items if item.run_id == run_id)

    def _update(self, run_id: int, **changes: Any) -> None:
        self._items = [replace(item, **changes) if item.run_id == run_id else item for item in self._items]

    def _changed(self) -> None:
        for listener in self.listeners:
            listener.items_changed()
        self._wake()
