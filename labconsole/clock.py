"""The one clock: monotonic nanoseconds that all processes of one host share."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from labconsole.processes import boot_id

SHIFT_VARIABLE = "LABCONSOLE_CLOCK_SHIFT"
"""Environment variable for tests of two consoles on one computer: `OFFSET_NS`, `OFFSET_NS,DRIFT_PPM`, or
`OFFSET_NS,DRIFT_PPM,JUMP_NS,AT_NS`, by which the clocks of this console differ from those of the computer: they jump by
JUMP_NS when the computer's monotonic clock is AT_NS."""
_TIME_ERROR = 5
"""What adjtimex returns where nothing keeps the clock right (TIME_ERROR)."""
AHEAD_VARIABLE = "LABCONSOLE_CLOCK_AHEAD_NS"
"""Environment variable of a role's process on another host: its clock less the console's, so that `now_ns` is near to
that of the console."""


def _clocks() -> tuple[Callable[[], int], Callable[[], int], str]:
    """The monotonic clock, the wall clock and the shift of `SHIFT_VARIABLE`, which is empty outside of tests."""
    shift, ahead_ns = os.environ.get(SHIFT_VARIABLE, ""), int(os.environ.get(AHEAD_VARIABLE, "0"))
    if not shift and not ahead_ns:
        return time.perf_counter_ns, time.time_ns, ""
    offset, drift, jump, at = (*shift.split(","), "", "", "", "")[:4]
    offset_ns, drift_ppb = int(offset or 0), round(float(drift or 0) * 1000)
    jump_ns, at_ns = int(jump or 0), int(at or 0)

    def shift_ns(t_ns: int) -> int:
        return offset_ns + t_ns * drift_ppb // 1_000_000_000 + (jump_ns if t_ns >= at_ns else 0)

    def monotonic_ns() -> int:
        t_ns = time.perf_counter_ns()
        return t_ns + shift_ns(t_ns) - ahead_ns

    def unix_ns() -> int:
        return time.time_ns() + shift_ns(time.perf_counter_ns())

    return monotonic_ns, unix_ns, shift


now_ns, wall_ns, _shift = _clocks()
"""Monotonic time in ns, system-wide on Linux, macOS and Windows, so that processes of one host can be compared; and
Unix time in ns, for the stamps of wire formats."""


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
        before = now_ns()
        wall = wall_ns()
        after = now_ns()
        readings.append((after - before, wall - (before + after) // 2))
    return min(readings)[1]


def clock_domain() -> str:
    """Which clock `now_ns` reads: processes with the same one may compare their times without an offset.

    On Linux the id of this boot of this machine; elsewhere the name of the host.
    """
    domain = boot_id() or platform.node()
    return f"{domain} shifted by {_shift}" if _shift else domain


def clock_source() -> str:
    """What the kernel counts time with, and whether something keeps the wall clock right, as in "tsc, synchronised"."""
    if sys.platform != "linux":
        return "source unknown"
    source = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    found = source.read_text().strip() if source.is_file() else "source unknown"
    return f"{found}, {'synchronised' if _is_synchronised() else 'not synchronised'}"


def _is_synchronised() -> bool:
    """Whether NTP or PTP keep the kernel's wall clock right (adjtimex)."""
    import ctypes

    state = (ctypes.c_char * 256)()  # a `struct timex` whose modes are 0: it is read and not changed
    return 0 <= int(ctypes.CDLL(None).adjtimex(state)) < _TIME_ERROR
