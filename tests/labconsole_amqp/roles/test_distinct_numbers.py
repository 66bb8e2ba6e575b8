"""Distinct numbers of messages: counted as a set counts them, in memory that does not grow with messages in order."""

from __future__ import annotations

import numpy as np
import pytest

from labconsole_amqp.roles.receiver_role import DistinctNumbers


@pytest.mark.parametrize("seed", range(20))
def test_numbers_in_any_order_are_counted_once(seed: int) -> None:
    random = np.random.default_rng(seed)
    numbers, known = DistinctNumbers(), set[int]()
    for _ in range(200):
        senders = (random.integers(0, 3, random.integers(0, 40)) + 1) << 40
        batch = senders + random.integers(0, 400, len(senders))
        if seed % 2:
            batch[: len(batch) // 8] = -1
        numbers.add(batch)
        known.update(batch.tolist())
        assert numbers.count == len(known)


def test_hours_of_messages_in_order_take_no_more_memory_than_a_second() -> None:
    numbers = DistinctNumbers()
    for first in range(0, 1_000_000, 500):
        batch = np.arange(first, first + 500)
        numbers.add(np.concatenate(((1 << 40) + batch, (2 << 40) + batch))[::-1])
    assert numbers.count == 2_000_000
    assert len(numbers._begins) == len(numbers._ends) == 2
