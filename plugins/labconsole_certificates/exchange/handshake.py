"""Proves trust by a real mutual TLS handshake over a loopback socket: both ends in this process, each in a thread."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from cryptography import x509
from OpenSSL import SSL

from labconsole.clock import now_ns
from labconsole.security.x509.names import general_name_from_text, short_name
from labconsole.security.x509.validation.judgement import Purpose
from labconsole_certificates.exchange.tls_context import TlsCredentials
from labconsole_certificates.exchange.tls_endpoint import Deadline, TlsEndpoint

_TIMEOUT_S = 5.0
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Handshake:
    """The result of a handshake. `protocol`, `cipher` and `group` are empty if it did not get that far.

    `client_report` and `server_report` are one sentence each: why that end accepted or refused the other; empty for a
    remote end.
    """

    ok: bool
    protocol: str
    cipher: str
    group: str
    duration_ns: int
    client_report: str
    server_report: str
    presented: tuple[x509.Certificate, ...] = ()
    """Certificates that a remote end presented, its end certificate first; empty where TLS itself refused them."""
    peer: str = ""
    """Where a remote end is, as in 192.0.2.1:5671."""


def perform_handshake(client: TlsCredentials, server: TlsCredentials, server_name: str | None = None) -> Handshake:
    """The result of `client` connecting to `server` by TLS with certificates both ways.

    `server_name` (DNS name or IP address) must be among the names of the server's certificate; None: any name matches.
    Errors of certificates, trust or revocation are part of the result, not exceptions.

    Raises:
        BadInput: a key does not belong to its certificate, TLS cannot use it (a token key), or `server_name` is not a
            name.
    """
    if server_name is not None:
        general_name_from_text(server_name)
    begun = now_ns()
    deadline = Deadline(_TIMEOUT_S)
    with (
        socket.create_server((_LOOPBACK, 0)) as listener,
        socket.create_connection(listener.getsockname()) as near,
        listener.accept()[0] as far,
        ThreadPoolExecutor(1, "tls-server") as pool,
    ):
        connecting = _endpoint(client, server, near, deadline, Purpose.TLS_SERVER, server_name)
        answering = _endpoint(server, client, far, deadline, Purpose.TLS_CLIENT, None)
        connecting.connection.set_connect_state()
        answering.connection.set_accept_state()
        answered = pool.submit(answering.handshake_with_console)
        passed = connecting.handshake_with_console()
        ok = answered.result() and passed
    return handshake_of(connecting.connection if ok else None, now_ns() - begun, connecting.report, answering.report)


def handshake_of(
    passed: SSL.Connection | None, duration_ns: int, client_report: str = "", server_report: str = ""
) -> Handshake:
    """The result; `passed` is the connection of either end if both accepted."""
    return Handshake(
        passed is not None,
        passed.get_protocol_version_name() if passed else "",
        (passed.get_cipher_name() or "") if passed else "",
        (passed.get_group_name() or "") if passed else "",
        duration_ns,
        client_report,
        server_report,
    )


def _endpoint(
    own: TlsCredentials,
    other: TlsCredentials,
    via: socket.socket,
    deadline: Deadline,
    purpose: Purpose,
    name: str | None,
) -> TlsEndpoint:
    def judge(presented: Sequence[x509.Certificate]) -> tuple[bool, str]:
        return own.judge(presented, purpose, name)

    peer_chain = (other.certificate, *other.chain)
    return TlsEndpoint(own.context, via, judge, short_name(other.certificate), deadline, peer_chain)
