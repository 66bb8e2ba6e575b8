"""How long another end of a connection is waited for, and how such waiting is cancelled."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable

from labconsole.clock import now_ns
from labconsole.errors import UserError

Watch = Callable[[float], bool]
"""Is told how many seconds are left, and says whether somebody has cancelled."""

_LOOK_S = 0.1


class WaitCancelledError(UserError):
    """Somebody has cancelled while the other end was waited for."""


class Patience:
    """What is left of a time limit; `watch` is asked at least ten times a second."""

    def __init__(self, seconds: float, watch: Watch = lambda _left: False) -> None:
        self._deadline = now_ns() + round(seconds * 1e9)
        self._watch = watch

    @property
    def left_s(self) -> float:
        """Seconds that are left; 0 once they are over."""
        return max(0.0, (self._deadline - now_ns()) / 1e9)

    def to_read(self, source: socket.socket) -> None:
        """Wait until there is something to be read. Raises TimeoutError, WaitCancelledError."""
        self._wait(source, write=False)

    def to_write(self, target: socket.socket) -> None:
        """Wait until something can be written. Raises TimeoutError, WaitCancelledError."""
        self._wait(target, write=True)

    def _wait(self, on: socket.socket, *, write: bool) -> None:
        readable, writable = ([], [on]) if write else ([on], [])
        while True:
            left = (self._deadline - now_ns()) / 1e9
            if self._watch(max(0.0, left)):
                raise WaitCancelledError("Cancelled: nothing was proven.")
            if left <= 0:
                raise TimeoutError
            if any(select.select(readable, writable, [], min(left, _LOOK_S))):
                return
