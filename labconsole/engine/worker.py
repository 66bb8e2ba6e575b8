"""The process of one run: `python -m labconsole.engine.worker`, told over standard input what to do.

Two tasks: `run` conducts a queued run; `recover` takes in what a dead worker left, and evaluates it.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from labconsole.clock import wall_now
from labconsole.engine.channel import ChildChannel
from labconsole.engine.containment import die_with_parent, hold_children, this_process
from labconsole.engine.provenance import provenance
from labconsole.engine.recorder import Recorder, spool_directory
from labconsole.engine.run_context import WorkerContext
from labconsole.engine.thresholds import threshold_verdicts
from labconsole.plugin import Plugins
from labconsole.store.reader import Reader
from labconsole.store.records import RunDetail, RunStatus
from labconsole.store.store import Store
from labconsole.trial import Evaluation, Trial, TrialError

RECORD_INTERVAL_S = 0.25
USAGE_INTERVAL_S = 0.5


@dataclass(frozen=True)
class _Run:
    """The run at hand."""

    database: Path
    store: Store
    detail: RunDetail
    trial: Trial[Any]
    parameters: Any

    @property
    def spool(self) -> Path:
        return spool_directory(self.database, self.detail.row.uuid)


def _open(task: Mapping[str, Any]) -> _Run:
    database = Path(task["database"])
    store = Store.open(database)
    reader = Reader(database)
    try:
        detail = reader.run(task["run_id"])
    finally:
        reader.close()
    try:
        trial = Plugins.discover().trial(detail.row.kind)
    except KeyError:
        raise TrialError(
            f"No installed plugin knows the trial {detail.row.kind}; `labconsole trials` lists those there are."
        ) from None
    return _Run(database, store, detail, trial, trial.parameters.model_validate(dict(detail.row.parameters)))


class _Periodic:
    """Calls a function at intervals on a thread of its own until it is stopped; keeps the first error."""

    def __init__(self, name: str, interval_s: Callable[[], float], work: Callable[[], None]) -> None:
        self._interval_s = interval_s
        self._work = work
        self._stop = threading.Event()
        self.error: TrialError | None = None
        self._thread = threading.Thread(target=self._loop, name=name)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _loop(self) -> None:
        while not self._stop.wait(self._interval_s()):
            try:
                self._work()
            except TrialError as error:
                self.error = error
                return


def _conduct(run: _Run, channel: ChildChannel, task: Mapping[str, Any]) -> tuple[RunStatus, str]:
    """Run the trial and store what its roles record. Returns the outcome and its reason."""
    run_id, seed = run.detail.row.id, run.detail.row.seed
    live_hz: float = task["live_hz"]
    warnings = run.trial.warnings(run.parameters)
    run.store.run_started(run_id, this_process(), provenance(seed, live_hz), warnings, wall_now())
    channel.send({"t": "started"})
    run.spool.mkdir(parents=True)
    recorder = Recorder(run.store, run_id, run.spool)
    context = WorkerContext(channel, run.spool, seed, live_hz)
    channel.listen(context.on_message)
    context.usage.watch("worker", psutil.Process().pid)
    recording = _Periodic("recorder", lambda: RECORD_INTERVAL_S, recorder.poll)
    usage = _Periodic("usage", lambda: USAGE_INTERVAL_S, context.usage.read)
    live = _Periodic(
        "live", lambda: 1 / context.live_hz if context.live_hz else 0.5, lambda: _send_live(context, channel)
    )
    status, reason = RunStatus.FINISHED, ""
    try:
        run.trial.run(run.parameters, context)
        if context.stop_requested:
            status, reason = RunStatus.CANCELLED, "Cancelled by the operator."
    except TrialError as error:
        status, reason = RunStatus.FAILED, str(error)
    except Exception as error:  # noqa: BLE001 - the trial is foreign code: its fault ends the run, not the store
        traceback.print_exc()
        status, reason = RunStatus.FAILED, f"A fault in the trial: {type(error).__name__}: {error}"
    finally:
        context.end_roles()
        usage.stop()
        live.stop()
        recording.stop()
        context.close()
    channel.send(context.frame().to_json())
    channel.send({"t": "evaluating"})
    for broken in (recording.error, usage.error):
        if broken is not None and status is not RunStatus.FAILED:
            status, reason = RunStatus.FAILED, str(broken)
    recorder.poll()
    return _settle(run, recorder, status, reason)


def _send_live(context: WorkerContext, channel: ChildChannel) -> None:
    if context.live_hz:
        channel.send(context.frame().to_json())


def _recover(run: _Run, task: Mapping[str, Any]) -> tuple[RunStatus, str]:
    """Take in what a dead worker left. Returns the outcome and its reason."""
    recorder = Recorder(run.store, run.detail.row.id, run.spool)
    recorder.poll()
    return _settle(run, recorder, RunStatus(task["status"]), task["reason"])


def _settle(run: _Run, recorder: Recorder, status: RunStatus, reason: str) -> tuple[RunStatus, str]:
    """Evaluate what is stored, end the run, and remove its spool."""
    run_id = run.detail.row.id
    try:
        run.store.replace_evaluation(run_id, _evaluation(run))
    except Exception as error:  # noqa: BLE001 - foreign code: the samples are stored, the run must still be ended
        traceback.print_exc()
        fault = f"The samples could not be evaluated: {type(error).__name__}: {error}"
        status, reason = (status, reason) if reason else (RunStatus.FAILED, fault)
    if recorder.damage:
        reason = " ".join([reason, *recorder.damage]).strip()
    run.store.run_ended(run_id, status, reason, wall_now())
    if run.spool.exists():
        recorder.discard_spool()
    return status, reason


def _evaluation(run: _Run) -> Evaluation:
    reader = Reader(run.database)
    try:
        events = reader.run(run.detail.row.id).events
        evaluation = run.trial.evaluate(run.parameters, reader.samples(run.detail.row.id), events)
    finally:
        reader.close()
    verdicts = evaluation.verdicts + threshold_verdicts(run.detail.thresholds, evaluation.metrics)
    return Evaluation(evaluation.metrics, verdicts)


def main() -> int:
    """Entry of the worker process: 0 when the run was brought to an end in the store, 1 otherwise."""
    channel = ChildChannel()
    task = channel.first()
    die_with_parent(task["parent_pid"])
    job = hold_children()
    try:
        run = _open(task)
        status, reason = _conduct(run, channel, task) if task["t"] == "run" else _recover(run, task)
    except TrialError as error:
        channel.send({"t": "error", "sentence": str(error)})
        channel.close()
        return 1
    run.store.close()
    channel.send({"t": "ended", "status": status, "reason": reason})
    channel.close()
    del job
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
