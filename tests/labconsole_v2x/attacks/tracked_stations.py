"""Vehicles that change their identity, and what an eavesdropper hears of them, for tests of trackers."""

from __future__ import annotations

from collections.abc import Hashable, Set
from dataclasses import dataclass, field
from random import Random

from labconsole_v2x.attacks.tracking import (
    Link,
    Observation,
    Track,
    TrackingScore,
    link_by_identifiers,
    link_by_motion,
    observe,
    score,
    tracks_of,
)
from labconsole_v2x.messages.geonetworking import Address, ShortPositionVector
from labconsole_v2x.security.distribution import CertificateInclusion, Distribution
from labconsole_v2x.security.trust import TrustStore
from labconsole_v2x.stations.routes import Route, vehicle_route
from labconsole_v2x.stations.sending import ALL_LAYERS, CamSender, Identity, Layer
from tests.labconsole_v2x.stations.pseudonym_lab import NOW_S, pseudonym

STEP_US = 100_000
CHANGE_S = 4
RSU = ShortPositionVector(Address(b"\2rsu..", 15), 0, 0, 0)


@dataclass
class Vehicle:
    """A vehicle with a clock of its own that tests set."""

    number: int
    route: Route
    now_us: int = NOW_S * 1_000_000

    def __post_init__(self) -> None:
        first = pseudonym()
        self.sender = CamSender(
            Identity.of(first.ticket.hashed_id8), ticket=first.ticket, key=first.key, clock=lambda: self.now_us
        )
        self.sender.distribution = Distribution(first.ticket, TrustStore(), CertificateInclusion.ETSI)

    def names(self) -> tuple[Hashable, ...]:
        """Under what it sends."""
        identity, ticket = self.sender.identity, self.sender.ticket
        assert ticket is not None
        return (identity.mac, identity.gn_mac, ticket.hashed_id8, identity.station_id)


@dataclass
class Drive:
    """Vehicles that send at 10 Hz and all change at the same times, every `CHANGE_S`, and are silent after it."""

    vehicles: int = 6
    changes: int = 2
    layers: Set[Layer] = ALL_LAYERS
    silence_s: float = 0.0
    seed: int = 1
    truth: dict[tuple[Hashable, ...], int] = field(default_factory=dict)

    def tracks(self) -> list[Track]:
        """The pseudonyms that an eavesdropper has heard."""
        random = Random(self.seed)
        vehicles = [Vehicle(number, vehicle_route(random)) for number in range(self.vehicles)]
        heard: list[Observation] = []
        period, silent = CHANGE_S * 10, round(self.silence_s * 10)
        for step in range((self.changes + 1) * (period + silent)):
            phase = step % (period + silent)
            for vehicle in vehicles:
                vehicle.now_us = NOW_S * 1_000_000 + step * STEP_US + vehicle.number * 1000
                if phase == 0 and step:
                    vehicle.sender.change_identity(pseudonym(), self.layers)
                if phase < period:
                    heard += self._sent(vehicle, step, phase)
        return tracks_of(heard)

    def _sent(self, vehicle: Vehicle, step: int, phase: int) -> list[Observation]:
        """A CAM, and now and then a packet to a roadside unit, which has a sequence number."""
        movement = vehicle.route.at(step / 10)
        frames = [vehicle.sender.create(movement).frame]
        if phase % 10 == 5:
            frames.append(vehicle.sender.unicast(RSU, b"\7\xe0\0\0request", movement))
        self.truth[vehicle.names()] = vehicle.number
        seen = [observe(frame, vehicle.now_us) for frame in frames]
        return [one for one in seen if one is not None]

    def station_of(self, track: Track) -> Hashable:
        one = track.first
        return self.truth[one.mac, one.gn_mac, one.digest, one.station_id]

    def scores(self) -> tuple[TrackingScore, TrackingScore]:
        """Those of the tracker by identifiers and of that by motion."""
        tracks = self.tracks()
        found: list[list[Link]] = [link_by_identifiers(tracks), link_by_motion(tracks)]
        by_identifiers, by_motion = (score(tracks, links, self.station_of) for links in found)
        return by_identifiers, by_motion
