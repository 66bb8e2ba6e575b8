"""The queue of runs: one at a time, each in a fresh process; the same for the command line and the window."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from labconsole.clock import wall_now
from labconsole.engine.other_consoles import DEAD_FOR_S, OtherRuns
from labconsole.engine.protocol import LiveFrame, event_from_json
from labconsole.engine.queue_items import (
    Activity,
    QueueItem,
    QueueItems,
    QueueListener,
    QueueState,
    ShownStatus,
    time_left_s,
    waiting_item,
)
from labconsole.engine.run_commands import SentCommands
from labconsole.engine.run_end import Recoveries, Recovery
from labconsole.engine.supervisor import Worker, WorkerProcess
from labconsole.errors import UserError
from labconsole.model.plugin import Plugins
from labconsole.model.series import TIME_PROGRESS, Event
from labconsole.processes import this_process
from labconsole.profiles.needed_secrets import needed_secrets
from labconsole.security.secrets import Secret
from labconsole.store.errors import StoreError
from labconsole.store.reader import Reader
from labconsole.store.records import LiveRun, NewCampaign, NewScenario, RunRow, RunStatus
from labconsole.store.run_store import Store

__all__ = ["Activity", "QueueItem", "QueueListener", "QueueState", "RunQueue", "ShownStatus"]

_MESSAGES_PER_PUMP = 200
_REMOVED = "Removed from the queue before it began."
_CLOSING_S = 10.0
"""How long `close` waits for the evaluation of a run that was killed; the next console does it otherwise."""
_TURN_S = 1.0
"""The pause between two runs of a queue while those of another console wait, so that consoles take turns."""


@dataclass
class _Job:
    """A worker process on a run or on the recovery of one. `sentence` is its error, where no run has it."""

    run_id: int
    worker: Worker
    recovery: Recovery | None = None
    sentence: str = ""
    yielded: bool = False
    """Another console's run is in progress: this one waits again."""
    disturbed: str = ""
    """What disturbed the run from outside."""
    roles: list[str] = field(default_factory=list)
    """Names of the roles that the run has started."""
    commands: SentCommands = field(default_factory=SentCommands)


class RunQueue:
    """Runs waiting and running, and all other live runs of the database: the one source of their state.

    All methods belong to one thread; `pump` never blocks on a run.
    """

    worker: ClassVar[Callable[..., Worker]] = WorkerProcess
    """What performs a task: called with the task, `wake` and the secrets of the run."""

    def __init__(
        self,
        database: Path,
        *,
        live_hz: float = 8.0,
        wake: Callable[[], None] | None = None,
        lock_timeout_s: float = 30.0,
    ) -> None:
        """`lock_timeout_s`: how long a method may wait while another process writes. Raises StoreError."""
        self.database = database
        self._store = Store.open(database, lock_timeout_s=lock_timeout_s)
        self._reader = Reader(database)
        self._live_hz = live_hz
        self._wake = wake or (lambda: None)
        self._items = QueueItems()
        self._secrets: dict[int, Mapping[str, Secret]] = {}
        self._repeated: dict[int, int] = {}
        self._recoveries = Recoveries(self._store, self._reader)
        self._job: _Job | None = None
        self._paused = False
        self._turn_at_s = 0.0
        self._others = OtherRuns(self._reader)
        self._ended: dict[int, RunStatus] = {}
        self._shown: dict[int, ShownStatus] = {}
        self.listeners: list[QueueListener] = []
        self._follow()

    @property
    def items(self) -> tuple[QueueItem, ...]:
        """All items of this queue, in the order in which they run."""
        return self._items.all

    @property
    def repeated(self) -> Mapping[int, int]:
        """The runs that were disturbed from outside, each with the run that repeats it."""
        return self._repeated

    @property
    def others(self) -> tuple[QueueItem, ...]:
        """The other live runs of the database: those of other consoles, and those whose process died."""
        return self._others.items

    @property
    def waiting_for(self) -> QueueItem | None:
        """The run of another console for which this queue waits: two at a time would disturb each other's figures."""
        waits = self._job is None and not self._paused and self.next_waiting is not None
        return self._others.in_progress if waits else None

    @property
    def next_waiting(self) -> QueueItem | None:
        """The first waiting run that is due; None: none waits, or each waits for its time."""
        return self._items.due

    @property
    def starts(self) -> datetime | None:
        """When the next run begins, where nothing is in progress and all waiting runs wait for their time."""
        return None if self.busy or self._paused else self._items.starts

    @property
    def time_left_s(self) -> float | None:
        """How long this queue is expected to be busy, s; None where that is unknown."""
        return time_left_s(self._items.all, time.monotonic())

    def shown(self, row: RunRow) -> ShownStatus:
        """The status of a run as every view shows it, however old the `row` is that a view has read."""
        return self._shown.get(row.id, row.status)

    def refresh_other_runs(self) -> None:
        """Read which other runs are live, and report a change. Raises StoreError."""
        if self._others.poll(self._items.run_ids):
            self._changed()

    @property
    def paused(self) -> bool:
        """Whether no further run is started."""
        return self._paused

    @property
    def busy(self) -> bool:
        """Whether a run is in progress, or is due and will be started by `pump` as soon as no other console's is."""
        to_start = not self._paused and self.next_waiting is not None
        return self._job is not None or bool(self._recoveries.waiting) or to_start

    @property
    def store(self) -> Store:
        """The store that this queue writes to."""
        return self._store

    def recover(self) -> None:
        """Take over the runs of dead consoles and workers: mark them, store and evaluate their samples."""
        self.refresh_other_runs()
        self._recoveries.take_over_again(self._job.run_id if self._job else None)
        self._take_over(self._others.dead())
        self._recoveries.add_leftovers()
        self._wake()

    def submit(
        self,
        campaign: NewCampaign,
        secrets: Mapping[str, Secret] | None = None,
        *,
        first: bool = False,
        starts: datetime | None = None,
    ) -> list[int]:
        """Store a campaign, queue its runs, each with `secrets` until it is done. Returns their ids in order.

        They wait at the end, or with `first` ahead of all that wait already; until `starts`, others run before them.
        """
        run_ids = self._store.add_campaign(campaign, this_process(), wall_now())
        rows = {row.id: row for row in self._reader.live_rows()}
        expected_s = self._reader.expected_s(rows[run_ids[0]].campaign_id)
        repeats = max(repeat for _, repeat in campaign.order)
        items = (waiting_item(rows[run_id], repeats, expected_s.get(rows[run_id].scenario)) for run_id in run_ids)
        self._items.add((replace(item, starts=starts) for item in items), first=first)
        self._secrets |= dict.fromkeys(run_ids, secrets) if secrets else {}
        self._changed()
        return run_ids

    def repeat(self, run_id: int, secrets: Mapping[str, Secret] | None = None) -> int:
        """Put another repeat of a run's scenario at the end. Returns the new run's id; `secrets` as in `submit`."""
        return self._add_repeat(run_id, secrets)

    def _add_repeat(self, run_id: int, secrets: Mapping[str, Secret] | None, *, after: int | None = None) -> int:
        """Put another repeat of a run's scenario at the end, or `after` another run. Returns its id."""
        new_id = self._store.add_repeat(run_id, this_process(), wall_now())
        row = self._reader.run(new_id).row
        scenario = row.campaign_id, row.scenario
        same = (item.run_id for item in self._items.all if (item.campaign_id, item.scenario) == scenario)
        self._items.update(*same, repeats=row.repeat)
        expected_s = self._reader.expected_s(row.campaign_id).get(row.scenario)
        self._items.add([waiting_item(row, row.repeat, expected_s)], after=after)
        self._secrets |= {new_id: secrets} if secrets else {}
        self._changed()
        return new_id

    def pause(self) -> None:
        """Start no further run; the one in progress continues."""
        self._paused = True
        self._changed()

    def resume(self) -> None:
        """Start runs again."""
        self._paused = False
        self._changed()

    def move(self, run_id: int, offset: int) -> None:
        """Move a waiting item by `offset` places among the waiting ones."""
        if self._items.waits(run_id):
            self._items.move(run_id, offset)
            self._changed()

    def remove(self, run_id: int) -> None:
        """Remove a waiting item; its run is marked cancelled."""
        if self._items.waits(run_id):
            self._end(run_id, RunStatus.CANCELLED, _REMOVED)
            self._items.remove({run_id})
            self._changed()

    def cancel(self, run_id: int) -> None:
        """Cancel the running item (by the ladder) or remove a waiting one; returns at once."""
        if self._job is not None and self._job.run_id == run_id:
            self._job.worker.cancel()
            self._items.update(run_id, activity=Activity.CANCELLING)
            self._changed()
        else:
            self.remove(run_id)

    def cancel_all(self) -> None:
        """Cancel the running item and remove all waiting ones, in one transaction however many they are."""
        for item in self.items:
            if item.state is QueueState.RUNNING:
                self.cancel(item.run_id)
        self._stop_waiting([item.run_id for item in self._items.waiting], _REMOVED, keep=False)

    def clear_done(self) -> None:
        """Forget the items that are done; their runs stay in the store."""
        self._items.remove({item.run_id for item in self.items if item.state is QueueState.DONE})
        self._changed()

    def roles(self, run_id: int) -> tuple[str, ...]:
        """Names of the roles that the run in progress has started until now."""
        return tuple(self._job.roles) if self._job is not None and self._job.run_id == run_id else ()

    def command(
        self, run_id: int, name: str, parameters: Mapping[str, Any], *, role: str = "", sent_by: str = "window"
    ) -> None:
        """Send a command into the run in progress: to one of its roles, or without `role` to the trial's own `run`.

        The run validates and records it (`run_commands.DELIVERED`) or refuses it (`REFUSED`): listeners get the event.
        Raises UserError when the run is not in progress.
        """
        job = self._job
        if job is None or job.run_id != run_id or job.recovery is not None or job.commands.over:
            raise UserError(f"Run {run_id} is not in progress: the command {name} was not sent.")
        job.worker.send(job.commands.message(name, parameters, role, sent_by))

    def set_live(self, hz: float) -> None:
        """Live frames per second, 0 for none; for the running and for later runs."""
        self._live_hz = hz
        if self._job is not None:
            self._job.worker.send({"t": "live_hz", "hz": hz})

    def pump(self) -> None:
        """Receive the worker's messages, read other consoles' runs, and start the next run when there is none."""
        if self._job is not None:
            self._listen(self._job)
        with suppress(StoreError):  # a failing disk: the runs themselves report it
            self.refresh_other_runs()
            self._take_over(self._others.dead(DEAD_FOR_S))
        if self._job is None:
            self._start_next()

    def close(self, evaluation_s: float = _CLOSING_S) -> None:
        """Cancel everything; returns when the worker is gone (about ten seconds at most).

        A recovery, which the next console can do again, is killed after `evaluation_s`.
        """
        self._paused = True
        self.cancel_all()
        self._recoveries.waiting.clear()
        deadline = time.monotonic() + evaluation_s
        while self._job is not None:
            if self._job.recovery is None:
                self._job.worker.cancel()
            elif time.monotonic() > deadline:
                self._job.worker.kill()
            self._listen(self._job)
            time.sleep(0.02)
        self._reader.close()
        self._store.close()

    def _start_next(self) -> None:
        if self._recoveries.waiting:
            self._start_recovery(self._recoveries.waiting.pop(0))
            return
        item = None if self._paused else self.next_waiting
        if item is None or self._others.in_progress or time.monotonic() < self._turn_at_s:
            return
        task = {"t": "run", "database": str(self.database), "run_id": item.run_id, "live_hz": self._live_hz}
        self._job = _Job(item.run_id, self.worker(task, self._wake, self._secrets.get(item.run_id)))
        self._items.update(item.run_id, state=QueueState.RUNNING, status=RunStatus.RUNNING, begun_s=time.monotonic())
        self._changed()

    def _take_over(self, dead: Collection[LiveRun]) -> None:
        if self._recoveries.take_over(dead):
            self.refresh_other_runs()

    def _start_recovery(self, recovery: Recovery) -> None:
        task = recovery.task(self.database)
        self._job = _Job(recovery.run_id, self.worker(task, self._wake), recovery)

    def _listen(self, job: _Job) -> None:
        gone = job.worker.escalate()
        messages = job.worker.take_messages(_MESSAGES_PER_PUMP)
        for message in messages:
            self._receive(job, message)
        frame = job.worker.take_frame()
        if frame is not None:
            self._receive_frame(job.run_id, frame)
        if len(messages) == _MESSAGES_PER_PUMP:
            self._wake()  # the rest in the next turn, so that no turn is long
        elif gone:
            job.worker.close()
            self._job = None
            self._settle(job)

    def _receive(self, job: _Job, message: dict[str, Any]) -> None:
        match message["t"]:
            case "log":
                for listener in self.listeners:
                    listener.log(job.run_id, message["line"])
            case "event":
                self._report_event(job.run_id, event_from_json(message["event"]))
            case "command taken":
                job.commands.taken()
            case "role":
                job.roles.append(message["name"])
            case "settling":
                job.worker.stop_escalation()
                self._refuse_commands(job)
            case "error":
                job.sentence = message["sentence"]
            case "busy":
                job.yielded = True
            case "disturbed":
                job.disturbed = message["reason"]
            case "refused":
                self._cancel_refused(job.run_id, message["secrets"])

    def _refuse_commands(self, job: _Job) -> None:
        """The run is over: report each command that it has not taken."""
        for event in job.commands.end(job.run_id):
            self._report_event(job.run_id, event)

    def _report_event(self, run_id: int, event: Event) -> None:
        for listener in self.listeners:
            listener.event(run_id, event)

    def _receive_frame(self, run_id: int, frame: LiveFrame) -> None:
        elapsed = 0.0 if frame.begin_ns is None else (frame.t_ns - frame.begin_ns) / 1e9
        rate = frame.done / elapsed if elapsed > 0 and frame.done else None
        eta = max(0, frame.total - frame.done) / rate if rate and frame.total else None
        shown = None if frame.progress == TIME_PROGRESS.name else rate
        self._items.update(run_id, done=frame.done, total=frame.total, elapsed_s=elapsed, rate=shown, eta_s=eta)
        if self._live_hz:
            for listener in self.listeners:
                listener.live(run_id, frame)

    def _settle(self, job: _Job) -> None:
        """Read from the store how the run of a worker that exited ended; end it if it has not."""
        self._refuse_commands(job)
        try:
            row = self._reader.run(job.run_id).row
        except StoreError as error:  # a failing disk, say: the next console sees how it ended
            self._show_finished(job.run_id, RunStatus.FAILED, str(error))
            return
        if job.yielded and not job.worker.cancelled:
            self._items.update(job.run_id, state=QueueState.WAITING, status=row.status, begun_s=None)
            self._changed()
            return
        if self._others.waiting:
            self._turn_at_s = time.monotonic() + _TURN_S
        if row.status.final:
            if job.disturbed and row.status is RunStatus.FINISHED:
                self._repeat_disturbed(job.run_id, job.disturbed)
            self._show_finished(job.run_id, row.status, row.reason)
            return
        if job.recovery is not None:
            status, reason = job.recovery.status, job.recovery.reason
        elif job.worker.cancelled:
            status, reason = RunStatus.CANCELLED, "Cancelled by the operator; its process had to be killed."
        elif job.sentence:
            status, reason = RunStatus.FAILED, ""
        else:
            status, reason = RunStatus.INTERRUPTED, job.worker.exit_reason()
        if row.status is RunStatus.RUNNING and job.recovery is None:
            self._start_recovery(Recovery(job.run_id, status, _unique(reason, job.sentence)))
        else:
            self._end(job.run_id, status, reason, job.sentence, Recovery.UNSTORED if job.recovery else "")

    def _repeat_disturbed(self, run_id: int, reason: str) -> None:
        """Repeat a run next whose figures are not judged because it was disturbed: once, and never a repeat of it."""
        if self._items.find(run_id) is None or run_id in self._repeated.values():
            return
        try:
            new_id = self._add_repeat(run_id, self._secrets.get(run_id), after=run_id)
        except StoreError as error:  # a full disk, say: the figures that there are stay
            sentence = f"Not judged, and not repeated: {reason}. {error}"
        else:
            self._repeated[run_id] = new_id
            sentence = f"Not judged: {reason}. It is repeated once, as run {new_id}."
        for listener in self.listeners:
            listener.log(run_id, sentence)

    def _end(self, run_id: int, status: RunStatus, *sentences: str) -> None:
        """Mark a run as ended that has no process."""
        reason = _unique(*sentences)
        try:
            self._store.run_ended(run_id, status, reason, wall_now())
        except StoreError as error:  # a full disk, say: the next console marks it
            status, reason = RunStatus.FAILED, _unique(*sentences, str(error))
        self._show_finished(run_id, status, reason)

    def _show_finished(self, run_id: int, status: RunStatus, reason: str) -> None:
        item = self._items.find(run_id)
        took_s = None if item is None or item.begun_s is None else time.monotonic() - item.begun_s
        ended = {"state": QueueState.DONE, "status": status, "activity": None, "reason": reason}
        self._items.update(run_id, **ended, eta_s=None, took_s=took_s)
        self._ended[run_id] = status
        with suppress(StoreError):
            self._others.poll(self._items.run_ids)
        self._changed()
        for listener in self.listeners:
            listener.finished(run_id, status)

    def _cancel_refused(self, run_id: int, refused: Collection[str]) -> None:
        """End the waiting runs that need a secret which a device has refused in `run_id`: a second try may lock it."""
        plugins = Plugins.discover()
        purposes: dict[tuple[int, str], list[str]] = {}
        ending: dict[int, str] = {}
        for item in self._items.waiting:
            key = (item.campaign_id, item.scenario)
            if key not in purposes:
                purposes[key] = self._needs(item.run_id, refused, plugins)
            if purposes[key]:
                ending[item.run_id] = purposes[key][0]
        for purpose in sorted(set(ending.values())):
            reason = (
                f"Not started: {purpose} refused its PIN or passphrase in run {run_id}, and another try could lock it. "
                "Correct it, then run again."
            )
            self._stop_waiting([number for number, other in ending.items() if other == purpose], reason, keep=True)

    def _stop_waiting(self, run_ids: Collection[int], reason: str, *, keep: bool) -> None:
        """Cancel waiting runs in one transaction however many they are; `keep` their items, with the reason."""
        status = RunStatus.CANCELLED
        try:
            self._store.mark_ended(list(run_ids), RunStatus.QUEUED, status, reason, wall_now())
        except StoreError:  # a full disk, say: the next console marks them
            status = RunStatus.FAILED
        if keep:
            self._items.update(*run_ids, state=QueueState.DONE, status=status, reason=reason)
        else:
            self._items.remove(run_ids)
        self._ended |= dict.fromkeys(run_ids, status)
        self._changed()
        for run_id in run_ids:
            for listener in self.listeners:
                listener.finished(run_id, status)

    def _needs(self, run_id: int, refused: Collection[str], plugins: Plugins) -> list[str]:
        """The purposes for which the run needs one of these secrets."""
        row = self._reader.run(run_id).row
        try:
            needed = needed_secrets([NewScenario(row.scenario, row.kind, row.parameters)], plugins)
        except UserError:
            return []  # its trial cannot be loaded: that is reported when the run starts
        return [request.purpose for request in needed if request.key in refused]

    def _changed(self) -> None:
        if self._secrets:  # forget those of runs that are done or removed
            left = {item.run_id for item in self.items if item.state is not QueueState.DONE}
            self._secrets = {run_id: secrets for run_id, secrets in self._secrets.items() if run_id in left}
        self._follow()
        for listener in self.listeners:
            listener.items_changed()
        self._wake()

    def _follow(self) -> None:
        live = {item.run_id: item.shown for item in (*self._others.items, *self.items)}
        self._shown = {**self._others.ended, **self._ended, **live}


def _unique(*sentences: str) -> str:
    """These sentences in one text: a disk that fails gives the same one to the worker, to recovery and to the queue."""
    return " ".join(dict.fromkeys(filter(None, sentences)))
