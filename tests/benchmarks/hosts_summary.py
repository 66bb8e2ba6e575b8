"""Measure how 50,000,000 samples on 20 hosts are summarised: all agents on this computer, over TLS on loopback.

Run it with `python tests/benchmarks/hosts_summary.py [HOSTS]`. Each host has 2,500,000 receptions of a V2X receiver,
the same for all, so that their file is in the system's cache. It prints the time until the summary is there, the memory
of the console before and after, the largest of an agent, and how far the percentiles are from the exact ones.
All processes share this computer's cores: on a testbed each host has its own.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import psutil

from labconsole.engine.provenance import provenance
from labconsole.engine.spool import SpoolSeriesWriter, SpoolWriter
from labconsole.hosts.cluster import Cluster
from labconsole.hosts.host_launcher import connected
from labconsole.hosts.samples.collected import recorded_folder
from labconsole.hosts.samples.sample_summaries import LARGEST_ERROR, Summaries
from labconsole.model.placement import Placement
from labconsole.paths import HOME_VARIABLE
from labconsole_v2x.live.series import RECEIVED

HOSTS = 20
ROWS = 2_500_000
_STEP = 100_000
_LONGEST_S = 3600.0


def main() -> None:
    """Print the figures."""
    said = provenance(0, 0)
    print(f"{said['cpu']}, {said['cores']} cores, {said['os']}, Python {said['python']}, {said['load_average_before']}")
    hosts = int(sys.argv[1]) if len(sys.argv) > 1 else HOSTS
    with tempfile.TemporaryDirectory() as folder, ExitStack() as closing:
        os.environ[HOME_VARIABLE] = folder
        cluster, _ = connected(Placement.model_validate({"local": hosts, "roles": [{"role": "*"}]}), closing)
        run = str(uuid.uuid4())
        names = sorted(cluster.addresses())
        verify_ns, size = _record(names, run)
        before = psutil.Process().memory_info().rss
        begun = time.perf_counter()
        summaries, agents = _summarise(cluster, names, run)
        lasted_s = time.perf_counter() - begun
        grown = psutil.Process().memory_info().rss - before
    summary = next(one for measure, one in summaries.items() if measure.column == "verify_ns")
    fractions = (0.5, 0.95, 0.99, 0.999)
    errors = [
        abs(summary.percentile(part) / np.quantile(verify_ns, part, method="inverted_cdf") - 1) for part in fractions
    ]
    print(
        f"{hosts} hosts: {summary.count:,} samples ({hosts * size / 1e9:.1f} GB), {len(summaries)} measures, "
        f"summarised in {lasted_s:.1f} s; memory of the console {before / 1e6:.0f} MB and {grown / 1e6:.0f} MB more, "
        f"of an agent {agents / 1e6:.0f} MB at most; largest error of a percentile {max(errors):.3%} "
        f"(stated {LARGEST_ERROR:.3%})"
    )


def _record(names: list[str], run: str) -> tuple[np.ndarray, int]:
    """The receptions of a host, for all of them: the times to verify, and the bytes of the file."""
    drawn = np.random.default_rng(1)
    first = recorded_folder(names[0]) / run / "receiver.spool"
    first.parent.mkdir(parents=True)
    writer = SpoolWriter(first)
    series = SpoolSeriesWriter(writer, "receiver", RECEIVED)
    times: list[np.ndarray] = []
    for start in range(0, ROWS, _STEP):
        verify_ns = drawn.lognormal(13, 0.7, _STEP).astype(np.uint32)
        received_ns = 10**15 + np.arange(start, start + _STEP) * 100_000
        started_ns = received_ns + drawn.lognormal(10, 1.5, _STEP).astype(np.int64)
        done_ns = started_ns + verify_ns + 20_000
        known = {
            "received_ns": received_ns,
            "started_ns": started_ns,
            "verify_ns": verify_ns,
            "done_ns": done_ns,
            "age_ns": done_ns - received_ns + 300_000,
            "size": drawn.integers(250, 420, _STEP),
            "content": drawn.integers(60, 120, _STEP),
            "identity": drawn.integers(1, 2**60, _STEP),
        }
        series.extend(**{column.name: known.get(column.name, np.zeros(_STEP)) for column in RECEIVED.columns})
        times.append(verify_ns)
    series.flush()
    writer.close()
    for name in names[1:]:
        (folder := recorded_folder(name) / run).mkdir(parents=True)
        os.link(first, folder / first.name)
    return np.concatenate(times), Path(first).stat().st_size


def _summarise(cluster: Cluster, names: list[str], run: str) -> tuple[Summaries, int]:
    """All summaries together, and the largest resident memory of an agent afterwards."""
    total = Summaries()
    with ThreadPoolExecutor(len(names)) as pool:
        for found in pool.map(lambda name: cluster.call(name, "summaries", run, timeout_s=_LONGEST_S), names):
            total.merge(found)
    children = psutil.Process().children(recursive=True)
    return total, max(child.memory_info().rss for child in children)


if __name__ == "__main__":
    main()
