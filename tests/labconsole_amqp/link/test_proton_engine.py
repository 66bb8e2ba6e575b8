"""The broker's engine reads a bounded amount at a time, so that one client cannot hold up the others."""

from __future__ import annotations

import ssl
from typing import Any

from proton import uint

from labconsole_amqp.link.proton_engine import ProtonEngine, lib
from tests.labconsole_amqp.amqp_frames import AMQP, ATTACH, BEGIN, OPEN, TRANSFER, frame

_RECORD = 16 * 1024
_MOST = 64 << 20


class Flood(ssl.SSLSocket):
    """A TLS socket of a client that opens a link, and then always sends: one message without end, in frames of 8 KB."""

    def __init__(self) -> None:  # without a socket below
        self._stream = AMQP + frame(OPEN, ["x"]) + frame(BEGIN, [None, uint(0), uint(1000), uint(1000)])
        self._stream += frame(ATTACH, ["l", uint(0), False, None, None, None, None, None, None, uint(0)])
        part = frame(TRANSFER, [uint(0), uint(0), b"t", uint(0), False, True])
        self._part = (8192).to_bytes(4, "big") + part[4:] + bytes(8192 - len(part))
        self.floods = False
        self.read_bytes = 0

    def recv_into(self, buffer: Any, nbytes: int | None = None, flags: int = 0) -> int:
        if self.floods and self.read_bytes < _MOST:
            self._stream = self._stream or 2 * self._part
        if not self._stream:
            raise ssl.SSLWantReadError
        size = min(len(buffer), len(self._stream))
        buffer[:size], self._stream = self._stream[:size], self._stream[size:]
        self.read_bytes += size
        return size

    def pending(self) -> int:
        return len(self._stream)

    def close(self) -> None:
        pass


def test_one_read_over_tls_ends_though_there_is_always_more() -> None:
    flood = Flood()
    engine = ProtonEngine(flood, server=True, idle_timeout_s=0)
    lib.pn_transport_require_auth(engine.transport, False)
    engine.bind()
    assert engine.read()
    lib.pn_connection_open(engine.connection)
    session, link = lib.pn_session_head(engine.connection, 0), lib.pn_link_head(engine.connection, 0)
    lib.pn_session_open(session)
    lib.pn_link_open(link)
    lib.pn_link_flow(link, 10)
    while (waiting := lib.pn_transport_pending(engine.transport)) > 0:
        lib.pn_transport_pop(engine.transport, waiting)
    flood.floods = True
    for _ in range(3):
        before = flood.read_bytes
        assert engine.read() and not engine.failed, engine.condition
        assert 0 < flood.read_bytes - before < 1 << 20
        assert not flood.pending(), "the selector does not see what is left in the TLS layer"
    assert lib.pn_session_incoming_bytes(session) > 0
    engine.free()
