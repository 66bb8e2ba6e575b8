"""Signals for processes that tests start."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

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
