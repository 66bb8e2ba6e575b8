"""Runs of the practice trial with roles on the hosts of a cluster of processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import psutil

from labconsole.hosts.cluster import Cluster
from labconsole.model.placement import Placement
from labconsole.store.records import RunDetail
from tests.helpers.forked_programs import runs
from tests.helpers.practice import Bench, campaign
from tests.labconsole.hosts.cluster_processes import ClusterProcesses

SHIFT_NS, DRIFT_PPM = 3_000_000_000_000, 20_000.0
"""The clock of beta in the shared cluster is an hour ahead, and wins 20 ms a second."""


def submit(
    bench: Bench,
    running: ClusterProcesses,
    placed: list[dict[str, Any]],
    samples: str = "bring",
    lost_console: str = "stop",
    **parameters: Any,
) -> int:
    """Queue a run whose roles are placed so; its number."""
    asked = {"scheduler": running.address, "roles": placed, "samples": samples, "lost_console": lost_console}
    placement = Placement.model_validate(asked)
    planned = campaign(bench.folder, **parameters)
    scenarios = tuple(replace(one, placement=placement.model_dump(mode="json")) for one in planned.scenarios)
    (run_id,) = bench.queue.submit(replace(planned, scenarios=scenarios))
    return run_id


def run(bench: Bench, running: ClusterProcesses, placed: list[dict[str, Any]], **parameters: Any) -> RunDetail:
    """A run that has ended."""
    run_id = submit(bench, running, placed, **parameters)
    bench.pump_until_idle()
    return bench.detail(run_id)


def pump_until_counted(bench: Bench, run_id: int, least: int) -> None:
    """Pump until a run has counted so many numbers; fails as soon as it has ended."""

    def counted() -> bool:
        if any(number == run_id for number, _ in bench.listener.ends):
            raise AssertionError(bench.detail(run_id).row.reason)
        return any(number == run_id and frame.done >= least for number, frame in bench.listener.frames)

    bench.pump_until(counted)


def held(running: ClusterProcesses, host: str) -> dict[str, list[str]]:
    """The runs that have left samples on a host."""
    with Cluster(running.address, running.member()) as console:
        found: dict[str, list[str]] = console.call(host, "describe")["held"]
        return found


def eventually(condition: Callable[[], Any], within_s: float, every_s: float = 0.1) -> bool:
    """Whether it comes true in this time; one that connects to the cluster costs 0.2 s of CPU, and is asked rarely."""
    deadline_s = time.monotonic() + within_s
    while not (true := condition()) and time.monotonic() < deadline_s:
        time.sleep(every_s)
    return bool(true)


def roles_end(running: ClusterProcesses, host: str, within_s: float) -> bool:
    """Whether all roles on a host, which is in the cluster, end in this time."""
    with Cluster(running.address, running.member()) as console:
        return eventually(lambda: not console.call(host, "describe")["running"], within_s, 0.3)


def pump_until_final(bench: Bench, run_id: int) -> None:
    """Pump until a run has ended and is recovered."""
    bench.pump_until(lambda: not bench.queue.busy and bench.detail(run_id).row.status.final)


def role_process(running: ClusterProcesses, host: str) -> psutil.Process:
    """The process of the role that runs on a host."""
    agent = running.agent(host)
    (child,) = (one for one in psutil.Process(agent.process.pid).children() if runs(one, "labconsole.engine.role"))
    return child


def worker_process() -> psutil.Process:
    """The worker of the run in progress."""
    (found,) = (one for one in psutil.Process().children() if runs(one, "labconsole.engine.worker"))
    return found
