"""How fast Tests 1-4 are through the whole console: `labconsole run`, embedded broker, 237 bytes, all samples stored.

    python tests/benchmarks/amqp_tests.py [--repeats 3] [--tests 1 2 3 4] [--set KEY=VALUE ...]

Prints each run, then medians with the required figures, and next to them how fast this machine signs at the same time
(RSA-2048, one thread): on a machine that does other work as well, only that ratio says something about Tests 3 and 4.
A figure of this machine at this moment, never a test.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from cryptography import __version__ as cryptography_version
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from proton import VERSION as PROTON_VERSION

COUNTS = {1: 600_000, 2: 600_000, 3: 15_000, 4: 8_000}
REQUIRED = {1: 60_000, 2: 60_000, 3: 3_000, 4: 1_500}
_SIGN_S = 1.0


def signatures_per_second() -> tuple[float, float]:
    """RSA-2048 signatures per second of one thread: by the clock, and by the CPU time it got."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    message, done = b"x" * 237, 0
    began, cpu = time.perf_counter(), time.thread_time()
    while time.perf_counter() - began < _SIGN_S:
        key.sign(message, PKCS1v15(), hashes.SHA256())
        done += 1
    return done / (time.perf_counter() - began), done / (time.thread_time() - cpu)


def profile(folder: Path, test: int) -> Path:
    """A profile with one scenario."""
    path = folder / f"test-{test}.toml"
    parameters = f'[parameters]\npayload = "fpl-tac"\ntest = {test}\ncount = {COUNTS[test]}\n'
    path.write_text(f'format = 1\nkind = "amqp.messaging"\n{parameters}')
    return path


def run(file: Path, home: Path, settings: list[str]) -> dict[str, Any]:
    """One run of the console: what `--json` prints, and the seconds that the command took."""
    command = [sys.executable, "-m", "labconsole.cli.main", "run", str(file), "--json"]
    for setting in settings:
        command += ["--set", setting]
    began = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, env={**os.environ, "LABCONSOLE_HOME": str(home)}, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result | {"seconds": time.perf_counter() - began}


def described(result: dict[str, Any]) -> str:
    """The figures of one run in a line."""
    metrics = {name: metric["value"] for name, metric in result["metrics"].items()}
    cpu = {m["labels"]["role"]: m["value"] for m in result["labelled_metrics"] if m["name"] == "cpu_per_message"}
    costs = " + ".join(f"{role} {value:.1f}" for role, value in cpu.items())
    return (
        f"{metrics['throughput']:10,.0f} msg/s, "
        f"p99 in queue {metrics['queue_time_p99']:8.1f} ms, lost {metrics['lost']:.0f}, "
        f"CPU {costs} us/msg, whole command {result['seconds']:.1f} s"
    )


def main() -> None:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tests", type=int, nargs="+", default=[1, 2, 3, 4], choices=COUNTS)
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    print(f"{platform.platform()}, {os.cpu_count()} CPUs, Python {platform.python_version()}, proton {PROTON_VERSION}")
    print(f"{ssl.OPENSSL_VERSION}, cryptography {cryptography_version}, numpy {np.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        for test in arguments.tests:
            file, rates, ratios = profile(Path(folder), test), [], []
            for _ in range(arguments.repeats):
                by_clock, by_cpu = signatures_per_second()
                load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
                result = run(file, Path(folder), arguments.settings)
                rates.append(result["metrics"]["throughput"]["value"])
                ratios.append(rates[-1] / by_clock)
                print(
                    f"Test {test}: {described(result)}; load {load:.1f}, one thread signs {by_clock:,.0f}/s "
                    f"({by_cpu:,.0f} per CPU second)",
                    flush=True,
                )
            median = statistics.median(rates)
            print(
                f"Test {test}: median {median:,.0f} msg/s (required on an idle machine {REQUIRED[test]:,}), "
                f"{statistics.median(ratios):.2f} messages per signature of one thread",
                flush=True,
            )


if __name__ == "__main__":
    main()
