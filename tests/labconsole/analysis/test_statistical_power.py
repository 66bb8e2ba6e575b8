"""The statistics on runs whose truth is known: queues simulated by Lindley's recursion, samples of a run correlated."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from labconsole.analysis.confidence_intervals import ratio

PAIRS, RUNS, SAMPLES, WARM_UP = 300, 5, 3_000, 500
UTILISATION = 0.8


def waits(random: np.random.Generator, runs: int, service: float) -> NDArray[np.float64]:
    """Time in an M/M/1 queue at 80 % load, `service` its mean service time: runs x samples, after the warm-up.

    Lindley's recursion W' = max(0, W + S - A) is its random walk less the walk's smallest value so far.
    """
    served = random.exponential(service, (runs, SAMPLES))
    walk = np.cumsum(served - random.exponential(service / UTILISATION, (runs, SAMPLES)), axis=1)
    waited = walk - np.minimum(np.minimum.accumulate(walk, axis=1), 0.0)
    return (waited + served)[:, WARM_UP:]


def rate_of_changes(random: np.random.Generator, figure: str, slower: float) -> float:
    """Share of pairs of groups, five runs each, whose interval excludes no change."""
    figures = []
    for service in (1.0, slower):
        times = waits(random, PAIRS * RUNS, service)
        per_run = times.mean(axis=1) if figure == "mean" else np.quantile(times, 0.9, axis=1)
        figures.append(per_run.reshape(PAIRS, RUNS))
    found = [ratio(one.tolist(), two.tolist()) for one, two in zip(*figures, strict=True)]
    return sum(one is not None and one.interval is not None and not one.interval.holds(1.0) for one in found) / PAIRS


@pytest.mark.parametrize("figure", ["mean", "p90"])
def test_equal_groups_are_called_different_in_at_most_seven_of_a_hundred_pairs(figure: str) -> None:
    rate = rate_of_changes(np.random.default_rng(1), figure, slower=1.0)
    print(f"false alarms, {figure}: {rate:.1%} of {PAIRS} pairs")
    assert 0.01 <= rate <= 0.07, "far below 5 % would mean intervals that are wider than they say"


@pytest.mark.parametrize("figure", ["mean", "p90"])
def test_a_queue_that_takes_twice_as_long_is_found_in_nine_of_ten_pairs(figure: str) -> None:
    rate = rate_of_changes(np.random.default_rng(2), figure, slower=2.0)
    print(f"power at a factor of 2, {figure}: {rate:.1%} of {PAIRS} pairs")
    assert rate >= 0.90


def test_single_messages_as_the_unit_would_call_most_equal_pairs_different() -> None:
    """Why the run is the unit: the same test on the correlated samples themselves."""
    random = np.random.default_rng(3)
    alarms = 0
    for _ in range(30):
        one, two = waits(random, 2, 1.0)
        found = ratio(one.tolist(), two.tolist())
        alarms += found is not None and found.interval is not None and not found.interval.holds(1.0)
    assert alarms >= 20
