"""Trends over time: the slope is found within its interval, and no trend is seen where there is none."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from labconsole.analysis.confidence_intervals import FEWEST_POINTS, trend

SERIES = 300


def noise(random: np.random.Generator, count: int, alike: float) -> NDArray[np.float64]:
    """Values with this correlation between neighbours, of which the first are dropped."""
    values = random.standard_normal(count + 50)
    for place in range(1, len(values)):
        values[place] += alike * values[place - 1]
    return values[50:]


def missed(count: int, alike: float, slope: float) -> float:
    """Share of series whose interval does not hold their slope."""
    random, times = np.random.default_rng(1), np.arange(count) / count
    found = (trend(times, noise(random, count, alike) + slope * times) for _ in range(SERIES))
    return float(np.mean([one is not None and not one.interval.holds(slope) for one in found]))


def test_the_slope_of_a_line_is_exact() -> None:
    times = np.linspace(0, 3, 30)
    found = trend(times, 5 - 2 * times)
    assert found is not None and found.certain
    assert (found.slope, found.interval.low, found.interval.high) == pytest.approx((-2, -2, -2))
    assert (found.middle, found.begin) == pytest.approx((2, 5))


def test_values_that_are_all_equal_have_no_trend() -> None:
    found = trend(np.arange(20), np.full(20, 7.0))
    assert found is not None and not found.certain
    assert (found.slope, found.middle) == (0, 7)


def test_a_few_outliers_hardly_change_the_slope() -> None:
    random, times = np.random.default_rng(3), np.arange(54) / 54
    values = 10 + 4 * times + 0.1 * random.standard_normal(54)
    values[random.choice(54, 6, replace=False)] += 500
    found = trend(times, values)
    assert found is not None and found.certain and found.interval.holds(4)
    assert found.slope == pytest.approx(4, abs=0.2)


def test_too_few_points_have_no_trend() -> None:
    times = np.arange(FEWEST_POINTS)
    assert trend(times[1:], times[1:]) is None
    assert trend(times, times) is not None


@pytest.mark.parametrize("count", (18, 54))
def test_the_interval_misses_the_slope_in_one_of_twenty_series(count: int) -> None:
    assert 0.005 < missed(count, 0.0, 3.0) < 0.08


@pytest.mark.parametrize("alike", (0.3, 0.6))
def test_neighbours_that_are_alike_widen_the_interval(alike: float) -> None:
    assert missed(54, alike, 0.0) < 0.11
