"""GeoNetworking packets (EN 302 636-4-1 v1.4.1): their headers, encoded and parsed.

SHB, GBC and GUC are encoded and parsed; beacon and GAC are parsed; TSB and location service are refused with that
reason. Timestamps are ITS time in ms modulo 2^32, latitude and longitude are in 0.1 microdegree.

A packet is `encode_basic_header(...) + encode_shb(...)`. In a secured packet, the basic header says so and the rest is
the payload that is signed: `encode_basic_header(..., secured=True) + signed`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import Enum, IntEnum
from typing import Any, NamedTuple

ETHERTYPE = 0x8947
VERSION = 1
DEFAULT_HOP_LIMIT = 10
"""itsGnDefaultHopLimit (annex H)."""
LARGEST_SDU = 1398
"""Octets of the largest payload, itsGnMaxSduSize (annex H)."""


class GeoNetworkingError(Exception):
    """A packet that cannot be parsed, or values that no packet can have; the text is the reason."""


class NextHeader(IntEnum):
    """The header after the common header (table 5)."""

    ANY = 0
    BTP_A = 1
    BTP_B = 2
    IPV6 = 3


class HeaderType(IntEnum):
    """The kind of the extended header (table 9), without its subtype."""

    ANY = 0
    BEACON = 1
    GUC = 2
    GAC = 3
    GBC = 4
    TSB = 5
    LOCATION_SERVICE = 6


class Kind(Enum):
    """Header type of a packet (table 9); the area of GBC and GAC is a `Shape` of its own."""

    BEACON = "beacon"
    GUC = "GUC"
    GAC = "GAC"
    GBC = "GBC"
    SHB = "SHB"


class Shape(IntEnum):
    """The shape of a destination area (EN 302 931), in the order of the header subtypes of GAC and GBC."""

    CIRCLE = 0
    RECTANGLE = 1
    ELLIPSE = 2


class Address(NamedTuple):
    """A GN address (clause 6): MAC address, station type, and whether it was configured manually."""

    mac: bytes
    station_type: int
    manual: bool = False


class PositionVector(NamedTuple):
    """A long position vector (9.5.2): speed in 0.01 m/s, heading in 0.1 degree, `accurate` is the PAI."""

    address: Address
    timestamp: int
    latitude: int
    longitude: int
    accurate: bool = False
    speed: int = 0
    heading: int = 0


class ShortPositionVector(NamedTuple):
    """A short position vector (clause 9.5.3): the destination of GUC."""

    address: Address
    timestamp: int
    latitude: int
    longitude: int


class Area(NamedTuple):
    """A destination area.

    `a` is the radius or the longer half, `b` the other half (0 for a circle), in m; `angle` is in degrees.
    """

    shape: Shape
    latitude: int
    longitude: int
    a: int
    b: int = 0
    angle: int = 0


class BasicHeader(NamedTuple):
    """The basic header (clause 9.6), which is never signed: lifetime in ms and remaining hop limit."""

    secured: bool
    lifetime_ms: int
    remaining_hops: int


class UnsecuredPacket(NamedTuple):
    """Common header, extended header and payload; in a secured packet, they are what is signed.

    `sequence_number` in GUC, GAC and GBC, `area` in GAC and GBC, `destination` in GUC, `media_data` in SHB. A beacon
    has no payload.
    """

    kind: Kind
    next_header: int
    traffic_class: int
    mobile: bool
    max_hops: int
    sender: PositionVector
    payload: bytes
    sequence_number: int | None = None
    area: Area | None = None
    destination: ShortPositionVector | None = None
    media_data: bytes = b""


class Packet(NamedTuple):
    """A packet: its basic header, and either the octets of the secured packet or the unsecured rest."""

    basic: BasicHeader
    secured: bytes | None
    unsecured: UnsecuredPacket | None


BASIC_HEADER = struct.Struct(">BxBB")
COMMON_HEADER = struct.Struct(">BBBBHBx")
ADDRESS = struct.Struct(">H6s")
LONG_VECTOR = struct.Struct(ADDRESS.format + "IiiHH")
_SHB = struct.Struct(COMMON_HEADER.format + "H6sIiiHH4s")
_GBC = struct.Struct(COMMON_HEADER.format + "HxxH6sIiiHHiiHHHxx")
_SEQUENCE_AND_VECTOR = struct.Struct(">HxxH6sIiiHH")
AREA = struct.Struct(">iiHHHxx")
SHORT_VECTOR = struct.Struct(ADDRESS.format + "Iii")
_GUC_HEADER = struct.Struct(COMMON_HEADER.format + "HxxH6sIiiHHH6sIii")

_BASE_MS = (50, 1000, 10_000, 100_000)
LIFETIME_MS = tuple((octet >> 2) * _BASE_MS[octet & 3] for octet in range(256))
_MOBILE = 0x80
_SECURED = bytes((VERSION << 4 | 2,))
_BEACON, _GUC, _GAC, _GBC_TYPE, _TSB = list(HeaderType)[1:6]
_SHB_KIND = bytes((_TSB << 4,))
_REFUSED = {HeaderType.ANY: "any", _TSB: "TSB", HeaderType.LOCATION_SERVICE: "location service"}


def lifetime_octet(lifetime_ms: int) -> int:
    """Return the octet of the longest lifetime that is not over `lifetime_ms` (multiplier, base; 9.6.4).

    Of several octets with that lifetime, the one with the longest base: 1 s is 1 x 1 s, not 20 x 50 ms.

    Raises:
        GeoNetworkingError: it is under 50 ms or over 6,300 s.
    """
    if not 50 <= lifetime_ms <= 6_300_000:
        raise GeoNetworkingError(f"lifetime {lifetime_ms} ms is out of range: 50 ms to 6,300 s")
    fitting = [(lifetime_ms // unit * unit, base) for base, unit in enumerate(_BASE_MS) if lifetime_ms // unit <= 63]
    kept_ms, base = max(fitting)
    return kept_ms // _BASE_MS[base] << 2 | base


def encode_basic_header(lifetime_ms: int, remaining_hops: int, *, secured: bool = False) -> bytes:
    """Return a basic header; `remaining_hops` is 1 for SHB.

    Raises:
        GeoNetworkingError: a value is out of range.
    """
    try:
        return BASIC_HEADER.pack(VERSION << 4 | (2 if secured else 1), lifetime_octet(lifetime_ms), remaining_hops)
    except struct.error as error:
        raise GeoNetworkingError(f"remaining hop limit {remaining_hops} is out of range 0 to 255") from error


def encode_shb(
    sender: PositionVector,
    payload: bytes,
    *,
    next_header: int = NextHeader.BTP_B,
    traffic_class: int = 2,
    mobile: bool = True,
    media_data: bytes = bytes(4),
) -> bytes:
    """Return a single-hop broadcast from its common header on.

    Raises:
        GeoNetworkingError: a value is out of range.
    """
    first = (next_header << 4, _TSB << 4, traffic_class, _MOBILE if mobile else 0, len(payload), 1)
    if len(media_data) != 4:
        raise GeoNetworkingError(f"media-dependent data has {len(media_data)} octets instead of 4")
    try:
        return _SHB.pack(*first, *_vector_values(sender), media_data) + payload
    except struct.error as error:
        raise GeoNetworkingError(f"SHB cannot be encoded: {error}") from error


def encode_gbc(
    sender: PositionVector,
    area: Area,
    sequence_number: int,
    payload: bytes,
    *,
    max_hops: int = DEFAULT_HOP_LIMIT,
    next_header: int = NextHeader.BTP_B,
    traffic_class: int = 1,
    mobile: bool = True,
) -> bytes:
    """Return a GeoBroadcast from its common header on.

    Raises:
        GeoNetworkingError: a value is out of range.
    """
    kind = _GBC_TYPE << 4 | area.shape
    first = (next_header << 4, kind, traffic_class, _MOBILE if mobile else 0, len(payload), max_hops, sequence_number)
    try:
        return _GBC.pack(*first, *_vector_values(sender), *area[1:]) + payload
    except struct.error as error:
        raise GeoNetworkingError(f"GBC cannot be encoded: {error}") from error


def encode_guc(
    sender: PositionVector,
    destination: ShortPositionVector,
    sequence_number: int,
    payload: bytes,
    *,
    max_hops: int = DEFAULT_HOP_LIMIT,
    next_header: int = NextHeader.BTP_B,
    traffic_class: int = 2,
    mobile: bool = True,
) -> bytes:
    """Return a GeoUnicast from its common header on.

    Raises:
        GeoNetworkingError: a value is out of range.
    """
    flags = _MOBILE if mobile else 0
    first = (next_header << 4, _GUC << 4, traffic_class, flags, len(payload), max_hops, sequence_number)
    target = (*_address_values(destination.address), *destination[1:])
    try:
        return _GUC_HEADER.pack(*first, *_vector_values(sender), *target) + payload
    except struct.error as error:
        raise GeoNetworkingError(f"GUC cannot be encoded: {error}") from error


def parse_packet(octets: bytes) -> Packet:
    """Return the headers of a packet; the octets of a secured packet are returned untouched.

    Raises:
        GeoNetworkingError: the packet is truncated, of another version, or of a kind that is not supported.
    """
    if len(octets) < BASIC_HEADER.size:
        raise GeoNetworkingError(f"basic header is truncated: {len(octets)} octets")
    first, lifetime, hops = BASIC_HEADER.unpack_from(octets)
    if first >> 4 != VERSION:
        raise GeoNetworkingError(f"GeoNetworking version {first >> 4} is not supported")
    rest = octets[BASIC_HEADER.size :]
    following = first & 0xF
    if following == 2:
        return Packet(BasicHeader(True, LIFETIME_MS[lifetime], hops), rest, None)
    if following == 1:
        return Packet(BasicHeader(False, LIFETIME_MS[lifetime], hops), None, parse_unsecured(rest))
    raise GeoNetworkingError(f"next header {following} of the basic header is neither common header nor secured packet")


def secured_octets(octets: bytes) -> bytes | None:
    """Return the octets of the secured packet in a packet; None where it is not secured. Raises as `parse_packet`."""
    if octets[:1] == _SECURED and len(octets) >= BASIC_HEADER.size:
        return octets[BASIC_HEADER.size :]  # as `parse_packet` does, in a tenth of the time
    return parse_packet(octets).secured


def parse_unsecured(octets: bytes) -> UnsecuredPacket:
    """Return common header, extended header and payload.

    Octets after the payload (Ethernet's padding) are ignored.

    Raises:
        GeoNetworkingError: it is truncated, or of a kind that is not supported.
    """
    try:
        return _parse_unsecured(octets)
    except struct.error as error:
        raise GeoNetworkingError(f"extended header is truncated: {len(octets)} octets") from error


def carried_payload(octets: bytes) -> tuple[int, bytes]:
    """Return the next header and the payload of an unsecured packet. Raises as `parse_unsecured`."""
    if octets[1:2] == _SHB_KIND and len(octets) >= _SHB.size:  # as `parse_unsecured` does, in a sixth of the time
        end = _SHB.size + (octets[4] << 8 | octets[5])
        if len(octets) >= end:
            return octets[0] >> 4, octets[_SHB.size : end]
    packet = parse_unsecured(octets)
    return packet.next_header, packet.payload


def _parse_unsecured(octets: bytes) -> UnsecuredPacket:
    if len(octets) < COMMON_HEADER.size:
        raise GeoNetworkingError(f"common header is truncated: {len(octets)} octets")
    following, kind, traffic_class, flags, length, max_hops = COMMON_HEADER.unpack_from(octets)
    header_type, subtype = kind >> 4, kind & 0xF
    first = (following >> 4, traffic_class, flags >= _MOBILE, max_hops)
    if header_type == _TSB and subtype == 0:
        *vector, media_data = _SHB.unpack_from(octets)[6:]
        payload = _payload(octets, _SHB.size, length)
        return UnsecuredPacket(Kind.SHB, *first, _vector(vector), payload, media_data=media_data)
    if header_type in (_GAC, _GBC_TYPE) and subtype <= Shape.ELLIPSE:
        sequence_number, *vector = _GBC.unpack_from(octets)[6:]
        area = Area(Shape(subtype), *vector[7:])
        payload = _payload(octets, _GBC.size, length)
        named = Kind.GBC if header_type == _GBC_TYPE else Kind.GAC
        return UnsecuredPacket(named, *first, _vector(vector), payload, sequence_number, area)
    if header_type == _GUC and subtype == 0:
        sequence_number, *vector = _SEQUENCE_AND_VECTOR.unpack_from(octets, COMMON_HEADER.size)
        start = COMMON_HEADER.size + _SEQUENCE_AND_VECTOR.size
        address, mac, *place = SHORT_VECTOR.unpack_from(octets, start)
        destination = ShortPositionVector(_address(address, mac), *place)
        payload = _payload(octets, start + SHORT_VECTOR.size, length)
        return UnsecuredPacket(Kind.GUC, *first, _vector(vector), payload, sequence_number, None, destination)
    if header_type == _BEACON and subtype == 0:
        sender = _vector(LONG_VECTOR.unpack_from(octets, COMMON_HEADER.size))
        return UnsecuredPacket(
            Kind.BEACON, *first, sender, _payload(octets, COMMON_HEADER.size + LONG_VECTOR.size, length)
        )
    name = _REFUSED.get(header_type, "unknown")
    raise GeoNetworkingError(f"header type {header_type}, subtype {subtype} ({name}) is not supported")


def _payload(octets: bytes, start: int, length: int) -> bytes:
    if len(octets) < start + length:
        raise GeoNetworkingError(f"payload is truncated: {max(0, len(octets) - start)} octets instead of {length}")
    return octets[start : start + length]


def _vector(values: Sequence[Any]) -> PositionVector:
    address, mac, timestamp, latitude, longitude, speed, heading = values[:7]
    # Speed is a signed integer of 15 bits, after the bit of the PAI.
    signed = (speed & 0x7FFF) - (speed << 1 & 0x8000)
    return PositionVector(_address(address, mac), timestamp, latitude, longitude, speed >= 0x8000, signed, heading)


def _vector_values(vector: PositionVector) -> tuple[int, bytes, int, int, int, int, int]:
    address, timestamp, latitude, longitude, accurate, speed, heading = vector
    first, mac = _address_values(address)
    if not -0x4000 <= speed < 0x4000:
        raise GeoNetworkingError(f"speed {speed} is out of range -16384 to 16383 (0.01 m/s)")
    return first, mac, timestamp, latitude, longitude, accurate << 15 | speed & 0x7FFF, heading


def _address_values(address: Address) -> tuple[int, bytes]:
    mac, station_type, manual = address
    if len(mac) != 6 or not 0 <= station_type <= 31:
        raise GeoNetworkingError(f"GN address needs a MAC address of 6 octets and a station type of 0 to 31: {address}")
    return manual << 15 | station_type << 10, mac


def _address(first: int, mac: bytes) -> Address:
    return Address(mac, first >> 10 & 0x1F, first >= 0x8000)
