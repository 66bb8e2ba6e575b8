"""Simulated stations against live ones on this computer: `python tests/benchmarks/v2x_simulated_against_live.py`.

The benchmark makes a timing profile of this computer; stations then send at 0.5, 0.9 and 1.5 times the rate that it
verifies, live and simulated, with the same queue. P-384, so that senders and receiver together do not need more than
two cores. Figures of this machine at this moment, never a test.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from labconsole.engine.provenance import provenance
from labconsole_v2x.simulation.stack_timing import STACK_TIMINGS, StackTiming
from labconsole_v2x.stations.sending import SecurityMode
from tests.benchmarks.v2x_live import run

STATIONS, QUEUE, CURVE = 60, 500, "p384"
LOSS_AIM, LATENCY_AIM = 2.0, 25.0


def timing_profile(folder: Path) -> StackTiming:
    """The profile `here` of this computer, from a run of the benchmark."""
    run(folder, {"curve": CURVE, "openssl": False, "cores": 1}, kind="v2x.benchmark")
    command = [sys.executable, "-m", "labconsole.cli.main", "v2x", "timing", "here", "1", "--room", str(QUEUE)]
    subprocess.run(command, env={**os.environ, "LABCONSOLE_HOME": str(folder)}, check=True, stdout=subprocess.DEVNULL)
    os.environ["LABCONSOLE_HOME"] = str(folder)
    return STACK_TIMINGS.load("here")


def medians(runs: list[dict[str, float]]) -> dict[str, float]:
    """The median of each figure."""
    return {name: statistics.median(one[name] for one in runs) for name in ("packet_loss", "latency_p50")}


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    said = provenance(0, 0)
    print(f"{said['cpu']}, {said['cores']} cores, load {said['load_average_before'][0]}, Python {said['python']}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        service_ms = timing_profile(folder).receiver.service_ms[SecurityMode.FULL]
        print(f"Verified and decoded: {1000 / service_ms:,.0f}/s ({CURVE}, one core)")
        for share in (0.5, 0.9, 1.5):
            scenario: Mapping[str, Any] = {
                "senders": STATIONS,
                "rate": share * 1000 / service_ms / STATIONS,
                "duration": 10.0,
            }
            curves = dict.fromkeys(("curve", "authority_curve", "root_curve"), CURVE)
            own = {**scenario, **curves, "queue_limit": QUEUE, "capture": False}
            live = medians([run(folder, own) for _ in range(arguments.repeats)])
            like = {**scenario, "medium": "ideal", "timing": "here"}
            simulated = medians([run(folder, like, kind="v2x.simulation") for _ in range(arguments.repeats)])
            off = 100 * (simulated["latency_p50"] / live["latency_p50"] - 1)
            print(
                f"{share:g} of it: loss {live['packet_loss']:.1f} % live, {simulated['packet_loss']:.1f} % simulated "
                f"(aim within {LOSS_AIM:g} points); latency p50 {live['latency_p50']:.2f} ms, "
                f"{simulated['latency_p50']:.2f} ms, {off:+.0f} % (aim {LATENCY_AIM:g})",
                flush=True,
            )


if __name__ == "__main__":
    main()
