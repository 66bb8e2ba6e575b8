"""Senders of packets that a receiver must reject: a variant of the CAM sender for each kind of attack."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from labconsole.clock import now_ns
from labconsole_v2x.messages import denm
from labconsole_v2x.messages.btp import Port, encode_btp_b
from labconsole_v2x.messages.denm import Denm, Situation
from labconsole_v2x.messages.geonetworking import Area, GeoNetworkingError, Shape, encode_gbc, secured_octets
from labconsole_v2x.security.distribution import Distribution
from labconsole_v2x.security.reading import MalformedDataError
from labconsole_v2x.security.scanning import scan_signed_data
from labconsole_v2x.security.structures import CAM_PSID, DENM_PSID, Certificate, Header
from labconsole_v2x.stations.capture import ethernet_frame
from labconsole_v2x.stations.routes import Movement
from labconsole_v2x.stations.sending import PASSENGER_CAR, CamSender, Identity, SentCam, reference_position

MOST_HEARD = 50_000
"""CAMs that wait to be sent again: some 20 MB."""
_ETHERNET_HEADER = 14
_COLLISION_RISK = 97
"""Cause code (EN 302 637-3, table 10)."""
_AREA_M = 500
_ELEVATION = 300
"""That of `reference_position`, in 0.1 m."""


class AttackSender(CamSender):
    """Sends CAMs with the whole ticket, so that a receiver needs no other packet to find what is wrong with one."""

    def _header(self, movement: Movement, its_us: int, channel_ratio: float) -> tuple[Header, bool]:
        return Header(CAM_PSID, its_us), True


class DenmSender(AttackSender):
    """Sends DENMs of an event where the station is (EN 302 637-3), each of a new one, as GeoBroadcast."""

    _number = 0

    def _payload(self, movement: Movement, its_us: int) -> bytes:
        self._number = (self._number + 1) % 65_536
        message = Denm(
            self.identity.station_id,
            self.identity.station_id,
            self._number,
            its_us,
            its_us,
            PASSENGER_CAR,
            reference_position(movement),
            situation=Situation(_COLLISION_RISK),
        )
        area = Area(Shape.CIRCLE, movement.latitude, movement.longitude, _AREA_M)
        octets = encode_btp_b(Port.DENM, denm.encode(message))
        return encode_gbc(self._vector(movement, its_us), area, self._number, octets, max_hops=1)

    def _header(self, movement: Movement, its_us: int, channel_ratio: float) -> tuple[Header, bool]:
        return Header(DENM_PSID, its_us, location=(movement.latitude, movement.longitude, _ELEVATION)), True


class HeardCam(NamedTuple):
    """A signed packet as an attacker heard it at a time of `labconsole.clock.now_ns`."""

    heard_ns: int
    packet: bytes
    identity: int
    """generationTime in us (ITS time)."""
    with_certificate: bool


def heard_cam(frame: bytes, heard_ns: int) -> HeardCam | None:
    """The signed packet of a frame; None for another one."""
    packet = frame[_ETHERNET_HEADER:]
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
