"""One connection of the signing service: never blocks, whoever is at its other end."""

from __future__ import annotations

import socket

from labconsole_keypool.messages.wire import Busy, Decoder, Frame, Idle, Member, encode

_PIECE = 65_536


class Peer:
    """A signer or generator, once it has introduced itself; until then `member` is None."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection = connection
        self.member: Member | None = None
        self.name = ""
        self._busy: bool | None = None
        self._decoder = Decoder()
        self._outgoing = bytearray()

    @property
    def has_to_send(self) -> bool:
        """Whether something waits until the other end takes it."""
        return bool(self._outgoing)

    def send(self, frame: Frame) -> None:
        """Send as much as goes now; the rest waits. Raises OSError: it is gone."""
        self._outgoing += encode(frame)
        self.flush()

    def tell(self, busy: bool) -> None:
        """Tell whether the service is busy, if that has changed. Raises OSError: it is gone."""
        if busy != self._busy:
            self._busy = busy
            self.send(Busy() if busy else Idle())

    def flush(self) -> None:
        """Send what waits, as much as goes. Raises OSError: it is gone."""
        try:
            while self._outgoing:
                del self._outgoing[: self.connection.send(self._outgoing)]
        except BlockingIOError:
            return

    def receive(self) -> list[Frame] | None:
        """Frames that came; None if the other end is gone. Raises WireError: these are no frames."""
        try:
            data = self.connection.recv(_PIECE)
        except BlockingIOError:
            return []
        except OSError:
            return None
        return self._decoder.feed(data) if data else None

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()
