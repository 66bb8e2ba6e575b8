"""Formats of figures for people: significant digits, thousands separators, readable units."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from labconsole.model.metrics import Metric

TIME_STEPS: Final = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
BYTE_STEPS: Final = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
EXACT_BYTES: Final = 100_000
"""Sizes below are written to the byte: message sizes are compared exactly."""
NO_FIGURE: Final = "–"
FACTOR_FROM: Final = 10.0
"""Beyond this factor a change is written as a factor, below in %."""
_TIME_UNITS: Final = ("ns", "us", "ms", "s")
_SPELLED: Final = {"us": "µs"}
_LEAST_OF_A_UNIT, _STEP = 0.1, 1000.0
_READABLE_FROM, _READABLE_BELOW = 1e-6, 1e12


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
    """`value` in a readable unit: ns become µs, ms or s; many bytes become kB, MB or GB."""
    steps = TIME_STEPS if unit == "ns" else BYTE_STEPS if unit == "B" and abs(value) >= EXACT_BYTES else ()
    for size, name in steps:
        if abs(value) >= size:
            return value / size, name
    return value, unit


@dataclass(frozen=True)
class Scale:
    """The unit in which a row is written: a stored value times `factor` is in `unit`."""

    factor: float
    unit: str

    def number(self, value: float | None, uncertainty: float = 0.0) -> str:
        """`value`, which is in the stored unit, without its unit; `–` where there is none: `40.65`, `40.65 ± 0.12`."""
        if value is None:
            return NO_FIGURE
        return f"{format_number(value * self.factor)}{self.within(uncertainty)}"

    def within(self, uncertainty: float) -> str:
        """What follows a number that is uncertain by so much: ` ± 0.12`; nothing where it is not."""
        shown = uncertainty * self.factor
        readable = _READABLE_FROM <= shown < _READABLE_BELOW
        return f" ± {format_factor(shown, 2) if readable else f'{shown:.1e}'}" if uncertainty else ""

    def figure(self, value: float | None, uncertainty: float = 0.0) -> str:
        """The same with the unit: `40.65 s`."""
        number = self.number(value, uncertainty)
        return number if value is None or not self.unit else f"{number} {self.unit}"


def row_scale(values: Iterable[float | None], unit: str) -> Scale:
    """One readable unit for all values of a row, by the largest: times become ns, µs, ms or s, bytes kB, MB or GB.

    A time stays in its stored unit from 0.1 to 1,000 of it, so that neighbouring rows have the same unit.
    """
    largest = max((abs(value) for value in values if value is not None and math.isfinite(value)), default=0.0)
    if unit not in _TIME_UNITS:
        scaled, shown = readable(largest, unit)
        return Scale(scaled / largest if largest else 1.0, shown)
    place, factor = _TIME_UNITS.index(unit), 1.0
    while largest * factor >= _STEP and place < len(_TIME_UNITS) - 1:
        place, factor = place + 1, factor / _STEP
    while 0 < largest * factor < _LEAST_OF_A_UNIT and place > 0:
        place, factor = place - 1, factor * _STEP
    return Scale(factor, _SPELLED.get(_TIME_UNITS[place], _TIME_UNITS[place]))


def format_figure(value: float | None, unit: str) -> str:
    """`value` with a readable unit, `–` where there is none: `1.235 ms`, `40.65 s`, `60,123 msg/s`, `12.50 %`."""
    if value is None or math.isnan(value):
        return NO_FIGURE
    return row_scale((value,), unit).figure(value)


def format_metric(metric: Metric) -> str:
    """The same of a run's figure, with its uncertainty: `40.65 ± 0.12 s`."""
    return row_scale((metric.value,), metric.unit).figure(metric.value, metric.uncertainty)


def format_difference(percent: float | None) -> str:
    """A difference in % with its sign: `+12.3 %`, `-4.1 %`, `+207 %`, `0.0 %`; `–` where there is none."""
    if percent is None or math.isnan(percent):
        return NO_FIGURE
    if abs(percent) < 0.05:
        return "0.0 %"
    return f"{percent:+,.1f} %" if abs(percent) < 100 else f"{percent:+,.0f} %"


def format_change(ratio: float) -> str:
    """A change to `ratio` of the reference: `+12.3 %`, `-74 %`, and beyond a factor of 10 `× 5,400` or `÷ 53.1`."""
    factor = max(ratio, 1 / ratio)
    if factor <= FACTOR_FROM:
        return format_difference((ratio - 1) * 100)
    return f"{'×' if ratio > 1 else '÷'} {format_factor(factor)}"


def format_factor(factor: float, digits: int = 3) -> str:
    """A factor above 0 with so many digits: `1.53`, `53.1`, `5,420`."""
    decimals = digits - 1 - math.floor(math.log10(factor))
    return f"{round(factor, decimals):,.{max(0, decimals)}f}"


def format_duration(seconds: float | None) -> str:
    """A span of time in readable units: `0.42 s`, `12.3 s`, `3 min 05 s`, `2 h 07 min`."""
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
