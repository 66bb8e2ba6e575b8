"""Measures how long the window's thread computes in one turn of its event loop, at full speed."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import nlargest

import pytest
from PySide6.QtCore import QObject, QTimer

LONG_S = 0.02
"""Turns below this are never compared with the yardstick: they are far from any bound."""
TICK_MS = 1
"""Without a pause the watch itself would keep a core busy for as long as a run takes."""
STEPS = 20_000
YARDSTICK_S = 0.002
"""Processor time of the yardstick on a machine that the bounds are meant for; a slower one has as much more time."""


class LongTurnError(AssertionError):
    """A turn of the event loop computed for too long."""


again_after_a_long_turn = pytest.mark.flaky(reruns=2, only_rerun=LongTurnError.__name__)
"""For tests with a watch: a window that computes for too long does so each time, another program on the same processor
only now and then."""


@contextmanager
def slots_watched() -> Iterator[SlotWatch]:
    """Watch the slots in the block; existing objects are not collected, as in `open_window`.

    They stay so: thawed with them, all that pytest has collected would be looked through each time from then on.
    """
    gc.collect()
    gc.freeze()
    watch = SlotWatch()
    try:
        yield watch
    finally:
        watch.stop()


class SlotWatch(QObject):
    """Ticks each millisecond; what the thread computed between two ticks was one turn, or several short ones.

    The time is the processor time of the window's thread: on any system what the window costs, but not what it waits
    for. A processor that is shared computes the same work at half its speed or less. After a long turn a piece of work
    is therefore timed that is always the same, and compared with the shortest time that it ever took here: by this
    ratio the turn would have been shorter on a machine that does nothing else.
    """

    def __init__(self) -> None:
        super().__init__()
        self._yardstick_s = min(_yardstick() for _ in range(20))
        self._turns_s = [0.0, 0.0]
        self._last = time.thread_time()
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._tick)
        self._timer.start(TICK_MS)

    def stop(self) -> None:
        """Measure no more."""
        self._timer.stop()

    def assert_short(self) -> None:
        """No turn computed for more than 50 ms; one in all may, up to 100 ms, since no yardstick is exact. Raises
        LongTurnError."""
        longest, second = self._turns_s
        slowness = max(1.0, self._yardstick_s / YARDSTICK_S)
        if second >= 0.05 * slowness or longest >= 0.1 * slowness:
            raise LongTurnError(f"longest turns {self._turns_s} s on a machine {slowness:.2f} times as slow as meant")

    def _tick(self) -> None:
        turn = time.thread_time() - self._last
        if turn > LONG_S:
            now = _yardstick()
            self._yardstick_s = min(self._yardstick_s, now)
            turn *= self._yardstick_s / now
        if turn > self._turns_s[1]:
            self._turns_s = nlargest(2, [*self._turns_s, turn])
        self._last = time.thread_time()


def least_turn_s(work: Callable[[], None]) -> float:
    """The shortest processor time of five calls of `work` in this thread.

    It is that of a machine that the bounds are meant for: each call is compared with the yardstick after it.
    """
    times = []
    for _ in range(5):
        begin = time.thread_time()
        work()
        took = time.thread_time() - begin
        times.append(took * min(1.0, YARDSTICK_S / _yardstick()))
    return min(times)


def _yardstick() -> float:
    """Processor time of a piece of work that is always the same, s."""
    begun, found = time.thread_time(), {}
    for step in range(STEPS):
        found[step & 255] = str(step)
    return time.thread_time() - begun
