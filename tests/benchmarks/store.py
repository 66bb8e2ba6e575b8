"""Measure the run database: 2,000 runs listed, 1,000,000 samples written, read and exported. Prints one line each.

Run it with `python tests/benchmarks/store.py`; it works in a temporary directory and leaves nothing behind.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from labconsole.model.metrics import Direction, Evaluation, Metric
from labconsole.model.series import Column, Series
from labconsole.output.csv_export import export_run
from labconsole.processes import this_process
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, NewScenario, RunStatus
from labconsole.store.run_store import SampleChunk, Store

RUNS = 2_000
METRICS = 25
ROWS = 1_000_000
CHUNK = 4096
MESSAGES = Series(
    "messages",
    "Messages",
    (
        Column("sequence", "i8", "", "Sequence"),
        Column("sent", "i8", "ns", "Sent"),
        Column("received", "i8", "ns", "Received"),
        Column("latency", "f8", "us", "Latency"),
    ),
)


def main() -> None:
    """Fill a database and print the figures."""
    with tempfile.TemporaryDirectory() as directory:
        database = Path(directory) / "runs.db"
        with Store.open(database) as store:
            ids = fill_runs(store)
            measure(f"append {ROWS:,} rows x 4 columns, 4 chunks a commit", lambda: fill_samples(store, ids[0]), 1)
            one = columns(CHUNK)
            with Reader(database) as reader:
                stored = len(list(reader.samples(ids[0]).parts(MESSAGES.name, "sender")))
            fresh = itertools.count(stored)
            measure(
                "commit of one chunk of 4,096 rows",
                lambda: store.append(ids[0], [SampleChunk("sender", MESSAGES, next(fresh), CHUNK, one)]),
                20,
            )
        print(f"{'size of the database':55} {database.stat().st_size / 1e6:9.1f} MB")
        measure("open a reader", lambda: Reader(database).close(), 10)
        with Reader(database) as reader:
            measure(f"list {RUNS:,} runs with {METRICS} metrics each", lambda: reader.runs(), 5)
            measure("detail of one run", lambda: reader.run(ids[0]), 5)
            measure(f"read {ROWS:,} rows x 4 columns", lambda: reader.samples(ids[0]).table("messages", "sender"), 3)
            measure(f"export {ROWS:,} rows to CSV", lambda: export_run(reader, ids[0], Path(directory) / "csv"), 1)


def measure(title: str, work: Callable[[], Any], times: int) -> None:
    """Print the best of some runs, wall and CPU time."""
    readings = []
    for _ in range(times):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        readings.append((time.perf_counter() - wall, time.process_time() - cpu))
    wall, cpu = min(readings)
    print(f"{title:55} {wall * 1e3:9.1f} ms   (CPU {cpu * 1e3:.1f} ms)")


def fill_runs(store: Store) -> list[int]:
    """Store finished runs of one campaign with their metrics."""
    scenarios = tuple(
        NewScenario(f"Test {n}", "swim", {"messages": 10_000, "payload": "fpl", "n": n}) for n in range(20)
    )
    order = tuple((position % 20, position // 20 + 1) for position in range(RUNS))
    now = datetime.now(UTC)
    ids = store.add_campaign(NewCampaign("bench", "Benchmark", "", 1, scenarios, order), this_process(), now)
    for run_id in ids:
        metrics = tuple(Metric(f"metric_{n}", run_id + n / 7, "ms", Direction.LOWER, 10_000) for n in range(METRICS))
        labelled = tuple(Metric("lost", n, "", Direction.LOWER, 1, {"reason": f"r{n}"}) for n in range(5))
        store.replace_evaluation(run_id, Evaluation(metrics + labelled))
        store.run_ended(run_id, RunStatus.FINISHED, "", now)
    return ids


def columns(rows: int) -> dict[str, Any]:
    """One chunk as a sender might record it."""
    random = np.random.default_rng(1)
    sent = np.cumsum(random.integers(10_000, 30_000, rows))
    latency = random.lognormal(5, 1, rows)
    return {
        "sequence": np.arange(rows),
        "sent": sent,
        "received": sent + (latency * 1e3).astype("i8"),
        "latency": latency,
    }


def fill_samples(store: Store, run_id: int) -> None:
    """Store samples as the recorder does, four chunks a commit."""
    data = columns(ROWS)
    starts = range(0, ROWS, CHUNK)
    parts = [{name: values[start : start + CHUNK] for name, values in data.items()} for start in starts]
    chunks = [SampleChunk("sender", MESSAGES, seq, len(part["sent"]), part) for seq, part in enumerate(parts)]
    for first in range(0, len(chunks), 4):
        store.append(run_id, chunks[first : first + 4])


if __name__ == "__main__":
    main()
