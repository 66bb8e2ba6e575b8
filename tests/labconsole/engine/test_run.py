"""One run from start to end: its processes, its log, its provenance, its samples, and every way to fail."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from labconsole.engine.recorder import spool_root
from labconsole.model.series import RESOURCES
from labconsole.store.evidence.checking import verify
from labconsole.store.reader import Reader
from labconsole.store.records import RunDetail, RunStatus
from labconsole.store.run_store import Store
from tests.helpers.parallel import run_parallel
from tests.helpers.practice import Bench, alive, processes

pytestmark = pytest.mark.timeout(900)

KEPT = "in mid-run; what was measured until then is kept. Run it again."
SCENARIOS = {
    "counts": {"count": 6000, "rate": 5000.0, "roles": 2, "word": "Größe"},
    "refuse": {"fault": "refuse"},
    "fault": {"fault": "fault"},
    "exit": {"fault": "exit"},
    "prints": {"fault": "prints"},
    "stall": {"fault": "stall", "patience": 1.5},
    "close fault": {"fault": "close fault"},
    "trial fault": {"fault": "trial fault"},
    "same artefact": {"fault": "same artefact"},
    "evaluate fault": {"fault": "evaluate fault"},
    "die at the end": {"fault": "die at the end"},
    "fork": {"fault": "fork"},
    "undeclared metric": {"fault": "undeclared metric"},
    "undeclared channel": {"fault": "undeclared channel", "count": 1_000_000, "rate": 1000.0},
    "undeclared, soon over": {"fault": "undeclared channel", "count": 10},
    "undeclared progress": {"fault": "undeclared progress"},
}


PROCESSES = ("counts", "fault", "exit", "prints", "trial fault", "die at the end", "fork")
"""Scenarios whose processes are looked at: how they end, what they print, what they leave."""
LANES = (PROCESSES, tuple(name for name in SCENARIOS if name not in PROCESSES))
"""What runs at a time: two campaigns, each with a queue and a database of its own; the second one in threads."""


class Campaign:
    """All scenarios, each run once."""

    def __init__(self, folder: Path) -> None:
        self.benches: list[Bench] = []
        self.runs: dict[str, RunDetail] = {}
        self._bench_of: dict[str, Bench] = {}
        for lane, names in enumerate(LANES):
            (folder / str(lane)).mkdir()
            bench = Bench(folder / str(lane), in_threads=names is not PROCESSES)
            self.benches.append(bench)
            self._bench_of |= dict.fromkeys(names, bench)
        done = run_parallel(LANES, lambda names: self._bench_of[names[0]].run(*(SCENARIOS[name] for name in names)))
        for names, details in done.items():
            self.runs |= dict(zip(names, details.result(), strict=True))

    def __getitem__(self, name: str) -> RunDetail:
        return self.runs[name]

    def bench(self, name: str) -> Bench:
        """The bench that this scenario ran on."""
        return self._bench_of[name]

    def numbers(self, name: str, role: str = "counter-0") -> list[int]:
        """What a role of this scenario has counted."""
        return self.bench(name).numbers(self[name].row.id, role)

    @property
    def lines(self) -> list[str]:
        """The log of all runs."""
        return [line for bench in self.benches for line in bench.listener.lines]

    def close(self) -> None:
        for bench in self.benches:
            bench.close()


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, practice_plugin: Path) -> Iterator[Campaign]:
    campaign = Campaign(tmp_path_factory.mktemp("campaign"))
    yield campaign
    campaign.close()


def test_a_run_that_counts_is_finished_and_evaluated(done: Campaign) -> None:
    run = done["counts"]
    assert (run.row.status, run.row.reason) == (RunStatus.FINISHED, "")
    assert run.row.metrics["counted"].value == 12000
    assert [(verdict.name, verdict.result) for verdict in run.verdicts] == [("all counted", "pass")]
    assert run.warnings == ("Counting is not measuring.",)
    assert len(done.numbers("counts", "counter-1")) == 6000


def test_what_a_trial_keeps_is_stored_with_its_run(done: Campaign) -> None:
    with Reader(done.bench("counts").database) as reader:
        (artefact,) = reader.artefacts(done["counts"].row.id)
        assert (artefact.name, artefact.media_type, artefact.size) == ("word.txt", "text/plain", 7)
        assert reader.artefact(done["counts"].row.id, "word.txt") == "Größe".encode()


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_run_is_sealed_however_it_ended(done: Campaign, name: str) -> None:
    with Reader(done.bench(name).database) as reader:
        verification = verify(reader, done[name].row.id)
    assert verification.ok, verification.faults


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("refuse", RunStatus.FAILED, "The counter refuses to continue: ask it nicely."),
        ("fault", RunStatus.FAILED, "A fault in practice_trial:CounterRole: ValueError: three is not a number"),
        ("exit", RunStatus.FAILED, f"Role counter-0 ended with exit code 7 {KEPT}"),
        ("stall", RunStatus.FAILED, "No counter counts: wake the counters up."),
        ("close fault", RunStatus.FAILED, "A fault in practice_trial:CounterRole: ValueError: cannot be closed"),
        ("trial fault", RunStatus.FAILED, "A fault in the trial: ValueError: the trial is wrong"),
        (
            "same artefact",
            RunStatus.FAILED,
            "Run 4 has an artefact word.txt already: give each a name of its own.",
        ),
        (
            "evaluate fault",
            RunStatus.FAILED,
            "The samples could not be evaluated: ValueError: cannot be evaluated",
        ),
        (
            "undeclared metric",
            RunStatus.FAILED,
            "The trial's evaluation gives metrics that it does not declare: sum.",
        ),
        (
            "undeclared channel",
            RunStatus.FAILED,
            "The live channel secretly counted is not declared: add it to `live` of the trial.",
        ),
        (
            "undeclared, soon over",
            RunStatus.FAILED,
            "The live channel secretly counted is not declared: add it to `live` of the trial.",
        ),
        (
            "undeclared progress",
            RunStatus.FAILED,
            "The live channel secretly counted is not declared: add it to `live` of the trial.",
        ),
        ("die at the end", RunStatus.INTERRUPTED, "The worker process ended with exit code 9; see the log."),
    ],
)
def test_a_run_that_fails_has_the_reason(done: Campaign, name: str, status: RunStatus, reason: str) -> None:
    assert (done[name].row.status, done[name].row.reason) == (status, reason)


@pytest.mark.parametrize("name", ["refuse", "fault", "stall", "evaluate fault", "close fault", "die at the end"])
def test_what_was_counted_before_a_failure_is_kept(done: Campaign, name: str) -> None:
    assert len(done.numbers(name)) >= 500


@pytest.mark.parametrize("name", ["refuse", "fault", "stall", "close fault", "die at the end"])
def test_a_run_that_failed_is_evaluated_nevertheless(done: Campaign, name: str) -> None:
    assert done[name].row.metrics["counted"].value >= 500


def test_the_traceback_of_a_fault_is_in_the_log(done: Campaign) -> None:
    assert "ValueError: three is not a number" in done.lines
    assert "ValueError: the trial is wrong" in done.lines


def test_stray_prints_come_as_log_lines_and_do_no_harm(done: Campaign) -> None:
    for line in ("a stray line of a role", "a stray line of the trial", "half a line on descriptor 1"):
        assert line in done.lines
    assert "after" in [event.name for _, event in done.bench("prints").listener.events], "half a line spoils no message"
    assert done["prints"].row.status is RunStatus.FINISHED


def test_every_run_has_a_process_and_a_group_of_its_own(done: Campaign) -> None:
    workers = [processes(done[name])["The worker's process."] for name in PROCESSES]
    assert len(set(workers)) == len(workers) and os.getpid() not in workers
    for name in ("counts", "prints"):
        groups = {event.data["group"] for event in done[name].events if event.name == "process"}
        assert groups == {processes(done[name])["The worker's process."]}


@pytest.mark.skipif(sys.platform == "win32", reason="needs process groups")
def test_no_process_of_any_run_is_left(done: Campaign) -> None:
    assert "A child of this role." in processes(done["fork"])
    for run in map(done.__getitem__, PROCESSES):
        assert not [name for name, pid in processes(run).items() if alive(pid)], run.row.parameters


def test_no_spool_is_left(done: Campaign) -> None:
    for bench in done.benches:
        assert list(spool_root(bench.database).iterdir()) == []


@pytest.mark.serial  # on a busy computer a role is measured before it has imported anything
def test_each_process_has_its_resources_recorded(done: Campaign) -> None:
    with Reader(done.bench("counts").database) as reader:
        samples = reader.samples(done["counts"].row.id)
        assert samples.roles(RESOURCES.name) == ["counter-0", "counter-1", "worker"]
        table = samples.table(RESOURCES.name, "counter-0")
    assert table["rss"].min() > 10_000_000
    assert table["cpu"].min() >= 0 and table["cpu"].max() < 400


def test_the_provenance_has_the_environment_of_the_run(done: Campaign) -> None:
    run = done["counts"]
    provenance = run.provenance
    assert provenance["seed"] == run.row.seed
    assert provenance["live_view_hz"] == 8.0
    assert provenance["python"] == ".".join(map(str, sys.version_info[:3]))
    assert provenance["packages"]["numpy"] and provenance["openssl"]["cryptography"].startswith("OpenSSL")
    for key in ("console", "revision", "host", "os", "kernel", "machine", "cpu", "cores", "memory_bytes", "clock"):
        assert provenance[key], key
    assert abs(provenance["wall_offset_ns"]) > 0


def test_events_of_worker_and_roles_are_stored_in_their_order(done: Campaign) -> None:
    events = done["counts"].events
    assert next(event.source for event in events) == "worker"
    assert {event.source for event in events} == {"worker", "counter-0", "counter-1"}
    assert [event.t_ns for event in events] == sorted(event.t_ns for event in events)


def test_failed_role_is_named_in_the_events(done: Campaign) -> None:
    failed = [event for event in done["exit"].events if event.name == "failed"]
    assert [event.data["role"] for event in failed] == ["counter-0"]


def test_the_same_seed_counts_the_same_numbers(done: Campaign, tmp_path: Path) -> None:
    """Position and order seed make a run's seed, so a campaign can be repeated to the number."""
    again = Bench(tmp_path, in_threads=True)
    [first] = again.run({"count": 6000})
    again.close()
    assert first.row.seed == done["counts"].row.seed != done["prints"].row.seed
    assert again.numbers(first.row.id) == done.numbers("counts")
    assert done.numbers("counts")[:1000] != done.numbers("prints")


def test_evaluating_again_gives_the_same(done: Campaign) -> None:
    from labconsole.engine.recorder import Recorder
    from labconsole.engine.run_end import WorkerRun, recover
    from labconsole.store.run_reader import RunReader

    before = done["counts"]
    with Store.open(done.bench("counts").database) as store:
        with RunReader(store.path) as reader:
            run = WorkerRun(store, reader.task(before.row.id))
        recover(run, Recorder(store, run.id, run.spool), RunStatus.INTERRUPTED, "must not be written")
    assert done.bench("counts").detail(before.row.id) == before


def test_progress_rate_and_time_to_go_were_reported(done: Campaign) -> None:
    run_id = done["counts"].row.id
    frames = [frame for number, frame in done.bench("counts").listener.frames if number == run_id]
    assert frames[-1].done == frames[-1].total == 12000
    assert frames[-1].channels["lateness"].histogram.count == 12000
    assert frames[-1].channels["lateness"].minimum == 1_000_000
    assert [frame.done for frame in frames] == sorted(frame.done for frame in frames)
    item = next(item for item in done.bench("counts").queue.items if item.run_id == run_id)
    assert frames[-1].begin_ns is not None and item.rate is not None and 0 < item.rate < 16500
    assert item.rate == pytest.approx(12000 / (frames[-1].t_ns - frames[-1].begin_ns) * 1e9)
    assert item.eta_s is None and item.reason == ""


def test_no_pump_took_long(done: Campaign) -> None:
    assert max(bench.slowest_pump_s for bench in done.benches) < 0.25, "see tests/benchmarks/engine.py for the time"
