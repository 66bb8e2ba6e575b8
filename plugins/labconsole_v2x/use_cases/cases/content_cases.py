"""Cases of what packets say: plausible and implausible content, and pseudonyms that a tracker links."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from labconsole_v2x.attacks.attack_senders import ImplausibleSender
from labconsole_v2x.choices import Falsehood
from labconsole_v2x.messages.btp import Port, encode_btp_b
from labconsole_v2x.messages.cam import Cam
from labconsole_v2x.messages.geonetworking import Address, ShortPositionVector
from labconsole_v2x.stations.routes import Movement, Route, place
from labconsole_v2x.stations.sending import ALL_LAYERS, CamSender, Identity, Layer, SentCam
from labconsole_v2x.use_cases.cases.bench import Bench, Station
from labconsole_v2x.use_cases.cases.pki_cases import CAM_ONLY
from labconsole_v2x.use_cases.cases.pseudonym_cases import PooledStation
from labconsole_v2x.use_cases.evidence_figures import ALL_CHANGED

_EMPTY = encode_btp_b(Port.CERTIFICATE_REQUEST, b"\0")
_CONFIDENCE_95 = 2.4477
"""Radius, in standard deviations of each axis, within which 95 % of positions are."""
_STATIONS, _OF_EACH_KIND = 12, 2
_CONTENT_S, _INTERVAL_S = 10.0, 0.1
_TRACKED, _TRACKED_S, _SILENCE_S = 10, 2.0, 1.0


@dataclass(frozen=True)
class SensorNoise:
    """The noise of a station's sensors: standard deviations."""

    position_m: float = 1.0
    """Of each axis, independent from CAM to CAM: of a real receiver it changes slowly, and jumps less."""
    speed: float = 0.15
    """In m/s."""
    heading: float = 1.5
    """In degrees."""


_NOISE = SensorNoise()


def measured(movement: Movement, random: Random, noise: SensorNoise) -> Movement:
    """A movement as the sensors of a station measure it."""
    east, north = (
        movement.east_m + random.gauss(0, noise.position_m),
        movement.north_m + random.gauss(0, noise.position_m),
    )
    speed = max(0.0, movement.speed + random.gauss(0, noise.speed))
    heading = (movement.heading + random.gauss(0, noise.heading)) % 360
    latitude, longitude = place(east, north)
    return Movement(east, north, latitude, longitude, speed, movement.acceleration, heading, movement.curvature)


def with_confidence(message: Cam, position_m: float) -> Cam:
    """A CAM that says how exact its position is, by the standard deviation of each axis."""
    semi_axis = round(_CONFIDENCE_95 * position_m * 100)
    return message._replace(position=message.position._replace(semi_major=semi_axis, semi_minor=semi_axis))


class MeasuringSender(CamSender):
    """Sends CAMs of what sensors measure, with their noise."""

    def __init__(self, identity: Identity, random: Random, **settings: Any) -> None:
        super().__init__(identity, **settings)
        self._random = random

    def create(self, movement: Movement, channel_ratio: float = 0.0) -> SentCam:
        """The CAM of this moment."""
        return super().create(measured(movement, self._random, _NOISE), channel_ratio)

    def _cam(self, movement: Movement, its_us: int) -> Cam:
        return with_confidence(super()._cam(movement, its_us), _NOISE.position_m)


def _genuine(bench: Bench) -> list[Station]:
    return [bench.station(kind=partial(MeasuringSender, random=bench.random)) for _ in range(_STATIONS)]


def _plausible_content(bench: Bench) -> None:
    bench.receiver(plausibility=True)
    _drive(bench, _genuine(bench), [])


def _implausible_content(bench: Bench) -> None:
    bench.receiver(plausibility=True)
    stations = _genuine(bench)
    victims = {station.sender.identity.station_id: 0 for station in stations}
    attackers = [
        bench.station(kind=partial(ImplausibleSender, falsehood=falsehood, heard_ids=victims, random=bench.random))
        for falsehood in (Falsehood.POSITION, Falsehood.SPEED, Falsehood.DUPLICATE)
        for _ in range(_OF_EACH_KIND)
    ]
    _drive(bench, stations, [])
    _drive(bench, stations, attackers)


def _drive(bench: Bench, stations: list[Station], attackers: list[Station]) -> None:
    """Let each send ten CAMs a second of the case's clock."""
    for _ in range(round(_CONTENT_S / _INTERVAL_S)):
        bench.clock.advance(_INTERVAL_S)
        for station in stations:
            bench.send("CAM of a genuine station", station.frame(), wait=False)
        for attacker in attackers:
            bench.send("implausible CAM", attacker.frame(), wait=False)
        bench.settle()


def _tracking(bench: Bench) -> None:
    _track(bench, ALL_CHANGED, ALL_LAYERS)
    for layer in Layer:
        _track(bench, f"{layer} left unchanged", ALL_LAYERS - {layer})


def _track(bench: Bench, label: str, layers: Set[Layer]) -> None:
    """Stations send, are silent while all change their identities, and send again."""
    stations = [PooledStation(bench, [CAM_ONLY] * 2) for _ in range(_TRACKED)]
    _send_tracked(bench, label, stations)
    for station in stations:
        pseudonym = station.pool.change(station.now_s())
        station.station.sender.change_identity(pseudonym, layers)
    bench.clock.advance(_SILENCE_S)
    _send_tracked(bench, label, stations)


def _send_tracked(bench: Bench, label: str, stations: list[PooledStation]) -> None:
    """CAMs, and a packet with a sequence number of each station; whose each is is in its label."""
    centre = Route().at(0)
    somewhere = ShortPositionVector(Address(bytes(6), 0), 0, centre.latitude, centre.longitude)
    for tick in range(round(_TRACKED_S / _INTERVAL_S)):
        bench.clock.advance(_INTERVAL_S)
        for number, station in enumerate(stations, 1):
            bench.send(f"{label}/{number}", station.station.frame())
            if tick == 1:
                sender = station.station.sender
                bench.send(f"{label}/{number}", sender.unicast(somewhere, _EMPTY, centre))


CONTENT_CASES: Mapping[str, Callable[[Bench], None]] = {
    "F-CON-01": _plausible_content,
    "A-CON-01": _implausible_content,
    "A-PSN-01": _tracking,
}
