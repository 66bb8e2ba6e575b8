"""Intervals: of repeats, of the ratio of two groups (Welch on the logs), of a trend over time; Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import ArrayLike, NDArray

LEVEL = 0.95
"""Level of all intervals."""

_UPPER = 1 - (1 - LEVEL) / 2
_FARTHEST = 700.0
_ROUNDING = 1e-9
"""Figures that differ by a smaller share differ by how they were added up."""
FEWEST_POINTS = 10
"""The least points of a trend: of fewer, the interval's normal approximation is not good enough."""
_LARGEST_CORRELATION = 0.95
"""Of neighbours; values that are alike to a larger extent would have no interval at all."""


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


@dataclass(frozen=True)
class Trend:
    """A slope with its interval at `LEVEL`, in the unit of the values per unit of time.

    `middle` is the median of the values, and `begin` what the line through them has at time 0.
    """

    slope: float
    interval: Interval
    middle: float
    begin: float

    @property
    def certain(self) -> bool:
        """Whether the interval says in which direction the values move."""
        return not self.interval.holds(0.0)


def trend(times: ArrayLike, values: ArrayLike) -> Trend | None:
    """The trend of `values` over different, rising `times`; None with less than `FEWEST_POINTS`.

    The slope is the median of those between any two points (Theil and Sen), which a few outliers do not change; its
    interval is Sen's (1968), from the variance of Kendall's S. Neighbours that are alike carry less than as many
    independent points: the variance allows for it (Yue and Wang, 2004).
    """
    x, y = np.asarray(times, np.float64), np.asarray(values, np.float64)
    count = len(x)
    if count < FEWEST_POINTS:
        return None
    earlier, later = np.triu_indices(count, 1)
    slopes = np.sort((y[later] - y[earlier]) / (x[later] - x[earlier]))
    slope = float(np.median(slopes))
    reach = _normal_quantile() * math.sqrt(_variance_of_s(y - slope * x))
    low = max(0, math.floor((len(slopes) - reach) / 2))
    high = min(len(slopes) - 1, math.ceil((len(slopes) + reach) / 2))
    interval = Interval(float(slopes[low]), float(slopes[high]))
    return Trend(slope, interval, float(np.median(y)), float(np.median(y - slope * x)))


def _variance_of_s(rest: NDArray[np.float64]) -> float:
    """The variance of Kendall's S of values without their trend, which is larger where neighbours are alike.

    The correlation of the ranks of neighbours represents that of all distances, as in a process of first order; it is
    corrected for its bias in short series from which a trend was taken.
    """
    count = len(rest)
    variance = count * (count - 1) * (2 * count + 5) / 18
    ranks = _ranks(rest) - (count + 1) / 2
    power = float(ranks @ ranks)
    if power == 0:
        return variance
    correlation = float(ranks[1:] @ ranks[:-1]) / power
    correlation = min(max(0.0, correlation + (2 + 4 * correlation) / count), _LARGEST_CORRELATION)
    lags = np.arange(1, count)
    return variance * (1 + 2 * float((1 - lags / count) @ correlation**lags))


def _ranks(values: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """The rank of each value from 1, the mean rank where several are equal."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[place], np.float64)


def _normal_quantile() -> float:
    """The quantile of the normal distribution for a two-sided interval at `LEVEL`."""
    from scipy.special import ndtri

    return float(ndtri(_UPPER))
