"""Signals for processes that tests start."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

_STOPS_WITHIN_S = 30.0
_DEFAULTS = {"SIGINT": signal.default_int_handler, "SIGHUP": signal.SIG_DFL}


@contextmanager
def interruptible() -> Iterator[None]:
    """Processes started here accept SIGINT and SIGHUP, also in a suite that ignores them.

    A shell's background ignores SIGINT, `nohup` SIGHUP, and processes inherit what is ignored.
    """
    numbers = {signal.Signals[name]: default for name, default in _DEFAULTS.items() if hasattr(signal, name)}
    before = {number: signal.signal(number, default) for number, default in numbers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """The process does nothing in the block. On a busy machine its threads do some more after the signal to stop."""
    process = psutil.Process(pid)
    process.suspend()
    try:
        deadline_s = time.monotonic() + _STOPS_WITHIN_S
        while not _has_stopped(process):
            assert time.monotonic() < deadline_s, f"process {pid} does not stop"
            time.sleep(0.001)
        yield
    finally:
        with suppress(psutil.NoSuchProcess):
            process.resume()


def _has_stopped(process: psutil.Process) -> bool:
    """Whether each thread of the process has stopped; where they have no states of their own, the process."""
    try:
        threads = Path(f"/proc/{process.pid}/task").glob("*/stat")
        states = {thread.read_text().rpartition(") ")[2][0] for thread in threads}
    except (FileNotFoundError, ProcessLookupError):
        return False  # a thread has just ended
    return states <= {"T"} and process.status() == psutil.STATUS_STOPPED
