"""Senders of packets that a receiver must reject: a variant of the CAM sender for each kind of attack."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from itertools import cycle
from math import cos, pi, sin
from random import Random
from typing import Any, NamedTuple

from labconsole.clock import now_ns
from labconsole_v2x.choices import Falsehood
from labconsole_v2x.messages import denm
from labconsole_v2x.messages.btp import Port, encode_btp_b
from labconsole_v2x.messages.cam import Cam
from labconsole_v2x.messages.denm import Denm, Situation
from labconsole_v2x.messages.geonetworking import Area, GeoNetworkingError, Shape, encode_gbc, secured_octets
from labconsole_v2x.security.distribution import Distribution
from labconsole_v2x.security.reading import MalformedDataError
from labconsole_v2x.security.scanning import scan_signed_data
from labconsole_v2x.security.structures import CAM_PSID, DENM_PSID, Certificate, Header
from labconsole_v2x.stations.capture import ETHERNET_HEADER, ethernet_frame
from labconsole_v2x.stations.routes import Movement, place
from labconsole_v2x.stations.sending import PASSENGER_CAR, CamSender, Identity, SentCam, reference_position

MOST_HEARD = 50_000
"""CAMs that wait to be sent again: some 20 MB."""
_COLLISION_RISK = 97
"""Cause code (EN 302 637-3, table 10)."""
_AREA_M = 500
_ELEVATION = 300
"""That of `reference_position`, in 0.1 m."""
JUMP_M = (50.0, 300.0)
"""How far a false position is from the true one; path points reach 650 m apart at this latitude."""
FALSE_SPEED = (25.0, 100.0)
"""By how much a false speed exceeds the true one, in m/s."""
_HEARD_BEFORE_NS = 1_000_000_000
"""A station ID is used again only so long after it was heard first: the receiver knows whose it is by then."""


class AttackSender(CamSender):
    """Sends CAMs with the whole ticket, so that a receiver needs no other packet to find what is wrong with one."""

    def _header(self, movement: Movement, its_us: int, channel_ratio: float) -> tuple[Header, bool]:
        return Header(CAM_PSID, its_us), True


class DenmSender(AttackSender):
    """Sends DENMs of an event where the station is (EN 302 637-3), each of a new one, as GeoBroadcast."""

    def _payload(self, movement: Movement, its_us: int) -> bytes:
        message = Denm(
            self.identity.station_id,
            self.identity.station_id,
            self.sequence_numbers.next_denm(),
            its_us,
            its_us,
            PASSENGER_CAR,
            reference_position(movement),
            situation=Situation(_COLLISION_RISK),
        )
        area = Area(Shape.CIRCLE, movement.latitude, movement.longitude, _AREA_M)
        octets = encode_btp_b(Port.DENM, denm.encode(message))
        number = self.sequence_numbers.next_packet()
        return encode_gbc(self._vector(movement, its_us), area, number, octets, max_hops=1)

    def _header(self, movement: Movement, its_us: int, channel_ratio: float) -> tuple[Header, bool]:
        return Header(DENM_PSID, its_us, location=(movement.latitude, movement.longitude, _ELEVATION)), True


def displaced(movement: Movement, random: Random) -> Movement:
    """The same movement at a false place."""
    distance_m, angle = random.uniform(*JUMP_M), random.uniform(0, 2 * pi)
    east, north = movement.east_m + distance_m * sin(angle), movement.north_m + distance_m * cos(angle)
    latitude, longitude = place(east, north)
    return movement._replace(east_m=east, north_m=north, latitude=latitude, longitude=longitude)


def sped_up(movement: Movement, random: Random) -> Movement:
    """The same movement with a false speed."""
    return movement._replace(speed=movement.speed + random.uniform(*FALSE_SPEED))


class ImplausibleSender(AttackSender):
    """Sends rightly signed CAMs whose content is false."""

    def __init__(
        self, identity: Identity, falsehood: Falsehood, heard_ids: Mapping[int, int], random: Random, **settings: Any
    ) -> None:
        """`heard_ids`: when each station ID was heard first, as the attacker's receiver notes it meanwhile; `settings`
        are those of `CamSender`."""
        super().__init__(identity, **settings)
        kinds = [kind for kind in Falsehood if kind is not Falsehood.MIXED]
        self._kinds = cycle(kinds if falsehood is Falsehood.MIXED else [falsehood])
        self._heard_ids = heard_ids
        self._random = random
        self._victim: int | None = None
        self._claimed: int | None = None
        """The station ID of the next CAM, where it is not its own."""

    def create(self, movement: Movement, channel_ratio: float = 0.0) -> SentCam:
        """A CAM of this moment; with a false position where no station ID is known yet."""
        kind = next(self._kinds)
        self._claimed = self._victims_id() if kind is Falsehood.DUPLICATE else None
        if kind is Falsehood.SPEED:
            movement = sped_up(movement, self._random)
        elif self._claimed is None:
            movement = displaced(movement, self._random)
        return super().create(movement, channel_ratio)

    def _victims_id(self) -> int | None:
        if self._victim is None:
            until_ns = now_ns() - _HEARD_BEFORE_NS
            known = [station_id for station_id, heard_ns in list(self._heard_ids.items()) if heard_ns <= until_ns]
            self._victim = self._random.choice(known) if known else None
        return self._victim

    def _cam(self, movement: Movement, its_us: int) -> Cam:
        message = super()._cam(movement, its_us)
        return message if self._claimed is None else message._replace(station_id=self._claimed)


class HeardCam(NamedTuple):
    """A signed packet as an attacker heard it at a time of `labconsole.clock.now_ns`."""

    heard_ns: int
    packet: bytes
    identity: int
    """generationTime in us (ITS time)."""
    with_certificate: bool


def heard_cam(frame: bytes, heard_ns: int) -> HeardCam | None:
    """The signed packet of a frame; None for another one."""
    packet = frame[ETHERNET_HEADER:]
    try:
        secured = secured_octets(packet)
        data = None if secured is None else scan_signed_data(secured)
    except (GeoNetworkingError, MalformedDataError):
        return None
    if data is None or data.header.generation_time is None:
        return None
    return HeardCam(heard_ns, packet, data.header.generation_time, data.digest is None)


class ReplaySender:
    """Sends again what was heard: the newest packet that was heard at least `delay_us` ago."""

    def __init__(self, identity: Identity, ticket: Certificate | None, heard: deque[HeardCam], delay_us: int) -> None:
        """`heard`, in order of time, may be that of several senders in one thread."""
        self.identity = identity
        self.ticket = ticket
        self.distribution: Distribution | None = None
        self._heard = heard
        self._delay_ns = delay_us * 1000

    def create(self, movement: Movement, channel_ratio: float = 0.0) -> SentCam | None:
        """A packet of another station in a frame of this one; None while none is old enough."""
        until_ns, heard = now_ns() - self._delay_ns, self._heard
        while len(heard) > 1 and heard[1].heard_ns <= until_ns:
            heard.popleft()
        if not heard or heard[0].heard_ns > until_ns:
            return None
        _, packet, identity, with_certificate = heard[0]
        return SentCam(ethernet_frame(packet, self.identity.mac), identity, 0, with_certificate)
