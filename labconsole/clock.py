"""The one clock: monotonic nanoseconds that all processes of one host share."""

from __future__ import annotations

import platform
import time
from datetime import UTC, datetime, timedelta

from labconsole.processes import boot_id

now_ns = time.perf_counter_ns
"""Monotonic time in ns; system-wide on Linux, macOS and Windows, so processes of one host can be compared."""


def wall_now() -> datetime:
    """The current wall time, UTC: a label for people and a part of wire formats, never a measure."""
    return datetime.now(UTC)


def wall_time(t_ns: int, offset_ns: int) -> datetime:
    """The wall time, UTC, of the moment `t_ns` of a clock whose `wall_offset_ns` was `offset_ns`; to 1 µs."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=(t_ns + offset_ns) // 1000)


def wall_offset_ns() -> int:
    """Nanoseconds to add to `now_ns()` to get Unix time (the best of five close readings)."""
    readings = []
    for _ in range(5):
        before = time.perf_counter_ns()
        wall = time.time_ns()
        after = time.perf_counter_ns()
        readings.append((after - before, wall - (before + after) // 2))
    return min(readings)[1]


def clock_domain() -> str:
    """Which clock `now_ns` reads: processes with the same one may compare their times without an offset.

    On Linux the id of this boot of this machine; elsewhere the name of the host.
    """
    return boot_id() or platform.node()
