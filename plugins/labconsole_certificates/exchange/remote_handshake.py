"""One end of a mutual TLS handshake over the network; the other end is another console, or a foreign server."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any

from cryptography import x509
from OpenSSL import SSL

from labconsole.errors import UserError
from labconsole.security.x509.names import general_name_from_text
from labconsole_certificates.exchange.handshake import Handshake, handshake_of
from labconsole_certificates.exchange.tls_context import TlsCredentials
from labconsole_certificates.exchange.tls_endpoint import CancelCheck, Deadline, Judge, TlsEndpoint

_MOST_WAITING = 16
"""Connections that may wait while one is answered: a silent foreign one must not block the right one."""
_RECEIVE_TIMEOUT_S = 2.0
_CLOSE_TIMEOUT_S = 0.3
_MOST_AT_CLOSE = 1_048_576


@dataclass(frozen=True)
class HandshakeOptions:
    """How an end performs a handshake."""

    judge: Judge
    peer_name: str
    """Name of the other end in reports."""
    seconds: float
    """Limit for connection, handshake and answer; a foreign server is listened to `quiet_s` on top of it."""
    quiet_s: float = 0.0
    """0: the other end is a console. Otherwise: seconds to listen to a foreign server for a refusal."""
    watch: CancelCheck = lambda _closed: False


def connect(end: TlsCredentials, host: str, port: int, server_name: str, options: HandshakeOptions) -> Handshake:
    """The result of a handshake as a client with `host`; `server_name` (DNS name or IP address) is sent as SNI.

    Raises:
        BadInput: `server_name` is not a name, or TLS cannot use the end's key.
        UserError: the host is unknown, or cannot be reached.
        WaitCancelledError: cancelled by `options.watch`.
    """
    name = general_name_from_text(server_name)
    context = end.context
    deadline = Deadline(options.seconds, options.watch)
    with _connected(host, port, deadline) as via:
        endpoint = TlsEndpoint(context, via, options.judge, options.peer_name, deadline)
        endpoint.connection.set_connect_state()
        if isinstance(name, x509.DNSName):
            endpoint.connection.set_tlsext_host_name(name.value.encode("ascii"))
        passed = (
            endpoint.handshake_with_server(options.quiet_s, options.watch)
            if options.quiet_s
            else endpoint.handshake_with_console()
        )
        done = endpoint.connection if passed else None
        handshake = handshake_of(done, endpoint.duration_ns, client_report=_report(endpoint, options, passed))
        return _closed(endpoint, via, handshake, where(host, port))


def listening(address: str, port: int) -> socket.socket:
    """A socket that listens at `address` (IP address or host of this machine); `port` 0: any free one.

    Raises UserError.
    """
    try:
        family, _, _, _, found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.create_server(found[:2], family=family, backlog=_MOST_WAITING)
    except (OSError, UnicodeError) as error:
        raise UserError(f"{where(address, port)} cannot be had ({_reason(error)}): choose another.") from error
    listener.setblocking(False)
    return listener


def answer(
    end: TlsCredentials,
    listener: socket.socket,
    waiting_s: float,
    options: HandshakeOptions,
    failed: Callable[[Handshake], None] = lambda _handshake: None,
) -> Handshake:
    """The first handshake as a server that passes within `waiting_s` seconds, else the last one that failed.

    A connection that fails, or is foreign (a port scan, another protocol), is reported to `failed`, and the next one is
    awaited.

    Raises:
        BadInput: TLS cannot use the end's key.
        UserError: no process connected.
        WaitCancelledError: cancelled by `options.watch`.
    """
    context = end.context
    deadline = Deadline(waiting_s, options.watch)
    last: Handshake | None = None
    while True:
        try:
            via, peer = _accepted(listener, deadline)
        except TimeoutError:
            if last is not None:
                return last
            raise UserError(f"No peer connected within {waiting_s:g} s: nothing was proven.") from None
        with via:
            last = _answered(context, via, peer, options, min(options.seconds, deadline.left_s))
        if last.ok:
            return last
        failed(last)


def _answered(
    context: SSL.Context, via: socket.socket, peer: str, options: HandshakeOptions, seconds: float
) -> Handshake:
    try:
        Deadline(min(seconds, _RECEIVE_TIMEOUT_S), options.watch).to_read(via)
    except TimeoutError:
        seconds = 0.0  # a TLS client speaks first, and at once
    endpoint = TlsEndpoint(context, via, options.judge, options.peer_name, Deadline(seconds, options.watch))
    endpoint.connection.set_accept_state()
    passed = endpoint.handshake_with_console()
    done = endpoint.connection if passed else None
    handshake = handshake_of(done, endpoint.duration_ns, server_report=_report(endpoint, options, passed))
    return _closed(endpoint, via, handshake, peer)


def where(host: str, port: int) -> str:
    """Host and port, as in 192.0.2.1:5671 or [2001:db8::1]:5671."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _accepted(listener: socket.socket, deadline: Deadline) -> tuple[socket.socket, str]:
    """The next connection, and its address. Raises TimeoutError, WaitCancelledError."""
    while True:
        try:
            deadline.to_read(listener)
            via, address = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            continue  # gone before it was accepted
        return via, where(address[0], address[1])


def _connected(host: str, port: int, deadline: Deadline) -> socket.socket:
    """A connection to the first address of `host` that accepts one. Raises UserError."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UserError(f"No host is known as {host} ({_reason(error)}): check how it is written.") from error
    problem = ""
    for family, kind, protocol, _, address in found:
        with ExitStack() as opened:
            via = opened.enter_context(socket.socket(family, kind, protocol))
            problem = _connect_problem(via, address, deadline)
            if not problem:
                opened.pop_all()
                return via
    raise UserError(f"{where(host, port)} cannot be reached ({problem}): does the other end wait there?")


def _connect_problem(via: socket.socket, address: tuple[Any, ...], deadline: Deadline) -> str:
    """Why `via` cannot connect to `address`; empty once it is connected."""
    via.setblocking(False)
    code = via.connect_ex(address)
    if code in (errno.EINPROGRESS, errno.EWOULDBLOCK):
        try:
            deadline.to_write(via)
        except TimeoutError:
            return "no answer in time"
        code = via.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    return os.strerror(code) if code else ""


def _report(endpoint: TlsEndpoint, options: HandshakeOptions, passed: bool) -> str:
    if passed and not options.quiet_s:
        return f"{endpoint.report} {options.peer_name} accepts this end."
    return endpoint.report


def _closed(endpoint: TlsEndpoint, via: socket.socket, handshake: Handshake, peer: str) -> Handshake:
    """Close the connection, after the other end could read what was sent; returns the result."""
    with suppress(OSError, TimeoutError):
        endpoint.send_close_notify()
        via.shutdown(socket.SHUT_WR)
        deadline, octets = Deadline(_CLOSE_TIMEOUT_S), 0
        while octets < _MOST_AT_CLOSE:
            deadline.to_read(via)
            received = via.recv(65_536)
            octets += len(received)
            if not received:
                break
    return replace(handshake, presented=endpoint.presented, peer=peer)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else "") or str(error)
