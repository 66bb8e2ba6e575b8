"""Threads that time operations, and the thread of the role that records what they saw."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from threading import Event

_INTERVAL_S = 0.05

Row = tuple[int, ...]
"""What was seen of one operation: the columns of a series, in order."""


class Observations:
    """Rows on their way from threads that time to the one that records. `add` and `take` may meet."""

    def __init__(self) -> None:
        self._rows: deque[Row] = deque()

    def add(self, *row: int) -> None:
        """One operation was done; from any thread."""
        self._rows.append(row)

    def take(self) -> list[Row]:
        """What came since the last call, in order."""
        return [self._rows.popleft() for _ in range(len(self._rows))]


def run_threads(works: Sequence[Callable[[], None]], on_interval: Callable[[], None], failed: Event) -> None:
    """Run each of `works` in a thread of its own until all have ended; calls `on_interval` meanwhile and at the end.

    `failed` is set as soon as one of them fails, for the others to hear; its error is raised once all have ended.
    """
    with ThreadPoolExecutor(len(works)) as threads:
        pending = [threads.submit(work) for work in works]
        running = set(pending)
        while running:
            ended, running = wait(running, _INTERVAL_S, FIRST_EXCEPTION)
            if any(one.exception() is not None for one in ended):
                failed.set()
            on_interval()
    for done in pending:
        done.result()
