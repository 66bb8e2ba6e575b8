"""The sealing pool returns messages in order and whole, and raises faults of its threads."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from labconsole_amqp.roles.sealing_pool import SealedMessage, SealingPool
from tests.labconsole_amqp.lab import run


def sealed(sequence: int) -> SealedMessage:
    return SealedMessage(str(sequence).encode(), 0, 0, 0)


def take_all(ahead: SealingPool, count: int) -> list[bytes]:
    taken: list[bytes] = []
    deadline = time.monotonic() + 10
    while len(taken) < count and time.monotonic() < deadline:
        taken += [item.message for item in ahead.take(7)]
        time.sleep(0.001)
    return taken


@pytest.mark.parametrize("threads", (1, 2, 8))
def test_sealed_messages_are_returned_in_order(threads: int) -> None:
    def make(sequence: int) -> SealedMessage:
        time.sleep(0.003 if sequence % 3 == 0 else 0.0)
        return sealed(sequence)

    with SealingPool(make, threads, lambda: None) as ahead:
        ahead.order(60)
        ahead.order(40)  # ordered already
        assert take_all(ahead, 60) == [str(sequence).encode() for sequence in range(60)]
        assert ahead.take(1) == []


def test_only_ordered_messages_are_sealed() -> None:
    made: list[int] = []
    with SealingPool(lambda sequence: made.append(sequence) or sealed(sequence), 2, lambda: None) as ahead:
        ahead.order(3)
        take_all(ahead, 3)
        time.sleep(0.02)
    assert sorted(made) == [0, 1, 2]


def test_waiters_are_notified_when_the_next_message_is_ready() -> None:
    notified = threading.Event()
    with SealingPool(sealed, 2, notified.set) as ahead:
        assert ahead.take(1) == []
        ahead.order(1)
        assert notified.wait(5)
        assert [item.message for item in ahead.take(5)] == [b"0"]


def test_a_fault_in_a_thread_is_raised_by_take() -> None:
    def make(sequence: int) -> SealedMessage:
        raise ValueError("no such key")

    notified = threading.Event()
    with SealingPool(make, 1, notified.set) as ahead:
        ahead.order(1)
        assert notified.wait(5)
        with pytest.raises(ValueError, match="no such key"):
            take_all(ahead, 1)


def test_gathering_ends_with_enough_messages_or_with_its_time() -> None:
    blocked = threading.Event()

    def make(sequence: int) -> SealedMessage:
        if sequence == 4:
            blocked.wait(10)
        return sealed(sequence)

    with SealingPool(make, 1, lambda: None) as ahead:
        ahead.order(8)
        began = time.monotonic()
        ahead.gather(4, 10.0)
        assert time.monotonic() - began < 5
        ahead.gather(5, 0.05)
        assert time.monotonic() - began >= 0.05
        assert len(ahead.take(8)) == 4
        threading.Timer(0.05, blocked.set).start()
        ahead.gather(4, 10.0)
        assert len(ahead.take(8)) == 4
        assert time.monotonic() - began < 5


def test_the_first_message_is_not_held_back_until_others_are_sealed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A run's rates count from the first sending on: what is sealed before would take no time."""
    calls: list[str] = []
    gather, take = SealingPool.gather, SealingPool.take

    def gathers(pool: SealingPool, count: int, timeout_s: float) -> None:
        calls.append("gather")
        gather(pool, count, timeout_s)

    def takes(pool: SealingPool, limit: int) -> list[SealedMessage]:
        taken = take(pool, limit)
        calls.extend(["sent"] if taken else [])
        return taken

    monkeypatch.setattr(SealingPool, "gather", gathers)
    monkeypatch.setattr(SealingPool, "take", takes)
    outcome = run(tmp_path / "run", test=3, count=300, payload="small")
    assert outcome.failure is None and outcome.figures["received"] == 300
    assert calls[:2] == ["sent", "gather"]
