"""kill -9 of role, worker and console at random moments: no committed sample lost, run marked, no process left.

The runs would count for minutes, so that every kill hits one in progress however busy the machine is; only a console
that still recovers the run before has none. The nightly set kills often, in two lanes at a time, each on a database of
its own: with the six of `test_window_killed.py`, 30 kills of worker, console and window hit, and some of roles. A fault
that shows itself at rare moments is found by that set alone. The moments follow from a seed that is printed when a test
fails; LABCONSOLE_KILL_SEED repeats them.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from labconsole.engine.recorder import spool_root
from labconsole.engine.spool import EventBlock, SampleBlock, SpoolReader
from labconsole.store.evidence.checking import verify
from labconsole.store.reader import Reader
from labconsole.store.records import RunDetail, RunStatus
from tests.helpers.forked_programs import runs
from tests.helpers.practice import TIMEOUT_S, Bench, profile_text, wait_until

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="sends SIGKILL"),
    pytest.mark.timeout(900),
]


def hits(few: int, many: int) -> pytest.MarkDecorator:
    """So many kills in a lane: a few in one lane, or nightly many in each of two."""
    often = pytest.param(2, many, marks=[pytest.mark.nightly], id="many")
    return pytest.mark.parametrize(("lanes", "hits"), [pytest.param(1, few, id="few"), often])


COUNTING = {"count": 1_000_000, "rate": 4000.0, "roles": 2}
KEPT = "in mid-run; what was measured until then is kept. Run it again."
LATEST_S = 1.2
"""The last moment of a kill, after the run was marked as running: on an idle machine it then counts for 0.7 s."""


@pytest.fixture
def moments() -> Iterator[random.Random]:
    seed = int(os.environ.get("LABCONSOLE_KILL_SEED", "20261120"))
    print(f"LABCONSOLE_KILL_SEED={seed}")
    yield random.Random(seed)


def _in_lanes(
    kills: Callable[[Path, random.Random, int], None], folder: Path, moments: random.Random, lanes: int, hits: int
) -> None:
    """Do `kills` in all lanes at once, each with a folder and moments of its own."""
    with ThreadPoolExecutor(lanes) as threads:
        results = []
        for number in range(lanes):
            own = folder / f"lane {number}"
            own.mkdir()
            results.append(threads.submit(kills, own, random.Random(moments.random()), hits))
    for result in results:
        result.result()


@dataclass(frozen=True)
class Committed:
    """What stood in the store before a kill, and in complete blocks in the spool after it."""

    rows: dict[tuple[str, str], int]
    events: int

    @classmethod
    def of(cls, database: Path, run_id: int) -> Committed:
        """Rows that a reader sees in each series, and events."""
        with Reader(database) as reader:
            run = reader.run(run_id)
        rows = {(series.name, series.role): series.rows for series in run.series}
        return cls(rows, len(run.events))

    @classmethod
    def spooled(cls, database: Path, run_id: int) -> Committed:
        """Rows in complete blocks of the spool that a dead process left."""
        rows: dict[tuple[str, str], int] = {}
        events = 0
        with Reader(database) as store:
            uuid = store.run(run_id).row.uuid
        for path in (spool_root(database) / uuid).glob("*.spool"):
            reader = SpoolReader(path)
            while blocks := reader.read_new():
                for block in blocks:
                    if isinstance(block, SampleBlock):
                        key = (block.series.name, block.role)
                        rows[key] = rows.get(key, 0) + block.rows
                    else:
                        events += isinstance(block, EventBlock)
            assert reader.damage is None, "a kill leaves a torn end, never damage"
        return cls(rows, events)


def _verify(database: Path, run_id: int, *before: Committed) -> RunDetail:
    """Every series reads back with its hashes, and has at least what was committed; counted numbers are the seed's."""
    with Reader(database) as reader:
        run = reader.run(run_id)
        verification = verify(reader, run_id)
        assert verification.ok, verification.faults
        samples = reader.samples(run_id)
        stored = {
            (series.name, series.role): len(samples.table(series.name, series.role)["t_ns"]) for series in run.series
        }
        for role in samples.roles("counted"):
            numbers = random.Random(run.row.seed + int(role.removeprefix("counter-")))
            table = samples.table("counted", role)["number"]
            assert table.tolist() == [numbers.getrandbits(31) for _ in range(len(table))]
    for committed in before:
        for key, rows in committed.rows.items():
            assert stored.get(key, 0) >= rows, f"{key} had {rows} rows and now has {stored.get(key, 0)}"
        assert len(run.events) >= committed.events
    assert run.row.status.final and not (spool_root(database) / run.row.uuid).exists()
    counted = sum(rows for (name, _), rows in stored.items() if name == "counted")
    if run.row.started is not None:
        assert run.row.metrics["counted"].value == counted, "it was evaluated, with all that is stored"
    return run


def _engine_processes(pid: int) -> list[psutil.Process]:
    """Workers and roles among a process and those below it."""
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
    return [one for one in family if _runs_program(one, "worker", "role")]


def _roles(pid: int) -> list[psutil.Process]:
    return [process for process in _engine_processes(pid) if _runs_program(process, "role")]


def _runs_program(process: psutil.Process, *names: str) -> bool:
    """Whether a process runs one of these programs of the engine."""
    try:
        return any(runs(process, f"labconsole.engine.{name}") for name in names)
    except psutil.NoSuchProcess:
        return False


def _gone(processes: list[psutil.Process]) -> bool:
    return wait_until(lambda: not any(_runs(process) for process in processes), TIMEOUT_S)


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _attempts(hits: list[int], wanted: int) -> Iterator[int]:
    """Numbers of attempts until `hits` holds `wanted` kills that hit; fails when more miss than hit."""
    attempt = 0
    while len(hits) < wanted:
        assert attempt < 2 * wanted, f"only {len(hits)} of {attempt} kills hit a run that went on"
        yield attempt
        attempt += 1


def _start_run(bench: Bench) -> tuple[int, int]:
    """Submit a run and pump until it is marked as running; returns its id and its worker's pid."""
    [run_id] = bench.submit(COUNTING)
    bench.pump_until(lambda: run_id in _running(bench.database))
    owner = bench.detail(run_id).row.owner
    assert owner is not None
    return run_id, owner.pid


def _pump_for(bench: Bench, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    bench.pump_until(lambda: time.monotonic() >= deadline)


def _pump_to_the_end(bench: Bench, run_id: int) -> None:
    bench.pump_until(lambda: any(number == run_id for number, _ in bench.listener.ends))


@hits(few=1, many=8)
def test_kill_of_a_worker(tmp_path: Path, moments: random.Random, lanes: int, hits: int) -> None:
    """Nightly, every other kill hits a worker once its run has counted so far."""
    _in_lanes(_kill_workers, tmp_path, moments, lanes, hits)


def _kill_workers(folder: Path, moments: random.Random, hits: int) -> None:
    with closing(Bench(folder)) as bench:
        for attempt in range(hits):
            run_id, pid = _start_run(bench)
            if attempt % 2:
                bench.pump_until_counting(moments.randrange(1, 5000))
            else:
                _pump_for(bench, moments.uniform(0, LATEST_S))
            family = _engine_processes(pid)
            assert psutil.Process(pid) in family
            before = Committed.of(bench.database, run_id)
            os.kill(pid, signal.SIGKILL)
            assert _gone(family)
            left = Committed.spooled(bench.database, run_id)
            assert run_id in _running(bench.database)
            _pump_to_the_end(bench, run_id)
            run = _verify(bench.database, run_id, before, left)
            assert run.row.status is RunStatus.INTERRUPTED
            assert run.row.reason == "The worker process was killed by signal 9."


@hits(few=1, many=2)
def test_kill_of_a_role(tmp_path: Path, moments: random.Random, lanes: int, hits: int) -> None:
    _in_lanes(_kill_roles, tmp_path, moments, lanes, hits)


def _kill_roles(folder: Path, moments: random.Random, hits: int) -> None:
    with closing(Bench(folder)) as bench:
        for _ in range(hits):
            run_id, pid = _start_run(bench)
            bench.pump_until(lambda worker=pid: bool(_roles(worker)))  # type: ignore[misc]
            _pump_for(bench, moments.uniform(0, LATEST_S))
            before = Committed.of(bench.database, run_id)
            family = _engine_processes(pid)
            assert len(family) > 1, "the worker and a role"
            moments.choice(_roles(pid)).kill()
            _pump_to_the_end(bench, run_id)
            assert _gone(family)
            run = _verify(bench.database, run_id, before)
            assert run.row.status is RunStatus.FAILED
            assert run.row.reason in [f"Role counter-{i} was killed by signal 9 {KEPT}" for i in (0, 1)]


@hits(few=1, many=4)
def test_kill_of_the_console(tmp_path: Path, moments: random.Random, lanes: int, hits: int) -> None:
    """`labconsole run` is killed again and again; each next one takes over what the one before left."""
    _in_lanes(_kill_consoles, tmp_path, moments, lanes, hits)


def _kill_consoles(folder: Path, moments: random.Random, wanted: int) -> None:
    database, profile = folder / "runs.db", folder / "practice.toml"
    profile.write_text(profile_text({}, {}, **COUNTING))
    command = [sys.executable, "-m", "labconsole.cli.main"]
    seen: list[tuple[int, Committed, Committed]] = []
    hits: list[int] = []
    for attempt in _attempts(hits, wanted):
        done_before = len(_ids(database))
        console = subprocess.Popen(
            [*command, "run", str(profile), "--db", str(database)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        assert wait_until(lambda n=done_before: len(_ids(database)) > n, TIMEOUT_S)  # type: ignore[misc]
        newest = set(_ids(database)[:2])
        if attempt % 4 != 3:  # not in the recovery of the run before, then
            assert wait_until(lambda own=newest: bool(own & set(_running(database))), TIMEOUT_S)  # type: ignore[misc]
        time.sleep(moments.uniform(0, LATEST_S))
        family = _engine_processes(console.pid)
        live = _running(database)
        before = {run_id: Committed.of(database, run_id) for run_id in live}
        console.kill()
        console.wait()
        assert _gone(family), family
        for run_id in live:
            seen.append((run_id, before[run_id], Committed.spooled(database, run_id)))
        hits += newest & set(_running(database))
    listed = subprocess.run(
        [*command, "runs", "--db", str(database)], capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert listed.returncode == 0, listed.stderr
    for run_id in _ids(database):
        run = _verify(database, run_id, *[c for number, *kept in seen if number == run_id for c in kept])
        if run_id in hits:
            assert run.row.status is RunStatus.INTERRUPTED
            assert run.row.reason == "Its process ended in mid-run; what it had measured until then is kept."
        else:
            assert run.row.status in (RunStatus.CANCELLED, RunStatus.FINISHED)


def _ids(database: Path) -> list[int]:
    if not database.exists():
        return []
    try:
        with Reader(database) as reader:
            return [row.id for row in reader.runs()]
    except Exception as error:  # noqa: BLE001 - it is being made in this moment
        assert not isinstance(error, AssertionError)
        return []


def _running(database: Path) -> list[int]:
    with Reader(database) as reader:
        return [live.id for live in reader.live_runs() if live.status is RunStatus.RUNNING]
