"""One client of the embedded broker: TLS and SASL handshakes, then AMQP with its sessions and links."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from enum import Enum, auto
from typing import Any

from labconsole.clock import now_ns
from labconsole_amqp.broker.queue import ConsumerLink, ProducerLink, Queue
from labconsole_amqp.link.proton_engine import ProtonEngine, decode_c_string, lib, refuse_link, set_condition
from labconsole_amqp.link.revocation import RevocationCheck
from labconsole_amqp.link.server_handshake import Access, RefusedClientError, ServerHandshake

_LINGER_NS = 1_000_000_000
_HANDSHAKE_NS = 10_000_000_000
_IDLE_TIMEOUT_S = 120.0
_NEVER_NS = 1 << 62
_MAX_SESSIONS, _MAX_LINKS = 256, 256
_SESSION_BYTES = 128 * 1024 * 1024
_CONDITION_CHARACTERS = 200


class Stage(Enum):
    """The stages of a client's connection."""

    HANDSHAKE = auto()
    AMQP = auto()
    CLOSING = auto()  # everything is sent: wait until the client closes
    CLOSED = auto()


class ClientConnection:
    """One accepted socket.

    Args:
        sock: non-blocking; an `ssl.SSLSocket` that has not shaken hands yet on a TLS port.
        find_queue: the queue of an address, None if there is none.
        on_refused: called with the reason when the client is refused.
        revocation: judges the client's certificate after the handshake; None: no certificate counts as revoked.
    """

    def __init__(
        self,
        sock: socket.socket,
        container: str,
        access: Access,
        find_queue: Callable[[str], Queue | None],
        on_refused: Callable[[str], None],
        revocation: RevocationCheck | None = None,
    ) -> None:
        self.sock = sock
        self.engine: ProtonEngine | None = None
        self.stage = Stage.HANDSHAKE
        self._container = container
        self._find_queue = find_queue
        self._on_refused = on_refused
        self._deadline_ns = now_ns() + _HANDSHAKE_NS
        self._handshake = ServerHandshake(sock, access, revocation)
        self._ends: dict[
            Any, ProducerLink | ConsumerLink | None
        ] = {}  # by link; None: refused, and not closed by the client yet

    @property
    def wants_to_write(self) -> bool:
        """Whether it waits until the socket accepts more output."""
        return self.engine is not None and self.engine.blocked and self.stage is Stage.AMQP

    def work(self) -> None:
        """Continue with the client; called when its socket is readable or writable."""
        try:
            match self.stage:
                case Stage.HANDSHAKE:
                    self._authenticate()
                case Stage.AMQP:
                    self._read()
                case Stage.CLOSING:
                    self._await_close()
                case Stage.CLOSED:
                    return
        except OSError:
            self.drop()

    def judge(self, check: RevocationCheck) -> None:
        """Judge the client's certificate again, if it has one: a refused client learns why, and is closed."""
        if not isinstance(self.sock, ssl.SSLSocket) or self.stage not in (Stage.HANDSHAKE, Stage.AMQP):
            return
        self._handshake.judge(check)
        if self._deadline_ns == _NEVER_NS:  # it is open
            self._turn_away()

    def flush(self) -> None:
        """Write pending output."""
        if self.engine is None or self.stage is not Stage.AMQP:
            return
        self.engine.dirty = False
        try:
            if self.engine.write() and self.engine.over:
                self._half_close()
        except OSError:
            self.drop()

    def tick(self) -> None:
        """Send heartbeats and check time limits; called about every second."""
        late = now_ns() > self._deadline_ns
        if self.stage is Stage.CLOSING:
            if late:
                self.drop()
        elif late:
            self._refuse("client did not finish its handshake in time")
        elif self.engine is not None:
            self.engine.tick()
            self.flush()

    def drop(self) -> None:
        """Free everything; messages that its consumers have not settled return to the queues."""
        if self.stage is Stage.CLOSED:
            return
        self.stage = Stage.CLOSED
        self._end_links()
        if self.engine is not None:
            self.engine.free()
        self.sock.close()

    def close(self) -> None:
        """Close the connection because the broker shuts down, and free everything."""
        if self.engine is not None and self.stage is Stage.AMQP:
            set_condition(
                lib.pn_connection_condition(self.engine.connection), "amqp:connection:forced", "broker shut down"
            )
            lib.pn_connection_close(self.engine.connection)
            self.flush()
        self.drop()

    def _authenticate(self) -> None:
        try:
            received = self._handshake.work()
        except RefusedClientError as refusal:
            self._refuse(str(refusal))
            return
        if received is not None:
            self._start_amqp(received)

    def _start_amqp(self, received: bytes) -> None:
        self.engine = engine = ProtonEngine(self.sock, server=True, idle_timeout_s=_IDLE_TIMEOUT_S)
        lib.pn_connection_set_container(engine.connection, self._container.encode())
        lib.pn_transport_set_channel_max(engine.transport, _MAX_SESSIONS - 1)
        engine.bind()
        self.stage = Stage.AMQP
        if received:
            engine.push(received)
            self._process(engine)

    def _read(self) -> None:
        engine = self.engine
        assert engine is not None
        if engine.blocked:
            # If the socket accepts output again, its consumers are served in this turn.
            engine.write()
        if engine.read():
            self._process(engine)

    def _process(self, engine: ProtonEngine) -> None:
        """Process what the client has opened, sent, acknowledged and closed."""
        connection = engine.connection
        engine.dirty = True
        opened = lib.PN_LOCAL_UNINIT | lib.PN_REMOTE_ACTIVE
        closed = lib.PN_LOCAL_ACTIVE | lib.PN_REMOTE_CLOSED
        if lib.pn_connection_state(connection) == opened:
            lib.pn_connection_open(connection)
            self._deadline_ns = _NEVER_NS
            if self._turn_away():
                return
        while session := lib.pn_session_head(connection, opened):
            lib.pn_session_set_incoming_capacity(session, _SESSION_BYTES)
            lib.pn_session_open(session)
        while len(self._ends) <= _MAX_LINKS and (link := lib.pn_link_head(connection, opened)):
            self._attach(engine, link)
        for end in tuple(self._ends.values()):
            if isinstance(end, ConsumerLink):
                end.process_outcomes()
            elif end is not None:
                end.take()
        for state in (closed, lib.PN_LOCAL_CLOSED | lib.PN_REMOTE_CLOSED):
            while link := lib.pn_link_head(connection, state):
                self._detach(link)
                lib.pn_link_free(link)
        while session := lib.pn_session_head(connection, closed):
            self._end_links(session)
            lib.pn_session_close(session)
            lib.pn_session_free(session)
        if (excess := self._limit_violation(connection)) is not None:
            self._on_refused(f"client {excess}")
            self._close_with("amqp:resource-limit-exceeded", excess)
        elif engine.over:
            self._end_links()
            lib.pn_connection_close(connection)

    def _turn_away(self) -> bool:
        """Close the connection of a client whose certificate is refused, with the reason; whether it is refused."""
        if unwelcome := self._handshake.unwelcome:
            self._on_refused(unwelcome)
            self._close_with("amqp:unauthorized-access", unwelcome)
        return bool(unwelcome)

    def _close_with(self, condition: str, reason: str) -> None:
        assert self.engine is not None
        set_condition(lib.pn_connection_condition(self.engine.connection), condition, reason)
        lib.pn_connection_close(self.engine.connection)
        self.flush()
        self._half_close()

    def _limit_violation(self, connection: Any) -> str | None:
        """The limit of a connection that the client exceeds; None if it exceeds none."""
        if len(self._ends) > _MAX_LINKS:
            return f"opened more than {_MAX_LINKS} links"
        producers = [end for end in self._ends.values() if isinstance(end, ProducerLink)]
        held = sum(producer_link.held_bytes for producer_link in producers)
        session = lib.pn_session_head(connection, 0)
        while session:
            held += lib.pn_session_incoming_bytes(session)
            session = lib.pn_session_next(session, 0)
        if held > _SESSION_BYTES + max((producer_link.queue.limits.largest for producer_link in producers), default=0):
            return f"sent {held:,} bytes beyond what its links may send"
        return None

    def _attach(self, engine: ProtonEngine, link: Any) -> None:
        producer = bool(lib.pn_link_is_receiver(link))
        remote = lib.pn_link_remote_target(link) if producer else lib.pn_link_remote_source(link)
        address = decode_c_string(lib.pn_terminus_get_address(remote))
        queue = None if address is None else self._find_queue(address)
        if queue is None:
            refuse_link(link, f"no queue {str(address)[:_CONDITION_CHARACTERS]}")
            self._ends[link] = None
            return
        lib.pn_terminus_copy(lib.pn_link_source(link), lib.pn_link_remote_source(link))
        lib.pn_terminus_copy(lib.pn_link_target(link), lib.pn_link_remote_target(link))
        lib.pn_link_set_snd_settle_mode(link, lib.pn_link_remote_snd_settle_mode(link))
        if producer:
            lib.pn_link_set_max_message_size(link, queue.limits.max_message_size)
        lib.pn_link_open(link)
        self._ends[link] = ProducerLink(engine, link, queue) if producer else ConsumerLink(engine, link, queue)

    def _detach(self, link: Any) -> None:
        end = self._ends.pop(link, None)
        if end is not None:
            end.end()
        lib.pn_link_close(link)

    def _end_links(self, session: Any = None) -> None:
        for link, end in tuple(self._ends.items()):
            if session is None or lib.pn_link_session(link) == session:
                del self._ends[link]
                if end is not None:
                    end.end()

    def _refuse(self, reason: str) -> None:
        self._on_refused(reason)
        self._half_close()

    def _half_close(self) -> None:
        """Send nothing more, and let the client read what was sent: closing at once could discard it."""
        self._end_links()
        self.stage = Stage.CLOSING
        self._deadline_ns = now_ns() + _LINGER_NS
        try:
            self.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self.drop()

    def _await_close(self) -> None:
        try:
            if self.sock.recv(65536):
                return
        except (BlockingIOError, ssl.SSLWantReadError):
            return
        except OSError:
            # The client closed without reading the rest.
            pass
        self.drop()
