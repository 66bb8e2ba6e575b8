"""Both ends of the connections between the signing service and its signers and generators.

`ClientServer` is the service's end, for any number of clients; `ServiceLink` is a client's. All are on the loopback
interface; a client shows the run's token first.
"""

from __future__ import annotations

import hmac
import select
import selectors
import socket
import threading
import time
from collections.abc import Mapping
from typing import Any, Protocol

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole.model.role import RoleContext
from labconsole_keypool.messages.service_frames import Busy, Decoder, End, Frame, Hello, Idle, Member, WireError, encode

HOST = "127.0.0.1"
CONNECT, ADMIT, START = "connect", "admit", "start"
_CONNECT_TIMEOUT_S = 10.0
_POLL_S = 0.005
_BUFFER_BYTES = 65_536


class LinkClosedError(UserError):
    """The service closed the connection, or is gone."""


class ServiceLink:
    """An open connection: any thread sends, one receives."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._decoder = Decoder()
        self._turn = threading.Lock()
        self._ended = False

    def send(self, *frames: Frame) -> None:
        """Send frames together. Raises LinkClosedError."""
        data = b"".join(map(encode, frames))
        try:
            with self._turn:
                self._connection.sendall(data)
        except OSError as error:
            raise _closed() from error

    def receive(self, timeout_s: float) -> list[Frame]:
        """Return the frames received, waiting up to `timeout_s` for the first; none after `End`.

        Raises:
            LinkClosedError: the service closed the connection before its end, or is gone.
            WireError: the received bytes are not frames.
        """
        if self._ended:
            return []
        try:
            ready, _, _ = select.select([self._connection], [], [], timeout_s)
            if not ready:
                return []
            data = self._connection.recv(_BUFFER_BYTES)
        except OSError as error:
            raise _closed() from error
        if not data:
            raise _closed()
        frames = self._decoder.feed(data)
        self._ended = End() in frames
        return frames

    def close(self) -> None:
        """Close the connection; twice does nothing."""
        self._connection.close()


def connect_command(port: int, token: bytes) -> dict[str, Any]:
    """The command that lets a signer or generator connect; settings are stored, so the token is not in them."""
    return {"do": CONNECT, "port": port, "token": token.hex()}


def admit_command(token: bytes) -> dict[str, Any]:
    """The command with the token that clients of the service must show."""
    return {"do": ADMIT, "token": token.hex()}


def start_command(begin_ns: int) -> dict[str, Any]:
    """The command with T0, at which the first request arrives."""
    return {"do": START, "begin_ns": begin_ns}


def connect(command: Mapping[str, Any], member: Member, name: str) -> ServiceLink:
    """Connect by a `connect_command`, and introduce `member`. Raises LinkClosedError: the service is gone."""
    try:
        connection = socket.create_connection((HOST, command["port"]), _CONNECT_TIMEOUT_S)
    except OSError as error:
        raise _closed() from error
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    link = ServiceLink(connection)
    link.send(Hello(bytes.fromhex(command["token"]), member, name))
    return link


def wait_for_link(context: RoleContext, member: Member, name: str) -> ServiceLink | None:
    """Wait for a `connect_command`, and connect; None if the role is stopped before. Raises as `connect`."""
    while not context.stop_requested:
        command = context.take_command()
        if command is not None and command["do"] == CONNECT:
            return connect(command, member, name)
        context.tick()
        time.sleep(_POLL_S)
    return None


def _closed() -> LinkClosedError:
    return LinkClosedError("The signing service closed the connection before its end: see its own message.")


class Peer:
    """The connection of a signer or generator; `member` is None until it has introduced itself."""

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
        """Whether bytes are queued because the other end does not read."""
        return bool(self._outgoing)

    def send(self, frame: Frame) -> None:
        """Send what the socket takes now, and queue the rest. Raises OSError: the client is gone."""
        self._outgoing += encode(frame)
        self.flush()

    def notify_busy(self, busy: bool) -> None:
        """Send whether the service is busy, if that has changed. Raises OSError: the client is gone."""
        if busy != self._busy:
            self._busy = busy
            self.send(Busy() if busy else Idle())

    def flush(self) -> None:
        """Send queued bytes, as many as the socket takes. Raises OSError: the client is gone."""
        try:
            while self._outgoing:
                del self._outgoing[: self.connection.send(self._outgoing)]
        except BlockingIOError:
            return

    def receive(self) -> list[Frame] | None:
        """Return the frames received; None if the client is gone. Raises WireError: the bytes are not frames."""
        try:
            data = self.connection.recv(_BUFFER_BYTES)
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
"""How long clients may take to read the end of the run and disconnect."""


class ClientEvents(Protocol):
    """Callbacks of a `ClientServer`."""

    def client_joined(self, peer: Peer) -> None:
        """A client showed the token and introduced itself."""

    def frame_received(self, peer: Peer, frame: Frame) -> None:
        """A client that has joined sent a frame. Raises WireError: it may not send this one."""

    def client_left(self, peer: Peer) -> None:
        """A client that had joined is disconnected."""

    def connection_refused(self, reason: str) -> None:
        """A connection was closed: its client was unknown, or broke the protocol."""


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
        """Start to listen, and return the port."""
        self._listener.bind((HOST, 0))
        self._listener.listen()
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)
        port: int = self._listener.getsockname()[1]
        return port

    def poll(self, timeout_s: float) -> None:
        """Handle new connections and frames; waits up to `timeout_s` for the first."""
        for key, events in self._selector.select(timeout_s):
            self._on_event(key, events)

    def members(self, member: Member) -> list[Peer]:
        """The clients that joined as `member`."""
        return [peer for peer in self._peers if peer.member is member]

    def send(self, peer: Peer, frame: Frame) -> None:
        """Send a frame; a client that is gone is reported as left."""
        try:
            peer.send(frame)
        except OSError:
            self._lose(peer)
            return
        self._wait_for_room(peer)

    def notify_busy(self, peer: Peer, *, busy: bool) -> None:
        """Send whether the service is busy, if that has changed."""
        try:
            peer.notify_busy(busy)
        except OSError:
            self._lose(peer)
            return
        self._wait_for_room(peer)

    def dismiss(self) -> None:
        """Send all clients the end, and wait until the signers have disconnected.

        A connection that is closed over unread frames of a client would discard the end that is on its way to it.
        """
        for peer in list(self._peers):
            self.send(peer, End())
        deadline_ns = now_ns() + int(_CLOSE_TIMEOUT_S * 1e9)
        while now_ns() < deadline_ns:
            if not (self.members(Member.SIGNER) or any(peer.has_to_send for peer in self._peers)):
                return
            self.poll(_TICK_S)

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
        elif peer in self._peers:  # else lost while another client of this round was handled
            if events & selectors.EVENT_WRITE:
                self._flush(peer)
            if events & selectors.EVENT_READ and peer in self._peers:
                self._receive_from(peer)

    def _accept(self) -> None:
        try:
            connection, _address = self._listener.accept()
        except OSError:
            return  # the client has disconnected already
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
            self._host.connection_refused(str(error))
            self._lose(peer)
            return
        if frames is None:
            self._lose(peer)

    def _take(self, peer: Peer, frame: Frame) -> None:
        if peer.member is not None:
            self._host.frame_received(peer, frame)
        elif isinstance(frame, Hello) and self.token is not None and hmac.compare_digest(frame.token, self.token):
            peer.member, peer.name = frame.member, frame.name
            self._host.client_joined(peer)
        else:
            raise WireError("An unknown client connected to the signing service, and did not show its token.")

    def _lose(self, peer: Peer) -> None:
        if peer in self._peers:
            self._peers.remove(peer)
            self._selector.unregister(peer.connection)
            peer.close()
            if peer.member is not None:
                self._host.client_left(peer)
