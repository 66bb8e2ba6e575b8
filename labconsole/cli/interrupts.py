"""Ctrl-C and SIGTERM while a command works: noted, so that the work ends as it should."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts(wakeup: threading.Event) -> Iterator[list[int]]:
    """Catches Ctrl-C and SIGTERM and wakes the main loop; yields a list that is not empty once one came."""
    received: list[int] = []

    def note(number: int, frame: object) -> None:
        received.append(number)
        wakeup.set()

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
