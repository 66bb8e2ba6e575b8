"""Ctrl+C, the end of the terminal (SIGHUP) and SIGTERM: their handling before a command begins, and while it runs.

One that this process was started with as ignored stays ignored: `nohup` does so, and a shell for its background jobs.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from labconsole.cli.exit_codes import CANCELLED

if TYPE_CHECKING:
    import threading
    from types import FrameType

_INTERRUPTS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGHUP") if hasattr(signal, name))
"""Windows has no SIGHUP."""


def exit_when_interrupted() -> None:
    """Let an interrupt end this process at once, with its exit code: before a command begins, and after its end."""
    for number in _not_ignored(_INTERRUPTS):
        signal.signal(number, lambda _number, _frame: os._exit(CANCELLED))


def raise_when_interrupted() -> None:
    """Let an interrupt raise KeyboardInterrupt where the resources that are open are closed by it."""
    for number in _not_ignored(_INTERRUPTS):
        signal.signal(number, _raise_where_it_is_handled)


def _raise_where_it_is_handled(_number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt here, or at the next call that is none of `_is_lost_in` and `_is_leaving`.

    A second interrupt no longer waits until a block is left: that may take long.
    """
    waits = sys.getprofile() is _raise_at_call
    if _is_lost_in(frame) or (_is_leaving(frame) and not waits):
        sys.setprofile(_raise_at_call)  # unlike a timer, it comes before a call that blocks, not during it
        return
    if waits:
        sys.setprofile(None)
    raise KeyboardInterrupt


def _raise_at_call(frame: FrameType, event: str, _argument: Any) -> None:
    if event in ("call", "c_call") and not _is_lost_in(frame) and not _is_leaving(frame):
        sys.setprofile(None)
        raise KeyboardInterrupt


def _is_lost_in(frame: FrameType | None) -> bool:
    """Whether an exception raised here reaches no handler: Python ignores it in `__del__`, and a generator that
    `contextlib` has just entered, or is about to leave, never gets it. The generator would end at some later time, when
    the database that its transaction is in is closed.
    """
    if frame is not None and frame.f_code.co_filename == contextmanager.__code__.co_filename:
        return True
    return _is_in(frame, "__del__")


def _is_leaving(frame: FrameType | None) -> bool:
    """Whether a `with` block is being left here: files become complete, what was opened is closed."""
    return _is_in(frame, "__exit__")


def _is_in(frame: FrameType | None, function: str) -> bool:
    while frame is not None:
        if frame.f_code.co_name == function:
            return True
        frame = frame.f_back
    return False


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

    def note(number: int, frame: FrameType | None) -> None:
        received.append(number)
        wakeup.set()
        if insistent and len(received) > 1:
            _raise_where_it_is_handled(number, frame)

    before = {number: signal.signal(number, note) for number in _not_ignored((*_INTERRUPTS, signal.SIGTERM))}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _not_ignored(numbers: Sequence[int]) -> list[int]:
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
