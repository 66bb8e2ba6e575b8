"""Cancelling: the ladder of message, terminate and kill, at every moment of a run."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest

from labconsole.engine import supervisor
from labconsole.store.records import RunDetail, RunStatus
from tests.helpers.parallel import run_parallel
from tests.helpers.practice import Bench, alive, processes, wait_until
from tests.helpers.signals import frozen

LONG = {"count": 1_000_000, "rate": 2000.0}
GETS_READY = (("fault", "slow prepare"),)
DEAF = (*LONG.items(), ("fault", "deaf"))
Slow = Mapping[tuple[tuple[str, Any], ...], Future[tuple[RunDetail, float]]]


def test_cancel_ends_a_run_and_keeps_its_samples(bench: Bench) -> None:
    [run_id] = bench.submit({**LONG, "roles": 2})
    bench.pump_until_counting()
    bench.queue.cancel(run_id)
    bench.queue.cancel(run_id)
    bench.pump_until_idle()
    run = bench.detail(run_id)
    assert (run.row.status, run.row.reason) == (RunStatus.CANCELLED, "Cancelled by the operator.")
    assert 0 < run.row.metrics["counted"].value == sum(len(bench.numbers(run_id, f"counter-{i}")) for i in (0, 1))
    assert not [pid for pid in processes(run).values() if alive(pid)]


def test_cancel_in_the_moment_of_the_start_is_not_lost(bench: Bench) -> None:
    """The message is in the pipe after the task before the worker reads either."""
    [run_id] = bench.submit(LONG)
    bench.queue.pump()
    bench.queue.cancel(run_id)
    begun = time.monotonic()
    bench.pump_until_idle()
    assert bench.detail(run_id).row.reason == "Cancelled by the operator."
    assert time.monotonic() - begun < supervisor.TERMINATE_AFTER_S


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory, practice_plugin: Path) -> Slow:
    """Both cancellations that wait for a role until it is killed, at the same time: how they went."""
    folder = tmp_path_factory.mktemp("slow")

    def cancelled(parameters: tuple[tuple[str, Any], ...]) -> tuple[RunDetail, float]:
        (own := folder / str(dict(parameters)["fault"])).mkdir()
        with closing(Bench(own)) as bench:
            [run_id] = bench.submit(dict(parameters))
            if parameters is DEAF:
                bench.pump_until_counting()
            else:
                bench.pump_until(lambda: bool(bench.listener.events))
            bench.queue.cancel(run_id)
            begun = time.monotonic()
            bench.pump_until_idle()
            return bench.detail(run_id), time.monotonic() - begun

    return run_parallel((GETS_READY, DEAF), cancelled)


def test_cancel_while_a_role_prepares(slow: Slow) -> None:
    run, took_s = slow[GETS_READY].result()
    assert run.row.reason == "Cancelled by the operator."
    assert took_s < 6


def test_role_that_ignores_cancel_is_killed_and_named(slow: Slow) -> None:
    run, _ = slow[DEAF].result()
    assert run.row.status is RunStatus.CANCELLED
    assert [event.message for event in run.events if event.name == "killed"] == [
        "Did not end within 3 s and was killed: counter-0."
    ]
    assert run.row.metrics["counted"].value > 0


@pytest.mark.skipif(sys.platform == "win32", reason="stops a process by a signal")
@pytest.mark.parametrize(
    ("stopped", "ends_by"), [("The worker's process.", "kill"), ("nothing", "terminate")], ids=["kill", "terminate"]
)
def test_worker_that_ignores_cancel_is_terminated_then_killed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, stopped: str, ends_by: str
) -> None:
    """A worker stopped by SIGSTOP takes no SIGTERM either; one whose trial sleeps does."""
    monkeypatch.setattr(supervisor, "TERMINATE_AFTER_S", 0.3)
    monkeypatch.setattr(supervisor, "KILL_AFTER_S", 1.2 if ends_by == "kill" else 30.0)
    [run_id] = bench.submit({**LONG, "fault": "deaf"})
    bench.pump_until_counting()
    pids = {event.message: event.data["pid"] for _, event in bench.listener.events if event.name == "process"}
    with frozen(pids[stopped]) if stopped in pids else nullcontext():
        bench.queue.cancel(run_id)
        bench.pump_until_idle()
    run = bench.detail(run_id)
    assert run.row.status is RunStatus.CANCELLED
    assert run.row.reason == "Cancelled by the operator; its process had to be killed."
    assert run.row.metrics["counted"].value > 0
    assert wait_until(lambda: not [pid for pid in processes(run).values() if alive(pid)])


def test_cancel_does_not_terminate_a_worker_that_evaluates(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "TERMINATE_AFTER_S", 1.5)
    [run_id] = bench.submit({**LONG, "fault": "evaluate slowly"})
    bench.pump_until_counting()
    bench.queue.cancel(run_id)
    bench.pump_until_idle()
    assert bench.detail(run_id).row.reason == "Cancelled by the operator."
