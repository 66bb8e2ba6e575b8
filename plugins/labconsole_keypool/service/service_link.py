"""A signer's or generator's connection to the signing service, over the loopback interface."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Mapping
from typing import Any

from labconsole.errors import UserError
from labconsole.model.role import RoleContext
from labconsole_keypool.messages.wire import Decoder, End, Frame, Hello, Member, encode

HOST = "127.0.0.1"
CONNECT = "connect"
_TIMEOUT_S = 10.0
_POLL_S = 0.005
_PIECE = 65_536


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
        """Frames that came, as soon as there are some; none after `timeout_s`, and none after `End`.

        Raises:
            LinkClosedError: the service closed the connection before its end, or is gone.
            WireError: what came is no frame.
        """
        if self._ended:
            return []
        try:
            ready, _, _ = select.select([self._connection], [], [], timeout_s)
            if not ready:
                return []
            data = self._connection.recv(_PIECE)
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
    """The command that lets a signer or generator connect; the token never stands in settings, which are stored."""
    return {"do": CONNECT, "port": port, "token": token.hex()}


def connect(command: Mapping[str, Any], member: Member, name: str) -> ServiceLink:
    """Connect as `connect_command` says, and introduce `member`. Raises LinkClosedError: the service is gone."""
    try:
        connection = socket.create_connection((HOST, command["port"]), _TIMEOUT_S)
    except OSError as error:
        raise _closed() from error
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    link = ServiceLink(connection)
    link.send(Hello(bytes.fromhex(command["token"]), member, name))
    return link


def wait_for_link(context: RoleContext, member: Member, name: str) -> ServiceLink | None:
    """Wait for the command to connect, and connect; None if the role is stopped before. Raises as `connect`."""
    while not context.stop_requested:
        command = context.take_command()
        if command is not None and command["do"] == CONNECT:
            return connect(command, member, name)
        context.tick()
        time.sleep(_POLL_S)
    return None


def _closed() -> LinkClosedError:
    return LinkClosedError("The signing service closed the connection before its end: look at its own message.")
