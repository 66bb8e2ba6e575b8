"""The environment of a run: versions, machine, operating system, revision of the console, clock."""

from __future__ import annotations

import os
import platform
import ssl
import subprocess
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil
from cryptography.hazmat.backends.openssl import backend

from labconsole import __version__
from labconsole.clock import clock_source, wall_offset_ns

_PACKAGES = (
    "cryptography",
    "numpy",
    "pydantic",
    "python-pkcs11",
    "python-qpid-proton",
    "sqlalchemy",
    "zstandard",
    "PySide6-Essentials",
)


def provenance(seed: int, live_hz: float) -> dict[str, Any]:
    """The surroundings of a run, plain JSON. `live_hz` is the refresh rate of the live view in Hz (0: none).

    When that is switched in mid-run, `live_view_hz_later` is added at the end: the later rates, in their order.
    """
    return {**surroundings(), "seed": seed, "live_view_hz": live_hz}


def surroundings() -> dict[str, Any]:
    """What a host is and has, now, plain JSON."""
    return {
        "console": __version__,
        "revision": _revision(),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "packages": {name: found for name in _PACKAGES if (found := _version(name))},
        "openssl": {"python": ssl.OPENSSL_VERSION, "cryptography": backend.openssl_version_text()},
        "host": platform.node(),
        "os": _os_name(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": _cpu_name(),
        "cores": psutil.cpu_count(logical=True),
        "memory_bytes": psutil.virtual_memory().total,
        "load_average_before": [round(load, 2) for load in psutil.getloadavg()],
        "clock": "time.perf_counter_ns, shared by all processes of this host",
        "clock_source": clock_source(),
        "wall_offset_ns": wall_offset_ns(),
    }


@cache
def _version(package: str) -> str | None:
    """The version of a package, read once: to parse the metadata of all of them takes 9 ms."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@cache
def _revision() -> str:
    """The git revision of a checkout, with `+` when files were changed; "release" outside of a checkout.

    Read once: it is that of the code which this process has imported.
    """
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return "release"
    command = ["git", "-C", str(root), "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, stdin=subprocess.DEVNULL, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return f"unknown ({type(error).__name__})"
    return done.stdout.strip()


def _os_name() -> str:
    if sys.platform == "linux":
        try:
            return platform.freedesktop_os_release()["PRETTY_NAME"]
        except OSError:
            return platform.platform()
    return platform.platform()


def _cpu_name() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or os.environ.get("PROCESSOR_IDENTIFIER", "unknown")
