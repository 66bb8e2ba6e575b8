"""Ticks and number ranges of axes, for the plots of the window and the charts of the report alike."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from labconsole.analysis.distributions import LAST_PERCENTILE
from labconsole.analysis.number_format import format_number

PERCENTILES = (0.0, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, LAST_PERCENTILE)
"""Fractions that have a tick on an axis of percentiles."""
HEADROOM = 1.06
"""Free room at the end of an axis that does not end at a round value: part of the largest value."""
_EDGE = 1e-9
"""A tick that is so little beyond the end of its axis (part of a step) is on it."""


def round_step(span: float, most: int) -> float:
    """The smallest step of 1, 2 or 5 times a power of ten that divides `span` into at most `most` steps."""
    raw = span / most
    power = 10.0 ** math.floor(math.log10(raw))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * (1 - _EDGE))


def linear_ticks(low: float, high: float, most: int) -> list[float]:
    """Round values from `low` to `high`, at most `most` steps; `high` is not 0 where both are equal."""
    step = round_step(max(high - low, abs(high) * _EDGE), most)
    return [step * number for number in range(math.ceil(low / step - _EDGE), math.floor(high / step + _EDGE) + 1)]


def log_ticks(low: float, high: float, digits: Sequence[float] = (1,)) -> list[float]:
    """Values from `low` to `high` (both above 0) that are one of `digits` times a power of ten."""
    exponents = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    values = (digit * 10.0**exponent for exponent in exponents for digit in digits)
    return [value for value in values if low * (1 - _EDGE) <= value <= high * (1 + _EDGE)]


def round_range(low: float, high: float) -> tuple[float, float]:
    """A linear range that includes zero and both, and ends at round values."""
    low, high = min(0.0, low), max(0.0, high)
    if low == high:
        return 0.0, 1.0
    step = round_step(high - low, 5)
    return math.floor(low / step + _EDGE) * step, math.ceil(high / step - _EDGE) * step


def log_range(low: float, high: float) -> tuple[float, float]:
    """A logarithmic range (both above 0) that begins and ends at 1, 2 or 5 times a power of ten."""
    first = log_ticks(low / 10, low, (1, 2, 5))[-1]
    last = log_ticks(high, high * 10, (1, 2, 5))[0]
    return (first, last) if last > first else (first, last * 2)


def headroom_range(values: Iterable[float]) -> tuple[float, float]:
    """A linear range that includes zero and all `values`, with `HEADROOM` at its ends."""
    ends = [0.0, *values]
    low, high = min(ends) * HEADROOM, max(ends) * HEADROOM
    return low, high if high > low else low + 1.0


def percentile_positions(fractions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Positions on an axis on which p90, p99 and p99.9 are equally far apart; p99.9 is the last."""
    return -np.log10(1.0 - np.minimum(fractions, LAST_PERCENTILE))


def percentile_text(position: float) -> str:
    """The percentile at a position of that axis: `p99.9`."""
    return f"p{100.0 * (1.0 - 10.0**-position):.4g}"


def tick_text(value: float) -> str:
    """A tick's value without superfluous digits, with a true minus sign."""
    text = format_number(float(f"{value:.6g}"))
    return (text.rstrip("0").rstrip(".") if value % 1 else text).replace("-", "−")
