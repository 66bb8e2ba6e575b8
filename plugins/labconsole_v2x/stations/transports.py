"""Transports of stations: Ethernet frames (EtherType 0x8947) over UDP multicast, UDP unicast, or a network interface.

A UDP datagram carries the whole frame without check sum, as Vanetza's socktap has it.
"""

from __future__ import annotations

import ctypes
import errno
import ipaddress
import socket
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from select import select
from typing import Any, Protocol, TypeVar

from labconsole.errors import UserError
from labconsole_v2x.messages.geonetworking import ETHERTYPE

LARGEST_FRAME = 2560
"""Octets of the largest frame that is received."""
MOST_PEERS = 1024
"""Addresses to which the receiver of a unicast transport sends; frames from further ones are received, too."""
_RECEIVE_BUFFER = 4 * 1024 * 1024
_POLL_S = 0.1
LOOPBACK_ADDRESS = "127.0.0.1"
"""The address of stations that only those of this computer reach."""
T = TypeVar("T")
_NOT_PERMITTED = (errno.EPERM, errno.EACCES)
_SO_RCVBUFFORCE, _SO_ATTACH_FILTER = 33, 26
_LOAD_WORD, _LOAD_HALF, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x28, 0x15, 0x06
"""Instructions of a classic BPF program (Linux, Documentation/networking/filter.rst)."""


class TransportKind(StrEnum):
    """How the frames of stations get from one to the others."""

    MULTICAST = "udp-multicast"
    UNICAST = "udp-unicast"
    ETHERNET = "ethernet"


@dataclass(frozen=True)
class TransportSettings:
    """What the stations of a run share: the kind, and where frames go."""

    kind: TransportKind
    interface: str
    """UDP: the address of the interface. Ethernet: its name."""
    group: str
    """Multicast group; in unicast the receiver's address."""
    port: int


class Transport(Protocol):
    """Sends and receives frames. `receive` and `send` may be called by two threads."""

    def send(self, frame: bytes) -> None:
        """Send a frame to all others. Raises UserError where the network has gone."""

    def receive(self, *, wait: bool = True) -> bytes | None:
        """The next frame; None where none came within 0.1 s, or at once. Raises UserError where the network has
        gone."""

    def only_from(self, mac: bytes) -> None:
        """Receive the frames of this MAC address only, where the system can filter them (Linux); else all."""

    def close(self) -> None:
        """Release the sockets."""


def open_transport(settings: TransportSettings, *, receiver: bool) -> Transport:
    """Open a transport; in unicast, `receiver` is the one that all others send to. Raises UserError."""
    match settings.kind:
        case TransportKind.MULTICAST:
            return _Multicast(settings)
        case TransportKind.UNICAST:
            return _Unicast(settings, receiver=receiver)
        case TransportKind.ETHERNET:
            return _Ethernet(settings)


def open_pair() -> tuple[Transport, Transport]:
    """A receiver and a sender to it, both on this computer, over a UDP port that the system chooses."""
    receiver = _Unicast(TransportSettings(TransportKind.UNICAST, LOOPBACK_ADDRESS, LOOPBACK_ADDRESS, 0), receiver=True)
    sender = _Unicast(
        TransportSettings(TransportKind.UNICAST, LOOPBACK_ADDRESS, LOOPBACK_ADDRESS, receiver.port), receiver=False
    )
    return receiver, sender


class _Sockets:
    """The sockets of a transport: frames go to `_target`."""

    _receiving: socket.socket
    _sending: socket.socket
    _target: Any
    _where: str
    _frame_at = 8
    """Octets before the frame, as a socket filter sees it: those of the UDP header."""

    def send(self, frame: bytes) -> None:
        self._send_to(frame, self._target)

    def _send_to(self, frame: bytes, target: Any) -> None:
        try:
            self._sending.sendto(frame, target)
        except (ConnectionRefusedError, BlockingIOError):
            return  # no process listens there (unicast), or the buffer is full: the frame is lost, as on the air
        except OSError as error:
            if error.errno == errno.ENOBUFS:
                return
            raise UserError(f"A frame cannot be sent over {self._where} ({error.strerror}).") from error

    def receive(self, *, wait: bool = True) -> bytes | None:
        return self._read(self._receiving.recv, wait=wait)

    def _read(self, read: Callable[[int], T], *, wait: bool) -> T | None:
        """What a method of the receiving socket reads; None where nothing comes."""
        try:
            with suppress(BlockingIOError):
                return read(LARGEST_FRAME)
            if wait and select([self._receiving], (), (), _POLL_S)[0]:
                return read(LARGEST_FRAME)
            return None
        except (BlockingIOError, ConnectionResetError, ConnectionRefusedError):
            return None
        except OSError as error:
            raise UserError(f"Frames cannot be received over {self._where} ({error.strerror}).") from error

    def only_from(self, mac: bytes) -> None:
        if sys.platform != "linux":
            return
        first, rest = struct.unpack(">IH", mac)
        source = self._frame_at + 6
        program = b"".join(
            struct.pack("HBBI", *instruction)
            for instruction in (
                (_LOAD_WORD, 0, 0, source),
                (_JUMP_IF_EQUAL, 0, 3, first),
                (_LOAD_HALF, 0, 0, source + 4),
                (_JUMP_IF_EQUAL, 0, 1, rest),
                (_RETURN, 0, 0, LARGEST_FRAME + self._frame_at),
                (_RETURN, 0, 0, 0),
            )
        )
        kept = ctypes.create_string_buffer(program)
        described = struct.pack("HP", len(program) // 8, ctypes.addressof(kept))
        self._receiving.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, described)

    def close(self) -> None:
        self._receiving.close()
        self._sending.close()

    def _prepare(self) -> None:
        """Let a burst wait in the socket, and read without waiting."""
        self._receiving.setblocking(False)
        try:
            if sys.platform != "linux":
                raise PermissionError
            self._receiving.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _RECEIVE_BUFFER)
        except OSError:  # only root may pass the system's limit
            self._receiving.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)


class _Multicast(_Sockets):
    """All stations of the group hear each other, those of this computer included."""

    def __init__(self, settings: TransportSettings) -> None:
        self._where = f"UDP multicast {settings.group}:{settings.port} on {settings.interface}"
        self._target = (settings.group, settings.port)
        interface = _address(settings.interface)
        if not ipaddress.ip_address(_address(settings.group)).is_multicast:
            raise UserError(
                f"{settings.group} is not a multicast address: choose one such as 239.118.122.97, or unicast."
            )
        self._receiving = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._sending = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._receiving.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if hasattr(socket, "SO_REUSEPORT") and sys.platform == "darwin":
                self._receiving.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            # Where the system can, only this group's frames: another group may use the same port.
            self._receiving.bind(("" if sys.platform == "win32" else settings.group, settings.port))
            joined = socket.inet_aton(settings.group) + socket.inet_aton(interface)
            self._receiving.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, joined)
            self._sending.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(interface))
            self._sending.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
            self._sending.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
            self._prepare()
        except OSError as error:
            self.close()
            raise UserError(_fault(self._where, interface, settings.port, error)) from error


class _Unicast(_Sockets):
    """Stations send to the receiver; it sends to all from which it has received."""

    def __init__(self, settings: TransportSettings, *, receiver: bool) -> None:
        self._where = f"UDP to {settings.group}:{settings.port}"
        self._peers: dict[Any, None] | None = {} if receiver else None
        self._target = target = (_address(settings.group), settings.port)
        address, port = target if receiver else (_address(settings.interface), 0)
        self._receiving = self._sending = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._receiving.bind((address, port))
            self.port: int = self._receiving.getsockname()[1]
            self._prepare()
        except OSError as error:
            self.close()
            raise UserError(_fault(self._where, address, port, error)) from error

    def send(self, frame: bytes) -> None:
        if self._peers is None:
            super().send(frame)
            return
        for peer in list(self._peers):
            with suppress(OSError):  # this one has gone: the frame is lost, as on the air
                self._sending.sendto(frame, peer)

    def receive(self, *, wait: bool = True) -> bytes | None:
        if self._peers is None:
            return super().receive(wait=wait)
        received = self._read(self._receiving.recvfrom, wait=wait)
        if received is None:
            return None
        frame, peer = received
        if len(self._peers) < MOST_PEERS and peer[1]:  # port 0 cannot be answered
            self._peers[peer] = None
        return frame


class _Ethernet(_Sockets):
    """Raw frames on an interface (Linux, with the rights for it)."""

    def __init__(self, settings: TransportSettings) -> None:
        name, self._frame_at = settings.interface, 0
        self._where = f"Ethernet on {name}"
        if sys.platform != "linux":
            raise UserError("Raw Ethernet frames need Linux: choose UDP multicast or unicast here.")
        self._target = (name, 0)
        try:
            self._receiving = self._sending = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
        except OSError as error:
            if error.errno not in _NOT_PERMITTED:
                raise UserError(f"Raw Ethernet frames cannot be used here ({error.strerror}).") from error
            raise UserError(
                "Raw Ethernet frames need the right CAP_NET_RAW: start the console as root, or choose UDP multicast."
            ) from error
        try:
            self._receiving.bind((name, ETHERTYPE))
            self._prepare()
        except OSError as error:
            self.close()
            names = ", ".join(name for _, name in socket.if_nameindex())
            raise UserError(
                f"The interface {name} cannot be used ({error.strerror}): choose one of {names}."
            ) from error


def _address(text: str) -> str:
    """An IPv4 address. Raises UserError."""
    try:
        return str(ipaddress.IPv4Address(text))
    except ValueError as error:
        raise UserError(f"{text} is not an IPv4 address: give one such as 127.0.0.1.") from error


def _fault(where: str, address: str, port: int, error: OSError) -> str:
    """The sentence for a socket that cannot be opened at this address and port."""
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} is in use: choose another port, or end the program that uses it."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"No interface of this computer has the address {address}: give one that it has."
    if error.errno == errno.ENODEV:
        return (
            f"No interface with multicast has the address {address}: give that of one, or choose UDP unicast, which "
            "needs no multicast."
        )
    if error.errno in _NOT_PERMITTED:
        return f"Port {port} may not be used without more rights: choose one from 1024 on."
    return f"{where} cannot be used ({error.strerror}): check interface and port."
