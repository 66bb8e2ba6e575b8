"""Prints what it costs to export a run of 5,000,000 messages: seconds, MB/s and the peak memory of a fresh process.

Run it with `python tests/benchmarks/export.py [MESSAGES]`; it works in a temporary directory and leaves nothing behind.
Sent, received and joined that are three tables of as many rows. Exit code 1 when an export takes 200 MB or more.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labconsole.clock import wall_now
from labconsole.model.plugin import Plugins
from labconsole.model.series import Series
from labconsole.processes import this_process
from labconsole.store.records import NewCampaign, NewScenario, RunStatus
from labconsole.store.run_store import SampleChunk, Store

MESSAGES = 5_000_000
BOUND_MB = 200
CHUNK = 4096
T0_NS = 5_000_000_000_000
EXPORT = """
import json, sys, time
from pathlib import Path
import psutil
from labconsole.cli.main import main
begin = time.perf_counter()
code = main(sys.argv[1:])
took = time.perf_counter() - begin
process = psutil.Process()
memory = process.memory_info()
if hasattr(memory, "peak_wset"):
    peak = memory.peak_wset
elif sys.platform == "linux":  # ru_maxrss begins with the peak of the process that started this one
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))
else:
    import resource
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(json.dumps({"code": code, "seconds": took, "peak": peak}))
"""


def fill(path: Path, messages: int, *, numbered: bool = False) -> int:
    """Store a run of the AMQP trial with `messages` messages, sent and received; returns its number.

    They were sent at 200,000 a second while the receiver took 150,000, so the queue grew to the end. With `numbered`
    two senders took turns.
    """
    trial = Plugins.discover().trial("amqp.messaging")
    senders = 2 if numbered else 1
    settings = {"test": 1, "count": messages, "numbered": numbered, "senders": senders}
    parameters = trial.parameters.model_validate(settings).model_dump(mode="json")
    campaign = NewCampaign("bench", "Benchmark", "", 1, (NewScenario("Long", trial.kind, parameters),), ((0, 1),))
    with Store.open(path) as store:
        (run,) = store.add_campaign(campaign, this_process(), wall_now())
        store.run_started(run, this_process(), {}, [], wall_now())
        append_messages(store, run, trial.series, messages, numbered=numbered)
        store.run_ended(run, RunStatus.FINISHED, "", wall_now())
    return run


def append_messages(
    store: Store, run: int, series: Sequence[Series], messages: int, *, numbered: bool = False, gap_ns: int = 5_000
) -> None:
    """Store the messages of a run, one sent every `gap_ns`, received a third slower."""
    named = {one.name: one for one in series}
    senders = 2 if numbered else 1
    for sender in range(senders):
        places = np.arange(sender, messages, senders)
        _append(store, run, f"sender-{sender}", named["sent"], places, numbered, gap_ns)
    _append(store, run, "receiver-0", named["received"], np.arange(messages), numbered, gap_ns)


def _append(
    store: Store, run: int, role: str, series: Series, places: NDArray[np.int64], numbered: bool, gap_ns: int
) -> None:
    """Store the messages of these places in the order of sending, as one role saw them."""
    random = np.random.default_rng(run)
    senders = 2 if numbered else 1
    chunks = []
    for first in range(0, len(places), CHUNK):
        place = places[first : first + CHUNK]
        zeros = np.zeros(len(place), np.int64)
        noise = np.cumsum(random.integers(0, 3, len(place)))
        sender, sequence = place % senders, place // senders
        known = {
            "seq": sequence,
            "number": (sender + 1 << 40) + sequence if numbered else zeros - 1,
            "intended_ns": T0_NS + place * gap_ns,
            "sent_ns": T0_NS + place * gap_ns + noise,
            "received_ns": T0_NS + 400_000 + place * gap_ns * 4 // 3 + noise,
            "stamp_ms": 1_795_176_000_000 + place * gap_ns // 1_000_000,
            "size": zeros + 282,
        }
        values = {column.name: known.get(column.name, zeros) for column in series.columns}
        chunks.append(SampleChunk(role, series, first // CHUNK, len(place), values))
        if len(chunks) == 16:
            store.append(run, chunks)
            chunks = []
    store.append(run, chunks)


def measured(database: Path, *arguments: str) -> tuple[float, int]:
    """Run `labconsole` with these arguments in a process of its own: seconds, and the peak of its memory in bytes."""
    command = [sys.executable, "-c", EXPORT, *arguments, "--db", str(database)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    described = json.loads(done.stdout.splitlines()[-1])
    if described["code"]:
        raise RuntimeError(done.stderr)
    return described["seconds"], described["peak"]


def main() -> int:
    """Measure all formats; exit code 1 when one takes too much memory."""
    messages = int(sys.argv[1]) if len(sys.argv) > 1 else MESSAGES
    worst = 0
    for numbered in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            database = Path(folder) / "runs.db"
            run = str(fill(database, messages, numbered=numbered))
            described = "numbered, two senders" if numbered else "joined by stamp, one sender"
            print(f"{messages:,} messages, {described}: a database of {database.stat().st_size / 1e6:.0f} MB")
            for kind in ("csv", "parquet"):
                target = Path(folder) / kind
                seconds, peak = measured(database, "export", run, f"--{kind}", str(target))
                size = sum(file.stat().st_size for file in target.iterdir()) / 1e6
                worst = max(worst, peak)
                print(
                    f"  {kind:8} {seconds:6.1f} s  {size:8.1f} MB  {size / seconds:6.1f} MB/s  peak {peak / 1e6:.0f} MB"
                )
    print(f"target    under {BOUND_MB} MB")
    return 0 if worst < BOUND_MB * 1e6 else 1


if __name__ == "__main__":
    sys.exit(main())
