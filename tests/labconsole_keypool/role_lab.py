"""The context and the service of one role of a live run, for tests of that role alone."""

from __future__ import annotations

import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labconsole.clock import now_ns
from labconsole.model.trial import Level, Series
from labconsole.security.secrets import Secret
from labconsole_keypool.messages.service_frames import TOKEN_BYTES, Decoder, Frame, encode
from labconsole_keypool.service.connections import HOST, connect_command
from tests.labconsole_keypool.signing_lab import PIN

TIMEOUT_S = 60
TIMEOUT_NS = TIMEOUT_S * 1_000_000_000
TOKEN = bytes(range(TOKEN_BYTES))


class Context:
    """The role's context: keeps all that it receives."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self.stop_requested = False
        self.start_ns = 0
        self.counts: Counter[str] = Counter()
        self.commands: deque[dict[str, Any]] = deque()
        self.recorded: list[dict[str, NDArray[np.int64]]] = []
        self.values: dict[str, Any] = {}

    def secret(self, key: str) -> Secret | None:
        return PIN

    def series(self, series: Series) -> Context:
        return self

    def extend(self, **columns: ArrayLike) -> None:
        self.recorded.append({name: np.asarray(column) for name, column in columns.items()})

    def count(self, channel: str, amount: int, span_ns: tuple[int, int] | None = None) -> None:
        self.counts[channel] += amount

    def observe(self, channel: str, values_ns: NDArray[np.int64]) -> None:
        return

    def gauge(self, channel: str, value: float) -> None:
        self.values[channel] = value

    def state(self, channel: str, values: Mapping[str, Any]) -> None:
        self.values[channel] = values

    def tick(self) -> None:
        return

    def event(self, name: str, message: str, level: Level = Level.INFO, **data: Any) -> None:
        return

    def take_command(self) -> dict[str, Any] | None:
        return self.commands.popleft() if self.commands else None


class Service:
    """The other end of a role's link."""

    def __init__(self) -> None:
        self._decoder, self._received = Decoder(), deque[Frame]()
        self._listener = socket.create_server((HOST, 0))
        self.command = connect_command(self._listener.getsockname()[1], TOKEN)

    def accept(self) -> Frame:
        """Accept the role's connection. Returns its first frame."""
        self._listener.settimeout(TIMEOUT_S)
        self._connection, _ = self._listener.accept()
        self._connection.settimeout(TIMEOUT_S)
        return self.receive()

    def receive(self) -> Frame:
        """The next frame."""
        while not self._received:
            self._received.extend(self._decoder.feed(self._connection.recv(100_000)))
        return self._received.popleft()

    def send(self, frame: Frame) -> None:
        """Send a frame to the role."""
        self._connection.sendall(encode(frame))

    def close(self) -> None:
        self._connection.close()
        self._listener.close()


def until(condition: Callable[[], bool]) -> None:
    """Wait for a state."""
    deadline_ns = now_ns() + TIMEOUT_NS
    while not condition():
        assert now_ns() < deadline_ns, "timed out"
        time.sleep(0.005)
