"""The bridge to the run queue: recovery of runs of dead consoles, and refusals of the store."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import pytest
from filelock import FileLock
from PySide6.QtWidgets import QApplication

from labconsole.clock import wall_now
from labconsole.engine.queue import RunQueue
from labconsole.engine.recorder import make_spool, spool_directory
from labconsole.processes import Owner
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, NewScenario, RunStatus
from labconsole_ui.runtime.queue_bridge import QueueBridge
from tests.helpers.practice import PLUGIN, Bench, campaign

DEAD = Owner(2**22 + 1, 1.0, "another boot")


@pytest.fixture
def practice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PLUGIN))
    monkeypatch.setenv("PYTHONPATH", str(PLUGIN), prepend=os.pathsep)
    monkeypatch.delitem(sys.modules, "practice_trial", raising=False)
    importlib.invalidate_caches()


def run_of_dead_console(queue: RunQueue, folder: Path) -> int:
    [run_id] = queue.store.add_campaign(campaign(folder, {"fault": "evaluate slowly"}), DEAD, wall_now())
    queue.store.run_started(run_id, DEAD, {}, [], wall_now())
    with Reader(queue.store.path) as reader:
        make_spool(spool_directory(queue.store.path, reader.run(run_id).row.uuid))
    return run_id


@pytest.mark.usefixtures("practice")
def test_closing_does_not_wait_for_recovery_and_the_next_console_repeats_it(qapp: QApplication, tmp_path: Path) -> None:
    database = tmp_path / "runs.db"
    bridge = QueueBridge(lambda wake: RunQueue(database, wake=wake), qapp)
    run_id = run_of_dead_console(bridge.queue, tmp_path)
    bridge.recover()
    bridge.queue.pump()
    bridge.close()
    with Reader(database) as reader:
        assert not reader.run(run_id).row.metrics, "its evaluation, of two seconds, is not waited for"
    bridge.setParent(None)
    bench = Bench(tmp_path)
    bench.queue.recover()
    bench.pump_until_idle()
    bench.close()
    with Reader(database) as reader:
        run = reader.run(run_id)
    assert run.row.status is RunStatus.INTERRUPTED
    assert run.row.metrics["counted"].value == 0


def test_store_error_is_reported_once_until_a_write_succeeds(qapp: QApplication, home: Path) -> None:
    database, failures = home / "runs.db", list[str]()
    home.mkdir(exist_ok=True)
    bridge = QueueBridge(lambda wake: RunQueue(database, wake=wake, lock_timeout_s=0.05), qapp)
    bridge.failed.connect(failures.append)
    scenario = NewScenario("A", "amqp.messaging", {})
    [run_id] = bridge.queue.store.add_campaign(
        NewCampaign("mine", "Mine", "", 1, (scenario,), ((0, 1),)), DEAD, wall_now()
    )
    with FileLock(f"{database}.lock"):
        bridge.recover()
        bridge.recover()
    assert len(failures) == 1 and "has been locked by another lab console" in failures[0]
    bridge.recover()
    assert len(failures) == 1
    with Reader(database) as reader:
        assert reader.run(run_id).row.status is RunStatus.CANCELLED
    bridge.close()
    bridge.setParent(None)
