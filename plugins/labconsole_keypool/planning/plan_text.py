"""The planner's figures as people read them, in the window and at the terminal."""

from __future__ import annotations

import math

from labconsole.analysis.number_format import format_duration, format_number
from labconsole_keypool.planning.generation_plan import Window
from labconsole_keypool.planning.plan_cell import Cell

_LONG_S = 60
_COUNTED = ("requests", "keys", "HSMs")
_PER_SECOND = {"s": 1.0, "ms": 1000.0}


def figure_text(value: float, unit: str) -> str:
    """`39,025 ms`, `1.645 requests/s`, `210,000 ms (3 min 30 s)`, `never`."""
    if math.isinf(value):
        return "never"
    rounded = round(value) if abs(value) >= 10_000 else value
    counted = unit.removesuffix("s") if value == 1 and unit in _COUNTED else unit
    text = f"{format_number(rounded)} {counted}".rstrip()
    per_second = _PER_SECOND.get(unit)
    if per_second and value / per_second >= _LONG_S:
        text += f" ({format_duration(value / per_second)})"
    return text


def cell_text(cell: Cell, unit: str) -> str:
    """A cell's figure, with the origin where a run found it; or why there is none."""
    if cell.value is None:
        return f"– {cell.note}"
    origin = f", {cell.origin}" if cell.origin is not None else ""
    return f"{figure_text(cell.value, unit)}{origin}"


def window_texts(window: Window) -> tuple[str, str, str, str]:
    """When it begins and ends, the keys to be made of those that it has time for, and the pool at its end."""
    return (
        f"{window.begin:%a %d %b %H:%M}",
        f"{window.end:%a %d %b %H:%M}",
        f"{window.keys:,} of {window.capacity:,}",
        f"{window.pool:,}",
    )
