"""The process of one run: `python -m labconsole.engine.worker`, with its task on standard input.

Two tasks: `run` conducts a queued run; `recover` stores and evaluates the samples that a dead worker left. The status
of the run is in the store; the worker reports only a failure to record it.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from labconsole.clock import wall_now
from labconsole.engine.child_channel import ChildChannel
from labconsole.engine.launcher import Launcher, LocalLauncher
from labconsole.engine.protocol import WorkerChannel
from labconsole.engine.provenance import provenance
from labconsole.engine.recorder import Recorder, make_spool
from labconsole.engine.role_handle import CancelledError
from labconsole.engine.run_context import WorkerContext
from labconsole.engine.run_end import WorkerRun, finalize_run, recover
from labconsole.engine.usage import INTERVAL_S
from labconsole.errors import UserError
from labconsole.model.parameters import Parameters
from labconsole.model.placement import Placement
from labconsole.model.trial import Trial
from labconsole.processes import (
    create_child_job,
    die_with_parent,
    is_alive,
    this_process,
    work_behind_others,
    work_when_idle,
)
from labconsole.security.secret_value import Secret
from labconsole.store.records import RunStatus
from labconsole.store.run_reader import RunReader
from labconsole.store.run_store import RunInProgressError, Store

CANCELLED = "Cancelled by the operator."
RECORD_INTERVAL_S = 0.25
USAGE_INTERVAL_S = 0.5
_QUIET_INTERVAL_S = 0.5
"""Between live frames where no live view wants any: the queue still shows the progress."""


class _Periodic:
    """Calls `work` at intervals on a thread of its own until it is stopped; an error ends it and goes to `on_error`.

    What is measured goes before it: a role on the same core does not wait until its samples are stored.
    """

    def __init__(
        self,
        name: str,
        interval_s: Callable[[], float],
        work: Callable[[], None],
        on_error: Callable[[str], None],
        *,
        priority: Callable[[], None] = work_behind_others,
    ) -> None:
        """`priority` sets that of the thread, in it."""
        self._interval_s = interval_s
        self._work = work
        self._on_error = on_error
        self._priority = priority
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name=name)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _loop(self) -> None:
        self._priority()
        while not self._stop.wait(self._interval_s()):
            try:
                self._work()
            except UserError as error:
                self._on_error(str(error))
                return
            except Exception as error:  # noqa: BLE001 - whatever it is, the run must not continue without this thread
                traceback.print_exc()
                self._on_error(f"A fault in the console: {type(error).__name__}: {error}")
                return


class _Messages:
    """Messages of the supervisor: kept until the run has begun, which takes some seconds where hosts are started."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._kept: list[dict[str, Any]] = []
        self._taker: Callable[[dict[str, Any]], None] | None = None

    def __call__(self, message: dict[str, Any]) -> None:
        """Take a message (on the reader thread)."""
        with self._turn:
            if self._taker is None:
                self._kept.append(message)
            else:
                self._taker(message)

    def cancelled(self) -> bool:
        """Whether the run was cancelled before it began."""
        with self._turn:
            return any(message["t"] == "cancel" for message in self._kept)

    def pass_on(self, taker: Callable[[dict[str, Any]], None]) -> None:
        """Let `taker` have the messages, those that were kept first."""
        with self._turn:
            self._taker = taker
            for message in self._kept:
                taker(message)


def _conduct_run(
    run: WorkerRun,
    recorder: Recorder,
    channel: WorkerChannel,
    live_hz: float,
    secrets: Mapping[str, Secret],
    stored: ExitStack,
    here: Callable[[], Launcher],
) -> tuple[RunStatus, str]:
    """Run the trial while its samples are stored. Returns the outcome and its reason.

    `stored` is closed once the run is stored: other hosts forget it then. `here` launches roles of a run without hosts.

    Raises UserError before the run was marked as running: RunInProgressError while another process conducts a run of
    this database, others where the run has ended already or its trial cannot be loaded.
    """
    trial, parameters = run.trial
    seed = run.task.seed
    surroundings = provenance(seed, live_hz)
    run.store.run_started(
        run.id,
        this_process(),
        surroundings,
        (*trial.warnings(parameters), *(trial.local_warnings(parameters) if _is_local(run) else ())),
        wall_now(),
        definitions=trial.definitions,
        is_alive=is_alive,
    )
    try:
        make_spool(run.spool, trial.disk_bytes(parameters))
        keep = partial(run.store.add_artefact, run.id)
        messages = _Messages()
        channel.listen(messages)
        launcher = _launcher(run, trial, parameters, stored, messages.cancelled, here)
        context = WorkerContext(channel, run.spool, seed, live_hz, secrets, keep, trial.live, trial.commands, launcher)
        messages.pass_on(context.on_message)
        with _recording_threads(context, recorder, channel, when_idle=trial.leaves_idle_time(parameters)):
            try:
                status, reason = _outcome(trial, parameters, context)
            finally:
                context.end_roles()
                if refused := context.refused_secrets:
                    channel.send({"t": "refused", "secrets": refused})
        return _brought(launcher, run, channel, status, reason)
    except CancelledError:
        return RunStatus.CANCELLED, CANCELLED
    except UserError as error:
        return RunStatus.FAILED, str(error)


def _is_local(run: WorkerRun) -> bool:
    """Whether all roles of the run are on this computer."""
    placement = Placement.of_stored(run.task.placement)
    return placement is None or placement.local > 0


def _launcher(
    run: WorkerRun,
    trial: Trial[Any],
    parameters: Parameters,
    stored: ExitStack,
    cancelled: Callable[[], bool],
    here: Callable[[], Launcher],
) -> Launcher:
    """What starts the roles of the run. Raises UserError: the hosts that it asks for are not there; CancelledError."""
    placement = Placement.of_stored(run.task.placement)
    if placement is None:
        return here()
    if not trial.on_hosts:
        raise UserError(
            f"Roles of the trial {trial.kind} read files and tokens of this computer, and run on no other: take the "
            "hosts out of the scenario."
        )
    from labconsole.hosts.installed import require_dask

    require_dask()
    from labconsole.hosts.host_launcher import HostLauncher, HostRun, connected

    cluster, address = connected(placement, stored, cancelled)
    needs = HostRun(run.task.uuid, run.spool, trial.disk_bytes(parameters))
    launcher = HostLauncher(cluster, placement, needs, LocalLauncher(address))
    stored.callback(launcher.close)
    return launcher


def _brought(
    launcher: Launcher, run: WorkerRun, channel: WorkerChannel, status: RunStatus, reason: str
) -> tuple[RunStatus, str]:
    """Bring what roles recorded on other hosts; returns status and reason of the run with it."""
    if hosts := launcher.hosts:
        channel.send({"t": "settling"})  # a cancelled run has its samples brought, however long that takes
        run.store.amend_provenance(run.id, hosts=hosts)
    try:
        launcher.finish()
    except UserError as fault:
        return (RunStatus.FAILED if status is RunStatus.FINISHED else status), f"{reason} {fault}".strip()
    return status, reason


def _outcome(trial: Trial[Any], parameters: Parameters, context: WorkerContext) -> tuple[RunStatus, str]:
    """Let the trial run; returns the status and its reason."""
    try:
        trial.run(parameters, context)
        fault = context.failure or ""
    except CancelledError:
        fault = ""
    except UserError as error:
        fault = str(error)
    except Exception as error:  # noqa: BLE001 - the trial is foreign code: its fault ends the run, not the store
        traceback.print_exc()
        fault = f"A fault in the trial: {type(error).__name__}: {error}"
    if context.stop_requested:
        return RunStatus.CANCELLED, f"{CANCELLED} {fault}".strip()
    return (RunStatus.FAILED, fault) if fault else (RunStatus.FINISHED, "")


@contextmanager
def _recording_threads(
    context: WorkerContext, recorder: Recorder, channel: WorkerChannel, *, when_idle: bool
) -> Iterator[None]:
    """Record, measure and report on threads of their own while the block runs; all but the report `when_idle`."""
    priority = work_when_idle if when_idle else work_behind_others

    def report() -> None:
        channel.send(context.frame().to_json())

    threads = [
        _Periodic("recorder", lambda: RECORD_INTERVAL_S, recorder.poll, context.fail, priority=priority),
        _Periodic("usage", lambda: USAGE_INTERVAL_S, context.usage.read, context.fail, priority=priority),
        _Periodic("machine", lambda: INTERVAL_S, context.machine.read, context.fail, priority=priority),
        _Periodic("live", lambda: 1 / context.live_hz if context.live_hz else _QUIET_INTERVAL_S, report, context.fail),
    ]
    try:
        yield
    finally:
        for thread in threads:
            thread.stop()
        report()
        context.usage.read()  # once at least, however short the run was
        context.close()


def perform_task(task: Mapping[str, Any], channel: WorkerChannel, here: Callable[[], Launcher] = LocalLauncher) -> None:
    """Perform the task of the supervisor; `here` launches roles of a run without hosts.

    Raises UserError when the end of the run could not be stored.
    """
    with Store.open(Path(task["database"])) as store:
        with RunReader(store.path) as reader:
            run = WorkerRun(store, reader.task(task["run_id"]))
        recorder = Recorder(store, run.id, run.spool)
        if task["t"] == "run":
            secrets = {key: Secret(value) for key, value in task["secrets"].items()}
            with ExitStack() as stored:
                try:
                    status, reason = _conduct_run(run, recorder, channel, task["live_hz"], secrets, stored, here)
                except RunInProgressError:
                    channel.send({"t": "busy"})
                    return
                channel.send({"t": "settling"})
                if disturbed := finalize_run(run, recorder, status, reason):
                    channel.send({"t": "disturbed", "reason": disturbed})
        else:
            channel.listen(lambda message: None)
            recover(run, recorder, RunStatus(task["status"]), task["reason"])


def main() -> int:
    """Entry of the worker process: 0 when the end of the run is stored, 1 otherwise."""
    channel = ChildChannel()
    task = channel.first()
    die_with_parent(task["parent_pid"])
    job = create_child_job()
    try:
        perform_task(task, channel)
    except UserError as error:
        channel.send({"t": "error", "sentence": str(error)})
        return 1
    finally:
        channel.close()
        del job
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
