"""Captures of stations with a lab PKI, in which single packets are wrong in a known way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from labconsole_v2x.messages import cam, denm
from labconsole_v2x.messages.btp import Port, encode_btp_b
from labconsole_v2x.messages.cam import Cam, Motion
from labconsole_v2x.messages.common_data import Position
from labconsole_v2x.messages.denm import Denm, Situation
from labconsole_v2x.messages.geonetworking import (
    Address,
    Area,
    PositionVector,
    Shape,
    encode_basic_header,
    encode_gbc,
    encode_shb,
)
from labconsole_v2x.messages.its_time import generation_delta_time, gn_timestamp, its_us
from labconsole_v2x.security.issuing import LabPki
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.signing import PacketSigner
from labconsole_v2x.security.structures import CAM_PSID, DENM_PSID, Certificate, Header
from labconsole_v2x.stations.capture import capture_header, ethernet_frame, packet_block

TIME_NS = 1_700_000_000_000_000_000
"""Unix time of the captures."""
NOW_US = its_us(TIME_NS)
NOW_S = NOW_US // 1_000_000
DAY_S = 86_400
LATITUDE, LONGITUDE = 488_500_000, 23_500_000


def lab() -> LabPki:
    """A PKI that is valid since a year."""
    return LabPki.create(NOW_S - 365 * DAY_S)


@dataclass(frozen=True)
class Vehicle:
    """A station with one ticket."""

    number: int
    ticket: Certificate
    key: SoftwareKey

    @classmethod
    def of(cls, pki: LabPki, number: int, **settings: object) -> Vehicle:
        """A station with a new ticket, valid for a week since an hour."""
        key = SoftwareKey.generate()
        start_s = NOW_S - 3600
        return cls(number, pki.ticket(key.public_key, start_s, **settings), key)  # type: ignore[arg-type]

    @cached_property
    def signer(self) -> PacketSigner:
        return PacketSigner(self.ticket, self.key)

    def position(self, at_us: int) -> PositionVector:
        address = Address(b"\2\0\0\0\0" + bytes((self.number,)), 5)
        return PositionVector(address, gn_timestamp(at_us), LATITUDE, LONGITUDE)

    def cam(self, at_us: int = NOW_US) -> Cam:
        return Cam(
            self.number, generation_delta_time(at_us), 5, Position(LATITUDE, LONGITUDE), Motion(900, 10, 1389, 127)
        )

    def secured(self, unsecured: bytes, header: Header, *, certificate: bool = False, basic: bytes = b"") -> bytes:
        """A secured packet; its basic header is that of a single-hop broadcast if no other is given."""
        data = self.signer.sign(unsecured, header, include_certificate=certificate)
        return (basic or encode_basic_header(60_000, 1, secured=True)) + data

    def signed_cam(
        self, content: Cam | None = None, header: Header | None = None, *, certificate: bool = False
    ) -> bytes:
        at_us = NOW_US if header is None or header.generation_time is None else header.generation_time
        body = encode_btp_b(Port.CAM, cam.encode(content or self.cam(at_us)))
        header = header or Header(CAM_PSID, at_us)
        return self.secured(encode_shb(self.position(at_us), body), header, certificate=certificate)

    def unsigned_cam(self) -> bytes:
        body = encode_btp_b(Port.CAM, cam.encode(self.cam()))
        return encode_basic_header(60_000, 1) + encode_shb(self.position(NOW_US), body)

    def signed_denm(self, cause: int = 97) -> bytes:
        event = Position(LATITUDE, LONGITUDE)
        content = Denm(self.number, self.number, 1, NOW_US, NOW_US, 5, event, situation=Situation(cause))
        body = encode_btp_b(Port.DENM, denm.encode(content))
        unsecured = encode_gbc(self.position(NOW_US), Area(Shape.CIRCLE, LATITUDE, LONGITUDE, 500), 1, body)
        header = Header(DENM_PSID, NOW_US, location=(LATITUDE, LONGITUDE, 0))
        return self.secured(unsecured, header, certificate=True, basic=encode_basic_header(60_000, 10, secured=True))

    def renewed(self, ticket: Certificate) -> Vehicle:
        """The same station with another ticket of its key."""
        return replace(self, ticket=ticket)


def write_capture(path: Path, *packets: bytes, time_ns: int = TIME_NS) -> Path:
    """A capture with these GeoNetworking packets, 1 ms apart."""
    frames = (ethernet_frame(packet, b"\2\0\0\0\0\1") for packet in packets)
    blocks = (packet_block(time_ns + number * 1_000_000, frame) for number, frame in enumerate(frames))
    path.write_bytes(capture_header(["road"]) + b"".join(blocks))
    return path
