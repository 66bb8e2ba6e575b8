"""A labelled trace: CAMs of genuine stations with the noise of sensors, and of attackers of each kind.

What the checks of plausibility find in it gives their detection rates, and their rate of false alarms (F-CON-01).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import NamedTuple

from labconsole_v2x.attacks.attack_senders import displaced, sped_up
from labconsole_v2x.messages.cam import Cam
from labconsole_v2x.stations.plausibility import Implausibility, Plausibility
from labconsole_v2x.stations.routes import CENTRE, Movement, vehicle_route
from labconsole_v2x.stations.sending import CamSender, Identity
from labconsole_v2x.use_cases.cases.content_cases import SensorNoise, measured, with_confidence

BEGIN_US = 727_000_000_000_000
"""ITS time at which a trace begins."""

_ATTACK_BEGIN_S = 1.0
"""Attackers begin after the others, and use station IDs that they heard so long before."""
_FAR_M = 3000.0


class FalseContent(StrEnum):
    """What is false about the CAMs of an attacker, from its first one on."""

    RANDOM_POSITION = "another false position in each CAM"
    RANDOM_SPEED = "another false speed in each CAM"
    CONSTANT_SPEED = "speed false by 15 m/s"
    IMPOSSIBLE_SPEED = "speed beyond the station type"
    FROZEN_POSITION = "position that does not change"
    REVERSED_HEADING = "heading reversed"
    DUPLICATE_STATION = "station ID of another station"
    OUT_OF_RANGE = "position 3 km away"


class LabelledCam(NamedTuple):
    """A CAM as it is received, and the truth about it."""

    generated_us: int
    """ITS time."""
    ticket: bytes
    """HashedId8."""
    message: Cam
    station: int
    """From 1 on; attackers have the highest numbers."""
    content: FalseContent | None
    """None: the station is genuine."""


@dataclass(frozen=True)
class TraceSettings(SensorNoise):
    """Stations, and the noise of their sensors."""

    stations: int = 20
    attackers: int = 5
    """Of each kind."""
    seconds: float = 60.0
    rate: float = 10.0
    jitter_ms: float = 10.0
    loss: float = 0.01
    pseudonym_s: float = 20.0
    """After so long a station changes its ticket and station ID."""
    seed: int = 1


def labelled_trace(settings: TraceSettings) -> list[LabelledCam]:
    """The CAMs that arrive at a receiver in the centre, in order of their generation."""
    contents = [None] * settings.stations + [kind for kind in FalseContent for _ in range(settings.attackers)]
    streams = [_Stream(settings, number, content) for number, content in enumerate(contents, 1)]
    trace = [received for stream in streams for received in stream.received()]
    return sorted(trace, key=lambda received: received.generated_us)


class _Stream:
    """The CAMs of a station of the trace."""

    def __init__(self, settings: TraceSettings, number: int, content: FalseContent | None) -> None:
        self._settings = settings
        self._number = number
        self._content = content
        self._random = Random(f"{settings.seed}/{number}")
        self._route = vehicle_route(Random(f"{settings.seed}/{number}/route"))

    def received(self) -> Iterator[LabelledCam]:
        settings, random = self._settings, self._random
        begin_s = random.random() / settings.rate + (0 if self._content is None else _ATTACK_BEGIN_S)
        senders: dict[bytes, _Sender] = {}
        for count in range(round((settings.seconds - begin_s) * settings.rate)):
            at_s = begin_s + count / settings.rate
            ticket = _pseudonym(settings, self._number, at_s if self._content is None else 0.0)
            sender = senders.setdefault(ticket, _Sender(Identity.of(ticket)))
            generated_us = BEGIN_US + round((at_s + random.random() * settings.jitter_ms / 1e3) * 1e6)
            message = self._falsified(sender.cam(self._movement(at_s), generated_us, settings.position_m), at_s)
            if random.random() >= settings.loss:
                yield LabelledCam(generated_us, ticket, message, self._number, self._content)

    def _movement(self, at_s: float) -> Movement:
        """What the station says of its movement: the truth with noise, unless it attacks."""
        random = self._random
        movement = self._route.at(_ATTACK_BEGIN_S if self._content is FalseContent.FROZEN_POSITION else at_s)
        if self._content is FalseContent.OUT_OF_RANGE:
            movement = movement._replace(east_m=movement.east_m + _FAR_M)
        movement = measured(movement, random, self._settings)
        speed, heading = movement.speed, movement.heading
        match self._content:
            case FalseContent.RANDOM_POSITION:
                return displaced(movement, random)
            case FalseContent.RANDOM_SPEED:
                return sped_up(movement, random)
            case FalseContent.CONSTANT_SPEED:
                return movement._replace(speed=speed + 15)
            case FalseContent.IMPOSSIBLE_SPEED:
                return movement._replace(speed=150.0)
            case FalseContent.REVERSED_HEADING:
                return movement._replace(heading=(heading + 180) % 360)
        return movement

    def _falsified(self, message: Cam, at_s: float) -> Cam:
        if self._content is not FalseContent.DUPLICATE_STATION:
            return message
        victim = 1 + self._number % self._settings.stations
        heard = _pseudonym(self._settings, victim, at_s - _ATTACK_BEGIN_S)
        return message._replace(station_id=Identity.of(heard).station_id)


class _Sender(CamSender):
    def cam(self, movement: Movement, generated_us: int, position_m: float) -> Cam:
        return with_confidence(self._cam(movement, generated_us), position_m)


def _pseudonym(settings: TraceSettings, number: int, at_s: float) -> bytes:
    """The HashedId8 of the ticket of a station at a time."""
    return Random(f"{settings.seed}/{number}/{at_s // settings.pseudonym_s:g}").randbytes(8)


@dataclass(frozen=True)
class Detections:
    """What the checks found of one label: genuine CAMs, or those of attackers of one kind."""

    cams: int
    implausible: int
    """CAMs in which something was found."""
    streams: int
    """Stations."""
    streams_within_1_s: int
    """Those of which a CAM was found implausible within a second of the first one."""
    found: Mapping[Implausibility, int]

    @property
    def rate(self) -> float:
        """The share of CAMs that were found implausible, %."""
        return 100 * self.implausible / self.cams


def judge(
    trace: Sequence[LabelledCam], plausibility: Plausibility | None = None
) -> dict[FalseContent | None, Detections]:
    """Let a receiver in the centre check a trace: what it found, by label, in the order of the labels."""
    plausibility = plausibility or Plausibility(CENTRE)
    verdicts: dict[FalseContent | None, list[tuple[LabelledCam, tuple[Implausibility, ...]]]] = {
        label: [] for label in (None, *FalseContent)
    }
    for received in trace:
        found = plausibility.check(received.ticket, received.message, received.generated_us)
        verdicts[received.content].append((received, found))
    return {label: _detections(of_label) for label, of_label in verdicts.items() if of_label}


def _detections(verdicts: Sequence[tuple[LabelledCam, tuple[Implausibility, ...]]]) -> Detections:
    first: dict[int, int] = {}
    within = set()
    for received, found in verdicts:
        begun_us = first.setdefault(received.station, received.generated_us)
        if found and received.generated_us - begun_us <= 1_000_000:
            within.add(received.station)
    kinds = Counter(kind for _, found in verdicts for kind in found)
    implausible = sum(bool(found) for _, found in verdicts)
    return Detections(len(verdicts), implausible, len(first), len(within), kinds)
