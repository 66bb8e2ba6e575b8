"""Measure the built-in shaper: rates and round-trip times next to those set, and runs with the source's message rates.

    python tests/benchmarks/amqp_shaped_link.py [--seconds 5]

Aims: 2 Mbit/s within 2 %, a round-trip time within 2 ms; the source's 3.5, 3.3 and 4.6 messages a second (large
payload, Malaysia to Singapore, Tests 2 to 4) within 10 % with the delays of the profile `swim-my-sg-shaped`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from labconsole.engine.provenance import provenance
from labconsole_amqp.shaping.calibration import calibrate
from labconsole_amqp.shaping.link_model import LinkSettings

RATE_AIM, RTT_AIM_MS, SOURCE_AIM = 0.02, 2.0, 0.10
LINKS = (
    # rate up, rate down (Mbit/s), delay each way (ms), window (KiB)
    (2.0, 2.0, 0.0, 64),
    (2.0, 2.0, 10.0, 64),
    (2.0, 8.0, 25.0, 128),
    (100.0, 100.0, 5.0, 1024),
    (1000.0, 1000.0, 0.0, 1024),
)
PUBLISHED = {"Test 2, 216 ms": 3.5, "Test 3, 228 ms": 3.3, "Test 4, 161 ms": 4.6}


def main() -> None:
    """Calibrate each link, then run the profile."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="length of a calibration")
    seconds = parser.parse_args().seconds
    said = provenance(0, 0)
    print(f"{said['cpu']}, {said['cores']} cores, load {said['load_average_before'][0]}, Python {said['python']}")
    for up, down, delay_ms, window in LINKS:
        link = LinkSettings(up * 1e6, down * 1e6, round(delay_ms * 1e6), window=window * 1024)
        measured = calibrate(link, seconds)
        errors = [
            one / wanted - 1
            for one, wanted in zip((measured.rate_up, measured.rate_down), (up * 1e6, down * 1e6), strict=True)
        ]
        rtt_error_ms = measured.rtt_ns / 1e6 - 2 * delay_ms
        kept = max(map(abs, errors)) <= RATE_AIM and abs(rtt_error_ms) <= RTT_AIM_MS
        print(
            f"{up:g} and {down:g} Mbit/s, {delay_ms:g} ms each way: {measured.rate_up / 1e6:.4g} ({errors[0]:+.1%}), "
            f"{measured.rate_down / 1e6:.4g} ({errors[1]:+.1%}) Mbit/s, round trip {rtt_error_ms:+.2f} ms: "
            f"{'reached' if kept else 'missed'}"
        )
    for scenario, rate in _rates().items():
        published = PUBLISHED.get(scenario)
        aim = ""
        if published:
            error = rate / published - 1
            aim = f", published {published} ({error:+.1%}): {'reached' if abs(error) <= SOURCE_AIM else 'missed'}"
        print(f"{scenario}: {rate:.3g} msg/s{aim}")


def _rates() -> dict[str, float]:
    """Messages a second of each scenario of the profile, through the whole console."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "labconsole.cli.main", "run", "swim-my-sg-shaped", "--json"]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, env={**os.environ, "LABCONSOLE_HOME": folder}, check=True, text=True
        )
    runs = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"run"')]
    return {run["scenario"]: run["metrics"]["throughput"]["value"] for run in runs}


if __name__ == "__main__":
    main()
