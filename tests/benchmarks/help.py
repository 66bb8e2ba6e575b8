"""Measure how long the help of the command line takes, next to a Python that does nothing.

Run it with `python tests/benchmarks/help.py`. Calls of all commands take turns, so that other work slows
all of them; the fastest of each is the one that was disturbed least.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from labconsole.engine.provenance import provenance

CALLS = 20
CONSOLE = ("-m", "labconsole.cli.main")
COMMANDS = {
    "python -c pass": ("-c", "pass"),
    "labconsole --help": (*CONSOLE, "--help"),
    "labconsole pki --help": (*CONSOLE, "pki", "--help"),
    "labconsole hsm --help": (*CONSOLE, "hsm", "--help"),
    "labconsole run --help": (*CONSOLE, "run", "--help"),
}


def main() -> None:
    """Print the fastest and the median of each command."""
    said = provenance(0, 0)
    print(f"{said['cpu']}, {said['cores']} cores, {said['os']}, Python {said['python']}")
    took: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(CALLS):
        for name, arguments in COMMANDS.items():
            begun = time.perf_counter()
            subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
            took[name].append(time.perf_counter() - begun)
    for name, times in took.items():
        print(f"{name:24} {min(times) * 1000:6.0f} ms fastest, {statistics.median(times) * 1000:6.0f} ms median")


if __name__ == "__main__":
    main()
