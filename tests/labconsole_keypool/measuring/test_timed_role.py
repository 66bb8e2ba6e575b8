"""Threads that time operations: all their rows arrive, and one that fails stops the others."""

from __future__ import annotations

import time
from functools import partial
from threading import Event

import pytest

from labconsole.errors import UserError
from labconsole_keypool.measuring.timed_role import Observations, run_threads


def test_every_row_of_every_thread_arrives_once() -> None:
    observations, taken = Observations(), []

    def time_operations(thread: int) -> None:
        for number in range(2000):
            observations.add(thread, number)

    run_threads(
        [partial(time_operations, thread) for thread in range(4)], lambda: taken.extend(observations.take()), Event()
    )
    assert sorted(taken) == [(thread, number) for thread in range(4) for number in range(2000)]


def test_one_that_fails_stops_the_others_and_its_error_is_raised() -> None:
    failed, intervals = Event(), []

    def fails() -> None:
        time.sleep(0.06)
        raise UserError("It broke.")

    with pytest.raises(UserError, match=r"It broke\."):
        run_threads([lambda: failed.wait(10.0) and None, fails], lambda: intervals.append(1), failed)
    assert failed.is_set()
    assert len(intervals) > 1, "called while they ran, and once more at the end"
