"""A CAM service of a station: CAMs of its movement in BTP-B and GeoNetworking, secured with its ticket.

One instance has one identity at a time: a ticket, and with it one MAC address and one station ID. A change of identity
is one act over all layers.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Set
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from math import degrees
from threading import Lock
from typing import NamedTuple, Protocol

from labconsole.clock import now_ns
from labconsole_v2x.messages import cam
from labconsole_v2x.messages.btp import Port, encode_btp_b
from labconsole_v2x.messages.cam import Cam, LowFrequency, Motion
from labconsole_v2x.messages.common_data import PathPoint, Position
from labconsole_v2x.messages.geonetworking import (
    DEFAULT_HOP_LIMIT,
    Address,
    PositionVector,
    ShortPositionVector,
    encode_basic_header,
    encode_guc,
    encode_shb,
)
from labconsole_v2x.messages.its_time import generation_delta_time, gn_timestamp
from labconsole_v2x.security.distribution import Distribution, Inclusion
from labconsole_v2x.security.encoding import encode_x_only_signature
from labconsole_v2x.security.keys import SigningKey
from labconsole_v2x.security.signing import PacketSigner
from labconsole_v2x.security.structures import (
    CAM_PSID,
    Certificate,
    Curve,
    Header,
    PublicKey,
)
from labconsole_v2x.security.verification import its_now
from labconsole_v2x.stations.capture import ethernet_frame
from labconsole_v2x.stations.pseudonyms import Pseudonym
from labconsole_v2x.stations.routes import Movement

PASSENGER_CAR, ROADSIDE_UNIT = 5, 15
"""StationType (TS 102 894-2, A.78)."""
_LIFETIME_MS, _UNICAST_LIFETIME_MS = 1000, 10_000
_LOW_FREQUENCY_US = 500_000
"""The low frequency container is in the first CAM and then each 500 ms (EN 302 637-2, 6.1.3)."""
_PATH_POINTS = 5
_PATH_TIME_US, _LONGEST_PATH_TIME = 10_000, 65_535
"""Unit and largest value of PathDeltaTime (TS 102 894-2)."""
_CAR_LENGTH, _CAR_WIDTH = 45, 18
_SPEED_CONFIDENCE, _HEADING_CONFIDENCE = 10, 10
_NOTHING = Inclusion(certificate=False)


class SecurityMode(StrEnum):
    """Security of each CAM: the source's configurations."""

    FULL = "full"
    """Signed, and verified by receivers."""
    SIGNED = "signed"
    """Signed, and not verified: the second line of Fig. 4.4, as this console reads it."""
    HEADER = "header"
    """With the security header, neither signed nor verified: the second line of Fig. 4.3."""
    NONE = "none"
    """Without security header."""

    @property
    def signs(self) -> bool:
        """Whether senders sign."""
        return self in (SecurityMode.FULL, SecurityMode.SIGNED)

    @property
    def verifies(self) -> bool:
        """Whether receivers verify."""
        return self is SecurityMode.FULL


class PlaceholderKey:
    """A key that does not sign: its signatures have the size of real ones, and no receiver accepts them."""

    def __init__(self, public_key: PublicKey) -> None:
        self.public_key = public_key
        self._signature = encode_x_only_signature(public_key.curve, b"\x55" * 2 * public_key.curve.size)

    @property
    def curve(self) -> Curve:
        """The curve of the key in the ticket."""
        return self.public_key.curve

    def sign_digest(self, digest: bytes) -> bytes:
        """Always the same octets."""
        return self._signature


@dataclass(frozen=True)
class Identity:
    """The names under which an instance sends: MAC addresses (6 octets, locally administered) and station ID."""

    mac: bytes
    station_id: int
    gn_mac: bytes
    """In the GeoNetworking address: the same as `mac`, unless one of them was left unchanged."""

    @classmethod
    def of(cls, octets: bytes) -> Identity:
        """The identity that eight octets give: the ticket's HashedId8, or random ones without a ticket.

        So each layer derives its identifier from the ticket (TS 102 940 v2.1.1, 6.5).
        """
        mac = bytes((octets[2] & 0xFC | 2,)) + octets[3:]
        return cls(mac, int.from_bytes(octets[4:], "big"), mac)


class Layer(StrEnum):
    """What a change of identity replaces."""

    TICKET = "ticket"
    """With its key and its distribution: the next CAM has the certificate, if CAMs have any."""
    MAC_ADDRESS = "MAC address"
    GN_ADDRESS = "GeoNetworking address"
    STATION_ID = "station ID"
    PATH_HISTORY = "path history"
    """With the time of the low frequency container, which is in the next CAM."""
    SEQUENCE_NUMBERS = "sequence numbers"
    """Those of GeoNetworking packets and of DENMs."""


ALL_LAYERS = frozenset(Layer)


class SequenceNumbers:
    """Sequence numbers of GeoNetworking packets and of DENMs, from a random one on."""

    def __init__(self) -> None:
        self._packet, self._denm = (int.from_bytes(os.urandom(2), "big") for _ in range(2))

    def next_packet(self) -> int:
        """That of the next GeoUnicast or GeoBroadcast (EN 302 636-4-1, 8.3)."""
        self._packet = (self._packet + 1) % 65_536
        return self._packet

    def next_denm(self) -> int:
        """That of the next event (EN 302 637-3, 6.1.1.2)."""
        self._denm = (self._denm + 1) % 65_536
        return self._denm


def packet_hash(packet: bytes) -> int:
    """The identity of an unsecured packet: 63 bits of its SHA-256."""
    return int.from_bytes(sha256(packet).digest()[:8], "big") >> 1


class SentCam(NamedTuple):
    """A frame as it is sent, and what is recorded of it."""

    frame: bytes
    identity: int
    """generationTime in us (ITS time); without a security header a hash of the packet."""
    sign_ns: int
    """Time to sign and to encode the secured packet; 0 without a security header."""
    with_certificate: bool


class PacketSender(Protocol):
    """Creates the packets of one instance."""

    identity: Identity
    ticket: Certificate | None
    distribution: Distribution | None

    def create(self, movement: Movement, channel_ratio: float = 0.0) -> SentCam | None:
        """The packet of this moment; None where there is nothing to send."""


class CamSender:
    """Creates the CAMs of one instance."""

    def __init__(
        self,
        identity: Identity,
        *,
        ticket: Certificate | None = None,
        key: SigningKey | None = None,
        station_type: int = PASSENGER_CAR,
        clock: Callable[[], int] = its_now,
    ) -> None:
        """Without `ticket` and `key` packets have no security header. `clock` returns ITS time in us."""
        self.identity = identity
        self.ticket = ticket
        self.sequence_numbers = SequenceNumbers()
        self._signer = PacketSigner(ticket, key) if ticket is not None and key is not None else None
        self.distribution: Distribution | None = None
        """Decides what each CAM includes; without one CAMs have the digest as signer."""
        self._station_type = station_type
        self._clock = clock
        self._basic = encode_basic_header(_LIFETIME_MS, 1, secured=self._signer is not None)
        self._last_us = 0
        self._last_place = (0, 0)
        self._low_frequency_us = 0
        self._path: deque[tuple[int, Movement]] = deque(maxlen=_PATH_POINTS)
        self._turn = Lock()

    def change_identity(self, pseudonym: Pseudonym | None = None, layers: Set[Layer] = ALL_LAYERS) -> None:
        """Send under another identity from the next packet on: that of a pseudonym, or a random one without security.

        Only the thread that calls `create` may do so: no packet has identifiers of both. A change of less than all
        layers can be linked; tests of trackers do so.
        """
        if (pseudonym is None) is not (self._signer is None):
            raise ValueError("a sender with a ticket needs another one, and one without has none")
        new = Identity.of(os.urandom(8) if pseudonym is None else pseudonym.ticket.hashed_id8)
        old = self.identity
        with self._turn:
            self.identity = Identity(
                new.mac if Layer.MAC_ADDRESS in layers else old.mac,
                new.station_id if Layer.STATION_ID in layers else old.station_id,
                new.gn_mac if Layer.GN_ADDRESS in layers else old.gn_mac,
            )
            if Layer.SEQUENCE_NUMBERS in layers:
                self.sequence_numbers = SequenceNumbers()
        if pseudonym is not None and Layer.TICKET in layers:
            self.ticket = pseudonym.ticket
            self._signer = PacketSigner(pseudonym.ticket, pseudonym.key)
            if self.distribution is not None:
                self.distribution.change_ticket(pseudonym.ticket)
        if Layer.PATH_HISTORY in layers:
            self._path.clear()
            self._low_frequency_us = 0

    def unicast(self, destination: ShortPositionVector, payload: bytes, movement: Movement) -> bytes:
        """A frame with a GeoUnicast that is not secured, under the identity of this moment; from any thread."""
        with self._turn:
            identity, number = self.identity, self.sequence_numbers.next_packet()
        vector = self._vector(movement, self._clock())._replace(address=self._address_of(identity))
        packet = encode_guc(vector, destination, number, payload, mobile=self._station_type != ROADSIDE_UNIT)
        basic = encode_basic_header(_UNICAST_LIFETIME_MS, DEFAULT_HOP_LIMIT)
        return ethernet_frame(basic + packet, identity.mac, destination.address.mac)

    def create(self, movement: Movement, channel_ratio: float = 0.0) -> SentCam:
        """The CAM of this moment; no two packets are alike."""
        # Without a security header, packets of one place differ in their time in ms alone.
        place = (movement.latitude, movement.longitude)
        least_us = 1000 if self._signer is None and place == self._last_place else 1
        generated_us = max(self._clock(), self._last_us + least_us)
        self._last_us, self._last_place = generated_us, place
        payload = self._payload(movement, generated_us)
        if self._signer is None:
            packet = self._basic + payload
            return SentCam(ethernet_frame(packet, self.identity.mac), packet_hash(packet), 0, False)
        header, with_certificate = self._header(movement, generated_us, channel_ratio)
        began_ns = now_ns()
        secured = self._signer.sign(payload, header, include_certificate=with_certificate)
        sign_ns = now_ns() - began_ns
        frame = ethernet_frame(self._basic + secured, self.identity.mac)
        return SentCam(frame, generated_us, sign_ns, with_certificate)

    def _payload(self, movement: Movement, its_us: int) -> bytes:
        """The GeoNetworking packet from its common header on."""
        message = encode_btp_b(Port.CAM, cam.encode(self._cam(movement, its_us)))
        return encode_shb(self._vector(movement, its_us), message, mobile=self._station_type != ROADSIDE_UNIT)

    def _header(self, movement: Movement, its_us: int, channel_ratio: float) -> tuple[Header, bool]:
        """The header of signed data, and whether the signer is the whole certificate."""
        included = self.distribution.next_cam(its_us, channel_ratio) if self.distribution else _NOTHING
        header = Header(
            CAM_PSID,
            its_us,
            inline_p2pcd_request=included.inline_p2pcd_request,
            requested_certificate=included.requested_certificate,
        )
        return header, included.certificate

    def _vector(self, movement: Movement, its_us: int) -> PositionVector:
        return PositionVector(
            self._address_of(self.identity),
            gn_timestamp(its_us),
            movement.latitude,
            movement.longitude,
            True,
            round(movement.speed * 100),
            round(movement.heading * 10) % 3600,
        )

    def _address_of(self, identity: Identity) -> Address:
        return Address(identity.gn_mac, self._station_type if self._station_type < 32 else 0)

    def _cam(self, movement: Movement, its_us: int) -> Cam:
        low = None
        if its_us - self._low_frequency_us >= _LOW_FREQUENCY_US:
            self._low_frequency_us = its_us
            if self._station_type != ROADSIDE_UNIT:
                low = LowFrequency(path=self._path_history(movement, its_us))
                self._path.appendleft((its_us, movement))
        return Cam(
            self.identity.station_id,
            generation_delta_time(its_us),
            self._station_type,
            reference_position(movement),
            None if self._station_type == ROADSIDE_UNIT else _motion(movement),
            low,
        )

    def _path_history(self, movement: Movement, its_us: int) -> tuple[PathPoint, ...]:
        """The last points driven, each relative to the one after it."""
        points, after, after_us = [], movement, its_us
        for point_us, point in self._path:
            delta = point.latitude - after.latitude, point.longitude - after.longitude
            driven = round((after_us - point_us) / _PATH_TIME_US)
            points.append(PathPoint(*delta, time=min(driven, _LONGEST_PATH_TIME)))
            after, after_us = point, point_us
        return tuple(points)


def reference_position(movement: Movement) -> Position:
    """The place of a station, at an elevation of 30 m."""
    return Position(movement.latitude, movement.longitude, 50, 50, 0, 3000, 7)


def _motion(movement: Movement) -> Motion:
    return Motion(
        heading=round(movement.heading * 10) % 3600,
        heading_confidence=_HEADING_CONFIDENCE,
        speed=round(movement.speed * 100),
        speed_confidence=_SPEED_CONFIDENCE,
        drive_direction=0,
        length=_CAR_LENGTH,
        length_confidence=0,
        width=_CAR_WIDTH,
        acceleration=round(movement.acceleration * 10),
        acceleration_confidence=10,
        curvature=round(movement.curvature * 10_000),
        curvature_confidence=4,
        curvature_mode=0,
        yaw_rate=round(degrees(movement.speed * movement.curvature) * 100),
        yaw_rate_confidence=4,
    )
