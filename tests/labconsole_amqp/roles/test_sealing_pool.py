"""Messages sealed ahead by threads come out in order, whole, and with their faults."""

from __future__ import annotations

import threading
import time

import pytest

from labconsole_amqp.roles.sealing_pool import Sealed, SealedAhead


def sealed(sequence: int) -> Sealed:
    return Sealed(str(sequence).encode(), 0, 0, 0)


def take_all(ahead: SealedAhead, count: int) -> list[bytes]:
    taken: list[bytes] = []
    deadline = time.monotonic() + 10
    while len(taken) < count and time.monotonic() < deadline:
        taken += [item.message for item in ahead.take(7)]
        time.sleep(0.001)
    return taken


@pytest.mark.parametrize("threads", (1, 2, 8))
def test_they_come_in_order_whichever_is_ready_first(threads: int) -> None:
    def make(sequence: int) -> Sealed:
        time.sleep(0.003 if sequence % 3 == 0 else 0.0)
        return sealed(sequence)

    with SealedAhead(make, threads, lambda: None) as ahead:
        ahead.order(60)
        ahead.order(40)  # ordered already
        assert take_all(ahead, 60) == [str(sequence).encode() for sequence in range(60)]
        assert ahead.take(1) == []


def test_nothing_is_made_that_was_not_ordered() -> None:
    made: list[int] = []
    with SealedAhead(lambda sequence: made.append(sequence) or sealed(sequence), 2, lambda: None) as ahead:
        ahead.order(3)
        take_all(ahead, 3)
        time.sleep(0.02)
    assert sorted(made) == [0, 1, 2]


def test_whoever_waits_is_told_when_the_next_one_is_ready() -> None:
    told = threading.Event()
    with SealedAhead(sealed, 2, told.set) as ahead:
        assert ahead.take(1) == []
        ahead.order(1)
        assert told.wait(5)
        assert [item.message for item in ahead.take(5)] == [b"0"]


def test_a_fault_is_raised_where_the_message_was_to_be_taken() -> None:
    def make(sequence: int) -> Sealed:
        raise ValueError("no such key")

    told = threading.Event()
    with SealedAhead(make, 1, told.set) as ahead:
        ahead.order(1)
        assert told.wait(5)
        with pytest.raises(ValueError, match="no such key"):
            take_all(ahead, 1)
