"""A captured packet as a tree of fields for a person: the standards' names, values with units, and their octets.

Frame, GeoNetworking (EN 302 636-4-1) and BTP (EN 302 636-5-1); what is inside comes from `secured_fields` and
`message_fields`. No octets raise anything: what cannot be read is a node with the reason.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any

from labconsole_v2x.inspection.field_tree import Node, StoppedError, Walk, degrees, named, utc_text, with_unit
from labconsole_v2x.inspection.message_fields import message_fields
from labconsole_v2x.inspection.secured_fields import secured_data
from labconsole_v2x.messages import its_time
from labconsole_v2x.messages.asn1_modules import value_names
from labconsole_v2x.messages.btp import HEADER as BTP_HEADER
from labconsole_v2x.messages.btp import Port
from labconsole_v2x.messages.geonetworking import (
    ADDRESS,
    AREA,
    BASIC_HEADER,
    COMMON_HEADER,
    LIFETIME_MS,
    LONG_VECTOR,
    SHORT_VECTOR,
    HeaderType,
    NextHeader,
    Shape,
)
from labconsole_v2x.security.reading import MalformedDataError
from labconsole_v2x.security.scanning import scan_signed_data
from labconsole_v2x.stations.capture import ETHERNET, CapturedPacket, geonetworking_span

_Texts = Mapping[str, Callable[[Any], str]]
_SECURED = 2
_NEXT_AFTER_BASIC = {0: "any", 1: "common header", _SECURED: "secured packet"}
_RESERVED: _Texts = {"reserved": bytes.hex}


def dissect(packet: CapturedPacket) -> tuple[Node, ...]:
    """Return the tree of a captured frame; the octets of its nodes are counted from the frame's first."""
    walk = Walk(packet.octets)
    span = geonetworking_span(packet)
    if span is None:
        walk.fault("The frame has no GeoNetworking packet (EtherType 0x8947)")
        return tuple(walk.nodes)
    start, walk.end = span
    try:
        if packet.link_type == ETHERNET:
            _ethernet(walk, start)
        else:
            walk.field("IEEE 802.11", start, lambda octets: f"{len(octets)} octets before the GeoNetworking packet")
        Dissection(walk, _near_us(packet, walk.octets[start : walk.end])).packet()
    except StoppedError:
        pass  # the reason is in the tree
    if packet.cut:
        walk.end = len(packet.octets)
        walk.fault(f"The capture has kept {len(packet.octets):,} of {packet.length:,} octets")
    elif walk.end < len(packet.octets):
        walk.end = len(packet.octets)
        walk.field("frame check sequence", walk.end - walk.at)
    return tuple(walk.nodes)


def _ethernet(walk: Walk, size: int) -> None:
    with walk.part("Ethernet", size=size):
        walk.field("destination", 6, lambda octets: octets.hex(":"))
        walk.field("source", 6, lambda octets: octets.hex(":"))
        while walk.at < size - 2:
            walk.field("VLAN tag", 4)
        walk.field("type", 2, lambda octets: f"0x{octets.hex()}")


def _near_us(packet: CapturedPacket, octets: bytes) -> int | None:
    """The ITS time near which the packet was sent: that of its signature, else that of the capture; None if unknown."""
    try:
        generated_us = scan_signed_data(octets[BASIC_HEADER.size :]).header.generation_time
    except MalformedDataError:
        generated_us = None
    if generated_us is None and packet.time_ns:
        return its_time.its_us(packet.time_ns)
    return generated_us


class Dissection:
    """The layers of one packet, each of which reads the next."""

    def __init__(self, walk: Walk, near_us: int | None) -> None:
        self._walk = walk
        self._near_us = near_us

    def packet(self) -> None:
        """Basic header, and the secured packet or the rest."""
        walk = self._walk
        with walk.part("GeoNetworking", size=walk.end - walk.at):
            with walk.part("basicHeader"):
                following = walk.next & 0xF
                walk.struct(
                    BASIC_HEADER,
                    {"version": _high_bits, "nextHeader": lambda octet: named(octet & 0xF, _NEXT_AFTER_BASIC)},
                    _RESERVED,
                    {"lifetime": lambda octet: f"{LIFETIME_MS[octet] / 1000:g} s"},
                    {"remainingHopLimit": str},
                )
            if following == _SECURED:
                secured_data(walk, self.unsecured)
            else:
                self.unsecured()

    def unsecured(self) -> None:
        """Common header, extended header and payload: all of a packet, or what is signed in it."""
        walk = self._walk
        with walk.part("commonHeader"):
            walk.struct(COMMON_HEADER, *_COMMON_HEADER)
        following, kind = walk.octets[walk.at - COMMON_HEADER.size] >> 4, walk.octets[walk.at - COMMON_HEADER.size + 1]
        size = int.from_bytes(walk.octets[walk.at - 4 : walk.at - 2], "big")
        read = {
            HeaderType.BEACON << 4: self._beacon,
            HeaderType.GUC << 4: self._unicast,
            HeaderType.TSB << 4: self._single_hop,
            **{header << 4 | shape: self._to_area for header in (HeaderType.GAC, HeaderType.GBC) for shape in Shape},
        }.get(kind)
        if read is None:
            walk.fault(f"Header type {_header_type(kind)} is not supported")
            return
        read()
        if size:
            with walk.part("payload", size=size):
                if following in (NextHeader.BTP_A, NextHeader.BTP_B):
                    self._transport(following)
                else:
                    walk.field("data", walk.end - walk.at)

    def _beacon(self) -> None:
        with self._walk.part("beacon"):
            self._source()

    def _single_hop(self) -> None:
        with self._walk.part("singleHopBroadcast"):
            self._source()
            self._walk.field("mediaDependentData", 4)

    def _unicast(self) -> None:
        with self._walk.part("geoUnicast"):
            self._sequence_number()
            self._source()
            self._vector("destinationPositionVector", SHORT_VECTOR)

    def _to_area(self) -> None:
        walk = self._walk
        kind = walk.octets[walk.at - COMMON_HEADER.size + 1]
        shape, broadcast = Shape(kind & 0xF), kind >> 4 == HeaderType.GBC
        with walk.part("geoBroadcast" if broadcast else "geoAnycast", f"to a {shape.name.lower()}"):
            self._sequence_number()
            self._source()
            first, second = {
                Shape.CIRCLE: ("distanceA (radius)", "distanceB"),
                Shape.RECTANGLE: ("distanceA (half of the longer side)", "distanceB (half of the shorter side)"),
                Shape.ELLIPSE: ("distanceA (longer half axis)", "distanceB (shorter half axis)"),
            }[shape]
            walk.struct(
                AREA,
                {"geoAreaPosLatitude": degrees},
                {"geoAreaPosLongitude": degrees},
                {first: _metres},
                {second: _metres},
                {"angle": lambda angle: f"{angle}°"},
                _RESERVED,
            )

    def _sequence_number(self) -> None:
        self._walk.number("sequenceNumber", 2)
        self._walk.field("reserved", 2)

    def _source(self) -> None:
        self._vector("sourcePositionVector", LONG_VECTOR)

    def _vector(self, name: str, layout: struct.Struct) -> None:
        with self._walk.part(name):
            with self._walk.part("gnAddress"):
                self._walk.struct(ADDRESS, *_ADDRESS)
            rest = struct.Struct(">" + layout.format.removeprefix(ADDRESS.format))
            timestamp: _Texts = {"timestamp": lambda value: self._moment(value, its_time.GN_TIMESTAMP_MODULUS_MS)}
            self._walk.struct(rest, timestamp, *(_PLACE if layout is SHORT_VECTOR else (*_PLACE, *_MOTION)))

    def _moment(self, value: int, modulus_ms: int) -> str:
        """The remainder of a time in ms, and the whole time, where something says near which time it is."""
        text = f"{value:,} ms"
        if self._near_us is None:
            return text
        return f"{text} ({utc_text(its_time.full_time(value, modulus_ms, self._near_us), 3)})"

    def _transport(self, following: int) -> None:
        walk = self._walk
        port = int.from_bytes(walk.octets[walk.at : walk.at + 2], "big")
        a = following == NextHeader.BTP_A
        with walk.part("BTP-A" if a else "BTP-B"):
            second: _Texts = {"sourcePort": _port} if a else {"destinationPortInfo": str}
            walk.struct(BTP_HEADER, {"destinationPort": _port}, second)
        message_fields(walk, port, self._moment)


def _names(values: type[IntEnum]) -> dict[int, str]:
    return {one.value: one.name.replace("_", "-") for one in values}


def _high_bits(octet: int) -> str:
    return str(octet >> 4)


def _metres(size: int) -> str:
    return f"{size:,} m"


def _port(port: int) -> str:
    return named(port, _names(Port))


def _header_type(kind: int) -> str:
    header = named(kind >> 4, {one.value: one.name.replace("_", " ") for one in HeaderType})
    return f"{header}, subtype {kind & 0xF}"


_COMMON_HEADER: tuple[_Texts, ...] = (
    {"nextHeader": lambda octet: named(octet >> 4, _names(NextHeader)), "reserved": lambda octet: str(octet & 0xF)},
    {"headerType": _header_type},
    {
        "trafficClass": lambda octet: (
            f"store-carry-forward {'yes' if octet & 0x80 else 'no'}, channel offload "
            f"{'yes' if octet & 0x40 else 'no'}, id {octet & 0x3F}"
        )
    },
    {"flags": lambda octet: f"itsGnIsMobile {'yes' if octet >> 7 else 'no'}"},
    {"payloadLength": lambda size: f"{size} octets"},
    {"maximumHopLimit": str},
    _RESERVED,
)
_ADDRESS: tuple[_Texts, ...] = (
    {
        "manual": lambda value: str(value >> 15),
        "stationType": lambda value: named(value >> 10 & 0x1F, value_names()["stationType"]),
        "reserved": lambda value: str(value & 0x3FF),
    },
    {"mid": lambda octets: octets.hex(":")},
)
_PLACE: tuple[_Texts, ...] = ({"latitude": degrees}, {"longitude": degrees})
_MOTION: tuple[_Texts, ...] = (
    {
        "positionAccuracyIndicator": lambda value: str(value >> 15),
        "speed": lambda value: with_unit((value & 0x7FFF) - (value << 1 & 0x8000), 2, "m/s"),
    },
    {"heading": lambda value: with_unit(value, 1, "°")},
)
