"""Which installed Python makes the environment: builds of one version differ by a third in speed, and so do trials.

A Python whose interpreter is a shared library of its own (pyenv's, `--enable-shared`) took 1.4 times the CPU time of
Debian's build of the same version; the whole test suite took 1.2 times.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

USUAL_FOLDERS = ("/usr/bin", "/usr/local/bin", "/opt/homebrew/bin")
WORTH_CHANGING = 1.15
"""A ratio of CPU times. Smaller ones are within what two series of measurements of the same Python differ by."""
ROUNDS = 7
PROBE_TIMEOUT_S = 20
PROBE = """
import ctypes, lzma, sqlite3, ssl, statistics, sys, sysconfig, time, zlib
from importlib.util import find_spec
from pathlib import Path

class Sample:
    def __init__(self, number):
        self.number, self.name = number, str(number)
    def value(self):
        return self.number * 1.5 if self.number & 1 else len(self.name)

def work():
    samples = [Sample(number) for number in range(10000)]
    return sum({sample.name: sample.value() for sample in samples}.values())

def seconds():
    begin = time.process_time()
    work()
    return time.process_time() - begin

usual = sys.implementation.name == "cpython" and sys.version_info.releaselevel == "final"
headers = Path(sysconfig.get_path("include"), "Python.h").is_file()
if not (usual and headers and find_spec("venv") and find_spec("ensurepip")):
    sys.exit(1)
print(statistics.median(seconds() for _ in range(5)))
"""
"""Prints the CPU time of some work in s, where this Python has what pip and the console need, and can compile."""


def fastest_python(started: str, folders: Iterable[str]) -> tuple[str, float]:
    """Return the Python to use instead of `started`, or itself, and how many times as fast it is.

    Only complete Pythons of the same minor version are considered, since the user chose the version. A shared computer
    changes its speed from second to second: each measurement is compared with one of `started` right before it, and
    the median of these ratios counts.
    """
    ratios = {python: speed_ratio(started, python) for python in installed_pythons(started, folders)}
    fastest = max(ratios, key=lambda python: ratios[python], default=started)
    return (fastest, ratios[fastest]) if ratios.get(fastest, 0) >= WORTH_CHANGING else (started, 1.0)


def speed_ratio(started: str, other: str) -> float:
    """Return how many times as fast `other` is; 0 where one of them is not usable."""
    ratios = []
    for _ in range(ROUNDS):
        started_time, other_time = cpu_time(started), cpu_time(other)
        if started_time is None or other_time is None:
            return 0.0
        ratios.append(started_time / other_time)
    return statistics.median(ratios)


def installed_pythons(started: str, folders: Iterable[str]) -> list[str]:
    """Return the other Pythons of this minor version in `folders`, each once."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    files = {path.resolve(): str(path) for folder in folders if (path := Path(folder, name)).is_file()}
    files.pop(Path(started).resolve(), None)
    return list(files.values())


def search_folders() -> list[str]:
    """Return where programs are looked for here: the search path, and the usual folders."""
    return [*filter(None, os.environ.get("PATH", "").split(os.pathsep)), *USUAL_FOLDERS]


def cpu_time(python: str) -> float | None:
    """Return the CPU time of the probe's work with this Python in s; None where it is not usable."""
    try:
        probe = subprocess.run([python, "-I", "-c", PROBE], capture_output=True, timeout=PROBE_TIMEOUT_S, check=True)
        time_s = float(probe.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):  # ValueError: a wrapper that prints something else
        return None
    return time_s if time_s > 0 else None
