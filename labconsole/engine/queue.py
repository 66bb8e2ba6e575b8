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
from labconsole.engine.recorder import leftovers
from labconsole.engine.supervisor import WorkerProcess
from labconsole.security.secrets import Secret
from labconsole.store.errors import StoreError
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, RunRow, RunStatus
from labconsole.store.store import Store
from labconsole.trial import Event

_MESSAGES_PER_PUMP = 200
_REMOVED = "Removed from the queue before it began."
_CLOSING_S = 10.0
"""How long `close` waits for the evaluation of a run that was killed; the next console does it otherwise."""


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


@dataclass(frozen=True)
class _Recovery:
    """A run whose process died: how to mark it unless it has ended already."""

    run_id: int
    status: RunStatus
    reason: str


@dataclass
class _Job:
    """The worker process at work, on a run or on the recovery of one. `sentence` is what it could not record."""

    run_id: int
    worker: WorkerProcess
    recovery: _Recovery | None = None
    sentence: str = ""


class RunQueue:
    """Runs waiting and running. All methods belong to one thread; `pump` never blocks on a run."""

    def __init__(
        self,
        database: Path,
        *,
        live_hz: float = 8.0,
        wake: Callable[[], None] | None = None,
        lock_timeout_s: float = 30.0,
    ) -> None:
        """`lock_timeout_s`: how long a method may wait while another process writes. Raises StoreError."""
        self._database = database
        self._store = Store.open(database, lock_timeout_s=lock_timeout_s)
        self._reader = Reader(database)
        self._live_hz = live_hz
        self._wake = wake or (lambda: None)
        self._items: list[QueueItem] = []
        self._secrets: dict[int, Mapping[str, Secret]] = {}
        self._recoveries: list[_Recovery] = []
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
        """Take over what dead consoles and workers left: mark their runs, take their samples in, evaluate them."""
        mine = {item.run_id for item in self._items}
        live_runs = self._reader.live_runs()
        dead_owners = {owner for owner in {live.owner for live in live_runs} if not is_alive(owner)}
        dead = [live for live in live_runs if live.owner in dead_owners and live.id not in mine]
        never_began = [live.id for live in dead if live.status is RunStatus.QUEUED]
        reason = "The console ended before this run began."
        self._store.mark_ended(never_began, RunStatus.QUEUED, RunStatus.CANCELLED, reason, wall_now())
        reason = "Its process ended in mid-run; what it had measured until then is kept."
        self._recoveries += [
            _Recovery(live.id, RunStatus.INTERRUPTED, reason) for live in dead if live.status is RunStatus.RUNNING
        ]
        left = set(leftovers(self._database)) - {live.uuid for live in live_runs}
        if left:
            ended = [row for row in self._reader.runs(include_trashed=True) if row.uuid in left]
            self._recoveries += [_Recovery(row.id, row.status, row.reason) for row in ended]
        self._wake()

    def submit(self, campaign: NewCampaign, secrets: Mapping[str, Secret] | None = None) -> list[int]:
        """Store a campaign, put its runs at the end, each with `secrets` until it is done. Returns the ids in order."""
        run_ids = self._store.add_campaign(campaign, this_process(), wall_now())
        rows = {row.id: row for row in self._reader.runs(campaign_id=self._reader.run(run_ids[0]).row.campaign_id)}
        repeats = max(repeat for _, repeat in campaign.order)
        self._items += [_waiting_item(rows[run_id], repeats) for run_id in run_ids]
        self._secrets |= dict.fromkeys(run_ids, secrets) if secrets else {}
        self._changed()
        return run_ids

    def repeat(self, run_id: int, secrets: Mapping[str, Secret] | None = None) -> int:
        """Put another repeat of a run's scenario at the end. Returns the new run's id; `secrets` as in `submit`."""
        new_id = self._store.add_repeat(run_id, this_process(), wall_now())
        row = self._reader.run(new_id).row
        for item in self._items:
            if (item.campaign_id, item.scenario) == (row.campaign_id, row.scenario):
                self._update(item.run_id, repeats=row.repeat)
        self._items.append(_waiting_item(row, row.repeat))
        self._secrets |= {new_id: secrets} if secrets else {}
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
        if any(item.run_id == run_id and item.state is QueueState.WAITING for item in self._items):
            self._end(run_id, RunStatus.CANCELLED, _REMOVED)
            self._items = [item for item in self._items if item.run_id != run_id]
            self._changed()

    def cancel(self, run_id: int) -> None:
        """Cancel the running item (by the ladder) or remove a waiting one; returns at once."""
        if self._job is not None and self._job.run_id == run_id:
            self._job.worker.cancel()
        else:
            self.remove(run_id)

    def cancel_all(self) -> None:
        """Cancel the running item and remove all waiting ones, in one transaction however many they are."""
        for item in self._items:
            if item.state is QueueState.RUNNING:
                self.cancel(item.run_id)
        waiting = [item.run_id for item in self._items if item.state is QueueState.WAITING]
        status = RunStatus.CANCELLED
        try:
            self._store.mark_ended(waiting, RunStatus.QUEUED, status, _REMOVED, wall_now())
        except StoreError:  # a full disk, say: the next console marks them
            status = RunStatus.FAILED
        self._items = [item for item in self._items if item.state is not QueueState.WAITING]
        self._changed()
        for run_id in waiting:
            for listener in self.listeners:
                listener.finished(run_id, status)

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

    def close(self, evaluation_s: float = _CLOSING_S) -> None:
        """Cancel everything; returns when the worker is gone (about ten seconds at most).

        A recovery, which the next console can do again, is killed after `evaluation_s`.
        """
        self._paused = True
        self.cancel_all()
        self._recoveries.clear()
        patience = time.monotonic() + evaluation_s
        while self._job is not None:
            if self._job.recovery is None:
                self._job.worker.cancel()
            elif time.monotonic() > patience:
                self._job.worker.kill()
            self.pump()
            time.sleep(0.02)
        self._reader.close()
        self._store.close()

    def _start_next(self) -> None:
        if self._recoveries:
            self._start_recovery(self._recoveries.pop(0))
            return
        item = None if self._paused else self._next_waiting()
        if item is None:
            return
        task = {"t": "run", "database": str(self._database), "run_id": item.run_id, "live_hz": self._live_hz}
        self._job = _Job(item.run_id, WorkerProcess(task, self._wake, self._secrets.get(item.run_id)))
        self._update(item.run_id, state=QueueState.RUNNING, status=RunStatus.RUNNING)
        self._changed()

    def _start_recovery(self, recovery: _Recovery) -> None:
        task = {
            "t": "recover",
            "database": str(self._database),
            "run_id": recovery.run_id,
            "status": recovery.status,
            "reason": recovery.reason,
        }
        self._job = _Job(recovery.run_id, WorkerProcess(task, self._wake), recovery)

    def _listen(self, job: _Job) -> None:
        gone = job.worker.climb()
        messages = job.worker.take_messages(_MESSAGES_PER_PUMP)
        for message in messages:
            self._take(job, message)
        frame = job.worker.take_frame()
        if frame is not None:
            self._take_frame(job.run_id, frame)
        if len(messages) == _MESSAGES_PER_PUMP:
            self._wake()  # the rest in the next turn, so that no turn is long
        elif gone:
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
            case "settling":
                job.worker.relent()
            case "error":
                job.sentence = message["sentence"]

    def _take_frame(self, run_id: int, frame: LiveFrame) -> None:
        elapsed = 0.0 if frame.begin_ns is None else (frame.t_ns - frame.begin_ns) / 1e9
        rate = frame.done / elapsed if elapsed > 0 and frame.done else None
        eta = max(0, frame.total - frame.done) / rate if rate and frame.total else None
        self._update(run_id, done=frame.done, total=frame.total, elapsed_s=elapsed, rate=rate, eta_s=eta)
        if self._live_hz:
            for listener in self.listeners:
                listener.live(run_id, frame)

    def _settle(self, job: _Job) -> None:
        """See in the store how the run of a worker that is gone ended; bring it to its end if it has none."""
        try:
            row = self._reader.run(job.run_id).row
        except StoreError as error:  # a failing disk, say: the next console sees how it ended
            self._show_end(job.run_id, RunStatus.FAILED, str(error))
            return
        if row.status.final:
            self._show_end(job.run_id, row.status, row.reason)
            return
        if job.recovery is not None:
            status, reason = job.recovery.status, job.recovery.reason
        elif job.worker.cancelled:
            status, reason = RunStatus.CANCELLED, "Cancelled by the operator; its process had to be killed."
        elif job.sentence:
            status, reason = RunStatus.FAILED, ""
        else:
            status, reason = RunStatus.INTERRUPTED, job.worker.how_it_ended()
        reason = _each_once(reason, job.sentence)
        if row.status is RunStatus.RUNNING and job.recovery is None:
            self._start_recovery(_Recovery(job.run_id, status, reason))
        else:
            self._end(job.run_id, status, reason)

    def _end(self, run_id: int, status: RunStatus, reason: str) -> None:
        """Mark a run as ended that has no process."""
        try:
            self._store.run_ended(run_id, status, reason, wall_now())
        except StoreError as error:  # a full disk, say: the next console marks it
            status, reason = RunStatus.FAILED, _each_once(reason, str(error))
        self._show_end(run_id, status, reason)

    def _show_end(self, run_id: int, status: RunStatus, reason: str) -> None:
        self._update(run_id, state=QueueState.DONE, status=status, reason=reason, eta_s=None)
        self._changed()
        for listener in self.listeners:
            listener.finished(run_id, status)

    def _next_waiting(self) -> QueueItem | None:
        return next((item for item in self._items if item.state is QueueState.WAITING), None)

    def _update(self, run_id: int, **changes: Any) -> None:
        self._items = [replace(item, **changes) if item.run_id == run_id else item for item in self._items]

    def _changed(self) -> None:
        if self._secrets:  # those of runs that are done or gone are forgotten
            left = {item.run_id for item in self._items if item.state is not QueueState.DONE}
            self._secrets = {run_id: secrets for run_id, secrets in self._secrets.items() if run_id in left}
        for listener in self.listeners:
            listener.items_changed()
        self._wake()


def _each_once(*sentences: str) -> str:
    """These sentences in one text: a disk that fails gives the same one to the worker, to recovery and to the queue."""
    return " ".join(dict.fromkeys(filter(None, sentences)))


def _waiting_item(row: RunRow, repeats: int) -> QueueItem:
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
    )
