"""A port on which the other end of a connection is awaited: a receiver to which a sender connects without a broker."""

from __future__ import annotations

import socket
import ssl
import time
import uuid
from collections.abc import Callable
from typing import TypeVar

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole.security.x509.validation.judgement import Purpose
from labconsole_amqp.link.connection import Connection, ConnectTimes, Endpoint
from labconsole_amqp.link.framed_engine import FramedEngine
from labconsole_amqp.link.proton_engine import lib, set_condition
from labconsole_amqp.link.sasl import Access, SaslServer
from labconsole_amqp.link.socket_pump import ConnectionLostError, SocketPump
from labconsole_amqp.link.tls import TlsSettings, peer_subject, server_context, server_failure

T = TypeVar("T")

_TURN_S = 0.05
_HANDSHAKE_S = 5.0
_IDLE_TIMEOUT_S = 60.0


class _RefusedError(UserError):
    """A client is refused, for the reason in a clause; another one may connect."""


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
                deadline = time.monotonic() + _HANDSHAKE_S
                client = Endpoint(address[0], address[1], tls=self._tls)
                return self._opened(sock, client, lambda: is_awaited() and time.monotonic() < deadline)  # noqa: B023
            except UserError as refusal:
                self._on_refused(str(refusal))
        return None

    def _opened(self, sock: socket.socket, client: Endpoint, goes_on: Callable[[], bool]) -> Connection:
        """Do what comes before links with a client, while it `goes_on`. Raises UserError: it is refused, or is gone."""
        accepted = now_ns()
        try:
            sock.settimeout(_TURN_S)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._context is not None:
                sock = self._context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
                _handshake(sock, goes_on)
            secured = now_ns()
            received, refusal = _negotiated(sock, goes_on), self._refusal(sock)
            authenticated = now_ns()
            sock.setblocking(False)
        except UserError:
            sock.close()
            raise
        except TimeoutError as error:
            sock.close()
            raise _RefusedError("client did not authenticate in time") from error
        except OSError as error:
            sock.close()
            raise _RefusedError(f"client is gone: {error.strerror or error}") from error
        engine = FramedEngine(sock, client.name, idle_timeout_s=_IDLE_TIMEOUT_S, server=True)
        pump = SocketPump(engine, client.name)
        try:
            self._await_open(engine, pump, received, refusal, goes_on)
        except BaseException:
            pump.close()
            engine.free()
            raise
        tls_ns = secured - accepted if self._tls is not None else 0
        times = ConnectTimes(0, tls_ns, authenticated - secured, now_ns() - authenticated)
        return Connection(client, engine, times, pump, self._revocation)

    def _refusal(self, sock: socket.socket) -> str:
        """Why the client's certificate is refused by CRLs; empty: it is not."""
        if not isinstance(sock, ssl.SSLSocket) or self._revocation is None:
            return ""
        return self._revocation.refusal_on(sock, Purpose.TLS_CLIENT)

    @staticmethod
    def _await_open(
        engine: FramedEngine, pump: SocketPump, received: bytes, refusal: str, goes_on: Callable[[], bool]
    ) -> None:
        """Exchange AMQP open; a client with a `refusal` learns why."""
        engine.awaits_link = True
        lib.pn_connection_set_container(engine.connection, f"labconsole-{uuid.uuid4()}".encode())
        engine.bind()
        engine.feed(received)
        while not engine.remote_open:
            if engine.over:
                raise _RefusedError(f"client closed the connection ({engine.condition or 'no reason given'})")
            if not goes_on():
                raise _RefusedError("client did not open AMQP in time")
            pump.turn(_TURN_S)
        lib.pn_connection_open(engine.connection)
        if refusal:
            set_condition(lib.pn_connection_condition(engine.connection), "amqp:unauthorized-access", refusal)
            lib.pn_connection_close(engine.connection)
        try:
            pump.write()
        except ConnectionLostError as lost:
            raise _RefusedError(f"client is gone: {lost}") from lost
        if refusal:
            raise _RefusedError(refusal)


def _in_turns(step: Callable[[], T], goes_on: Callable[[], bool]) -> T:
    """What `step` returns, which is tried again after each timeout while it `goes_on`. Raises TimeoutError, OSError."""
    while goes_on():
        try:
            return step()
        except TimeoutError:
            continue
    raise TimeoutError


def _handshake(sock: ssl.SSLSocket, goes_on: Callable[[], bool]) -> None:
    """Do the TLS handshake. Raises UserError: it failed."""
    try:
        _in_turns(sock.do_handshake, goes_on)
    except OSError as error:
        raise _RefusedError(server_failure(error)) from error


def _negotiated(sock: socket.socket, goes_on: Callable[[], bool]) -> bytes:
    """Negotiate SASL; returns what the client has sent after it. Raises OSError, UserError: it is refused."""
    subject = peer_subject(sock) if isinstance(sock, ssl.SSLSocket) else None
    sasl = SaslServer(Access(), subject)
    while not sasl.done:
        data = _in_turns(lambda: sock.recv(65536), goes_on)
        if not data:
            raise _RefusedError("client closed the connection during SASL")
        if answer := sasl.feed(data):
            sock.sendall(answer)
    if sasl.failure is not None:
        raise _RefusedError(sasl.failure)
    return sasl.rest
