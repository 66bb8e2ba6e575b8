"""Moves bytes between engine and socket, and waits: the only place where a client of a broker blocks."""

from __future__ import annotations

import selectors
import socket
import ssl

from labconsole.errors import UserError
from labconsole_amqp.link.proton_engine import ProtonEngine


class ConnectionLostError(UserError):
    """A connection that was open is lost, or the broker has closed it: another one may be opened."""


class SocketPump:
    """Pumps one `engine`; `peer` (`host:port`) names the broker in messages. All but `wake` belongs to one thread."""

    def __init__(self, engine: ProtonEngine, peer: str) -> None:
        self._engine = engine
        self._peer = peer
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(engine.sock, selectors.EVENT_READ)
        self._selector.register(self._wake_out, selectors.EVENT_READ)
        self._awaits_room = False

    def turn(self, timeout_s: float) -> None:
        """Tick, write, read; wait up to `timeout_s` if there is nothing to read.

        Raises ConnectionLostError, and UserError for what a broker does not do.
        """
        engine = self._engine
        due_s = engine.tick()
        self._write_unless_blocked()
        if engine.over:
            return
        if engine.blocked != self._awaits_room:
            self._awaits_room = engine.blocked
            writing = selectors.EVENT_WRITE if engine.blocked else 0
            self._selector.modify(engine.sock, selectors.EVENT_READ | writing)
        self._handle_events(min(timeout_s, due_s))
        self._write_unless_blocked()

    def listen(self, timeout_s: float) -> None:
        """Read what comes within `timeout_s`; write only what waits for the socket. Raises as `turn`."""
        if self._awaits_room or self._engine.over:
            self.turn(timeout_s)
        else:
            self._handle_events(timeout_s)

    def _handle_events(self, timeout_s: float) -> None:
        for key, events in self._selector.select(max(0.0, timeout_s)):
            if key.fileobj is self._wake_out:
                self._wake_out.recv(4096)
                continue
            if events & selectors.EVENT_WRITE:
                self.write()
            if events & selectors.EVENT_READ:
                self._read()

    def _write_unless_blocked(self) -> None:
        """Write, but not in vain: a socket that accepted no more says when there is room."""
        if not self._engine.blocked:
            self.write()

    def write(self) -> None:
        """Write as much as the socket accepts. Raises ConnectionLostError."""
        try:
            self._engine.write()
        except OSError as error:
            reason = self._pending_alert() or error
            raise ConnectionLostError(self._connection_lost(reason)) from reason

    def _read(self) -> None:
        try:
            self._engine.read()
        except OSError as error:
            raise ConnectionLostError(self._connection_lost(error)) from error
        if not self._engine.awaits_link and self._engine.opened_by_peer:
            raise UserError(f"{self._peer} opened a session or link that the console does not expect")

    def _pending_alert(self) -> OSError | None:
        """The TLS alert in the remaining input, if any: the reason why the peer accepts nothing more."""
        try:
            while not self._engine.over and self._engine.read():
                pass
        except ssl.SSLError as alert:
            return alert
        except OSError:
            # No alert: the caller reports its own error.
            return None
        return None

    def _connection_lost(self, error: OSError) -> str:
        engine = self._engine
        if engine.remote_closed:
            return f"{self._peer} closed the connection: {engine.condition or 'no reason given'}"
        return f"the connection to {self._peer} was lost ({error.strerror or error})"

    def wake(self) -> None:
        """Let `turn` return now; any thread may call this."""
        try:
            self._wake_in.send(b"\0")
        except OSError:
            # Unread wake-ups fill the pair, and one more has no effect; or the connection was closed meanwhile.
            return

    def close(self) -> None:
        """Release selector and wake-up sockets; the engine stays open."""
        self._selector.close()
        self._wake_in.close()
        self._wake_out.close()
