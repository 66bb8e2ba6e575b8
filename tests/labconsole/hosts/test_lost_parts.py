"""A frozen agent, a lost scheduler, a full disk, and parts killed at random: no sample that was written is lost."""

from __future__ import annotations

import logging
import os
import random
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from filelock import FileLock

from labconsole.cli.main import main
from labconsole.engine.launcher import LocalLauncher, RoleStart
from labconsole.engine.recorder import spool_directory, spool_root
from labconsole.engine.spool import SampleBlock, SpoolReader
from labconsole.errors import UserError
from labconsole.hosts.cluster import Cluster, HostLostError
from labconsole.hosts.dask_settings import dask_settings
from labconsole.hosts.host_launcher import HostLauncher, HostRun
from labconsole.hosts.samples.collecting import bring
from labconsole.hosts.samples.left_samples import collect_left, discard
from labconsole.model.placement import Placement, RoleRequest
from labconsole.paths import HOME_VARIABLE
from labconsole.store.records import RunStatus
from tests.helpers.practice import Bench
from tests.helpers.signals import frozen
from tests.helpers.worker_threads import operations_in_threads
from tests.labconsole.hosts.cluster_processes import ClusterProcesses, cluster
from tests.labconsole.hosts.host_runs import (
    eventually,
    held,
    pump_until_counted,
    pump_until_final,
    role_process,
    roles_end,
    submit,
    worker_process,
)

_KILLS = int(os.environ.get("LABCONSOLE_TEST_KILLS", "10"))
"""How many parts are killed at random, one in each run."""
_SEED = 16


@pytest.fixture
def fragile(tmp_path: Path) -> Iterator[ClusterProcesses]:
    """A cluster with the host alpha for a test that breaks it."""
    with cluster(tmp_path / "console") as found:
        found.joins("alpha", tmp_path / "alpha")
        yield found


@pytest.fixture
def fragile_bench(bench: Bench, fragile: ClusterProcesses, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A queue of the console of that cluster."""
    monkeypatch.setenv(HOME_VARIABLE, str(fragile.home))
    return bench


def collect(bench: Bench, running: ClusterProcesses, host: str = "alpha") -> None:
    """Collect what is left on a host once its roles have ended; an agent that was frozen may leave and join again."""

    def collected() -> bool:
        try:
            with Cluster(running.address, running.member()) as console:
                if console.call(host, "describe")["running"]:
                    return False
                warnings = collect_left(console, bench.database, lambda sentence: None).warnings
            assert all("does not answer" in one for one in warnings), warnings
            return not warnings and not held(running, host)
        except HostLostError:
            return False

    assert eventually(collected, 60, 0.5), "its roles were not stopped, or it is not back"


class SilentHost:
    """A cluster whose host does not answer."""

    def addresses(self) -> dict[str, str]:
        """As `Cluster.addresses`."""
        return {"alpha": "tls://192.0.2.1:1"}

    def host(self, name: str) -> None:
        """As `Cluster.host`."""
        raise HostLostError(f"The host {name} does not answer.")


def test_a_host_that_is_silent_before_a_run_is_named(tmp_path: Path) -> None:
    placement, needed = Placement(roles=(RoleRequest(),)), HostRun(str(uuid.uuid4()), tmp_path, 0)
    with pytest.raises(UserError, match=r"there are none\. No answer from alpha"):
        HostLauncher(cast(Cluster, SilentHost()), placement, needed, LocalLauncher())


def test_the_log_has_no_messages_of_dask() -> None:
    with dask_settings():
        names = [name for name in logging.root.manager.loggerDict if name.split(".")[0] == "distributed"]
        assert "distributed.client" in names
        assert min(logging.getLogger(name).getEffectiveLevel() for name in names) >= logging.CRITICAL


def hosts(running: ClusterProcesses) -> list[str]:
    """The hosts that are there now."""
    with Cluster(running.address, running.member()) as console:
        return list(console.addresses())


def test_a_run_whose_agent_is_stopped_says_that_it_was_stopped(fragile_bench: Bench, fragile: ClusterProcesses) -> None:
    run_id = submit(fragile_bench, fragile, [{"role": "*"}], count=100_000, rate=1000)
    pump_until_counted(fragile_bench, run_id, 1000)
    agent = fragile.agent("alpha")
    agent.process.terminate()
    fragile_bench.pump_until_idle()
    assert agent.ended() == 0
    detail = fragile_bench.detail(run_id)
    assert detail.row.status is RunStatus.FAILED
    assert "Role counter-0 was stopped with the agent of its host alpha in mid-run" in detail.row.reason
    fragile.starts_again(agent)
    assert eventually(lambda: "alpha" in hosts(fragile), 20, 0.5)
    collect(fragile_bench, fragile)  # what was not brought while the agent stopped
    assert len(fragile_bench.numbers(run_id)) >= 1000 and held(fragile, "alpha") == {}


def test_a_recovery_that_ends_meanwhile_removes_no_samples_that_are_being_collected(
    bench: Bench, running: ClusterProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = submit(bench, running, [{"role": "*", "host": "alpha"}], "stay", count=1000)
    bench.pump_until_idle()

    def bring_while_another_console_recovers(cluster: Cluster, host: str, run: str, folder: Path) -> int:
        size = bring(cluster, host, run, folder)
        shutil.rmtree(spool_directory(bench.database, run), ignore_errors=True)
        return size

    monkeypatch.setattr("labconsole.hosts.samples.left_samples.bring", bring_while_another_console_recovers)
    collect(bench, running)
    assert len(bench.numbers(run_id)) >= 1000 and held(running, "alpha") == {}
    assert list(spool_root(bench.database).iterdir()) == []


def test_samples_of_a_deleted_run_are_discarded_and_those_of_others_are_not(
    bench: Bench, running: ClusterProcesses, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = submit(bench, running, [{"role": "*", "host": "alpha"}], "stay", count=100_000, rate=1000)
    pump_until_counted(bench, run_id, 500)
    uuid = bench.detail(run_id).row.uuid
    other = tmp_path / "other.db"
    with Cluster(running.address, running.member()) as console:
        with pytest.raises(UserError, match="run on alpha: wait until they have ended"):
            discard(console, other, [uuid])
        bench.queue.cancel(run_id)
        bench.pump_until_idle()
        assert roles_end(running, "alpha", 30)
        with pytest.raises(UserError, match=f"Run {run_id} of this database is {uuid}: collect its samples"):
            discard(console, bench.database, [uuid])
        assert list(held(running, "alpha")) == [uuid]
    command = ["hosts", "discard", uuid, "--scheduler", running.address, "--db", str(other)]
    with operations_in_threads():
        assert main(command) != 0
        assert "must be confirmed by typing yes: give --yes" in capsys.readouterr().err
        assert list(held(running, "alpha")) == [uuid]
        assert main([*command, "--yes"]) == 0
    assert capsys.readouterr().out.strip() == f"The samples of {uuid} on alpha are removed."
    assert held(running, "alpha") == {}


def test_samples_are_collected_by_one_process_at_a_time(bench: Bench, running: ClusterProcesses) -> None:
    with (
        Cluster(running.address, running.member()) as console,
        FileLock(bench.database.with_name(f"{bench.database.name}.collecting.lock")),
        pytest.raises(UserError, match="Another process collects samples"),
    ):
        collect_left(console, bench.database, lambda sentence: None)


def test_a_run_that_would_not_fit_on_a_host_is_refused_before(running: ClusterProcesses, tmp_path: Path) -> None:
    needed = HostRun(str(uuid.uuid4()), tmp_path, 10**15)
    start = RoleStart("sender", "practice_trial:CounterRole", {}, (), {}, {}, {}, tmp_path / "sender.spool", 0)
    with Cluster(running.address, running.member()) as console:
        launcher = HostLauncher(console, Placement(roles=(RoleRequest(),)), needed, LocalLauncher())
        try:
            with pytest.raises(UserError, match=r"needs up to 1,000,000 GB on the disk of alpha, and .* are free"):
                launcher.launch(start)
        finally:
            launcher.close()


@pytest.mark.nightly
@pytest.mark.timeout(60 + 60 * _KILLS)
def test_parts_that_are_killed_at_random_lose_no_sample_that_was_written(
    bench_of_processes: Bench, fragile: ClusterProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nightly: alone finds that samples are lost where a part is killed at a certain moment of a run.

    A killed agent, scheduler and console are judged in CI by `test_faults`, a killed role by `test_host_runs`.
    """
    monkeypatch.setenv(HOME_VARIABLE, str(fragile.home))
    fragile_bench, drawn = bench_of_processes, random.Random(_SEED)
    for number in range(_KILLS):
        victim = drawn.choice(("agent", "scheduler", "console", "role"))
        run_id = submit(fragile_bench, fragile, [{"role": "counter-0"}], count=1_000_000, rate=2000, roles=2)
        pump_until_counted(fragile_bench, run_id, drawn.randrange(500, 4000))
        kill(victim, fragile)
        pump_until_final(fragile_bench, run_id)
        detail = fragile_bench.detail(run_id)
        assert detail.row.status in (RunStatus.FAILED, RunStatus.INTERRUPTED), (number, victim, detail.row.reason)
        assert eventually(lambda: "alpha" in hosts(fragile), 30, 0.5), (number, victim)
        assert roles_end(fragile, "alpha", 30), (number, victim)
        written = left_numbers(fragile.home, detail.row.uuid)
        collect(fragile_bench, fragile)
        stored = fragile_bench.numbers(run_id)
        assert stored[: len(written)] == written and len(stored) > 100, (number, victim)
        again = random.Random(detail.row.seed)
        assert stored == [again.getrandbits(31) for _ in stored], (number, victim)
        started = [event.source for event in fragile_bench.detail(run_id).events if event.name == "process"]
        assert started.count("counter-0") == 1, (number, victim)
        assert held(fragile, "alpha") == {}


def kill(victim: str, running: ClusterProcesses) -> None:
    """Kill a part; agent and scheduler are started again."""
    match victim:
        case "agent":
            agent = running.agent("alpha")
            agent.kill()
            running.starts_again(agent)
        case "scheduler":
            running.scheduler.kill()
            running.start_scheduler()
        case "console":
            worker_process().kill()
        case "role":
            role_process(running, "alpha").kill()


def left_numbers(home: Path, run: str) -> list[int]:
    """The numbers in the spool that a host still has of a run; none where the console has brought it."""
    spool = home / "agent" / "hosts" / "runs" / "alpha" / run / "counter-0.spool"
    if not spool.exists():
        return []
    reader, numbers = SpoolReader(spool), list[int]()
    while blocks := reader.read_new():
        numbers += [
            int(number) for block in blocks if isinstance(block, SampleBlock) for number in block.columns["number"]
        ]
    assert reader.damage is None
    return numbers


def test_a_run_on_a_frozen_host_is_cancelled_like_any_other(fragile_bench: Bench, fragile: ClusterProcesses) -> None:
    run_id = submit(fragile_bench, fragile, [{"role": "*"}], count=100_000, rate=1000)
    pump_until_counted(fragile_bench, run_id, 500)
    with frozen(fragile.agent("alpha").process.pid):
        fragile_bench.queue.cancel(run_id)
        fragile_bench.pump_until_idle()
    detail = fragile_bench.detail(run_id)
    assert detail.row.status is RunStatus.CANCELLED and "had to be killed" not in detail.row.reason
    assert "Samples of its roles are left there" in detail.row.reason
    assert eventually(lambda: "alpha" in hosts(fragile), 20, 0.5)
    collect(fragile_bench, fragile)
    assert len(fragile_bench.numbers(run_id)) >= 500
