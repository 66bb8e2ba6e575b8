"""One AMQP 1.0 connection from a role to a broker, or of two roles: connect, authenticate, pump and close."""

from __future__ import annotations

import re
import socket
import ssl
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import TracebackType
from typing import TYPE_CHECKING

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole.security.x509.validation.judgement import Purpose
from labconsole_amqp.link.framed_engine import FramedEngine
from labconsole_amqp.link.proton_engine import decode_c_string, lib
from labconsole_amqp.link.revocation import RevocationCheck, presented_on
from labconsole_amqp.link.socket_pump import ConnectionLostError, SocketPump
from labconsole_amqp.link.tls import (
    PortProtocol,
    TlsSettings,
    client_context,
    client_failure,
    plain_port_remedy,
    probe_port_protocol,
    tls_port_remedy,
)
from labconsole_amqp.shaping.shaper import CLIENT_BUFFER

if TYPE_CHECKING:
    from cryptography import x509

_CLOSE_TIMEOUT_S = 2.0
_SILENCE_S = 1.0
"""How long a port may stay silent before its protocol is probed."""
_SILENT_ROUND_TRIPS, _CONNECTING_ROUND_TRIPS = 4, 12
"""Round trips of a shaped link that this and connecting may take longer: TCP, TLS, SASL and AMQP need some 6."""
_TLS_ALERT = re.compile(r"got: .{0,4}\\x15\\x03")


@dataclass(frozen=True, slots=True)
class ShapedPath:
    """The port of a shaper on this computer that leads to a broker, and the round-trip time of its link."""

    port: int
    rtt_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A broker's address, and how to authenticate there.

    With `username`: SASL PLAIN. Without, and with a client certificate in `tls`: SASL EXTERNAL. Else ANONYMOUS.
    `idle_timeout_s` is how long the broker may stay silent. With `path`, it is reached over a shaped link.
    """

    host: str
    port: int
    tls: TlsSettings | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    connect_timeout_s: float = 10.0
    idle_timeout_s: float = 60.0
    path: ShapedPath | None = None

    @property
    def name(self) -> str:
        """`host:port`, for messages."""
        return f"{self.host}:{self.port}"

    def over(self, path: ShapedPath) -> Endpoint:
        """The same broker over a shaped link."""
        timeout_s = self.connect_timeout_s + _CONNECTING_ROUND_TRIPS * path.rtt_s
        return replace(self, path=path, connect_timeout_s=timeout_s)

    @property
    def silence_s(self) -> float:
        """How long its port may stay silent before its protocol is probed."""
        return _SILENCE_S + (_SILENT_ROUND_TRIPS * self.path.rtt_s if self.path is not None else 0.0)

    @property
    def mechanism(self) -> str:
        """The one SASL mechanism that is used: `PLAIN`, `EXTERNAL` or `ANONYMOUS`."""
        if self.username is not None:
            return "PLAIN"
        return "EXTERNAL" if self.tls is not None and self.tls.identity is not None else "ANONYMOUS"


@dataclass(frozen=True, slots=True)
class ConnectTimes:
    """Durations of connecting, ns: TCP (with name resolution), TLS (0 without), SASL, AMQP open."""

    tcp_ns: int
    tls_ns: int
    sasl_ns: int
    open_ns: int

    @property
    def total_ns(self) -> int:
        """Total time: the source's "Establishing Connection"."""
        return self.tcp_ns + self.tls_ns + self.sasl_ns + self.open_ns


class ConnectStep(StrEnum):
    """The steps of connecting."""

    TCP = "TCP"
    TLS = "TLS"
    CERTIFICATE = "certificate"
    """The broker's certificate is not accepted."""
    REVOCATION = "revocation"
    SASL = "SASL"
    """SASL, and AMQP open."""


class ConnectError(UserError):
    """Connecting failed at `step`."""

    def __init__(self, sentence: str, step: ConnectStep) -> None:
        super().__init__(sentence)
        self.step = step


@contextmanager
def _step(step: ConnectStep) -> Iterator[None]:
    """Raise each fault in the block as that of this step, unless it names another one."""
    try:
        yield
    except ConnectError:
        raise
    except UserError as error:
        raise ConnectError(str(error), step) from error


class Connection:
    """An open connection, created by `connect` or accepted by a `Listener`. All but `wake` belongs to one thread.

    `times`: duration of connecting; `tls_version` and `cipher`: what TLS negotiated (None without TLS); `revocation`:
    the check by which the broker's certificate was judged, None without CRLs.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        engine: FramedEngine,
        times: ConnectTimes,
        pump: SocketPump,
        revocation: RevocationCheck | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.times = times
        self.revocation = revocation
        self.engine = engine
        self.container = decode_c_string(lib.pn_connection_remote_container(engine.connection))
        sock = engine.sock
        self.tls_version = sock.version() if isinstance(sock, ssl.SSLSocket) else None
        cipher = sock.cipher() if isinstance(sock, ssl.SSLSocket) else None
        self.cipher = cipher[0] if cipher else None
        self._pump = pump
        self._closed = False

    @property
    def is_accepted(self) -> bool:
        """Whether the other end has connected to this one."""
        return self.engine.is_server

    @property
    def peer_certificates(self) -> tuple[x509.Certificate, ...]:
        """The certificates that the broker has presented, its own first; none without TLS."""
        sock = self.engine.sock
        return presented_on(sock) if isinstance(sock, ssl.SSLSocket) else ()

    def pump(self, timeout_s: float) -> None:
        """Write pending output and read input; without input wait at most `timeout_s` for the peer or `wake`.

        Raises ConnectionLostError when the connection is closed by the broker, or lost, and UserError for what a
        broker does not do.
        """
        self._pump.turn(timeout_s)
        self.check()

    def listen(self, timeout_s: float) -> None:
        """Read what comes within `timeout_s`, and leave output for the next `pump` or `flush`. Raises as `pump`."""
        self._pump.listen(timeout_s)
        self.check()

    def flush(self) -> None:
        """Write as much as the socket accepts, without waiting. Raises ConnectionLostError."""
        self._pump.write()

    def check(self) -> None:
        """Raises ConnectionLostError if the broker has closed the connection, or it is lost."""
        engine = self.engine
        name = self.endpoint.name
        if engine.remote_closed:
            raise ConnectionLostError(f"{name} closed the connection: {engine.condition or 'no reason given'}")
        if engine.over:
            raise ConnectionLostError(f"the connection to {name} was lost{_close_reason(engine.condition)}")

    def wake(self) -> None:
        """Let a waiting `pump` return now; the one method that any thread may call."""
        self._pump.wake()

    def wait(self, done: Callable[[], bool], timeout_s: float, late: str) -> None:
        """Pump until `done`. Raises UserError, with the sentence `late` after `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while not done():
            left = deadline - time.monotonic()
            if left <= 0:
                raise UserError(late)
            self.pump(min(left, 1.0))

    def close(self) -> None:
        """Close by AMQP close, wait at most 2 s for the answer, and free everything. May be called again."""
        if self._closed:
            return
        self._closed = True
        engine = self.engine
        try:
            lib.pn_connection_close(engine.connection)
            deadline = time.monotonic() + _CLOSE_TIMEOUT_S
            while not engine.over and (left := deadline - time.monotonic()) > 0:
                self._pump.turn(left)
        except UserError:
            # The broker is already gone, and the reason was reported before.
            return
        finally:
            self._pump.close()
            engine.free()

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def connect(endpoint: Endpoint) -> Connection:
    """Connect, authenticate, and exchange AMQP open. Raises ConnectError: the step that failed, and what to do."""
    with _step(ConnectStep.TLS):
        context = client_context(endpoint.tls) if endpoint.tls is not None else None
    with _step(ConnectStep.REVOCATION):
        check = endpoint.tls.revocation_check() if endpoint.tls is not None else None
    began = now_ns()
    with _step(ConnectStep.TCP):
        sock = open_tcp(endpoint)
    tcp_done = now_ns()
    try:
        if endpoint.tls is not None and context is not None:
            with _step(ConnectStep.TLS):
                sock = _tls(endpoint, endpoint.tls, context, sock)
        tls_done = now_ns()
        if check is not None:
            with _step(ConnectStep.REVOCATION):
                _refuse_revoked(endpoint, check, sock)
        begins_sasl = now_ns()
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    engine = FramedEngine(sock, endpoint.name, idle_timeout_s=endpoint.idle_timeout_s)
    pump = SocketPump(engine, endpoint.name)
    try:
        _prepare(endpoint, engine, f"labconsole-{uuid.uuid4()}")
        deadline = time.monotonic() + endpoint.connect_timeout_s
        with _step(ConnectStep.SASL):
            _authenticate(endpoint, engine, pump, deadline)
            sasl_done = now_ns()
            _await_open(endpoint, engine, pump, deadline)
        opened = now_ns()
    except BaseException:
        pump.close()
        engine.free()
        raise
    tls_ns = tls_done - tcp_done if endpoint.tls is not None else 0
    times = ConnectTimes(tcp_done - began, tls_ns, sasl_done - begins_sasl, opened - sasl_done)
    return Connection(endpoint, engine, times, pump, check)


def open_tcp(endpoint: Endpoint) -> socket.socket:
    """A TCP connection to an endpoint. Raises UserError: the reason, as a clause that begins with its name."""
    address = (endpoint.host, endpoint.port) if endpoint.path is None else ("127.0.0.1", endpoint.path.port)
    try:
        sock = socket.create_connection(address, endpoint.connect_timeout_s)
    except socket.gaierror as error:
        raise UserError(f"the host name {endpoint.host} cannot be resolved: check its spelling and DNS") from error
    except TimeoutError as error:
        raise UserError(
            f"{endpoint.name} did not answer within {endpoint.connect_timeout_s:g} s: check address, route and firewall"
        ) from error
    except ConnectionRefusedError as error:
        raise UserError(f"{endpoint.name} refused the connection: is the broker running, and on this port?") from error
    except OSError as error:
        raise UserError(f"{endpoint.name} cannot be reached: {error.strerror or error}") from error
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if endpoint.path is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, CLIENT_BUFFER)
    return sock


def _tls(endpoint: Endpoint, tls: TlsSettings, context: ssl.SSLContext, sock: socket.socket) -> ssl.SSLSocket:
    name = tls.server_name or endpoint.host
    secure = context.wrap_socket(sock, server_hostname=name, do_handshake_on_connect=False)
    try:
        _handshake(endpoint, secure)
    except OSError as error:
        secure.close()
        refused = isinstance(error, ssl.SSLCertVerificationError)
        step = ConnectStep.CERTIFICATE if refused else ConnectStep.TLS
        raise ConnectError(client_failure(endpoint.name, name, tls, error), step) from error
    except UserError:
        secure.close()
        raise
    return secure


def _refuse_revoked(endpoint: Endpoint, check: RevocationCheck, sock: socket.socket) -> None:
    """Raises UserError: the broker's certificate is revoked, or not to be judged."""
    assert isinstance(sock, ssl.SSLSocket)
    if refusal := check.refusal_on(sock, Purpose.TLS_SERVER):
        raise UserError(f"{endpoint.name} cannot be trusted: {refusal}")


def _handshake(endpoint: Endpoint, secure: ssl.SSLSocket) -> None:
    """Do the TLS handshake; if the port stays silent, probe whether it is a port without TLS.

    Raises OSError, and UserError: it is a port without TLS.
    """
    silence_s = endpoint.silence_s
    timeouts = (min(silence_s, endpoint.connect_timeout_s), endpoint.connect_timeout_s - silence_s)
    for number, timeout in enumerate(timeouts):
        secure.settimeout(max(timeout, 0.01))
        try:
            secure.do_handshake()
            return
        except TimeoutError:
            if number:
                raise
            if probe_port_protocol(endpoint.host, endpoint.port) is PortProtocol.AMQP:
                raise UserError(plain_port_remedy(endpoint.name)) from None


def _prepare(endpoint: Endpoint, engine: FramedEngine, container: str) -> None:
    connection = engine.connection
    sasl = lib.pn_sasl(engine.transport)
    lib.pn_sasl_allowed_mechs(sasl, endpoint.mechanism.encode())
    # TLS is done outside of the engine, which refuses to send a password without TLS.
    lib.pn_sasl_set_allow_insecure_mechs(sasl, True)
    if endpoint.username is not None:
        lib.pn_connection_set_user(connection, endpoint.username.encode())
        lib.pn_connection_set_password(connection, (endpoint.password or "").encode())
    lib.pn_connection_set_container(connection, container.encode())
    lib.pn_connection_set_hostname(connection, endpoint.host.encode())
    engine.bind()
    lib.pn_connection_open(connection)


def _authenticate(endpoint: Endpoint, engine: FramedEngine, pump: SocketPump, deadline: float) -> None:
    sasl = lib.pn_sasl(engine.transport)
    while (outcome := lib.pn_sasl_outcome(sasl)) != lib.PN_SASL_OK:
        if outcome != lib.PN_SASL_NONE:
            raise UserError(_sasl_refusal(endpoint, decode_c_string(lib.pn_sasl_get_mech(sasl))))
        if engine.over:
            raise _closed_before_open(endpoint, engine)
        _pump_once(endpoint, engine, pump, deadline)


def _await_open(endpoint: Endpoint, engine: FramedEngine, pump: SocketPump, deadline: float) -> None:
    while not engine.remote_open:
        if engine.remote_closed:
            raise UserError(_open_refusal(endpoint, engine.condition))
        if engine.over:
            raise _closed_before_open(endpoint, engine)
        _pump_once(endpoint, engine, pump, deadline)
    if engine.remote_closed:
        raise UserError(_open_refusal(endpoint, engine.condition))


def _pump_once(endpoint: Endpoint, engine: FramedEngine, pump: SocketPump, deadline: float) -> None:
    left = deadline - time.monotonic()
    if left <= 0:
        raise UserError(f"{endpoint.name} accepted the connection but does not answer AMQP: is it an AMQP 1.0 port?")
    silent_for = endpoint.connect_timeout_s - left
    if silent_for < endpoint.silence_s:
        left = min(left, endpoint.silence_s - silent_for)
    elif (
        endpoint.tls is None
        and not engine.heard
        and probe_port_protocol(endpoint.host, endpoint.port) is PortProtocol.TLS
    ):
        raise ConnectError(tls_port_remedy(endpoint.name), ConnectStep.TLS)
    try:
        pump.turn(left)
    except UserError as error:
        # In TLS 1.3 a client learns only now that the server refuses its certificate.
        if endpoint.tls is not None and isinstance(error.__cause__, ssl.SSLError):
            name = endpoint.tls.server_name or endpoint.host
            sentence = client_failure(endpoint.name, name, endpoint.tls, error.__cause__)
            raise ConnectError(sentence, ConnectStep.TLS) from error
        if isinstance(error.__cause__, ConnectionError):
            raise _closed_before_open(endpoint, engine) from error
        raise


def _sasl_refusal(endpoint: Endpoint, chosen: str | None) -> str:
    mechanism = endpoint.mechanism
    if not chosen:
        return f"{endpoint.name} does not offer SASL {mechanism}: choose another way to authenticate"
    if mechanism == "PLAIN":
        return f"{endpoint.name} refused user {endpoint.username}: wrong user name or password"
    if mechanism == "EXTERNAL":
        return f"{endpoint.name} does not let our client certificate in (SASL EXTERNAL): it must know its name"
    return f"{endpoint.name} accepts no client without user or certificate (SASL ANONYMOUS refused)"


def _open_refusal(endpoint: Endpoint, condition: str | None) -> str:
    """The sentence for a broker that answers AMQP open by a close; some judge the client's name only then."""
    if condition is not None and condition.startswith(("amqp:unauthorized-access", "amqp:not-allowed")):
        who = {"PLAIN": f"user {endpoint.username}", "EXTERNAL": "our client certificate"}
        client = who.get(endpoint.mechanism, "a client without user or certificate")
        return f"{endpoint.name} does not let {client} in ({condition}): it must be valid, known there, and have rights"
    return f"{endpoint.name} closed the connection: {condition or 'no reason given'}"


def _closed_before_open(endpoint: Endpoint, engine: FramedEngine) -> ConnectError:
    """The fault of a broker that closed before the connection was open, without a reason in AMQP."""
    name, condition = endpoint.name, engine.condition or ""
    sasl, tls = ConnectStep.SASL, ConnectStep.TLS
    if "got: AMQP SASL layer" in condition:
        remedy = "give user and password, or a client certificate"
        return ConnectError(f"{name} accepts no client without authentication: {remedy}", sasl)
    if _TLS_ALERT.search(condition):
        return ConnectError(tls_port_remedy(name), tls)
    if "protocol header got" in condition:
        remedy = "check the port, and the broker's plugin for AMQP 1.0"
        return ConnectError(f"{name} does not speak AMQP 1.0: {remedy}", sasl)
    if endpoint.tls is not None:
        shown = "our client certificate" if endpoint.tls.identity else "a client without certificate"
        return ConnectError(f"{name} closed the connection right after TLS: it does not seem to accept {shown}", tls)
    if probe_port_protocol(endpoint.host, endpoint.port) is PortProtocol.TLS:
        return ConnectError(tls_port_remedy(name), tls)
    return ConnectError(f"{name} closed the connection before AMQP was open: is it an AMQP 1.0 port?", sasl)


def _close_reason(condition: str | None) -> str:
    """The engine's reason for a lost connection, in brackets; empty if it was only closed without AMQP close."""
    if condition is None or "connection aborted" in condition:
        return ""
    if "local-idle-timeout" in condition:
        return ": it was silent for too long"
    return f" ({condition})"
