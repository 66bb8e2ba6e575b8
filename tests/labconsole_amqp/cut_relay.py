"""A relay between clients and a broker that cuts all connections, as a network does that fails."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_RESET = struct.pack("ii", 1, 0)


class CutRelay:
    """Relays every client that connects to `port` to the broker; `cut` resets those there are, `refuse` the next."""

    def __init__(self, broker_port: int) -> None:
        self._broker_port = broker_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._turn = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._refused = 0
        self.connections = 0
        self._start(self._accept)

    def cut(self, *, refuse: int = 0) -> None:
        """Reset all connections, and then as many more as soon as they are made."""
        with self._turn:
            self._refused = refuse
            for sock in self._open:
                _reset(sock)
            self._open.clear()

    def close(self) -> None:
        """Cut everything and end all threads."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join()

    def _start(self, work: object, *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self.connections += 1
                with self._turn:
                    refused, self._refused = self._refused > 0, max(0, self._refused - 1)
                if refused:
                    _reset(near)
                    near.close()
                    continue
                far = socket.create_connection(("127.0.0.1", self._broker_port))
                with self._turn:
                    self._open |= {near, far}
                self._start(self._copy, near, far)
                self._start(self._copy, far, near)

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        with self._turn:
            self._open.discard(source)
        source.close()


def _reset(sock: socket.socket) -> None:
    with suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        sock.shutdown(socket.SHUT_RDWR)


@contextmanager
def cut_relay(broker_port: int) -> Iterator[CutRelay]:
    """A relay to the broker on this port of loopback, until the block ends."""
    relay = CutRelay(broker_port)
    try:
        yield relay
    finally:
        relay.close()
