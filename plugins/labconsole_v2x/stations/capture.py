"""Capture files: reads pcap and pcapng, finds the GeoNetworking packets in their frames, and writes pcapng.

pcap as in draft-ietf-opsawg-pcap, pcapng as in draft-ietf-opsawg-pcapng (sections 4.1-4.4), the form that Wireshark
writes. Frames are Ethernet, IEEE 802.11 and IEEE 802.11 with a radiotap header.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from labconsole.errors import UserError
from labconsole.safe_text import shown
from labconsole_v2x.messages.geonetworking import ETHERTYPE

ETHERNET, IEEE80211, IEEE80211_RADIOTAP = 1, 105, 127
"""Link types of frames in which GeoNetworking packets are found."""
BROADCAST = b"\xff" * 6
ETHERNET_HEADER = 14
"""Octets before the packet in an Ethernet frame."""

MOST_PACKET_OCTETS = 262_144
"""The largest packet, as Wireshark has it; what says that it is larger is broken."""
_MOST_BLOCK_OCTETS = 16 * 1024 * 1024
_READ_OCTETS = 1 << 18
_NS = 1_000_000_000

_ETHERTYPE = ETHERTYPE.to_bytes(2, "big")
_VLAN_ETHERTYPES = (b"\x81\x00", b"\x88\xa8", b"\x91\x00")
_SNAP = b"\xaa\xaa\x03\x00\x00\x00" + _ETHERTYPE
_PCAP = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
"""Magic number -> byte order, and ns of a unit of its times."""
_BYTE_ORDER = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_SECTION, _INTERFACE, _PACKET, _SIMPLE_PACKET, ENHANCED_PACKET = 0x0A0D0D0A, 1, 2, 3, 6
_SECTION_MAGIC = b"\x0a\x0d\x0d\x0a"
_COMMENT, _APPLICATION, _NAME, _RESOLUTION, _OFFSET, _FCS_LENGTH = 1, 4, 2, 9, 14, 13
"""Codes of options; those of section, interface and packet blocks overlap."""


class CaptureError(UserError):
    """A capture that cannot be read, or only up to a packet."""


class CapturedPacket(NamedTuple):
    """A frame as it was captured, without the check sum that the file says is at its end."""

    time_ns: int
    """Unix time; 0 where the file gives none."""
    link_type: int
    octets: bytes
    length: int
    """Octets on the medium: more than in `octets` where the capture has cut the frame."""

    @property
    def cut(self) -> bool:
        """Whether the capture has not kept the whole frame."""
        return len(self.octets) < self.length


def read_capture(path: Path) -> Iterator[CapturedPacket]:
    """Yield the packets of a pcap or pcapng file in their order, with memory for one block.

    Raises CaptureError: the file cannot be read or, after the packets before it, a block is broken.
    """
    name, count = shown(path.name), 0
    try:
        if not path.is_file():
            what = "it is not a file" if path.exists() else "there is no such file"
            raise CaptureError(f"{name} cannot be read: {what}. Choose a pcap or pcapng file.")
        with path.open("rb", buffering=_READ_OCTETS) as file:
            for count, packet in enumerate(_packets(file), 1):  # noqa: B007 - the error gives the number
                yield packet
    except _BrokenCaptureError as error:
        where = f"after packet {count}" if count else "before its first packet"
        raise CaptureError(f"{name} is broken {where}: {error}. If the original has more, copy it again.") from error
    except _NotACaptureError as error:
        raise CaptureError(f"{name} is not a capture file: choose a pcap or pcapng file.") from error
    except OSError as error:
        raise CaptureError(f"{name} cannot be read after packet {count} ({error.strerror or error}).") from error


def is_capture(octets: bytes) -> bool:
    """Whether a file that begins with these octets is a pcap or pcapng file."""
    return octets[:4] in _PCAP or octets[:4] == _SECTION_MAGIC


class _BrokenCaptureError(Exception):
    """What is wrong with a block or record."""


class _NotACaptureError(Exception):
    """The file begins otherwise."""


def _packets(file: BinaryIO) -> Iterator[CapturedPacket]:
    magic = file.read(4)
    if magic in _PCAP:
        return _pcap_packets(file, *_PCAP[magic])
    if magic == _SECTION_MAGIC:
        file.seek(0)
        return _pcapng_packets(file)
    raise _NotACaptureError


def _pcap_packets(file: BinaryIO, order: str, unit_ns: int) -> Iterator[CapturedPacket]:
    (network,) = struct.unpack_from(f"{order}I", _read(file, 20, "the header of the file"), 16)
    link_type, fcs_octets = network & 0xFFFF, 2 * (network >> 28) if network & 1 << 26 else 0
    record = struct.Struct(f"{order}4I")
    while head := file.read(record.size):
        if len(head) < record.size:
            raise _BrokenCaptureError("the header of the next packet is cut short")
        seconds, units, captured, length = record.unpack(head)
        _check_length(captured)
        octets = _read(file, captured, "the next packet")
        yield _packet(seconds * _NS + units * unit_ns, link_type, octets, length, fcs_octets)


@dataclass(frozen=True, slots=True)
class _Interface:
    link_type: int
    snap_octets: int
    ticks: int = 1_000_000
    """Ticks of its clock a second."""
    offset_ns: int = 0
    fcs_octets: int = 0


def _pcapng_packets(file: BinaryIO) -> Iterator[CapturedPacket]:
    order, interfaces = "<", list[_Interface]()
    while head := file.read(8):
        if len(head) < 8:
            raise _BrokenCaptureError("the header of the next block is cut short")
        if head[:4] == _SECTION_MAGIC:
            magic = _read(file, 4, "the section header")
            if magic not in _BYTE_ORDER:
                raise _BrokenCaptureError("the section header has no byte order")
            file.seek(-4, 1)
            order, interfaces = _BYTE_ORDER[magic], []
        kind, length = struct.unpack(f"{order}2I", head)
        if length < 12 or length % 4 or length > _MOST_BLOCK_OCTETS:
            raise _BrokenCaptureError(f"the next block has an impossible length of {length:,} octets")
        block = _read(file, length - 8, "the next block")
        if struct.unpack_from(f"{order}I", block, length - 12) != (length,):
            raise _BrokenCaptureError("the next block has two different lengths")
        try:
            if kind == _INTERFACE:
                interfaces.append(_interface(order, block))
            elif kind in _PACKET_BLOCKS:
                yield _PACKET_BLOCKS[kind](order, block, interfaces)
        except struct.error as error:
            raise _BrokenCaptureError("the next block is too short for its fields") from error


def _interface(order: str, block: bytes) -> _Interface:
    link_type, snap_octets = struct.unpack_from(f"{order}HxxI", block)
    options = _options(order, block, 8)
    resolution = options.get(_RESOLUTION, b"\x06")[:1] or b"\x06"
    exponent = resolution[0] & 0x7F
    return _Interface(
        link_type,
        snap_octets,
        2**exponent if resolution[0] & 0x80 else 10**exponent,
        struct.unpack(f"{order}q", options[_OFFSET])[0] * _NS if _OFFSET in options else 0,
        options[_FCS_LENGTH][0] if options.get(_FCS_LENGTH) else 0,
    )


def _options(order: str, block: bytes, start: int) -> dict[int, bytes]:
    """The options of a block from `start` on, the last of each code. Raises struct.error."""
    found, end = dict[int, bytes](), len(block) - 4
    while start + 4 <= end:
        code, length = struct.unpack_from(f"{order}2H", block, start)
        if not code:
            break
        if start + 4 + length > end:
            raise struct.error
        found[code] = block[start + 4 : start + 4 + length]
        start += 4 + length + -length % 4
    return found


def _enhanced_packet(order: str, block: bytes, interfaces: Sequence[_Interface]) -> CapturedPacket:
    fields = struct.unpack_from(f"{order}5I", block)
    return _block_packet(block, fields, interfaces)


def _obsolete_packet(order: str, block: bytes, interfaces: Sequence[_Interface]) -> CapturedPacket:
    fields = struct.unpack_from(f"{order}Hxx4I", block)
    return _block_packet(block, fields, interfaces)


def _block_packet(block: bytes, fields: tuple[int, ...], interfaces: Sequence[_Interface]) -> CapturedPacket:
    number, high, low, captured, length = fields
    interface = _described(interfaces, number)
    ticks = high << 32 | low
    return _packet(
        ticks * _NS // interface.ticks + interface.offset_ns,
        interface.link_type,
        _packet_octets(block, 20, captured),
        length,
        interface.fcs_octets,
    )


def _simple_packet(order: str, block: bytes, interfaces: Sequence[_Interface]) -> CapturedPacket:
    (length,) = struct.unpack_from(f"{order}I", block)
    interface = _described(interfaces, 0)
    captured = min(length, interface.snap_octets or length)
    return _packet(0, interface.link_type, _packet_octets(block, 4, captured), length, interface.fcs_octets)


_PACKET_BLOCKS = {ENHANCED_PACKET: _enhanced_packet, _PACKET: _obsolete_packet, _SIMPLE_PACKET: _simple_packet}


def _described(interfaces: Sequence[_Interface], number: int) -> _Interface:
    if number >= len(interfaces):
        raise _BrokenCaptureError(f"the next packet is of interface {number}, which is not described")
    return interfaces[number]


def _packet_octets(block: bytes, start: int, captured: int) -> bytes:
    _check_length(captured)
    if start + captured > len(block) - 4:
        raise _BrokenCaptureError("the next packet is longer than its block")
    return block[start : start + captured]


def _check_length(captured: int) -> None:
    if captured > MOST_PACKET_OCTETS:
        raise _BrokenCaptureError(f"the next packet has an impossible length of {captured:,} octets")


def _packet(time_ns: int, link_type: int, octets: bytes, length: int, fcs_octets: int) -> CapturedPacket:
    if fcs_octets:
        length = max(0, length - fcs_octets)
        octets = octets[:length]
    return CapturedPacket(time_ns, link_type, octets, length)


def _read(file: BinaryIO, size: int, what: str) -> bytes:
    octets = file.read(size)
    if len(octets) < size:
        raise _BrokenCaptureError(f"{what} is cut short")
    return octets


def geonetworking_octets(packet: CapturedPacket) -> bytes | None:
    """The GeoNetworking packet (EtherType 0x8947) in a frame, padding included; None where there is none."""
    span = geonetworking_span(packet)
    return None if span is None else packet.octets[span[0] : span[1]]


def geonetworking_span(packet: CapturedPacket) -> tuple[int, int] | None:
    """Where the GeoNetworking packet begins and ends in a frame; None where there is none."""
    octets = packet.octets
    if packet.link_type == ETHERNET:
        at = 12
        while octets[at : at + 2] in _VLAN_ETHERTYPES:
            at += 4
        return (at + 2, len(octets)) if octets[at : at + 2] == _ETHERTYPE else None
    if packet.link_type == IEEE80211:
        return _in_80211(octets, 0, len(octets))
    if packet.link_type == IEEE80211_RADIOTAP:
        return _in_radiotap(packet)
    return None


def _in_radiotap(packet: CapturedPacket) -> tuple[int, int] | None:
    """Skip the header of radiotap.org: version, length, words of present fields, then the fields TSFT and Flags."""
    octets = packet.octets
    if len(octets) < 8 or octets[0]:
        return None
    length, present = struct.unpack_from("<HI", octets, 2)
    at, more = 8, present
    while more & 1 << 31 and at + 4 <= len(octets):
        (more,) = struct.unpack_from("<I", octets, at)
        at += 4
    if present & 1:
        at += -at % 8 + 8
    flags = octets[at] if present & 2 and at < min(length, len(octets)) else 0
    end = packet.length - 4 if flags & 0x10 else packet.length
    return _in_80211(octets, length, min(end, len(octets)), padded=bool(flags & 0x20))


def _in_80211(octets: bytes, start: int, end: int, *, padded: bool = False) -> tuple[int, int] | None:
    """The packet in a data or QoS data frame (IEEE 802.11, 9.3.2.1) that is neither encrypted nor an A-MSDU."""
    frame = octets[start : max(start, end)]
    if len(frame) < 26 or frame[0] & 0x4F != 0x08 or frame[1] & 0x40:
        return None
    at = 30 if frame[1] & 3 == 3 else 24
    if frame[0] & 0x80:
        if frame[at : at + 1] >= b"\x80":
            return None
        at += 6 if frame[1] & 0x80 else 2
    if padded:
        at += -at % 4
    return (start + at + 8, end) if frame[at : at + 8] == _SNAP else None


def ethernet_frame(packet: bytes, source: bytes, destination: bytes = BROADCAST) -> bytes:
    """A GeoNetworking packet in an Ethernet frame between two MAC addresses (6 octets each)."""
    return destination + source + _ETHERTYPE + packet


def capture_header(interfaces: Sequence[str], application: str = "", link_type: int = ETHERNET) -> bytes:
    """The blocks at the beginning of a pcapng file: its section, and interfaces with these names and times in ns."""
    section = struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1) + _encoded_options({_APPLICATION: application.encode()})
    described = (
        struct.pack("<HHI", link_type, 0, MOST_PACKET_OCTETS)
        + _encoded_options({_NAME: name.encode(), _RESOLUTION: b"\x09"})
        for name in interfaces
    )
    return _block(_SECTION, section) + b"".join(_block(_INTERFACE, body) for body in described)


def packet_block(time_ns: int, frame: bytes, interface: int = 0, comment: str = "") -> bytes:
    """A packet at a Unix time as a block to append to a pcapng file; `interface` counts from 0.

    Written by one call each, the blocks before it stay readable if the process is killed.
    """
    fields = struct.pack("<5I", interface, time_ns >> 32, time_ns & 0xFFFFFFFF, len(frame), len(frame))
    return _block(
        ENHANCED_PACKET, fields + frame + bytes(-len(frame) % 4) + _encoded_options({_COMMENT: comment.encode()})
    )


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length


def _encoded_options(options: dict[int, bytes]) -> bytes:
    """Those with a value, and the end of options; nothing where none has."""
    encoded = b"".join(
        struct.pack("<2H", code, len(value)) + value + bytes(-len(value) % 4)
        for code, value in options.items()
        if value
    )
    return encoded and encoded + bytes(4)
