"""The end of a run: store the rest of its spool, evaluate it, record its status. Repeatable: recovery after a crash."""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labconsole.clock import wall_now
from labconsole.clock_comparison import HOST_JUMPED
from labconsole.engine.recorder import COLLECTING, Recorder, leftovers, spool_directory
from labconsole.errors import UserError
from labconsole.hosts.samples.collected import HostClock, collected, copy_of_local_hosts, recorded_folder
from labconsole.model.metrics import Evaluation, Metric, Verdict
from labconsole.model.parameters import Parameters
from labconsole.model.placement import Placement
from labconsole.model.plugin import Plugins
from labconsole.model.series import Event
from labconsole.model.trial import Trial
from labconsole.processes import is_alive
from labconsole.store.errors import StoreError
from labconsole.store.records import LiveRun, RunRow, RunStatus
from labconsole.store.run_reader import RunReader, RunTask
from labconsole.store.run_store import Store

if TYPE_CHECKING:
    from labconsole.store.reader import Reader

PREFIX = "threshold: "


def threshold_verdicts(thresholds: Mapping[str, Mapping[str, float]], metrics: Sequence[Metric]) -> tuple[Verdict, ...]:
    """One verdict per threshold (`{"throughput": {"min": 1000.0}}`).

    "unknown" where the run has no such metric, or it is nearer to a bound than its clocks are certain.
    """
    values = {metric.name: metric for metric in metrics if not metric.labels}
    return tuple(_verdict(name, bounds, values.get(name)) for name, bounds in sorted(thresholds.items()))


def _verdict(name: str, bounds: Mapping[str, float], metric: Metric | None) -> Verdict:
    if metric is None:
        return Verdict(PREFIX + name, "unknown", f"The run has no metric {name}.", {"bounds": dict(bounds)})
    low, high = bounds.get("min", float("-inf")), bounds.get("max", float("inf"))
    asked = " and ".join(
        f"{word} {bounds[key]:g}" for key, word in (("min", "at least"), ("max", "at most")) if key in bounds
    )
    unit = f" {metric.unit}" if metric.unit else ""
    within = f" ± {metric.uncertainty:.2g}" if metric.uncertainty else ""
    reason = f"{name} is {metric.value:g}{within}{unit}; asked: {asked}{unit}."
    result = "pass" if low <= metric.value <= high else "fail"
    if any(abs(metric.value - bound) < metric.uncertainty for bound in bounds.values()):
        result, reason = "unknown", f"{reason} The clocks leave open whether it is."
    evidence = {"value": metric.value, "bounds": dict(bounds)}
    if metric.uncertainty:
        evidence["uncertainty"] = metric.uncertainty
    return Verdict(PREFIX + name, result, reason, evidence)


@dataclass(frozen=True)
class WorkerRun:
    """A run and its database."""

    store: Store
    task: RunTask
    collecting: bool = False
    """Whether samples that hosts still have are added to it once it has ended."""

    @property
    def id(self) -> int:
        """The run's number."""
        return self.task.id

    @property
    def spool(self) -> Path:
        """The directory of its spool files; while they are collected it has another one, which no recovery removes."""
        directory = spool_directory(self.store.path, self.task.uuid)
        return directory.with_suffix(COLLECTING) if self.collecting else directory

    @cached_property
    def trial(self) -> tuple[Trial[Any], Parameters]:
        """Its trial and parameters, loaded once: to find plugins takes some 10 ms. Raises UserError."""
        return load_trial(self.task)


def load_trial(row: RunRow | RunTask) -> tuple[Trial[Any], Parameters]:
    """The trial of a run with the run's parameters. Raises UserError."""
    try:
        trial = Plugins.discover().trial(row.kind)
    except KeyError:
        raise UserError(
            f"No installed plugin knows the trial {row.kind}; `labconsole trials` lists those there are."
        ) from None
    except Exception as error:
        traceback.print_exc()
        raise UserError(f"The trial {row.kind} cannot be loaded: {type(error).__name__}: {error}") from error
    try:
        return trial, trial.parameters.of_stored(row.parameters)
    except ValueError as error:
        raise UserError(f"Run {row.id} has parameters that the trial {row.kind} does not take: {error}") from error


def finalize_run(run: WorkerRun, recorder: Recorder, status: RunStatus, reason: str) -> str:
    """Store what is left, evaluate, end the run as `status`, and remove its spool. Returns `Evaluation.disturbed`.

    A run whose samples cannot be evaluated ends as failed, unless `reason` already names another cause. Raises
    StoreError; the spool is then kept for the next attempt.
    """
    recorder.finish()
    with RunReader(run.store.path) as reader:
        events = reader.events(run.id)
    if damage := _store_collected(run, events):
        recorder.keep_spool()
    damage += recorder.damage
    if run.collecting:  # its reason stays
        run.store.amend_provenance(run.id, warnings=damage)
    if any(collected(run.spool)):
        with RunReader(run.store.path) as reader:
            events = reader.events(run.id)
    if rates := [event.data["live_view_hz"] for event in events if "live_view_hz" in event.data]:
        run.store.amend_provenance(run.id, live_view_hz_later=rates)
    if jumps := [event.message for event in events if event.name == HOST_JUMPED]:
        run.store.amend_provenance(run.id, warnings=jumps)
    fault, disturbed = _evaluate(run, events)
    if fault and status is RunStatus.FINISHED:
        status = RunStatus.FAILED
    reason = " ".join(filter(None, [reason, fault, *damage]))
    for live in run.store.live_runs():
        if live.id == run.id:
            # Nothing happens if another console was faster.
            run.store.mark_ended([live.id], live.status, status, reason, wall_now())
    if run.spool.exists():
        recorder.discard_spool()
    return disturbed


def _store_collected(run: WorkerRun, events: Sequence[Event]) -> list[str]:
    """Store what was brought from hosts; returns the damage, one sentence each. Raises StoreError."""
    damage: list[str] = []
    for host, folder in collected(run.spool):
        recorder = Recorder(run.store, run.id, folder, HostClock(events, host).corrected)
        recorder.poll()
        damage += recorder.damage
    return damage


def recover(run: WorkerRun, recorder: Recorder, status: RunStatus, reason: str) -> None:
    """Bring a run to its end whose process is dead. Raises UserError if it is not.

    A run that has ended already but left a spool keeps its status; the rest of its samples is stored. Raises
    StoreError, where a full disk has no room for them, say: the spool is kept, and there is room to mark the run.
    """
    row = run.task
    if not row.status.final and row.owner is not None and is_alive(row.owner):
        raise UserError(f"Run {row.id} is in progress in process {row.owner.pid}; it cannot be taken over.")
    placement, left = Placement.of_stored(run.task.placement), list[Path]()
    if placement is not None and placement.local:  # their scheduler is gone as well: no host could be asked
        try:
            left = copy_of_local_hosts(row.uuid, run.spool)
        except OSError as error:
            reason += f" Samples of its local hosts are in {recorded_folder('')} ({error.strerror})."
    elif placement is not None and not row.status.final:
        reason += " Samples on hosts are brought by `labconsole hosts collect`."
    try:
        finalize_run(run, recorder, status, reason)
    except StoreError:
        recorder.release_reserve()
        raise
    for folder in left:
        shutil.rmtree(folder, ignore_errors=True)


def _evaluate(run: WorkerRun, events: Sequence[Event]) -> tuple[str, str]:
    """Replace the run's metrics and verdicts by those of its stored samples. Returns the fault, if there was one, and
    `Evaluation.disturbed`.

    A run whose samples stay on hosts has none until they are collected. Raises StoreError when they cannot be stored,
    which is not a fault of the samples: it can be repeated.
    """
    placement = Placement.of_stored(run.task.placement)
    if placement is not None and placement.samples == "stay" and not run.collecting:
        run.store.replace_evaluation(run.id, Evaluation((), threshold_verdicts(run.task.thresholds, ())))
        return "", ""
    try:
        trial, parameters = run.trial
        with RunReader(run.store.path) as reader:
            evaluation = trial.evaluate(parameters, reader.samples(run.id), events)
        if undeclared := {metric.name for metric in evaluation.metrics} - {kind.name for kind in trial.metrics}:
            names = ", ".join(sorted(undeclared))
            raise UserError(f"The trial's evaluation gives metrics that it does not declare: {names}.")
        verdicts = evaluation.verdicts + threshold_verdicts(run.task.thresholds, evaluation.metrics)
    except UserError as error:
        return str(error), ""
    except Exception as error:  # noqa: BLE001 - foreign code: the samples are stored, the run must still be ended
        traceback.print_exc()
        return f"The samples could not be evaluated: {type(error).__name__}: {error}", ""
    run.store.replace_evaluation(run.id, Evaluation(evaluation.metrics, verdicts))
    return "", evaluation.disturbed


@dataclass(frozen=True)
class Recovery:
    """A run whose process died, with the status and reason that it gets unless it has ended already."""

    UNSTORED = "Samples that could not be stored are kept next to the database until a console has room for them."
    """What the reason says besides where the recovery itself fails."""

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
