"""How figures are written for people: sensible digits, thousands separators, readable units."""

from __future__ import annotations

import math
from typing import Final

TIME_STEPS: Final = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
BYTE_STEPS: Final = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
EXACT_BYTES: Final = 100_000
"""Sizes below are written to the byte: message sizes are compared exactly."""
NO_FIGURE: Final = "–"


def format_number(value: float) -> str:
    """`value` with four significant digits, whole numbers in full: `12,345`, `1.235`, `0.01235`."""
    if math.isnan(value):
        return NO_FIGURE
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    magnitude = math.floor(math.log10(abs(value)))
    if magnitude < -6:
        return f"{value:.3e}"
    return f"{value:,.{max(0, 3 - magnitude)}f}"


def readable(value: float, unit: str) -> tuple[float, str]:
    """`value` in the unit in which people read it: ns become µs, ms or s; many bytes become kB, MB or GB."""
    steps = TIME_STEPS if unit == "ns" else BYTE_STEPS if unit == "B" and abs(value) >= EXACT_BYTES else ()
    for size, name in steps:
        if abs(value) >= size:
            return value / size, name
    return value, unit


def format_figure(value: float | None, unit: str) -> str:
    """`value` with its unit, `–` where there is none: `1.235 ms`, `60,123 msg/s`, `42,756 B`, `12.50 %`."""
    if value is None or math.isnan(value):
        return NO_FIGURE
    scaled, shown = readable(value, unit)
    return f"{format_number(scaled)} {shown}" if shown else format_number(scaled)


def format_difference(percent: float | None) -> str:
    """A difference in % with its sign: `+12.3 %`, `-4.1 %`, `0.0 %`; `–` where there is none."""
    if percent is None or math.isnan(percent):
        return NO_FIGURE
    if abs(percent) < 0.05:
        return "0.0 %"
    return f"{percent:+,.1f} %" if abs(percent) < 1000 else f"{percent:+,.0f} %"


def format_duration(seconds: float | None) -> str:
    """A span of time as people say it: `0.42 s`, `12.3 s`, `3 min 05 s`, `2 h 07 min`."""
    if seconds is None:
        return NO_FIGURE
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"
