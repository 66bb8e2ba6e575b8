"""The connections of the signing service: who may connect, what is heard from whom, and who is gone."""

from __future__ import annotations

import hmac
import selectors
import socket
from typing import Protocol

from labconsole.clock import now_ns
from labconsole_keypool.messages.wire import Busy, Decoder, End, Frame, Hello, Idle, Member, WireError, encode
from labconsole_keypool.service.service_link import HOST

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

    def notify_busy(self, busy: bool) -> None:
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


_TICK_S = 0.05
_CLOSE_TIMEOUT_S = 2.0
"""How long clients may take to hear that all is over."""


class ClientEvents(Protocol):
    """Whom a desk tells what happens at it."""

    def joined(self, peer: Peer) -> None:
        """A client showed the token and said what it is."""

    def heard(self, peer: Peer, frame: Frame) -> None:
        """A client that has joined says something. Raises WireError: that has no place here."""

    def left(self, peer: Peer) -> None:
        """A client that had joined is gone."""

    def refused(self, reason: str) -> None:
        """A connection was closed: a stranger's, or one that did not keep to the protocol."""


class ClientServer:
    """Listens on a free port of the loopback interface; one thread. `token` is what clients must show."""

    def __init__(self, host: ClientEvents) -> None:
        self._host = host
        self.token: bytes | None = None
        self._peers: list[Peer] = []
        # epoll would round each timeout up to whole ms
        self._selector = selectors.SelectSelector()
        self._listener = socket.socket()

    def listen(self) -> int:
        """Begin to listen; returns the port."""
        self._listener.bind((HOST, 0))
        self._listener.listen()
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)
        port: int = self._listener.getsockname()[1]
        return port

    def turn(self, timeout_s: float) -> None:
        """Hear all who have something to say, after `timeout_s` at the latest."""
        for key, events in self._selector.select(timeout_s):
            self._on_event(key, events)

    def members(self, member: Member) -> list[Peer]:
        """Those who joined as `member`."""
        return [peer for peer in self._peers if peer.member is member]

    def send(self, peer: Peer, frame: Frame) -> None:
        """Send a frame; a client that is gone has left by then."""
        try:
            peer.send(frame)
        except OSError:
            self._lose(peer)
            return
        self._wait_for_room(peer)

    def notify_busy(self, peer: Peer, *, busy: bool) -> None:
        """Tell whether the service is busy, if that has changed."""
        try:
            peer.notify_busy(busy)
        except OSError:
            self._lose(peer)
            return
        self._wait_for_room(peer)

    def dismiss(self) -> None:
        """Tell all clients that this is the end, and wait until the signers have gone.

        They may have said something meanwhile: closing over it would take the end away from them again.
        """
        for peer in list(self._peers):
            self.send(peer, End())
        deadline_ns = now_ns() + int(_CLOSE_TIMEOUT_S * 1e9)
        while now_ns() < deadline_ns:
            if not (self.members(Member.SIGNER) or any(peer.has_to_send for peer in self._peers)):
                return
            self.turn(_TICK_S)

    def close(self) -> None:
        """Close all connections."""
        for peer in self._peers:
            peer.close()
        self._listener.close()
        self._selector.close()

    def _on_event(self, key: selectors.SelectorKey, events: int) -> None:
        peer: Peer | None = key.data
        if peer is None:
            self._accept()
        elif peer in self._peers:  # else lost while others of this round were heard
            if events & selectors.EVENT_WRITE:
                self._flush(peer)
            if events & selectors.EVENT_READ and peer in self._peers:
                self._receive_from(peer)

    def _accept(self) -> None:
        try:
            connection, _address = self._listener.accept()
        except OSError:
            return  # whoever it was has given up
        peer = Peer(connection)
        self._peers.append(peer)
        self._selector.register(connection, selectors.EVENT_READ, peer)

    def _wait_for_room(self, peer: Peer) -> None:
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if peer.has_to_send else 0)
        if self._selector.get_key(peer.connection).events != events:
            self._selector.modify(peer.connection, events, peer)

    def _flush(self, peer: Peer) -> None:
        try:
            peer.flush()
        except OSError:
            self._lose(peer)
            return
        self._wait_for_room(peer)

    def _receive_from(self, peer: Peer) -> None:
        try:
            frames = peer.receive()
            for frame in frames or ():
                self._take(peer, frame)
        except WireError as error:
            self._host.refused(str(error))
            self._lose(peer)
            return
        if frames is None:
            self._lose(peer)

    def _take(self, peer: Peer, frame: Frame) -> None:
        if peer.member is not None:
            self._host.heard(peer, frame)
        elif isinstance(frame, Hello) and self.token is not None and hmac.compare_digest(frame.token, self.token):
            peer.member, peer.name = frame.member, frame.name
            self._host.joined(peer)
        else:
            raise WireError("An unknown client connected to the signing service, and did not show its token.")

    def _lose(self, peer: Peer) -> None:
        if peer in self._peers:
            self._peers.remove(peer)
            self._selector.unregister(peer.connection)
            peer.close()
            if peer.member is not None:
                self._host.left(peer)
