"""One end of a mutual TLS handshake over the network, whose other end is another console, or a foreign server."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

from cryptography import x509
from OpenSSL import SSL

from labconsole.errors import UserError
from labconsole.security.x509.names import general_name_from_text
from labconsole_certificates.exchange.handshake import Handshake, TlsCredentials, handshake_of
from labconsole_certificates.exchange.tls_endpoint import CancelCheck, Deadline, Judge, TlsEndpoint

_MOST_WAITING = 16
"""Connections while one is answered: a foreign one that keeps silent must not shut out the right one."""
_RECEIVE_TIMEOUT_S = 2.0
_CLOSE_TIMEOUT_S = 0.3
_MOST_AT_CLOSE = 1_048_576


@dataclass(frozen=True)
class RemoteHandshake:
    """What one end saw: of `handshake` the words of the other end are empty, but this one tells what it answered."""

    handshake: Handshake
    presented: tuple[x509.Certificate, ...]
    """What the other end showed, its end certificate first; empty where TLS itself refused that."""
    peer: str
    """Where the other end is, as in 192.0.2.1:5671."""


@dataclass(frozen=True)
class HandshakeOptions:
    """How an end goes about a handshake."""

    judge: Judge
    who: str
    """What it calls the other end."""
    seconds: float
    """Limit for connection, handshake and answer; a foreign server is listened to `quiet_s` on top of it."""
    quiet_s: float = 0.0
    """0: the other end is a console. Otherwise it is a foreign server, listened to for a refusal so long."""
    watch: CancelCheck = lambda _closed: False


def connect(end: TlsCredentials, host: str, port: int, server_name: str, options: HandshakeOptions) -> RemoteHandshake:
    """Shake hands as a client with what listens at `host`; `server_name` (DNS name or IP address) is asked for by SNI.

    Raises:
        BadInput: `server_name` is no name, or the end's key serves no TLS.
        UserError: the host is unknown, or cannot be reached.
        WaitCancelledError: cancelled by `options.watch`.
    """
    name = general_name_from_text(server_name)
    context = end.context
    deadline = Deadline(options.seconds, options.watch)
    with _connected(host, port, deadline) as via:
        endpoint = TlsEndpoint(context, via, options.judge, options.who, deadline)
        endpoint.connection.set_connect_state()
        if isinstance(name, x509.DNSName):
            endpoint.connection.set_tlsext_host_name(name.value.encode("ascii"))
        passed = (
            endpoint.handshake_with_server(options.quiet_s, options.watch)
            if options.quiet_s
            else endpoint.handshake_with_console()
        )
        done = endpoint.connection if passed else None
        handshake = handshake_of(done, endpoint.duration_ns, client_said=_said(endpoint, options, passed))
        return _closed(endpoint, via, handshake, where(host, port))


def listening(address: str, port: int) -> socket.socket:
    """Listen at `address` (IP address or host of this machine); `port` 0: any free one. Raises UserError."""
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
    failed: Callable[[RemoteHandshake], None] = lambda _met: None,
) -> RemoteHandshake:
    """Shake hands as a server with what connects to `listener`, until one passes or `waiting_s` seconds are over.

    A connection that fails, or is foreign (a port scan, another protocol), is reported to `failed`, and the next one is
    waited for; when the time is over, the last of them is returned.

    Raises:
        BadInput: the end's key serves no TLS.
        UserError: no process connected.
        WaitCancelledError: cancelled by `options.watch`.
    """
    context = end.context
    deadline = Deadline(waiting_s, options.watch)
    last: RemoteHandshake | None = None
    while True:
        try:
            via, peer = _accepted(listener, deadline)
        except TimeoutError:
            if last is not None:
                return last
            raise UserError(f"No peer connected within {waiting_s:g} s: nothing was proven.") from None
        with via:
            last = _answered(context, via, peer, options, min(options.seconds, deadline.left_s))
        if last.handshake.ok:
            return last
        failed(last)


def _answered(
    context: SSL.Context, via: socket.socket, peer: str, options: HandshakeOptions, seconds: float
) -> RemoteHandshake:
    try:
        Deadline(min(seconds, _RECEIVE_TIMEOUT_S), options.watch).to_read(via)
    except TimeoutError:
        seconds = 0.0  # a TLS client speaks first, and at once
    endpoint = TlsEndpoint(context, via, options.judge, options.who, Deadline(seconds, options.watch))
    endpoint.connection.set_accept_state()
    passed = endpoint.handshake_with_console()
    done = endpoint.connection if passed else None
    handshake = handshake_of(done, endpoint.duration_ns, server_said=_said(endpoint, options, passed))
    return _closed(endpoint, via, handshake, peer)


def where(host: str, port: int) -> str:
    """Both in one, as in 192.0.2.1:5671 or [2001:db8::1]:5671."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _accepted(listener: socket.socket, deadline: Deadline) -> tuple[socket.socket, str]:
    """The next connection, and where it comes from. Raises TimeoutError, WaitCancelledError."""
    while True:
        try:
            deadline.to_read(listener)
            via, address = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            continue  # gone before it was accepted
        return via, where(address[0], address[1])


def _connected(host: str, port: int, deadline: Deadline) -> socket.socket:
    """A connection to the first address of `host` that takes it."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UserError(f"No host is known as {host} ({_reason(error)}): check how it is written.") from error
    trouble = ""
    for family, kind, protocol, _, address in found:
        with ExitStack() as opened:
            via = opened.enter_context(socket.socket(family, kind, protocol))
            trouble = _connect_problem(via, address, deadline)
            if not trouble:
                opened.pop_all()
                return via
    raise UserError(f"{where(host, port)} cannot be reached ({trouble}): does the other end wait there?")


def _connect_problem(via: socket.socket, address: tuple[Any, ...], deadline: Deadline) -> str:
    """Why there is no connection to `address`; nothing if there is one."""
    via.setblocking(False)
    code = via.connect_ex(address)
    if code in (errno.EINPROGRESS, errno.EWOULDBLOCK):
        try:
            deadline.to_write(via)
        except TimeoutError:
            return "no answer in time"
        code = via.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    return os.strerror(code) if code else ""


def _said(endpoint: TlsEndpoint, options: HandshakeOptions, passed: bool) -> str:
    return f"{endpoint.said} {options.who} accepts this end." if passed and not options.quiet_s else endpoint.said


def _closed(endpoint: TlsEndpoint, via: socket.socket, handshake: Handshake, peer: str) -> RemoteHandshake:
    """Take leave, and let the other end read what it was told before the connection is gone."""
    with suppress(OSError, TimeoutError):
        endpoint.send_close_notify()
        via.shutdown(socket.SHUT_WR)
        parting, octets = Deadline(_CLOSE_TIMEOUT_S), 0
        while octets < _MOST_AT_CLOSE:
            parting.to_read(via)
            received = via.recv(65_536)
            octets += len(received)
            if not received:
                break
    return RemoteHandshake(handshake, endpoint.presented, peer)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else "") or str(error)
