"""The base of the ends that carry a trial's messages: the counts of their session, in which there is no other link."""

from __future__ import annotations

from typing import Any

from labconsole.errors import UserError
from labconsole_amqp.link.connection import Connection
from labconsole_amqp.link.framed_engine import FrameLink
from labconsole_amqp.link.link_base import Link
from labconsole_amqp.link.performatives import Fields, Performative
from labconsole_amqp.link.proton_engine import lib


class MessageLink(Link, FrameLink):
    """A link whose transfers, flows and dispositions pass by proton (see `FramedEngine`)."""

    def __init__(self, connection: Connection, address: str, kind: str) -> None:
        super().__init__(connection, address, kind)
        self._engine = connection.engine
        self._channel = -1
        """Ours; -1 until the peer has attached."""

    def _attach(self, own: Any, remote: Any, timeout_s: float) -> int:
        self._engine.expect(self.name, self)  # of a link that is answered, the peer's counts come at once
        return super()._attach(own, remote, timeout_s)

    def attached(self, channel: int, begin: Fields, attach: Fields) -> None:
        """The peer has answered."""
        self._channel = channel

    def take(self, code: int, at: int, size: int, end: int) -> int:
        """Take frames of the peer. Raises EnvelopeError, UserError."""
        match code:
            case Performative.FLOW:
                self._take_flow(Fields(bytes(self._engine.input[at : at + size])))
            case Performative.TRANSFER:
                return self._take_transfers(at, size, end)
            case Performative.DISPOSITION:
                return self._take_dispositions(at, size, end)
        return size

    def _take_flow(self, flow: Fields) -> None:
        """Take the peer's credit or counts."""

    def _take_transfers(self, at: int, size: int, end: int) -> int:
        raise UserError(f"{self.connection.endpoint.name} sends messages on a link that sends to it")

    def _take_dispositions(self, at: int, size: int, end: int) -> int:
        return size  # of deliveries that this end has settled already

    @property
    def _largest_frame(self) -> int:
        """Bytes of the largest frame that the peer accepts: each accepts 512 (part 2, 2.7.1)."""
        return max(512, int(lib.pn_transport_get_remote_max_frame(self._engine.transport)) or 2**32 - 1)
