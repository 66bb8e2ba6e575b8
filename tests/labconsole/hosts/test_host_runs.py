"""Roles of a run on other hosts, with real agents: where they run, what comes back, what a lost host leaves."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

from labconsole.analysis.caveats import busy
from labconsole.clock_comparison import HOST_JUMPED, clocks_doubt, host_offsets
from labconsole.model.placement import Placement
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus
from tests.helpers.forked_programs import runs
from tests.helpers.practice import Bench, alive, campaign
from tests.labconsole.hosts.cluster_processes import ClusterProcesses
from tests.labconsole.hosts.host_runs import (
    DRIFT_PPM,
    SHIFT_NS,
    eventually,
    held,
    pump_until_counted,
    pump_until_final,
    role_process,
    run,
    submit,
    worker_process,
)


def test_roles_run_where_the_scenario_wants_them_and_the_others_here(bench: Bench, running: ClusterProcesses) -> None:
    placed = [{"role": "counter-0", "host": "beta"}, {"role": "counter-1", "tag": "obu"}]
    detail = run(bench, running, placed, roles=3, count=2000, rate=1500.0)
    assert detail.row.status is RunStatus.FINISHED, detail.row.reason
    assert [verdict.result for verdict in detail.verdicts] == ["pass"]
    hosts = {role.name: role.host for role in detail.roles}
    assert (hosts["counter-0"], hosts["counter-1"]) == ("beta", "alpha")
    assert hosts["counter-2"] not in ("alpha", "beta")
    domains = {role.name: role.clock_domain for role in detail.roles}
    assert domains["counter-0"] != domains["counter-1"]
    assert set(detail.provenance["hosts"]) == {"alpha", "beta"}
    assert detail.provenance["hosts"]["alpha"]["cpu"] == detail.provenance["cpu"]
    measured = {series.role for series in detail.series if series.name == "resources"}
    assert {"counter-0", "counter-1", "worker"} <= measured, "they are measured twice a second"
    assert held(running, "alpha") == held(running, "beta") == {}


def test_times_of_a_drifting_host_are_stored_by_the_clock_of_the_console(
    bench: Bench, running: ClusterProcesses
) -> None:
    detail = run(bench, running, [{"role": "*", "host": "beta"}], count=1000, rate=250)
    with Reader(bench.database) as reader:
        t_ns = reader.samples(detail.row.id).table("counted", "counter-0")["t_ns"]
    lasted_s = (t_ns[-1] - t_ns[0]) / 1e9
    drift = 1 + DRIFT_PPM / 1e6
    assert lasted_s == pytest.approx(4.0 / drift, abs=0.03)  # 4 s by its own clock: 80 ms more
    offsets = host_offsets(detail.events)["beta"]
    assert len(offsets) >= 2 and offsets[0].offset_ns > SHIFT_NS
    (begun,) = (event for event in detail.events if event.name == "process" and event.source == "counter-0")
    assert begun.t_ns < t_ns[0] and t_ns[-1] <= offsets[-1].sender_ns
    assert np.all(np.diff(t_ns) >= 0)


def test_the_load_of_a_host_is_measured_there_and_that_of_this_computer_only_here(
    bench: Bench, running: ClusterProcesses
) -> None:
    placed = [{"role": "counter-0", "host": "beta"}, {"role": "counter-1", "host": "alpha"}]
    run_id = submit(bench, running, placed, roles=2, count=1_500_000)
    pump_until_counted(bench, run_id, 1)
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        bench.pump_until_idle()
        other.kill()
    detail = bench.detail(run_id)
    assert detail.row.status is RunStatus.FINISHED, detail.row.reason
    with Reader(bench.database) as reader:
        samples = reader.samples(run_id)
        assert samples.roles("machine") == ["host-beta", "worker"]
        readings, t_ns = samples.table("machine", "host-beta"), samples.table("counted", "counter-0")["t_ns"]
        spent_s = samples.table("resources", "counter-0")["cpu"].max() / 100 * 0.5
        reason = busy(samples, int(t_ns[0]), int(t_ns[-1]))
    assert "the computer beta was busy (other processes took " in reason
    assert readings["own_ns"][-1] / 1e9 > spent_s  # its role is none of those others
    assert abs(readings["t_ns"][-1] - t_ns[-1]) < 5_000_000_000, "by the clock of the console"


def test_a_run_on_a_host_whose_clock_jumps_says_so(bench: Bench, running: ClusterProcesses, tmp_path: Path) -> None:
    for delay_s in (12, 60):  # an idle computer starts agent and run in 3 s
        at_ns = time.perf_counter_ns() + delay_s * 1_000_000_000
        agent = running.joins("delta", tmp_path / "delta", clock_shift=f"7000000000,20,-300000000,{at_ns}")
        try:
            run_id = submit(bench, running, [{"role": "*", "host": "delta"}], count=1_000_000, rate=200)
            pump_until_counted(bench, run_id, 100)
            in_time = time.perf_counter_ns() < at_ns
            bench.pump_until(lambda at_ns=at_ns: time.perf_counter_ns() > at_ns)  # type: ignore[misc]
            bench.queue.cancel(run_id)
            bench.pump_until_idle()
        finally:
            agent.end()
        if in_time:
            break
    assert in_time, "it started too late to see the jump"
    detail = bench.detail(run_id)
    (jumped,) = (event for event in detail.events if event.name == HOST_JUMPED)
    assert jumped.data["host"] == "delta" and abs(jumped.data["jump_ns"] + 300_000_000) < 10_000_000
    assert "The clock of delta jumped by " in jumped.message and jumped.message in detail.warnings
    assert clocks_doubt(detail.events, 1e9) == "the clock of delta jumped during the run"


def test_live_figures_of_a_host_come_while_it_counts(bench: Bench, running: ClusterProcesses) -> None:
    run_id = submit(bench, running, [{"role": "*", "host": "beta"}], count=100_000, rate=1000)
    pump_until_counted(bench, run_id, 500)
    frame = [frame for _, frame in bench.listener.frames][-1]
    assert frame.begin_ns is not None and 0 < frame.t_ns - frame.begin_ns < 60_000_000_000
    bench.pump_until(lambda: any("counter-0" in frame.usage for _, frame in bench.listener.frames))
    bench.queue.cancel(run_id)
    bench.pump_until_idle()
    detail = bench.detail(run_id)
    assert detail.row.status is RunStatus.CANCELLED
    assert len(bench.numbers(run_id)) >= 500
    assert held(running, "beta") == {}


def test_a_request_that_no_host_suits_ends_the_run_before_a_role_starts(
    bench: Bench, running: ClusterProcesses
) -> None:
    detail = run(bench, running, [{"role": "counter-*", "tag": "rsu"}], count=10)
    assert detail.row.status is RunStatus.FAILED and detail.roles == ()
    assert detail.row.reason.startswith("No host suits the roles counter-* (tag rsu): there are alpha (obu, ")


def test_a_killed_role_is_missed_and_what_it_recorded_is_kept(bench: Bench, running: ClusterProcesses) -> None:
    run_id = submit(bench, running, [{"role": "*", "host": "alpha"}], count=100_000, rate=1000)
    pump_until_counted(bench, run_id, 1000)
    role_process(running, "alpha").kill()
    bench.pump_until_idle()
    detail = bench.detail(run_id)
    assert detail.row.status is RunStatus.FAILED
    assert "Role counter-0 was killed by signal 9 in mid-run" in detail.row.reason
    assert len(bench.numbers(run_id)) >= 500


def test_local_hosts_are_started_for_a_run_and_end_with_it(bench: Bench) -> None:
    planned = campaign(bench.folder, roles=2, count=100)
    placement = Placement.model_validate({"local": 2, "roles": [{"role": "*"}]}).model_dump(mode="json")
    scenarios = tuple(replace(one, placement=placement) for one in planned.scenarios)
    (run_id,) = bench.queue.submit(replace(planned, scenarios=scenarios))
    bench.pump_until(lambda: len(local_nodes()) == 3)
    nodes = local_nodes()
    bench.pump_until_idle()
    detail = bench.detail(run_id)
    assert detail.row.status is RunStatus.FINISHED, detail.row.reason
    assert {role.host for role in detail.roles} == {"local-1", "local-2"}
    assert not [node for node in nodes if alive(node.pid)] and not local_nodes()


def test_a_run_is_cancelled_while_its_local_hosts_start(bench: Bench) -> None:
    planned = campaign(bench.folder, roles=2, count=100)
    placement = Placement.model_validate({"local": 2, "roles": [{"role": "*"}]}).model_dump(mode="json")
    scenarios = tuple(replace(one, placement=placement) for one in planned.scenarios)
    (run_id,) = bench.queue.submit(replace(planned, scenarios=scenarios))
    bench.pump_until(lambda: bool(local_nodes()))
    bench.queue.cancel(run_id)
    bench.pump_until_idle()
    row = bench.detail(run_id).row
    assert (row.status, row.reason) == (RunStatus.CANCELLED, "Cancelled by the operator.")
    assert not local_nodes()


def test_a_killed_console_keeps_what_its_local_hosts_have_recorded(bench_of_processes: Bench, home: Path) -> None:
    bench = bench_of_processes
    planned = campaign(bench.folder, roles=2, count=100_000, rate=1000)
    placement = Placement.model_validate({"local": 1, "roles": [{"role": "*"}]}).model_dump(mode="json")
    scenarios = tuple(replace(one, placement=placement) for one in planned.scenarios)
    (run_id,) = bench.queue.submit(replace(planned, scenarios=scenarios))
    pump_until_counted(bench, run_id, 3000)
    nodes = local_nodes()
    assert len(nodes) == 2
    worker_process().kill()
    pump_until_final(bench, run_id)
    row = bench.detail(run_id).row
    assert row.status is RunStatus.INTERRUPTED and "collect" not in row.reason
    assert min(len(bench.numbers(run_id)), len(bench.numbers(run_id, "counter-1"))) >= 500
    assert not list((home / "hosts" / "runs").glob(f"local-*/{row.uuid}"))
    assert eventually(lambda: not [node for node in nodes if alive(node.pid)], 15)


def local_nodes() -> list[psutil.Process]:
    """The nodes of clusters that runs of this process have started."""
    nodes = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if runs(process, "labconsole.hosts.local_node"):
                nodes.append(process)
    return nodes


def test_a_trial_that_works_with_files_of_this_computer_runs_on_no_host(
    bench: Bench, running: ClusterProcesses, tmp_path: Path
) -> None:
    note = tmp_path / "note.txt"
    note.write_text("read me")
    detail = run(bench, running, [{"role": "*"}], kind="practice.files", note=str(note))
    assert detail.row.status is RunStatus.FAILED and detail.roles == ()
    assert "practice.files read files and tokens of this computer, and run on no other" in detail.row.reason
