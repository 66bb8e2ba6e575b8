"""The child's end of the JSON-line protocol: standard input for commands, the original standard output for messages."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from labconsole.engine.protocol import LIVE, encode_line

_STDIN = 0
_READ_SIZE = 65536


class ChildChannel:
    """Keeps fd 1 for the protocol and sends stray prints to stderr.

    Status messages are never lost; of live frames only the newest waits, so a parent that does not read never slows
    the work. `on_message` is called on a reader thread; when the parent closes its end, this process ends at once.
    """

    def __init__(self) -> None:
        self._out = os.dup(1)
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        self._received = b""
        self._pending: list[bytes] = []
        self._live: bytes | None = None
        self._wakeup = threading.Condition()
        self._closing = False
        self._writer = threading.Thread(target=self._write, name="protocol-writer", daemon=True)
        self._writer.start()

    def first(self) -> dict[str, Any]:
        """The first line from the parent: the task."""
        while b"\n" not in self._received:
            self._read()
        line, _, self._received = self._received.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def listen(self, on_message: Callable[[dict[str, Any]], None]) -> None:
        """Hand every further line to `on_message`; end the process when the parent is gone."""

        def read() -> None:
            while True:
                for message in self._lines():
                    on_message(message)
                self._read()

        threading.Thread(target=read, name="protocol-reader", daemon=True).start()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message; a live frame replaces one that still waits."""
        line = encode_line(message)
        with self._wakeup:
            if message["t"] == LIVE:
                self._live = line
            else:
                self._pending.append(line)
            self._wakeup.notify()

    def close(self) -> None:
        """Send all waiting messages, however slowly the parent reads, and stop the writer."""
        with self._wakeup:
            self._closing = True
            self._wakeup.notify()
        self._writer.join()

    def _read(self) -> None:
        # Unbuffered reads on the descriptor: a thread blocked inside sys.stdin would hold its lock at exit, and a
        # buffer between the first line and the others would keep them.
        data = os.read(_STDIN, _READ_SIZE)
        if not data:
            os._exit(1)  # the parent is gone
        self._received += data

    def _lines(self) -> list[dict[str, Any]]:
        *lines, self._received = self._received.split(b"\n")
        return [json.loads(line) for line in lines]

    def _write(self) -> None:
        while True:
            with self._wakeup:
                while not (self._pending or self._live or self._closing):
                    self._wakeup.wait()
                lines, self._pending = self._pending, []
                if self._live is not None:
                    lines.append(self._live)
                    self._live = None
                if not lines:
                    return
            view = memoryview(b"".join(lines))
            try:
                while view:
                    view = view[os.write(self._out, view) :]
            except OSError:
                os._exit(1)  # the parent is gone
