"""The search for the highest rate that keeps a limit."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from labconsole_amqp.trial.rate_search import HIGHEST_RATE, LOWEST_RATE, RateSearch


def searched(keeps: Callable[[float], bool], first: float = 400.0) -> tuple[RateSearch, list[float]]:
    search, tried = RateSearch(first), []
    while (rate := search.next) is not None:
        tried.append(rate)
        search.record(keeps(rate))
    return search, tried


@pytest.mark.parametrize("capacity", [6.0, 399.0, 400.0, 12_345.0, 700_000.0])
@pytest.mark.parametrize("first", [1.0, 400.0, 50_000.0])
def test_it_finds_the_capacity_within_a_tenth(capacity: float, first: float) -> None:
    search, tried = searched(lambda rate: rate <= capacity, first)
    assert capacity / 1.1 <= search.found <= capacity
    assert tried.count(search.found) >= 2, "it is confirmed"
    assert len(tried) <= 40


def test_one_failure_by_chance_does_not_end_it() -> None:
    stalls = iter([False, True, False, False, True, *[False] * 40])
    search, _ = searched(lambda rate: rate <= 5_000 and not next(stalls))
    assert 5_000 / 1.1 <= search.found <= 5_000


def test_a_rate_that_passed_by_luck_is_not_found() -> None:
    """Above 1,000 a step passes now and then; the found rate has passed once more at the end."""
    chance = random.Random(7)
    found = [searched(lambda rate: rate <= 1_000 or chance.random() < 0.1)[0].found for _ in range(200)]
    assert sum(rate <= 1_100 for rate in found) > 100
    assert all(rate > 900 for rate in found)


def test_nothing_found_and_no_end() -> None:
    none, tried = searched(lambda rate: False)
    assert none.found == 0 and tried[-1] == LOWEST_RATE
    every, tried = searched(lambda rate: True)
    assert every.found == HIGHEST_RATE and tried[-2:] == [HIGHEST_RATE] * 2
