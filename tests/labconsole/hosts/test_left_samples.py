"""Collecting where samples are damaged, and where a run was imported."""

from __future__ import annotations

from pathlib import Path

from labconsole.hosts.cluster import Cluster
from labconsole.hosts.samples.left_samples import LeftSamples, collect_left
from labconsole.output.bundle_import import import_bundle
from labconsole.output.bundle_writer import write_bundle
from labconsole.store.reader import Reader
from labconsole.store.records import RunDetail
from tests.helpers.practice import Bench
from tests.labconsole.hosts.cluster_processes import ClusterProcesses
from tests.labconsole.hosts.host_runs import held, run

HOSTS = ("alpha", "beta")


def staying(bench: Bench, running: ClusterProcesses) -> RunDetail:
    """A run with a role on each host, whose samples stay there."""
    placed = [{"role": f"counter-{number}", "host": host} for number, host in enumerate(HOSTS)]
    return run(bench, running, placed, samples="stay", roles=2, count=10_000)


def collect(running: ClusterProcesses, database: Path) -> LeftSamples:
    """Collect for a database."""
    with Cluster(running.address, running.member()) as console:
        return collect_left(console, database, lambda sentence: None)


def test_damaged_samples_of_several_hosts_are_collected_and_reported(bench: Bench, running: ClusterProcesses) -> None:
    detail = staying(bench, running)
    for number, host in enumerate(HOSTS):
        file = running.home / "agent" / "hosts" / "runs" / host / detail.row.uuid / f"counter-{number}.spool"
        content = bytearray(file.read_bytes())
        content[-100] ^= 1
        file.write_bytes(content)
    found = collect(running, bench.database)
    assert [one.host for one in found.collected] == [*HOSTS]
    warnings = bench.detail(detail.row.id).row.warnings
    for number, _ in enumerate(HOSTS):
        name = f"counter-{number}.spool is damaged after byte"
        assert any(name in one for one in found.warnings) and any(name in one for one in warnings)
    assert 0 < len(bench.numbers(detail.row.id)) < 10_000
    aside = bench.folder / "runs.db.spool"
    assert len([*aside.glob("*.damaged*/hosts/*/counter-*.spool")]) == 2
    assert all(not held(running, host) for host in HOSTS) and not collect(running, bench.database).warnings


def test_samples_of_an_imported_run_stay_for_the_database_that_ran_it(
    bench: Bench, running: ClusterProcesses, tmp_path: Path
) -> None:
    detail = staying(bench, running)
    with Reader(bench.database) as reader:
        write_bundle(reader, [detail.row.id], tmp_path / "run.lcz")
    other = tmp_path / "other.db"
    (number,) = import_bundle(other, tmp_path / "run.lcz").imported
    found = collect(running, other)
    assert not found.collected and not found.unknown
    assert found.warnings[0].startswith(f"Run {number} was imported: collect its samples for the database that ran it")
    assert [one.host for one in collect(running, bench.database).collected] == [*HOSTS]
    assert bench.detail(detail.row.id).row.metrics


def test_a_host_that_has_files_of_a_run_and_no_samples_is_cleared(bench: Bench, running: ClusterProcesses) -> None:
    placed = [{"role": "counter-0", "host": "alpha"}]
    detail = run(bench, running, placed, lost_console="finish", roles=1, count=100)
    with Cluster(running.address, running.member()) as console:
        console.call("alpha", "put", detail.row.uuid, "0" * 64, 0, b"payload")
    found = collect(running, bench.database)
    assert [one.host for one in found.collected] == ["alpha"] and not found.warnings
    assert held(running, "alpha") == {}
