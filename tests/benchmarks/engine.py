"""Measure the engine: the start of a run, the rate of the recorder, and the CPU while a run is in progress.

Run it with `python tests/benchmarks/engine.py`; it works in a temporary directory and leaves nothing behind.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from labconsole.clock import wall_now
from labconsole.engine.provenance import provenance
from labconsole.engine.recorder import Recorder, make_spool, spool_directory
from labconsole.engine.spool import SpoolSeriesWriter, SpoolWriter
from labconsole.model.series import RESOURCES, Column, Series
from labconsole.processes import this_process
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, NewScenario
from labconsole.store.run_store import Store
from tests.helpers.practice import PLUGIN, Bench, campaign

RUNS = 8
ROWS = 4_000_000
RATE = 50_000.0
SECONDS = 6
SERIES = Series(
    "messages",
    "Messages",
    (
        Column("seq", "i8", "", "Sequence"),
        Column("intended_ns", "i8", "ns", "Intended"),
        Column("sent_ns", "i8", "ns", "Sent"),
        Column("stamp_ms", "i8", "ms", "Stamp"),
        Column("size", "i4", "B", "Size"),
    ),
)


def main() -> None:
    """Print the figures, with a home and the practice plugin for this process and its children."""
    sys.path.insert(0, str(PLUGIN))
    os.environ["PYTHONPATH"] = str(PLUGIN)
    with tempfile.TemporaryDirectory() as home:
        os.environ["LABCONSOLE_HOME"] = home
        measure_all()


def measure_all() -> None:
    """Measure one thing after the other."""
    said = provenance(0, 0)
    print(f"{said['cpu']}, {said['cores']} cores, {said['os']}, load {said['load_average_before'][0]}")
    packages = ", ".join(f"{name} {version}" for name, version in said["packages"].items())
    print(f"console {said['console']} {said['revision']}, Python {said['python']}, {packages}")
    for measure in (start_up, turns, recorder):
        with tempfile.TemporaryDirectory() as folder:
            measure(Path(folder))
    for live_hz in (8.0, 0.0):
        with tempfile.TemporaryDirectory() as folder:
            overhead(Path(folder), live_hz)


def start_up(folder: Path) -> None:
    """Whole runs of one role with nothing to do: wall time, and CPU of worker and role."""
    bench = Bench(folder)
    cpu, begun = _children_cpu_s(), time.perf_counter()
    bench.run(*[{"count": 1}] * RUNS)
    wall, cpu = (time.perf_counter() - begun) / RUNS, (_children_cpu_s() - cpu) / RUNS
    bench.close()
    print(f"start-up and end of a run with one role: {wall:.2f} s, of it {cpu:.2f} s CPU in worker and role")


def turns(folder: Path) -> None:
    """The longest turn on the thread of a window."""
    bench = Bench(folder)
    prepared = campaign(folder, *[{"count": 1000, "rate": 1000.0}] * 12, repeats=5)
    took: dict[str, tuple[float, float]] = {}

    def turn(name: str, work: Callable[[], Any]) -> Any:
        begun, cpu = time.perf_counter(), time.thread_time()
        result = work()
        took[name] = max(took.get(name, (0.0, 0.0)), (time.perf_counter() - begun, time.thread_time() - cpu))
        return result

    run_ids = turn("submit 60 runs", lambda: bench.queue.submit(prepared))
    while not bench.listener.ends:
        turn("pump", bench.queue.pump)
        time.sleep(0.02)
    turn("repeat", lambda: bench.queue.repeat(run_ids[0]))
    turn("cancel", lambda: bench.queue.cancel(run_ids[1]))
    for run_id in run_ids[2:]:
        turn("remove", lambda run_id=run_id: bench.queue.remove(run_id))  # type: ignore[misc]
    bench.close()
    texts = [f"{name} {wall * 1e3:.1f} ms ({cpu * 1e3:.1f} ms CPU)" for name, (wall, cpu) in took.items()]
    print(f"longest turns of the queue: {', '.join(texts)}")


def recorder(folder: Path) -> None:
    """Rows a second through spool and recorder, five columns, without any other load."""
    with Store.open(folder / "runs.db") as store:
        new = NewCampaign("b", "B", "", 1, (NewScenario("s", "k", {}),), ((0, 1),))
        [run_id] = store.add_campaign(new, this_process(), wall_now())
        with Reader(store.path) as reader:
            directory = spool_directory(store.path, reader.run(run_id).row.uuid)
        make_spool(directory)
        spool = SpoolWriter(directory / "role.spool")
        writer = SpoolSeriesWriter(spool, "role", SERIES)
        batch = _rows(500)
        begun = time.perf_counter()
        for _ in range(0, ROWS, 500):
            writer.extend(**batch)
        writer.flush()
        spool.close()
        wrote = time.perf_counter() - begun
        begun = time.perf_counter()
        Recorder(store, run_id, directory).poll()
        took = time.perf_counter() - begun
    print(f"spool: {ROWS / wrote:,.0f} rows/s written in batches of 500; recorder: {ROWS / took:,.0f} rows/s stored")


def overhead(folder: Path, live_hz: float) -> None:
    """CPU of the worker (recorder, usage, live frames) next to a role that records at a steady rate."""
    bench = Bench(folder, live_hz=live_hz)
    [run] = bench.run({"count": int(RATE * SECONDS), "rate": RATE})
    bench.close()
    with Reader(bench.database) as reader:
        table = reader.samples(run.row.id).table(RESOURCES.name, "worker")
    busy = float(np.mean(table["cpu"][2:]))
    print(
        f"worker alongside {RATE:,.0f} rows/s, live view at {live_hz:g} Hz: {busy:.1f} % of a core, "
        f"{table['rss'].max() / 1e6:.0f} MB"
    )


def _rows(count: int) -> Mapping[str, Any]:
    steps = np.arange(count, dtype=np.int64)
    times = 10**15 + steps * 16_000 + np.random.default_rng(1).integers(0, 5000, count)
    return {
        "seq": steps,
        "intended_ns": times,
        "sent_ns": times + 700,
        "stamp_ms": times // 10**6,
        "size": steps * 0 + 282,
    }


def _children_cpu_s() -> float:
    times = psutil.Process().cpu_times()
    return float(times.children_user + times.children_system)


if __name__ == "__main__":
    main()
