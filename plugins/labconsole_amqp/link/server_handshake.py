"""What comes before AMQP with a client that has connected: TLS, its certificate, and SASL (part 5, 5.3).

Of SASL there are EXTERNAL, PLAIN and ANONYMOUS. Proton itself offers a server PLAIN only with Cyrus SASL, and EXTERNAL
only with its own TLS; we have neither.
"""

from __future__ import annotations

import hmac
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from proton import UNDESCRIBED, Array, Data, Described, symbol, ubyte, ulong

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole.security.x509.validation.judgement import Purpose
from labconsole_amqp.link.proton_engine import WOULD_BLOCK
from labconsole_amqp.link.revocation import RevocationCheck
from labconsole_amqp.link.tls import peer_subject, server_failure
from labconsole_amqp.wire.amqp_types import (
    BINARIES,
    LISTS,
    SASL_HEADER,
    SYMBOLS,
    EnvelopeError,
    list_items,
    unsigned_long,
    value_at,
)

_AMQP_HEADER = b"AMQP\x00\x01\x00\x00"
_MECHANISMS, _INIT, _OUTCOME = 0x40, 0x41, 0x44
_OK, _AUTH_FAILED = 0, 1
_MAX_FRAME_BYTES = 4096
_TLS_HANDSHAKE = b"\x16\x03"
_MALFORMED = "client sent a malformed SASL frame"


@dataclass(frozen=True, slots=True)
class Access:
    """Which clients are accepted: all (`anonymous`), or `users` (name -> password).

    A client with a verified TLS certificate is always accepted.
    """

    anonymous: bool = True
    users: Mapping[str, str] = field(default_factory=dict, repr=False)


class RefusedClientError(UserError):
    """A client is refused, for the reason in a clause."""


class ServerHandshake:
    """TLS and SASL with one client.

    Args:
        sock: non-blocking; an `ssl.SSLSocket` that has not shaken hands yet on a TLS port.
        access: which clients are accepted.
        revocation: judges the client's certificate after the TLS handshake; None: no certificate counts as revoked.

    `unwelcome` is why the certificate is refused, the answer when the client opens the connection, so that it learns
    why; empty: it is not. `secured_ns` is when TLS was done.
    """

    def __init__(self, sock: socket.socket, access: Access, revocation: RevocationCheck | None) -> None:
        self.unwelcome = ""
        self.secured_ns = now_ns()
        self._sock, self._access, self._revocation = sock, access, revocation
        self._sasl = None if isinstance(sock, ssl.SSLSocket) else SaslServer(access, None)

    def judge(self, check: RevocationCheck) -> None:
        """Judge the client's certificate by this check, again if that was done."""
        self._revocation = check
        if self._sasl is not None:
            assert isinstance(self._sock, ssl.SSLSocket)
            self.unwelcome = check.refusal_on(self._sock, Purpose.TLS_CLIENT)

    def work(self) -> bytes | None:
        """Continue where the socket is readable: what the client has sent after SASL, None before that is done.

        Raises:
            RefusedClientError: the client is refused, and knows why where its protocol has a way to say it.
            OSError: it is gone.
        """
        if self._sasl is None and not self._secure(self._sock):
            return None
        sasl = self._sasl
        assert sasl is not None
        while not sasl.done:
            try:
                data = self._sock.recv(65536)
            except WOULD_BLOCK:
                return None
            if not data:
                raise ConnectionAbortedError("it closed the connection during SASL")
            if answer := sasl.feed(data):
                self._sock.sendall(answer)
        if sasl.failure is not None:
            raise RefusedClientError(sasl.failure)
        return sasl.rest

    def _secure(self, sock: socket.socket) -> bool:
        """Do the TLS handshake; whether it is done."""
        assert isinstance(sock, ssl.SSLSocket)
        try:
            sock.do_handshake()
        except WOULD_BLOCK:
            return False
        except OSError as error:
            raise RefusedClientError(server_failure(error)) from error
        self.secured_ns = now_ns()
        self._sasl = SaslServer(self._access, peer_subject(sock))
        if self._revocation is not None:
            self.judge(self._revocation)
        return True


class SaslServer:
    """Negotiates with one client: `feed` returns answers to its input, then `user` or `failure` is set.

    Args:
        access: which clients are accepted.
        subject: the verified subject of the client's certificate, None without one.
    """

    def __init__(self, access: Access, subject: str | None) -> None:
        self.user: str | None = None
        self.failure: str | None = None
        self.rest = b""
        self._access = access
        self._subject = subject
        self._received = b""
        self._header_seen = False

    @property
    def done(self) -> bool:
        """Whether the client is accepted (`user`, and `rest`: its input after SASL) or refused (`failure`)."""
        return self.user is not None or self.failure is not None

    def feed(self, data: bytes) -> bytes:
        """Process input of the client; returns the answer to be sent."""
        self._received += data
        answer = b""
        if not self._header_seen and len(self._received) >= len(SASL_HEADER):
            answer = self._read_header()
        if self._header_seen and not self.done and (frame := self._read_frame()) is not None:
            answer += self._answer_init(frame)
        return answer

    def _read_header(self) -> bytes:
        header, self._received = self._received[:8], self._received[8:]
        if header == SASL_HEADER:
            self._header_seen = True
            return SASL_HEADER + _frame(_MECHANISMS, _symbols(self._mechanisms()))
        if header == _AMQP_HEADER and self._access.anonymous:
            self.user, self.rest = "anonymous", header + self._received
            return b""
        if header[:2] == _TLS_HANDSHAKE:
            self.failure = "client speaks TLS, which this port does not"
        else:
            spoke_amqp = header == _AMQP_HEADER
            self.failure = "client spoke AMQP without SASL" if spoke_amqp else "client does not speak AMQP 1.0"
        return SASL_HEADER

    def _mechanisms(self) -> list[symbol]:
        offered = {
            "EXTERNAL": self._subject is not None,
            "PLAIN": bool(self._access.users),
            "ANONYMOUS": self._access.anonymous,
        }
        return [symbol(name) for name, on in offered.items() if on]

    def _read_frame(self) -> bytes | None:
        """The body of the next frame, None while it is not complete."""
        if len(self._received) < 4:
            return None
        size = int.from_bytes(self._received[:4], "big")
        if not 8 <= size <= _MAX_FRAME_BYTES:
            self.failure = _MALFORMED
            return None
        if len(self._received) < size:
            return None
        frame, self._received = self._received[:size], self._received[size:]
        return frame[frame[4] * 4 :]

    def _answer_init(self, body: bytes) -> bytes:
        try:
            mechanism, response = _init(body)
        except EnvelopeError:
            self.failure = _MALFORMED
            return b""
        self.user, self.failure = self._authenticate(mechanism, response)
        if self.user is not None:
            self.rest = self._received
        return _frame(_OUTCOME, ubyte(_AUTH_FAILED if self.user is None else _OK))

    def _authenticate(self, mechanism: str, response: bytes) -> tuple[str | None, str | None]:
        """(user, None) or (None, why not)."""
        if mechanism not in self._mechanisms():
            return None, f"SASL {mechanism} not offered"
        if mechanism == "EXTERNAL":
            return self._subject, None
        if mechanism == "ANONYMOUS":
            return "anonymous", None
        _, name, password = [*response.split(b"\0", 2), b"", b""][:3]
        user = name.decode("utf-8", "replace")
        expected = self._access.users.get(user)
        if expected is None or not hmac.compare_digest(expected.encode(), password):
            return None, "wrong user name or password"
        return user, None


def _init(body: bytes) -> tuple[str, bytes]:
    """Mechanism and initial response of a SASL init frame (part 5, 5.3.3.2). Raises EnvelopeError: it is not one."""
    if not body.startswith(b"\0"):
        raise EnvelopeError("the frame has no descriptor")
    descriptor = value_at(body, 1, len(body))
    content = value_at(body, descriptor.stop, len(body))
    if unsigned_long(body, descriptor) != _INIT or content.type not in LISTS:
        raise EnvelopeError("the frame is not a SASL init")
    mechanism, response = (*list_items(body, content), None, None)[:2]
    if mechanism is None or mechanism.type not in SYMBOLS:
        raise EnvelopeError("the SASL init has no mechanism")
    name = body[mechanism.start : mechanism.stop].decode("ascii", "backslashreplace")
    return name, body[response.start : response.stop] if response and response.type in BINARIES else b""


def _symbols(names: list[symbol]) -> Any:
    """An AMQP array of symbols; proton's annotations know neither its type code nor its elements."""
    head: Any = (UNDESCRIBED, Data.SYMBOL)
    return Array(*head, *names)


def _frame(code: int, field_value: Any) -> bytes:
    data = Data()
    data.put_object(Described(ulong(code), [field_value]))
    body = bytes(data.encode())
    return (len(body) + 8).to_bytes(4, "big") + b"\x02\x01\x00\x00" + body
