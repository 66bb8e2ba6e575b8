"""Basic Transport Protocol (EN 302 636-5-1): BTP-A and BTP-B headers, and ports (TS 103 248)."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from labconsole_v2x.messages.geonetworking import NextHeader


class Port(IntEnum):
    """The destination port of BTP-B, by message."""

    CAM = 2001
    DENM = 2002
    MAPEM = 2003
    SPATEM = 2004
    SAEM = 2005
    IVIM = 2006
    SREM = 2007
    SSEM = 2008
    CPM = 2009
    EVCSN_POI = 2010
    TPG = 2011
    EV_RSR = 2012
    RTCMEM = 2013
    CTLM = 2014
    CRLM = 2015
    CERTIFICATE_REQUEST = 2016
    MCDM = 2017
    VAM = 2018


class BtpError(Exception):
    """A packet without a BTP header that can be read; the text is the reason."""


class BtpPacket(NamedTuple):
    """A BTP packet: `source_port` in BTP-A only, `port_info` in BTP-B only."""

    destination_port: int
    source_port: int | None
    port_info: int | None
    payload: bytes


HEADER = struct.Struct(">HH")
_BTP_A, _BTP_B = NextHeader.BTP_A, NextHeader.BTP_B


def encode_btp_b(destination_port: int, payload: bytes, port_info: int = 0) -> bytes:
    """Return a BTP-B packet.

    Raises:
        BtpError: a port is not a number of 16 bits.
    """
    try:
        return HEADER.pack(destination_port, port_info) + payload
    except struct.error as error:
        raise BtpError(f"BTP-B port {destination_port} or its info {port_info} is out of range 0 to 65535") from error


def parse_btp(next_header: int, octets: bytes) -> BtpPacket:
    """Return the BTP packet that is the payload of a GeoNetworking packet with this `next_header`.

    Raises:
        BtpError: the next header is not BTP, or the packet is truncated.
    """
    interactive = next_header == _BTP_A
    if not interactive and next_header != _BTP_B:
        raise BtpError(f"next header {next_header} of GeoNetworking is not BTP")
    if len(octets) < HEADER.size:
        raise BtpError(f"BTP header is truncated: {len(octets)} octets")
    destination_port, second = HEADER.unpack_from(octets)
    return BtpPacket(
        destination_port, second if interactive else None, None if interactive else second, octets[HEADER.size :]
    )
