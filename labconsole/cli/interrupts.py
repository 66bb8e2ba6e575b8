"""Ctrl+C, the end of the terminal (SIGHUP) and SIGTERM: their handling before a command begins, and while it runs.

One that this process was started with as ignored stays ignored: `nohup` does so, and a shell for its background jobs.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from labconsole.cli.exit_codes import CANCELLED

if TYPE_CHECKING:
    import threading

_INTERRUPTS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGHUP") if hasattr(signal, name))
"""Windows has no SIGHUP."""


def exit_when_interrupted() -> None:
    """Let an interrupt end this process at once, with its exit code: it has done nothing yet but import."""
    for number in _not_ignored(_INTERRUPTS):
        signal.signal(number, lambda _number, _frame: os._exit(CANCELLED))


def raise_when_interrupted() -> None:
    """Let an interrupt raise KeyboardInterrupt, so that open resources are closed."""
    for number in _not_ignored(_INTERRUPTS):
        signal.signal(number, signal.default_int_handler)


def end_when_interrupted() -> None:
    """Let an interrupt end this process as one that does not handle it: the window, whose slots would lose it."""
    for number in _not_ignored(_INTERRUPTS):
        signal.signal(number, signal.SIG_DFL)


@contextmanager
def interrupts(wakeup: threading.Event, *, insistent: bool = False) -> Iterator[list[int]]:
    """Catches interrupts and SIGTERM and wakes the main loop; yields a list that is not empty once one came.

    If `insistent`, a second one raises KeyboardInterrupt.
    """
    received: list[int] = []

    def note(number: int, frame: object) -> None:
        received.append(number)
        wakeup.set()
        if insistent and len(received) > 1:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, note) for number in _not_ignored((*_INTERRUPTS, signal.SIGTERM))}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _not_ignored(numbers: Sequence[int]) -> list[int]:
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
