"""A port on which the other end of a connection is awaited: a receiver to which a sender connects without a broker."""

from __future__ import annotations

import selectors
import socket
import time
import uuid
from collections.abc import Callable

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole_amqp.link.connection import Connection, ConnectTimes, Endpoint
from labconsole_amqp.link.framed_engine import FramedEngine
from labconsole_amqp.link.proton_engine import lib, set_condition
from labconsole_amqp.link.server_handshake import Access, RefusedClientError, ServerHandshake
from labconsole_amqp.link.socket_pump import ConnectionLostError, SocketPump
from labconsole_amqp.link.tls import TlsSettings, server_context

_TURN_S = 0.05
_HANDSHAKE_S = 5.0
_IDLE_TIMEOUT_S = 60.0


class Listener:
    """Listens on a free port of `host` until `close`, and accepts one client at a time.

    With `tls`, a client has to present a certificate that is trusted; without, each one is accepted.

    Raises:
        UserError: there is no port, or certificate, key or trust cannot be used.
    """

    def __init__(self, host: str, tls: TlsSettings | None, on_refused: Callable[[str], None]) -> None:
        """`on_refused` is called with the reason of each refusal."""
        self._tls, self._on_refused = tls, on_refused
        self._context = server_context(tls) if tls is not None else None
        self._revocation = tls.revocation_check() if tls is not None else None
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            self._socket = socket.create_server((host, 0), family=family, backlog=8)
        except OSError as error:
            raise UserError(f"no port of {host} can be opened ({error.strerror or error})") from error
        self._socket.settimeout(_TURN_S)
        self.port = int(self._socket.getsockname()[1])

    def close(self) -> None:
        """Accept no more clients. May be called again."""
        self._socket.close()

    def accept(self, is_awaited: Callable[[], bool]) -> Connection | None:
        """The connection of the next client that is accepted, once AMQP is open; None if `is_awaited` is false before.

        Raises UserError: the port is closed.
        """
        while is_awaited():
            try:
                sock, address = self._socket.accept()
            except TimeoutError:
                continue
            except OSError as error:
                raise UserError(f"no client can be accepted any more ({error.strerror or error})") from error
            try:
                return self._opened(sock, Endpoint(address[0], address[1], tls=self._tls), is_awaited)
            except UserError as refusal:
                self._on_refused(str(refusal))
        return None

    def _opened(self, sock: socket.socket, client: Endpoint, is_awaited: Callable[[], bool]) -> Connection:
        """Do what comes before links with a client. Raises UserError: it is refused, or is gone."""
        accepted, deadline = now_ns(), time.monotonic() + _HANDSHAKE_S

        def in_time() -> bool:
            return is_awaited() and time.monotonic() < deadline

        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._context is not None:
                sock = self._context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
            handshake = ServerHandshake(sock, Access(), self._revocation)
            received = self._authenticated(sock, handshake, in_time)
            authenticated = now_ns()
        except UserError:
            sock.close()
            raise
        except OSError as error:
            sock.close()
            raise RefusedClientError(f"client is gone: {error.strerror or error}") from error
        engine = FramedEngine(sock, client.name, idle_timeout_s=_IDLE_TIMEOUT_S, server=True)
        pump = SocketPump(engine, client.name)
        try:
            self._await_open(engine, pump, received, handshake.unwelcome, in_time)
        except BaseException:
            pump.close()
            engine.free()
            raise
        tls_ns = handshake.secured_ns - accepted if self._tls is not None else 0
        times = ConnectTimes(0, tls_ns, authenticated - handshake.secured_ns, now_ns() - authenticated)
        return Connection(client, engine, times, pump, self._revocation)

    @staticmethod
    def _authenticated(sock: socket.socket, handshake: ServerHandshake, in_time: Callable[[], bool]) -> bytes:
        """What the client has sent after TLS and SASL. Raises OSError, UserError: it is refused."""
        with selectors.DefaultSelector() as readable:
            readable.register(sock, selectors.EVENT_READ)
            while (received := handshake.work()) is None:
                if not in_time():
                    raise RefusedClientError("client did not authenticate in time")
                readable.select(_TURN_S)
        return received

    @staticmethod
    def _await_open(
        engine: FramedEngine, pump: SocketPump, received: bytes, refusal: str, in_time: Callable[[], bool]
    ) -> None:
        """Exchange AMQP open; a client with a `refusal` learns why."""
        engine.awaits_link = True
        lib.pn_connection_set_container(engine.connection, f"labconsole-{uuid.uuid4()}".encode())
        engine.bind()
        engine.feed(received)
        while not engine.remote_open:
            if engine.over:
                raise RefusedClientError(f"client closed the connection ({engine.condition or 'no reason given'})")
            if not in_time():
                raise RefusedClientError("client did not open AMQP in time")
            pump.turn(_TURN_S)
        lib.pn_connection_open(engine.connection)
        if refusal:
            set_condition(lib.pn_connection_condition(engine.connection), "amqp:unauthorized-access", refusal)
            lib.pn_connection_close(engine.connection)
        try:
            pump.write()
        except ConnectionLostError as lost:
            raise RefusedClientError(f"client is gone: {lost}") from lost
        if refusal:
            raise RefusedClientError(refusal)
