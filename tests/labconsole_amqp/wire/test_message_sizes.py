"""Sizes from a distribution: what the sizes stand for, and an order that is the same on every computer."""

from __future__ import annotations

import numpy as np
import pytest

from labconsole_amqp.wire.envelope import message_number
from labconsole_amqp.wire.message_sizes import QUANTILES, DrawnOrder, log_normal_sizes, uniform_sizes


def mean(shares: dict[int, float]) -> float:
    return sum(size * share for size, share in shares.items())


def test_uniform_sizes_are_even_between_the_two() -> None:
    sizes = uniform_sizes(100, 10_000)
    assert len(sizes) == QUANTILES
    assert mean(sizes) == pytest.approx(5_050, rel=0.001)
    assert np.ptp(np.diff(list(sizes))) <= 1
    assert min(sizes) - 100 == pytest.approx(10_000 - max(sizes), abs=1)


def test_log_normal_sizes_have_median_and_spread_and_end_at_the_bounds() -> None:
    sizes = log_normal_sizes(1_000, 2.0, 1, 1_000_000)
    below = sum(share for size, share in sizes.items() if size < 1_000)
    within = sum(share for size, share in sizes.items() if 500 <= size <= 2_000)
    assert (below, within) == (0.5, pytest.approx(0.68, abs=0.02))
    bounded = log_normal_sizes(1_000, 2.0, 600, 1_500)
    assert (min(bounded), max(bounded)) == (600, 1_500)
    assert bounded[600] > 0.2 and sum(bounded.values()) == 1


def test_equal_sizes_are_one_with_the_share_of_all() -> None:
    assert uniform_sizes(7, 7) == {7: 1.0}
    assert sum(uniform_sizes(10, 12).values()) == 1


def test_order_is_that_of_the_number_alone_and_has_the_shares() -> None:
    order = DrawnOrder((60.0, 30.0, 10.0), seed=1)
    numbers = np.arange(message_number(0, 0), message_number(0, 100_000))
    places = order.places(numbers)
    assert np.bincount(places) / 100_000 == pytest.approx([0.6, 0.3, 0.1], abs=0.005)
    assert [order.place(number) for number in numbers[:1_000].tolist()] == places[:1_000].tolist()
    assert order.places(numbers[500:600]).tolist() == places[500:600].tolist(), "from any message on"
    assert places[:20].tolist() == [0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 2, 0, 0, 1, 1, 0], (
        "the other console may run another version of anything"
    )


@pytest.mark.parametrize("other", [{"seed": 2}, {"sender": 1}], ids=("seed", "sender"))
def test_another_seed_or_sender_has_another_order(other: dict[str, int]) -> None:
    def drawn(seed: int = 1, sender: int = 0) -> list[int]:
        numbers = np.arange(message_number(sender, 0), message_number(sender, 2_000))
        return DrawnOrder([1.0] * QUANTILES, seed).places(numbers).tolist()

    first, second = np.array(drawn()), np.array(drawn(**other))
    assert np.mean(first == second) == pytest.approx(1 / QUANTILES, abs=0.02)
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.08
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 0.08


def test_a_share_may_be_tiny() -> None:
    order = DrawnOrder((100.0, 1e-15), seed=1)
    assert order.place(message_number(0, 0)) == 0
    assert not order.places(np.arange(1_000)).any()


def test_one_share_is_always_drawn() -> None:
    order = DrawnOrder((1.0,), 1)
    assert order.place(5) == 0
    assert order.places(np.arange(5)).tolist() == [0] * 5
