"""The embedded broker: queues over AMQP 1.0 in one process, so that a trial needs nothing installed.

It stores and forwards: queues by name, first in first out, with bounded depth (producers get credit for free room
only), competing consumers, pre-settled and acknowledged messages on both sides, and redelivery when a consumer ends
with messages it has not settled. Messages are delivered byte for byte. A plain and a TLS port work at the same time; on
the TLS port a client certificate is required, which authenticates the client (SASL EXTERNAL).

Queues live in memory and end with the process; `durable` is accepted and has no effect.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from labconsole.errors import UserError
from labconsole_amqp.broker.client_connection import ClientConnection, Stage
from labconsole_amqp.broker.queue import Queue, QueueCounts, QueueLimits
from labconsole_amqp.link.server_handshake import Access
from labconsole_amqp.link.tls import TlsSettings, server_context

_TURN_S = 0.05
_TICK_S = 1.0


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """Ports, queues, access and limits of the broker.

    `plain_port` and `tls_port`: 0 is any free port, None: not opened. `tls` is needed with a TLS port: certificate
    and key of the broker, and the CA file that client certificates are verified with. `queues` are made at the start;
    any other address is refused (`amqp:not-found`).
    """

    queues: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    plain_port: int | None = 0
    tls_port: int | None = None
    tls: TlsSettings | None = None
    access: Access = field(default_factory=Access)
    limits: QueueLimits = field(default_factory=QueueLimits)
    container: str = "labconsole-broker"


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports that the broker listens on."""

    plain: int | None
    tls: int | None


class Broker:
    """Listens, serves and closes, all in one thread; `on_refused` is called with the reason of each refusal."""

    def __init__(self, settings: BrokerSettings, on_refused: Callable[[str], None]) -> None:
        self._settings = settings
        self._on_refused = on_refused
        self._context = server_context(settings.tls) if settings.tls_port is not None and settings.tls else None
        self._revocation = settings.tls.revocation_check() if settings.tls is not None else None
        self._queues = {name: Queue(name, settings.limits) for name in settings.queues}
        self._selector = selectors.DefaultSelector()
        self._listeners: list[socket.socket] = []
        self._peers: dict[ClientConnection, int] = {}

    def listen(self) -> Ports:
        """Bind and listen; returns the ports. Raises UserError if a port cannot be opened."""
        settings = self._settings
        if settings.tls_port is not None and self._context is None:
            raise UserError("a TLS port needs the broker's certificate and key")
        return Ports(self._bind(settings.plain_port, secure=False), self._bind(settings.tls_port, secure=True))

    def _bind(self, port: int | None, *, secure: bool) -> int | None:
        if port is None:
            return None
        try:
            family = socket.AF_INET6 if ":" in self._settings.host else socket.AF_INET
            listener = socket.create_server((self._settings.host, port), family=family, backlog=64)
        except OSError as error:
            raise UserError(
                f"the broker cannot listen on {self._settings.host}:{port} ({error.strerror}): choose another port"
            ) from error
        listener.setblocking(False)
        self._listeners.append(listener)
        self._selector.register(listener, selectors.EVENT_READ, secure)
        return int(listener.getsockname()[1])

    def use(self, tls: TlsSettings) -> None:
        """Identity, trust and CRLs from now on; open connections are judged by them again. Raises UserError.

        A client that is refused now learns why, and its connection is closed.
        """
        self._context, self._revocation, check = server_context(tls), tls.revocation_check(), tls.judging()
        for peer in tuple(self._peers):
            if check is not None:
                peer.judge(check)

    def serve(self, stop: Callable[[], bool], tick: Callable[[], None]) -> None:
        """Serve until `stop()`; calls `tick` at least every 50 ms or so."""
        due = time.monotonic() + _TICK_S
        while not stop():
            for key, _ in self._selector.select(_TURN_S):
                if isinstance(key.data, ClientConnection):
                    key.data.work()
                    self._remove_if_closed(key.data)
                else:
                    self._accept(key.fileobj, secure=key.data)  # type: ignore[arg-type]
            if (now := time.monotonic()) >= due:
                due = now + _TICK_S
                for peer in self._peers:
                    peer.tick()
            self._settle()
            tick()

    def close(self) -> None:
        """Close all connections, and free everything. May be called again."""
        for peer in self._peers:
            self._selector.unregister(peer.sock)
            peer.close()
        self._peers.clear()
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()
        self._selector.close()

    def depths(self) -> dict[str, int]:
        """Messages in each queue; those at a consumer that has not settled them are not counted."""
        return {name: len(queue) for name, queue in self._queues.items()}

    def counts(self) -> dict[str, QueueCounts]:
        """Each queue's counts since the start."""
        return {name: queue.counts for name, queue in self._queues.items()}

    def _accept(self, listener: socket.socket, *, secure: bool) -> None:
        try:
            sock, _ = listener.accept()
        except OSError:
            # The client has disconnected since.
            return
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if secure and self._context is not None:
                sock = self._context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        except OSError as error:
            # It has disconnected since: wrap_socket asks for the peer's address.
            sock.close()
            self._on_refused(f"client hung up at once ({error.strerror or error})")
            return
        settings = self._settings
        peer = ClientConnection(
            sock,
            settings.container,
            settings.access,
            self._queues.get,
            self._on_refused,
            self._revocation if secure else None,
        )
        self._peers[peer] = selectors.EVENT_READ
        self._selector.register(sock, selectors.EVENT_READ, peer)

    def _settle(self) -> None:
        """Deliver messages and write them; watch sockets that accept no more for room."""
        moving = True
        while moving:
            moving = False
            for queue in self._queues.values():
                moving |= queue.work()
            self._flush()
        for peer, awaited in tuple(self._peers.items()):
            if self._remove_if_closed(peer):
                continue
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if peer.wants_to_write else 0)
            if wanted != awaited:
                self._peers[peer] = wanted
                self._selector.modify(peer.sock, wanted, peer)

    def _flush(self) -> None:
        for peer in self._peers:
            if peer.engine is not None and peer.engine.dirty:
                peer.flush()

    def _remove_if_closed(self, peer: ClientConnection) -> bool:
        """Remove a closed client at once, before another gets its file descriptor; returns whether it was closed."""
        if peer.stage is not Stage.CLOSED:
            return False
        if self._peers.pop(peer, None) is not None:
            self._selector.unregister(peer.sock)
        return True
