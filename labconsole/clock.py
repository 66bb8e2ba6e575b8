"""The one clock: monotonic nanoseconds that all processes of one host share."""

from __future__ import annotations

import time
from datetime import UTC, datetime

now_ns = time.perf_counter_ns
"""Monotonic time in ns; system-wide on Linux, macOS and Windows, so processes of one host can be compared."""


def wall_now() -> datetime:
    """The current wall time, UTC: a label for people and a part of wire formats, never a measure."""
    return datetime.now(UTC)


def wall_offset_ns() -> int:
    """Nanoseconds to add to `now_ns()` to get Unix time (the best of five close readings)."""
    readings = []
    for _ in range(5):
        before = time.perf_counter_ns()
        wall = time.time_ns()
        after = time.perf_counter_ns()
        readings.append((after - before, wall - (before + after) // 2))
    return min(readings)[1]
