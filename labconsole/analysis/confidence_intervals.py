"""Intervals: of a group of repeats, and of the ratio of two groups (Welch on the logs); Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

LEVEL = 0.95
"""Level of all intervals."""

_UPPER = 1 - (1 - LEVEL) / 2
_FARTHEST = 700.0
_ROUNDING = 1e-9
"""Figures that differ by a smaller share differ by how they were added up."""


@dataclass(frozen=True)
class Interval:
    """From `low` to `high` at `LEVEL`, in the unit of what it is of (a ratio: no unit)."""

    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Whether the interval holds `value`, apart from rounding."""
        slack = _ROUNDING * max(abs(self.low), abs(self.high))
        return self.low - slack <= value <= self.high + slack


@dataclass(frozen=True)
class Ratio:
    """`value` is other / reference; `interval` and `p` (two-sided, of no change) are None where they cannot be had."""

    value: float
    interval: Interval | None
    p: float | None


@dataclass(frozen=True)
class _Mean:
    """A mean, the square of its standard error, and the degrees of freedom behind that (0: none is known)."""

    value: float
    squared_error: float
    freedom: int


def centre(values: Sequence[float]) -> float:
    """What a group of runs shows: the geometric mean, or the mean where a value is not positive."""
    if len(set(values)) == 1:
        return values[0]
    return math.exp(fmean(map(math.log, values))) if _positive(values) else fmean(values)


def interval_of(values: Sequence[float]) -> Interval | None:
    """Student's interval of the geometric mean (of the mean where a value is not positive); None below two values.

    Values that are all equal are taken as exact: the interval has no width.
    """
    if len(values) < 2:
        return None
    if len(set(values)) == 1:
        return Interval(values[0], values[0])
    logs = _positive(values)
    mean = _mean([math.log(value) for value in values] if logs else values)
    reach = _t(mean.freedom) * math.sqrt(mean.squared_error)
    low, high = mean.value - reach, mean.value + reach
    return Interval(_exp(low), _exp(high)) if logs else Interval(low, high)


def ratio(reference: Sequence[float], other: Sequence[float], *, point: bool = False) -> Ratio | None:
    """Ratio of the geometric means with Welch's interval on the logs; None where a value is not positive.

    A side of one value is one run, and there is no interval; with `point` it is a published figure, which counts as
    exact, so that the interval is that of the other side. Groups that do not vary at all differ exactly or not at all.
    """
    if not _positive([*reference, *other]):
        return None
    one, two = (_mean([math.log(value) for value in values]) for values in (reference, other))
    difference = two.value - one.value
    if abs(difference) < _ROUNDING:
        difference = 0.0
    measured = [side for side in (one, two) if side.freedom]
    if len(measured) < (1 if point else 2):
        return Ratio(_exp(difference), None, None)
    squared = one.squared_error + two.squared_error
    if squared == 0:
        return Ratio(_exp(difference), Interval(_exp(difference), _exp(difference)), float(difference == 0))
    freedom = squared**2 / sum(side.squared_error**2 / side.freedom for side in measured)
    error = math.sqrt(squared)
    reach = _t(freedom) * error
    return Ratio(
        _exp(difference),
        Interval(_exp(difference - reach), _exp(difference + reach)),
        _two_sided(difference / error, freedom),
    )


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjustment; None stays None and does not count."""
    adjusted: list[float | None] = [None] * len(p_values)
    tested = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    reached = 0.0
    for rank, (p, index) in enumerate(tested):
        reached = max(reached, min(1.0, (len(tested) - rank) * p))
        adjusted[index] = reached
    return adjusted


def _positive(values: Sequence[float]) -> bool:
    return all(value > 0 for value in values)


def _mean(values: Sequence[float]) -> _Mean:
    """Equal values give exactly their value and no error: rounding in a sum would leave traces of both."""
    freedom = len(values) - 1
    if len(set(values)) == 1:
        return _Mean(values[0], 0.0, freedom)
    mean = fmean(values)
    variance = math.fsum((value - mean) ** 2 for value in values) / freedom
    return _Mean(mean, variance / len(values), freedom)


def _exp(value: float) -> float:
    """Two runs that differ by orders of magnitude have an interval that no float holds: it ends where those do."""
    return math.exp(min(max(value, -_FARTHEST), _FARTHEST))


def _t(freedom: float) -> float:
    """The quantile of Student's t for a two-sided interval at `LEVEL`."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, _UPPER))


def _two_sided(t: float, freedom: float) -> float:
    """Probability of a Student's t farther from zero than `t`."""
    from scipy.special import stdtr

    return 2.0 * float(stdtr(freedom, -abs(t)))
