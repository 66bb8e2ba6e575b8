"""What a port speaks that does not answer as it should: plain AMQP where TLS was tried, or the other way round."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from enum import Enum, auto

_TIMEOUT_S = 0.7
_SASL_HEADER = b"AMQP\x03\x01\x00\x00"
_HANDSHAKE, _ALERT = 0x16, 0x15


class Spoken(Enum):
    """What was heard."""

    AMQP = auto()
    TLS = auto()
    UNKNOWN = auto()


def port_speaks(host: str, port: int) -> Spoken:
    """Ask the port over two connections of its own, at most 0.7 s each: first in plain AMQP, then by a TLS hello."""
    if _answer(host, port, _SASL_HEADER)[:4] == b"AMQP":
        return Spoken.AMQP
    answer = _answer(host, port, _client_hello())
    if len(answer) > 1 and answer[0] in (_HANDSHAKE, _ALERT) and answer[1] == 3:
        return Spoken.TLS
    return Spoken.UNKNOWN


def without_tls(peer: str) -> str:
    """What to do about a port that speaks plain AMQP, as a clause."""
    return f"{peer} does not speak TLS: use its TLS port, or choose Test 1, which has no TLS"


def with_tls(peer: str) -> str:
    """What to do about a port that speaks TLS only, as a clause."""
    return f"{peer} is a TLS port, and Test 1 has no TLS: use the broker's port without TLS, or choose Test 2, 3 or 4"


def _answer(host: str, port: int, said: bytes) -> bytes:
    try:
        with socket.create_connection((host, port), _TIMEOUT_S) as sock:
            sock.sendall(said)
            return sock.recv(64)
    except OSError:
        return b""


def _client_hello() -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # only the first bytes of the answer are looked at
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing).do_handshake()
    return outgoing.read()
