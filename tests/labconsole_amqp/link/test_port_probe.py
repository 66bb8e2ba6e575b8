"""A silent port of the other protocol, plain AMQP or TLS, is recognised within two seconds."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from labconsole.errors import UserError
from labconsole_amqp.link.connection import Endpoint, connect
from labconsole_amqp.link.tls import PortProtocol, TlsSettings, probe_port_protocol
from tests.labconsole_amqp.lab_pki import LabCa

AMQP, TLS_ALERT = b"AMQP\x03\x01\x00\x00", b"\x15\x03\x03\x00\x02\x02\x28"


@contextmanager
def answering(begins: bytes, answer: bytes) -> Iterator[Endpoint]:
    """A port that sends `answer` to input that starts with `begins`, and is silent otherwise."""
    listener = socket.create_server(("127.0.0.1", 0))
    opened: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            opened.append(sock)
            if sock.recv(64).startswith(begins):
                sock.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield Endpoint("127.0.0.1", listener.getsockname()[1], connect_timeout_s=30)
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
        for sock in opened:
            sock.close()


def test_a_silent_port_without_tls_is_named_to_a_tls_client(pki: LabCa) -> None:
    with answering(b"AMQP", AMQP) as plain:
        began = time.monotonic()
        with pytest.raises(UserError, match="does not speak TLS: use its TLS port"):
            connect(Endpoint(plain.host, plain.port, TlsSettings(trust=pki.ca_file), connect_timeout_s=30))
        assert time.monotonic() - began < 10, "long before the 30 s of the connection: 1 s of silence, and a probe"


def test_a_silent_tls_port_is_named_to_a_client_without_tls() -> None:
    with answering(b"\x16\x03", TLS_ALERT) as secure:
        began = time.monotonic()
        with pytest.raises(UserError, match="is a TLS port, and Test 1 has no TLS"):
            connect(secure)
        assert time.monotonic() - began < 10


def test_another_port_is_unknown() -> None:
    with answering(b"never", b"") as silent:
        assert probe_port_protocol(silent.host, silent.port) is PortProtocol.UNKNOWN
    assert probe_port_protocol("127.0.0.1", 1) is PortProtocol.UNKNOWN
