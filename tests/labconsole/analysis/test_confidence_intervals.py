"""Intervals against figures that textbooks and R print for the same numbers."""

from __future__ import annotations

import math

import pytest

from labconsole.analysis.confidence_intervals import Interval, centre, holm, interval_of, ratio

SLEEP_1 = (0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0)
SLEEP_2 = (1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4)
"""Student's own data, which every copy of R brings as `sleep`."""


def _exp(values: tuple[float, ...]) -> list[float]:
    return [math.exp(value) for value in values]


def _logs(interval: Interval | None) -> tuple[float, float]:
    assert interval is not None
    return math.log(interval.low), math.log(interval.high)


def test_the_ratio_of_two_groups_is_welchs_test_on_the_logs() -> None:
    """R: `t.test(extra ~ group, data = sleep)`."""
    found = ratio(_exp(SLEEP_1), _exp(SLEEP_2))
    assert found is not None
    assert math.log(found.value) == pytest.approx(1.58)
    assert _logs(found.interval) == pytest.approx((-0.2054832, 3.3654832), abs=1e-6)
    assert found.p == pytest.approx(0.07939, abs=1e-5)


def test_turned_around_it_is_the_reciprocal_with_the_same_p() -> None:
    forth, back = ratio(_exp(SLEEP_1), _exp(SLEEP_2)), ratio(_exp(SLEEP_2), _exp(SLEEP_1))
    assert forth is not None and back is not None and forth.interval is not None and back.interval is not None
    assert back.value == pytest.approx(1 / forth.value)
    assert (back.interval.low, back.interval.high) == pytest.approx((1 / forth.interval.high, 1 / forth.interval.low))
    assert back.p == pytest.approx(forth.p)


def test_against_a_published_point_only_the_runs_vary() -> None:
    """R: `t.test(sleep$extra[11:20])`, on whose scale a published 1.0 is the zero."""
    found = ratio([1.0], _exp(SLEEP_2), point=True)
    assert found is not None
    assert _logs(found.interval) == pytest.approx((0.8976775, 3.7623225), abs=1e-6)
    assert found.p == pytest.approx(0.005076, abs=1e-6)


@pytest.mark.parametrize(
    ("reference", "other", "point"), [([2.0], [4.0, 4.1], False), ([4.0, 4.1], [2.0], False), ([2.0], [4.0], True)]
)
def test_one_run_has_a_ratio_but_no_interval(reference: list[float], other: list[float], point: bool) -> None:
    found = ratio(reference, other, point=point)
    assert found is not None and found.value == pytest.approx(2.0 if other[0] > 2 else 0.5, rel=0.02)
    assert (found.interval, found.p) == (None, None)


def test_groups_that_do_not_vary_differ_exactly_or_not_at_all() -> None:
    """Sizes of messages are the same in every run."""
    larger = ratio([282.0] * 5, [652.0] * 5)
    assert larger is not None and larger.interval is not None
    assert larger.interval.low == larger.interval.high == pytest.approx(652 / 282)
    assert larger.p == 0
    same = ratio([0.1] * 7, [0.1] * 3)
    assert same is not None and (same.value, same.interval, same.p) == (1.0, Interval(1.0, 1.0), 1.0)


def test_rounding_difference_is_not_a_difference() -> None:
    """A mean of equal sizes over more messages ends in another last digit."""
    rounded = 282.0 * (1 + 1e-15)
    for other in ([rounded] * 5, [282.0, rounded, 282.0, rounded, rounded]):
        found = ratio([282.0] * 5, other)
        assert found is not None and found.interval is not None
        assert (found.value, found.p) == (1.0, 1.0) and found.interval.holds(1.0)
    exact = interval_of([rounded] * 5)
    assert exact is not None and exact.holds(282.0) and not exact.holds(282.1)


def test_one_side_that_does_not_vary_leaves_the_freedom_of_the_other() -> None:
    constant, point = ratio([3.0] * 5, [3.1, 3.2, 3.3]), ratio([3.0], [3.1, 3.2, 3.3], point=True)
    assert constant == point


def test_ratio_to_zero_or_below_is_none() -> None:
    assert ratio([0.0, 1.0], [1.0, 2.0]) is None and ratio([1.0, 2.0], [-1.0, 2.0]) is None


def test_runs_that_differ_by_many_orders_are_compared() -> None:
    found = ratio([1e-300, 1e300], [1e-300, 1e300])
    assert found is not None and found.interval is not None
    assert 0 < found.interval.low < 1 < found.interval.high < math.inf


def test_centre_is_the_geometric_mean_or_the_mean_with_a_zero() -> None:
    assert centre([1.0, 100.0]) == pytest.approx(10.0)
    assert centre([0.0, 100.0]) == 50.0
    assert centre([0.1] * 3) == 0.1, "three tenths must not become 0.10000000000000002"


def test_the_interval_of_a_group_is_students() -> None:
    """1, 2, 3, 4, 5: mean 3, standard error 0.7071, t with 4 degrees of freedom 2.7764."""
    assert _logs(interval_of(_exp((1, 2, 3, 4, 5)))) == pytest.approx((3 - 1.963243, 3 + 1.963243), abs=1e-6)
    with_zero = interval_of([0, 1, 2, 3, 4])
    assert with_zero is not None
    assert (with_zero.low, with_zero.high) == pytest.approx((2 - 1.963243, 2 + 1.963243), abs=1e-6)
    assert interval_of([7.0]) is None and interval_of([]) is None
    assert interval_of([7.0, 7.0]) == Interval(7.0, 7.0)


def test_holm_steps_down_and_leaves_out_cells_without_a_test() -> None:
    assert holm([0.01, None, 0.04, 0.03, 0.005]) == [
        pytest.approx(0.03),
        None,
        pytest.approx(0.06),
        pytest.approx(0.06),
        pytest.approx(0.02),
    ]
    assert holm([0.9, 0.8]) == [1.0, 1.0] and holm([]) == [] and holm([None]) == [None]
