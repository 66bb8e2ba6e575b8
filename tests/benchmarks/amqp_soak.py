"""Prints what hours of a soak cost: the disk of each message, seconds and peak memory of its evaluation and curves.

Run it with `python tests/benchmarks/amqp_soak.py [HOURS [RATE]]` (8 hours at 1,000 msg/s); it works in a temporary
directory and leaves nothing behind. Exit code 1 when an evaluation takes 2 GB or more, or misses the drift of p50.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.clock import wall_now
from labconsole.model.plugin import Plugins
from labconsole.model.series import MACHINE, RESOURCES, Event, Level, Series
from labconsole.processes import this_process
from labconsole.store.records import NewCampaign, NewScenario, RunStatus
from labconsole.store.run_store import EventRecord, SampleChunk, Store
from labconsole_amqp.series import ACKNOWLEDGED, QUEUE_DEPTH, RECEIVED, SENT

BOUND_MB = 2_000
T0_NS = 5_000_000_000_000
DRIFT_MS = 0.02
"""By which latency grows an hour."""
FLUSH_NS = 250_000_000
"""Interval at which roles write what they have recorded."""
EVALUATION = """
import json, resource, sys, time
from pathlib import Path
from labconsole.model.plugin import Plugins
from labconsole.store.reader import Reader
trial = Plugins.discover().trial("amqp.messaging")
with Reader(Path(sys.argv[1])) as reader:
    detail = reader.run(1)
    parameters, samples = trial.parameters.of_stored(detail.row.parameters), reader.samples(1)
    begin = time.perf_counter()
    found = getattr(trial, sys.argv[2])(parameters, samples, detail.events)
    took = time.perf_counter() - begin
status = Path("/proc/self/status")
peak = next(int(line.split()[1]) * 1024 for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
metrics = {one.name: one.value for one in found.metrics if not one.labels} if sys.argv[2] == "evaluate" else {}
verdicts = [f"{one.result}: {one.name}: {one.reason}" for one in getattr(found, "verdicts", ())]
print(json.dumps({"seconds": took, "peak": peak, "metrics": metrics, "verdicts": verdicts}))
"""


def fill(path: Path, hours: float, rate: float) -> int:
    """Store a soak as a run records it; returns the number of messages."""
    trial = Plugins.discover().trial("amqp.messaging")
    parameters = trial.parameters.model_validate({"test": 1, "loop": "soak", "rate": rate, "hours": hours})
    scenario = NewScenario("Soak", trial.kind, parameters.model_dump(mode="json"))
    campaign = NewCampaign("bench", "Benchmark", "", 1, (scenario,), ((0, 1),))
    messages, step = int(hours * 3600 * rate), max(1, int(rate * FLUSH_NS / 1e9))
    begun = Event(T0_NS, "worker", Level.INFO, "T0", "T0: begin.", {"begin_ns": T0_NS})
    with Store.open(path) as store:
        (run,) = store.add_campaign(campaign, this_process(), wall_now())
        store.run_started(run, this_process(), {}, [], wall_now(), definitions=trial.definitions)
        store.append(run, [], [EventRecord("worker", 0, begun)])
        batch: list[SampleChunk] = []
        for number, first in enumerate(range(0, messages, step)):
            batch += chunks(np.arange(first, min(first + step, messages)), number, rate)
            if len(batch) > 2_000:
                store.append(run, batch)
                batch = []
        store.append(run, batch)
        store.run_ended(run, RunStatus.FINISHED, "", wall_now())
    return messages


def chunks(sequence: NDArray[np.int64], number: int, rate: float) -> Iterator[SampleChunk]:
    """What all roles record in a quarter of a second."""
    random = np.random.default_rng(number)
    due_ns = T0_NS + (sequence * (1e9 / rate)).astype(np.int64)
    sent_ns = due_ns + random.integers(20_000, 90_000, len(sequence))
    hours = (due_ns - T0_NS) / 3.6e12
    received_ns = sent_ns + ((0.3 + DRIFT_MS * hours) * 1e6 * random.lognormal(0, 0.3, len(sequence))).astype(np.int64)
    received_ns = np.maximum.accumulate(received_ns)
    stamps, sizes = 1_795_176_000_000 + sent_ns // 1_000_000, np.full(len(sequence), 282)
    known = {"seq": sequence, "number": -1, "intended_ns": due_ns, "sent_ns": sent_ns, "received_ns": received_ns}
    known |= {"stamp_ms": stamps, "size": sizes, "acknowledged_ns": received_ns + 50_000}
    roles = ((SENT, "sender-0"), (ACKNOWLEDGED, "sender-0"), (RECEIVED, "receiver-0"))
    for series, role in roles:
        yield _chunk(series, role, number, len(sequence), known)
    now = int(due_ns[0])
    readings = {"t_ns": now, "cpu": random.normal(20, 2), "rss": int(60e6 + random.integers(0, 3) * 4096)}
    yield _chunk(QUEUE_DEPTH, "broker", number, 3, {"at_ns": now, "messages": 0})
    if number % 2 == 0:
        for role in ("worker", "broker", "receiver-0", "sender-0"):
            yield _chunk(RESOURCES, role, number // 2, 1, readings)
        spent = {"t_ns": now, "all_ns": now * 2, "busy_ns": now // 2, "own_ns": now // 2, "steal_ns": 0}
        yield _chunk(MACHINE, "worker", number // 2, 5, spent)


def _chunk(series: Series, role: str, number: int, rows: int, known: Mapping[str, Any]) -> SampleChunk:
    columns = {
        column.name: np.broadcast_to(np.asarray(known.get(column.name, 0)), rows).astype(column.numpy_type)
        for column in series.columns
    }
    return SampleChunk(role, series, number, rows, columns)


def measured(database: Path, what: str) -> dict[str, Any]:
    """Seconds and peak memory (bytes) of a method of the trial on the stored run, in a process of its own."""
    command = [sys.executable, "-c", EVALUATION, str(database), what]
    return dict(json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout))


def main() -> int:
    """Fill a database and measure; exit code 1 where memory or drift are not as they should be."""
    hours, rate = (float(value) for value in (*sys.argv[1:], *("8", "1000")[len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "runs.db"
        messages = fill(database, hours, rate)
        size = database.stat().st_size
        print(f"{messages:,} messages: a database of {size / 1e6:,.0f} MB, {size / messages:.1f} B a message")
        found = {what: measured(database, what) for what in ("evaluate", "curves", "distributions")}
    for what, one in found.items():
        print(f"  {what:14} {one['seconds']:6.1f} s   peak {one['peak'] / 1e6:,.0f} MB")
    drift = found["evaluate"]["metrics"]["latency_p50_drift"]
    print(f"  drift of p50 {drift:.4f} ms/h, of {DRIFT_MS} ms/h", *found["evaluate"]["verdicts"], sep="\n  ")
    print(f"target    under {BOUND_MB:,} MB")
    return 0 if max(one["peak"] for one in found.values()) < BOUND_MB * 1e6 and abs(drift / DRIFT_MS - 1) < 0.1 else 1


if __name__ == "__main__":
    sys.exit(main())
