"""Faults of a cluster in mid-run, on loopback and over shaped links: noticed in time, and no sample is lost.

Faults of cables and links, which only namespaces have, are found by the nightly set alone.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import pytest

from labconsole import __version__
from labconsole.engine.recorder import spool_directory
from labconsole.hosts.cluster import Cluster
from labconsole.hosts.samples.collected import collected_folder
from labconsole.hosts.samples.left_samples import LeftSamples, collect_left
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus
from tests.helpers.host_network import NETWORKS, Loopback, Namespaces, Network, network_of
from tests.helpers.practice import Bench
from tests.helpers.program_text import PROGRAM
from tests.helpers.signals import frozen
from tests.helpers.small_disk import small_disk
from tests.labconsole.hosts.cluster_processes import ClusterProcesses, cluster
from tests.labconsole.hosts.host_runs import (
    DRIFT_PPM,
    SHIFT_NS,
    eventually,
    held,
    pump_until_counted,
    pump_until_final,
    roles_end,
    run,
    submit,
    worker_process,
)
from tests.labconsole.hosts.shared_cluster import SharedCluster

NEWER = """
import labconsole, sys
for name, module in list(sys.modules.items()):  # a forked program has imported them
    if name.partition(".")[0] == "labconsole" and hasattr(module, "__version__"):
        module.__version__ = "99.0"
from labconsole.cli.main import main
raise SystemExit(main(sys.argv[4:]))
"""
"""Starts `python -m labconsole.cli.main ...`, its arguments, as that of a newer version."""


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[pytest.mark.nightly] if name != "loopback" else []) for name in NETWORKS],
)
def network(request: pytest.FixtureRequest) -> Iterator[Network]:
    """The network of the hosts."""
    with network_of(request.param) as found:
        yield found


@pytest.fixture(scope="module")
def home(network: Network, shared_cluster: SharedCluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The console's folder, another one for each network."""
    return shared_cluster.home if isinstance(network, Loopback) else tmp_path_factory.mktemp("hosts") / "console"


@pytest.fixture(scope="module")
def running(
    network: Network, home: Path, shared_cluster: SharedCluster, practice_plugin: None
) -> Iterator[ClusterProcesses]:
    """A cluster with the hosts alpha and beta; each test leaves it as it was."""
    if isinstance(network, Loopback):
        yield shared_cluster.start()
        return
    with cluster(home, network) as found:
        found.joins("alpha", home.parent / "alpha")
        found.joins("beta", home.parent / "beta", clock_shift=f"{SHIFT_NS},{DRIFT_PPM}")
        yield found


@pytest.fixture
def cables(network: Network) -> Namespaces:
    """The network, where hosts have cables."""
    if not isinstance(network, Namespaces):
        pytest.skip("loopback has no cables")
    return network


def collect(bench: Bench, running: ClusterProcesses) -> LeftSamples:
    """Collect what is left on the hosts."""
    with Cluster(running.address, running.member()) as console:
        return collect_left(console, bench.database, lambda sentence: None)


def assert_follow_from_seed(bench: Bench, run_id: int) -> None:
    """The stored numbers are those that the role has drawn, in order, and it was started once."""
    detail, numbers = bench.detail(run_id), bench.numbers(run_id)
    drawn = random.Random(detail.row.seed)
    assert numbers == [drawn.getrandbits(31) for _ in numbers]
    assert [event.source for event in detail.events if event.name == "process"].count("counter-0") == 1


def wait_for_host(running: ClusterProcesses, host: str) -> None:
    """Wait until a host is in the cluster."""

    def there() -> bool:
        with Cluster(running.address, running.member()) as console:
            return host in console.addresses()

    assert eventually(there, 60, 0.5)


def pump_until_failed(bench: Bench) -> float:
    """Pump until the run reports that it fails; returns the seconds until then."""
    since_s = time.monotonic()
    bench.pump_until(lambda: any(event.name == "failed" for _, event in bench.listener.events))
    return time.monotonic() - since_s


def test_samples_on_a_host_whose_agent_is_killed_are_collected_when_it_is_back(
    bench: Bench, running: ClusterProcesses, tmp_path: Path
) -> None:
    enrolment = running.enrolled("gamma", tmp_path / "gamma")
    agent = running.starts(enrolment)
    agent.waits_for("has joined")
    run_id = submit(bench, running, [{"role": "counter-0", "host": "gamma"}], roles=2, count=100_000, rate=1000)
    pump_until_counted(bench, run_id, 4000)
    agent.kill()
    assert pump_until_failed(bench) < 2  # 0.4 s on an idle computer
    bench.pump_until_idle()
    detail = bench.detail(run_id)
    assert detail.row.status is RunStatus.FAILED
    assert "Role counter-0 was lost with its host gamma in mid-run" in detail.row.reason
    assert "Samples of its roles are left there" in detail.row.reason
    assert bench.numbers(run_id) == [] and len(bench.numbers(run_id, "counter-1")) > 500
    again = running.starts(enrolment)
    again.waits_for("has joined")
    found = collect(bench, running)
    assert [(one.run, one.host) for one in found.collected] == [(run_id, "gamma")] and not found.warnings
    assert collect(bench, running).collected == ()
    assert again.end() == 0
    assert len(bench.numbers(run_id)) >= 1000
    assert_follow_from_seed(bench, run_id)
    assert bench.detail(run_id).row.status is RunStatus.FAILED


@contextmanager
def cable_pulled(cables: Namespaces) -> Iterator[None]:
    """The cable of alpha is pulled in the block."""
    cables.pull_cable("alpha")
    try:
        yield
    finally:
        cables.plug_cable("alpha")


@pytest.fixture(params=["frozen", "cable pulled"])
def cut_off(running: ClusterProcesses, request: pytest.FixtureRequest) -> AbstractContextManager[None]:
    """Alpha is cut off in the block."""
    if request.param == "frozen":
        return frozen(running.agent("alpha").process.pid)
    return cable_pulled(request.getfixturevalue("cables"))


def test_a_host_that_is_cut_off_is_given_up_within_15_s_and_its_samples_come_later(
    bench: Bench, running: ClusterProcesses, cut_off: AbstractContextManager[None]
) -> None:
    run_id = submit(bench, running, [{"role": "*", "host": "alpha"}], count=100_000, rate=200)
    pump_until_counted(bench, run_id, 200)
    joined = running.agent("alpha").said.count("has joined")
    with cut_off:
        assert pump_until_failed(bench) < 15
        bench.pump_until_idle()
    detail = bench.detail(run_id)
    assert detail.row.status is RunStatus.FAILED
    assert "Role counter-0 was lost with its host alpha" in detail.row.reason
    assert "Samples of its roles are left there" in detail.row.reason
    assert eventually(lambda: running.agent("alpha").said.count("has joined") > joined, 60)
    assert not collect(bench, running).warnings
    assert len(bench.numbers(run_id)) >= 2000, "its role counted on while it was cut off"
    assert held(running, "alpha") == {}


def test_a_cable_that_is_pulled_while_samples_are_brought_is_noticed_and_the_rest_comes_later(
    bench: Bench, running: ClusterProcesses, cables: Namespaces
) -> None:
    joined = running.agent("alpha").said.count("has joined")
    with cables.slow_from("alpha", "2mbit"):
        run_id = submit(bench, running, [{"role": "*", "host": "alpha"}], count=200_000)  # 3.2 MB: 13 s
        arriving = collected_folder(spool_directory(bench.database, bench.detail(run_id).row.uuid), "alpha")
        bench.pump_until(lambda: any(file.stat().st_size for file in arriving.glob("counter-0.spool")))
        with cable_pulled(cables):
            since_s = time.monotonic()
            bench.pump_until_idle()
            assert time.monotonic() - since_s < 20  # 13 s on an idle computer
    detail = bench.detail(run_id)
    assert detail.row.status is RunStatus.FAILED and "Samples of its roles are left there" in detail.row.reason
    assert eventually(lambda: running.agent("alpha").said.count("has joined") > joined, 60)
    assert not collect(bench, running).warnings
    assert len(bench.numbers(run_id)) == 200_000 and held(running, "alpha") == {}


def test_a_run_survives_a_cable_that_is_soon_plugged_in_again(
    bench: Bench, running: ClusterProcesses, cables: Namespaces
) -> None:
    run_id = submit(bench, running, [{"role": "*", "host": "alpha"}], count=6000, rate=1000)
    pump_until_counted(bench, run_id, 1000)
    with cable_pulled(cables):
        time.sleep(3)
    bench.pump_until_idle()
    detail = bench.detail(run_id)
    assert detail.row.status is RunStatus.FINISHED, detail.row.reason
    assert len(bench.numbers(run_id)) == 6000


def test_an_agent_joins_again_from_the_address_that_its_host_has_then(
    home: Path, cables: Namespaces, tmp_path: Path
) -> None:
    with cluster(home, cables) as running:
        agent = running.joins("zeta", tmp_path)
        running.scheduler.kill()
        agent.waits_for("zeta has lost")
        address = cables.give_other_address("zeta")
        running.start_scheduler()
        agent.waits_for(f"(?s)join again.*has joined .*, and listens on tls://{address}:")


def test_roles_of_killed_consoles_stop_or_finish_their_work_as_the_profile_says(
    bench_of_processes: Bench, running: ClusterProcesses, tmp_path_factory: pytest.TempPathFactory
) -> None:
    bench = bench_of_processes
    other = Bench(tmp_path_factory.mktemp("other"))
    try:
        stopped = submit(bench, running, [{"role": "*", "host": "alpha"}], count=100_000, rate=200)
        pump_until_counted(bench, stopped, 200)
        worker_process().kill()
        finishing = submit(other, running, [{"role": "*", "host": "beta"}], "bring", "finish", count=4000, rate=200)
        pump_until_counted(other, finishing, 200)
        worker_process().kill()
        for one, run_id in ((bench, stopped), (other, finishing)):
            pump_until_final(one, run_id)
            detail = one.detail(run_id)
            assert detail.row.status is RunStatus.INTERRUPTED and "labconsole hosts collect" in detail.row.reason
        early = collect(other, running)
        assert not early.collected and "its roles finish their work on beta" in early.warnings[0]
        assert roles_end(running, "alpha", 25), "its roles were not stopped"
        assert roles_end(running, "beta", 60)
        for one, run_id in ((bench, stopped), (other, finishing)):
            assert [found.run for found in collect(one, running).collected] == [run_id]
            assert one.detail(run_id).row.status is RunStatus.INTERRUPTED
        assert 200 <= len(bench.numbers(stopped)) < 100_000
        assert len(other.numbers(finishing)) == 4000  # more than roles count that stop with their console
        assert_follow_from_seed(bench, stopped)
        with Reader(other.database) as reader:
            t_ns = reader.samples(finishing).table("counted", "counter-0")["t_ns"]
        lasted_s = 20 / (1 + DRIFT_PPM / 1e6)  # 400 ms less than by its own clock, which the last comparison takes off
        assert (t_ns[-1] - t_ns[0]) / 1e9 == pytest.approx(lasted_s, abs=0.05)
    finally:
        other.close()
    assert held(running, "alpha") == held(running, "beta") == {}


def test_a_run_whose_scheduler_is_lost_keeps_its_samples(
    bench: Bench, network: Network, home: Path, practice_plugin: None, tmp_path: Path
) -> None:
    with cluster(home, network) as running:
        running.joins("epsilon", tmp_path)
        run_id = submit(bench, running, [{"role": "*"}], count=100_000, rate=1000)
        pump_until_counted(bench, run_id, 1000)
        running.scheduler.kill()
        bench.pump_until_idle()
        assert bench.detail(run_id).row.status is RunStatus.FAILED
        running.start_scheduler()
        wait_for_host(running, "epsilon")
        assert not collect(bench, running).warnings
        assert len(bench.numbers(run_id)) >= 1000 and held(running, "epsilon") == {}
        assert_follow_from_seed(bench, run_id)


def test_a_run_on_a_host_whose_disk_is_full_fails_and_keeps_what_was_written(
    bench: Bench, running: ClusterProcesses, tmp_path: Path
) -> None:
    disk = small_disk(running.home / "agent" / "hosts" / "runs" / "delta", "1m")
    agent = running.joins("delta", tmp_path / "delta", within=disk)
    run_id = submit(bench, running, [{"role": "*", "host": "delta"}], count=10_000_000, rate=50_000)
    bench.pump_until_idle()
    detail = bench.detail(run_id)
    assert detail.row.status is RunStatus.FAILED
    assert "No space left on device" in detail.row.reason and "delta" in detail.row.reason
    assert len(bench.numbers(run_id)) > 10_000 and held(running, "delta") == {}
    assert agent.end() == 0


def test_two_consoles_have_their_runs_on_one_host(
    bench: Bench, running: ClusterProcesses, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = Bench(tmp_path_factory.mktemp("other"), in_threads=True)
    try:
        placed = [{"role": "*", "host": "alpha"}]
        runs = [(one, submit(one, running, placed, count=2000, rate=1000)) for one in (bench, other)]
        for one, _ in runs:
            one.queue.pump()
        for one, run_id in runs:
            one.pump_until_idle()
            assert one.detail(run_id).row.status is RunStatus.FINISHED, one.detail(run_id).row.reason
            assert len(one.numbers(run_id)) == 2000
    finally:
        other.close()
    assert held(running, "alpha") == {}


def test_an_agent_of_a_newer_version_gets_no_role(bench: Bench, running: ClusterProcesses, tmp_path: Path) -> None:
    agent = running.joins("newer", tmp_path / "newer", within=(*PROGRAM, NEWER))
    try:
        detail = run(bench, running, [{"role": "*", "host": "newer"}], count=10)
    finally:
        agent.end()
    assert detail.row.status is RunStatus.FAILED and detail.roles == ()
    assert detail.row.reason.startswith(
        f"newer has version 99.0 of the console and this one has {__version__}: install the same version on both"
    )


def test_a_host_of_another_console_does_not_join(running: ClusterProcesses, tmp_path: Path) -> None:
    rogue = running.starts(running.enrolled("gamma", tmp_path / "files", home=tmp_path / "other"))
    rogue.waits_for("gamma cannot join the cluster")
    assert rogue.ended() == 1
    with Cluster(running.address, running.member()) as console:
        assert sorted(console.addresses()) == ["alpha", "beta"]


def test_a_clock_that_is_ahead_and_drifts_is_found_within_the_stated_uncertainty(
    running: ClusterProcesses, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    way_back = network.slow_from("beta", "48kbit") if isinstance(network, Namespaces) else nullcontext()
    with Cluster(running.address, running.member()) as console:
        found = [console.host("beta").offset]
        with way_back, monkeypatch.context() as patch:
            patch.setattr("labconsole.hosts.cluster._EXCHANGING_S", 0.5)
            found.append(console.host("beta").offset)
    for offset in found:
        truth_ns = SHIFT_NS + offset.sender_ns * DRIFT_PPM / 1e6
        # The round trip is measured by the console's seconds, and beta's are shorter.
        assert abs(offset.offset_ns - truth_ns) <= offset.uncertainty_ns * (1 + DRIFT_PPM / 1e6) + 1
    if isinstance(network, Namespaces):
        fast, slow = found
        assert 0 < slow.exchanges < fast.exchanges, "a slow link, 40 ms back, is not asked for longer than 0.5 s"
