"""Proves trust by a real mutual TLS handshake over a loopback socket: both ends in this process, each in a thread."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TypeVar

from cryptography import x509
from OpenSSL import SSL

from labconsole.clock import now_ns
from labconsole.security.identities import validity_problem
from labconsole.security.x509.fingerprints import fingerprint
from labconsole.security.x509.key_types import PrivateKey
from labconsole.security.x509.names import general_name_from_text, short_name
from labconsole.security.x509.tls_context import tls_context
from labconsole.security.x509.validation.fitness import misfit
from labconsole.security.x509.validation.judgement import Purpose
from labconsole.security.x509.validation.validating import Validator

T = TypeVar("T")

_TIMEOUT_NS = 5_000_000_000
_LOOPBACK = "127.0.0.1"
_ACCEPTED = b"\x06"
"""Each end sends it once it has accepted the other: in TLS 1.3 a client is done before the server has judged it."""


@dataclass(frozen=True)
class TlsEnd:
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

    @cached_property
    def context(self) -> SSL.Context:
        """How it speaks TLS. Raises BadInput: the key is not the certificate's, or TLS cannot use it."""
        return tls_context(self.certificate, self.chain, self.key, self.roots, self.crls, judged_later=bool(self.pins))

    def judge(self, presented: Sequence[x509.Certificate], purpose: Purpose, name: str | None) -> tuple[bool, str]:
        """Whether it accepts the other end's certificates (the end certificate first), and why. Raises BadInput."""
        leaf, *intermediates = presented
        if fingerprint(leaf) in self.pins:
            problem = validity_problem(leaf, datetime.now(UTC)) or misfit((leaf,), purpose, name)
            return (False, f"It is pinned, but {problem}.") if problem else (True, "It is pinned by its fingerprint.")
        judgement = self._validator.validate(leaf, purpose, name, intermediates)
        return judgement.accepted, judgement.why

    @cached_property
    def _validator(self) -> Validator:
        return Validator(self.roots, (), self.crls, at=datetime.now(UTC))


@dataclass(frozen=True)
class Handshake:
    """What came of a handshake. `protocol`, `cipher` and `group` are empty where it did not come to that.

    `client_said` and `server_said`: one sentence each: why that end accepted or refused the other.
    """

    ok: bool
    protocol: str
    cipher: str
    group: str
    duration_ns: int
    client_said: str
    server_said: str


def shake_hands(client: TlsEnd, server: TlsEnd, server_name: str | None = None) -> Handshake:
    """Have `client` connect to `server` by TLS with certificates both ways.

    `server_name` (DNS name or IP address) must be among the names of the server's certificate; None: any name will do.
    What is wrong with certificates, trust or revocation is a result, not an exception.

    Raises:
        BadInput: a key does not belong to its certificate, TLS cannot use it (a token key), or `server_name` is none.
    """
    if server_name is not None:
        general_name_from_text(server_name)
    begun = now_ns()
    deadline = begun + _TIMEOUT_NS
    with (
        socket.create_server((_LOOPBACK, 0)) as listener,
        socket.create_connection(listener.getsockname()) as near,
        listener.accept()[0] as far,
        ThreadPoolExecutor(1, "tls-server") as pool,
    ):
        asking = _Meeting(client, server, near, deadline, Purpose.TLS_SERVER, server_name)
        answering = _Meeting(server, client, far, deadline, Purpose.TLS_CLIENT, None)
        asking.connection.set_connect_state()
        answering.connection.set_accept_state()
        answered = pool.submit(answering.meet)
        asked = asking.meet()
        ok = answered.result() and asked
    met = asking.connection if ok else None
    return Handshake(
        ok,
        met.get_protocol_version_name() if met else "",
        (met.get_cipher_name() or "") if met else "",
        (met.get_group_name() or "") if met else "",
        now_ns() - begun,
        asking.said,
        answering.said,
    )


class _Meeting:
    """One end's side of a handshake over the socket `via`; `said` tells afterwards what it made of the other end."""

    def __init__(
        self, own: TlsEnd, other: TlsEnd, via: socket.socket, deadline: int, purpose: Purpose, name: str | None
    ) -> None:
        via.setblocking(False)
        via.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection = SSL.Connection(own.context, via)
        self.said = ""
        self._own, self._other, self._via, self._deadline = own, other, via, deadline
        self._purpose, self._name = purpose, name

    def meet(self) -> bool:
        """Shake hands, judge the other end, and wait for its judgement; closes the connection if it refuses."""
        who = short_name(self._other.certificate)
        try:
            self._wait_for(self.connection.do_handshake)
            accepted, why = self._own.judge(self._presented(), self._purpose, self._name)
            self.said = f"{'Accepts' if accepted else 'Refuses'} {who}: {why}"
            if not accepted:
                self._via.shutdown(socket.SHUT_WR)
                return False
            self._wait_for(lambda: self.connection.send(_ACCEPTED))
            return self._wait_for(lambda: self.connection.recv(1)) == _ACCEPTED
        except (SSL.Error, OSError, TimeoutError) as error:
            self.said = " ".join(filter(None, (self.said, self._why_not(error))))
            return False

    def _presented(self) -> list[x509.Certificate]:
        """The other end's certificate, then what it sent along (a server's view of that lacks the first)."""
        leaf = self.connection.get_peer_certificate(as_cryptography=True)
        sent = self.connection.get_peer_cert_chain(as_cryptography=True) or []
        return [leaf, *(certificate for certificate in sent if certificate != leaf)] if leaf else []

    def _why_not(self, error: Exception) -> str:
        who = short_name(self._other.certificate)
        match error:
            case TimeoutError():
                return f"{who} did not answer in time."
            case SSL.ZeroReturnError() | SSL.SysCallError() | OSError():
                return f"{who} closed the connection."
        reason = error.args[0][0][2] if error.args and error.args[0] else "TLS failed"
        if "alert" in reason:
            return f"{who} broke off: {reason}."
        code = self.connection.get_app_data()
        if code is None:
            return f"{who} was not understood: {reason}."
        accepted, why = self._own.judge((self._other.certificate, *self._other.chain), self._purpose, self._name)
        if accepted:
            return f"Refuses {who}: TLS does (verification error {code} of OpenSSL), though its path is accepted."
        return f"Refuses {who}: {why}"

    def _wait_for(self, operation: Callable[[], T]) -> T:
        readable: list[socket.socket]
        writable: list[socket.socket]
        while True:
            try:
                return operation()
            except SSL.WantReadError:
                readable, writable = [self._via], []
            except SSL.WantWriteError:
                readable, writable = [], [self._via]
            if not any(select.select(readable, writable, [], self._left())):
                raise TimeoutError

    def _left(self) -> float:
        return max(0, self._deadline - now_ns()) / 1e9
