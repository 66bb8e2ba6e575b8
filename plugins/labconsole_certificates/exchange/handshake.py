"""Proves trust by a real mutual TLS handshake over a loopback socket: both ends in this process, each in a thread."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from cryptography import x509
from OpenSSL import SSL

from labconsole.clock import now_ns
from labconsole.security.identities import validity_problem
from labconsole.security.x509.fingerprints import fingerprint
from labconsole.security.x509.key_types import PrivateKey
from labconsole.security.x509.names import general_name_from_text, short_name
from labconsole.security.x509.validation.judgement import Purpose
from labconsole.security.x509.validation.validator import Validator, usage_problem
from labconsole_certificates.exchange.tls_context import tls_context
from labconsole_certificates.exchange.tls_endpoint import Deadline, TlsEndpoint

_TIMEOUT_S = 5.0
_LOOPBACK = "127.0.0.1"


def _none_refused(path: Sequence[x509.Certificate]) -> str:
    return ""


@dataclass(frozen=True)
class TlsCredentials:
    """One end: its certificate, the intermediates above it, its key, and what it trusts.

    `pins` are SHA-256 fingerprints (hex) of end certificates that are accepted without any CA while they are valid.
    What it trusts is prepared once, at its first handshake, and then serves any number of them.
    """

    certificate: x509.Certificate
    chain: tuple[x509.Certificate, ...]
    key: PrivateKey
    roots: tuple[x509.Certificate, ...]
    crls: tuple[x509.CertificateRevocationList, ...] = ()
    pins: Collection[str] = ()
    names_refused: Callable[[Sequence[x509.Certificate]], str] = _none_refused
    """Says why it refuses the names of the end certificate at the begin of a path; empty: it does not."""

    @cached_property
    def context(self) -> SSL.Context:
        """How it speaks TLS. Raises BadInput: the key is not the certificate's, or TLS cannot use it."""
        return tls_context(self.certificate, self.chain, self.key, self.roots, self.crls, judged_later=bool(self.pins))

    def judge(self, presented: Sequence[x509.Certificate], purpose: Purpose, name: str | None) -> tuple[bool, str]:
        """Whether it accepts the other end's certificates (the end certificate first), and why. Raises BadInput."""
        leaf, *intermediates = presented
        if fingerprint(leaf) in self.pins:
            problem = validity_problem(leaf, datetime.now(UTC)) or usage_problem((leaf,), purpose, name)
            if problem:
                return False, f"It is pinned, but {problem}."
            refused = self.names_refused((leaf,))
            return (False, refused) if refused else (True, "It is pinned by its fingerprint.")
        judgement = self._validator.validate(leaf, purpose, name, intermediates)
        refused = self.names_refused(judgement.path) if judgement.accepted else ""
        return (False, refused) if refused else (judgement.accepted, judgement.why)

    @cached_property
    def _validator(self) -> Validator:
        return Validator(self.roots, (), self.crls, at=datetime.now(UTC))


@dataclass(frozen=True)
class Handshake:
    """What came of a handshake. `protocol`, `cipher` and `group` are empty where it did not come to that.

    `client_said` and `server_said`: one sentence each: why that end accepted or refused the other; empty for an end
    that is not here.
    """

    ok: bool
    protocol: str
    cipher: str
    group: str
    duration_ns: int
    client_said: str
    server_said: str


def perform_handshake(client: TlsCredentials, server: TlsCredentials, server_name: str | None = None) -> Handshake:
    """Have `client` connect to `server` by TLS with certificates both ways.

    `server_name` (DNS name or IP address) must be among the names of the server's certificate; None: any name will do.
    What is wrong with certificates, trust or revocation is a result, not an exception.

    Raises:
        BadInput: a key does not belong to its certificate, TLS cannot use it (a token key), or `server_name` is none.
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
        asking = _endpoint(client, server, near, deadline, Purpose.TLS_SERVER, server_name)
        answering = _endpoint(server, client, far, deadline, Purpose.TLS_CLIENT, None)
        asking.connection.set_connect_state()
        answering.connection.set_accept_state()
        answered = pool.submit(answering.handshake_with_console)
        asked = asking.handshake_with_console()
        ok = answered.result() and asked
    return handshake_of(asking.connection if ok else None, now_ns() - begun, asking.said, answering.said)


def handshake_of(
    passed: SSL.Connection | None, duration_ns: int, client_said: str = "", server_said: str = ""
) -> Handshake:
    """What came of it; `passed` is the connection of either end if both accepted."""
    return Handshake(
        passed is not None,
        passed.get_protocol_version_name() if passed else "",
        (passed.get_cipher_name() or "") if passed else "",
        (passed.get_group_name() or "") if passed else "",
        duration_ns,
        client_said,
        server_said,
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

    sends = (other.certificate, *other.chain)
    return TlsEndpoint(own.context, via, judge, short_name(other.certificate), deadline, sends)
