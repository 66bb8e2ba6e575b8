"""Plausibility of content: a CAM against itself, against its station's earlier CAMs, and against other stations.

A valid signature proves who sent a CAM, not that its content is true. The thresholds for speed and acceleration are the
trigger conditions of TS 103 759 (EtsiTs103759AsrCam), as others quote them; those of F2MD (J. Kamel et al., Simulation
Framework for Misbehavior Detection in Vehicular Networks, 2020) are for one city's traffic and would reject a motorway.
A station is a ticket: after a change of pseudonym, nothing is compared with what the station sent before.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from enum import StrEnum
from math import cos, hypot, nan, radians, sin
from threading import Lock
from typing import NamedTuple

from labconsole_v2x.messages.cam import Cam
from labconsole_v2x.security.regions import EARTH_RADIUS_M
from labconsole_v2x.stations.neighbours import MOST_NEIGHBOURS


class Implausibility(StrEnum):
    """What is implausible about a CAM."""

    SPEED_TOO_HIGH = "speed too high for the station type"
    ACCELERATION_TOO_HIGH = "acceleration too high"
    OUT_OF_RANGE = "position out of radio range"
    POSITION_JUMP = "position jump"
    SPEED_CHANGE = "speed change too large"
    SPEED_AGAINST_MOVEMENT = "speed against movement"
    HEADING_AGAINST_MOVEMENT = "heading against movement"
    DUPLICATE_STATION = "station ID of another station"

    @property
    def observation(self) -> Observation | None:
        """The observation of TS 103 759 for CAMs; None where it has none."""
        return _OBSERVATIONS.get(self)


class Observation(NamedTuple):
    """An observation of TS 103 759: target class, number in it, and name."""

    target: int
    number: int
    name: str


_OBSERVATIONS = {
    Implausibility.POSITION_JUMP: Observation(3, 4, "Position-ChangeTooLarge"),
    Implausibility.SPEED_TOO_HIGH: Observation(4, 3, "Speed-ValueTooLarge-VehicleType"),
    Implausibility.SPEED_CHANGE: Observation(4, 5, "Speed-ChangeTooLarge"),
    Implausibility.ACCELERATION_TOO_HIGH: Observation(5, 4, "LongAcc-ValueTooLarge"),
}

_FAST, _HEAVY, _SLOW = 140.0, 85.0, 30.0
HIGHEST_SPEED = (_SLOW, _SLOW, _SLOW, _SLOW, _HEAVY, _FAST, _HEAVY, _HEAVY, _HEAVY, _HEAVY, _HEAVY, _SLOW)
"""In m/s, by StationType from unknown (0) to tram (11): TS 103 759. There special vehicles (10) have 30 m/s, which an
ambulance exceeds: here they have the limit of lorries. A roadside unit (15) does not move; others are not limited."""
ROADSIDE_UNIT = 15
HIGHEST_SPEED_BACKWARDS = 30.0
"""In m/s (TS 103 759)."""
HIGHEST_ACCELERATION = 9.0
"""In m/s2 (TS 103 759): tyres with a friction of 0.9 give 8.8."""
RADIO_RANGE_M = 1500.0
"""ITS-G5 at 23 dBm reaches some hundred metres to a kilometre on the road; F2MD has 420 m."""
CONFIDENCE_FACTOR = 1.75
"""The confidence ellipse holds 95 % of positions; so much of that of a difference is exceeded by one in 10,000."""
LEAST_CONFIDENCE_M, MOST_CONFIDENCE_M = 1.0, 5.0
"""What a station says of its own accuracy is used within these limits: an attacker buys no room by a large ellipse."""
LATENCY_S = 0.1
"""By how much the position may be older or newer than the generation time: 50 ms and 50 ms (EN 302 637-2, 6.1.5)."""
SPEED_TOLERANCE = 1.0
"""In m/s, of the difference of two speeds: eight times the standard deviation of a common speed sensor."""
LEAST_BASELINE_S, BASELINE_S = 0.5, 1.0
"""Movement is compared with speed and heading over this time at least; then over one to two times the second one."""
MEMORY_S = 3.0
"""A CAM is compared with CAMs of these last seconds alone: at 1 Hz, with one of them lost."""
LARGEST_TURN = 120.0
"""In degrees over a baseline: beyond, the direction of the movement is not known from headings."""

_UNAVAILABLE_LATITUDE, _UNAVAILABLE_SPEED, _UNAVAILABLE_HEADING = 900_000_001, 16_383, 3601
_UNAVAILABLE_ACCELERATION = 161
_HIGHEST_ACCELERATION_VALUE = round(HIGHEST_ACCELERATION * 10)
_METRES_A_UNIT = radians(1e-7) * EARTH_RADIUS_M
_MEMORY_US, _BASELINE_US, _LEAST_BASELINE_US = (round(each * 1e6) for each in (MEMORY_S, BASELINE_S, LEAST_BASELINE_S))


class _Point(NamedTuple):
    """What a CAM says; not a number where it says nothing: no comparison with that is true."""

    time_us: int
    """Generation time (ITS)."""
    north_m: float
    """From the receiver's first place."""
    east_m: float
    confidence_m: float
    speed: float
    """In m/s."""
    most_speed: float
    """In m/s: its own, or the highest of its type where it has none."""
    heading: float
    """In degrees."""
    direction: float
    """1 forwards, -1 backwards."""


class _Track(NamedTuple):
    """CAMs of a station: its last one, and those with which movement is compared, now and after the next second.

    Distances are what the speeds since then add up to.
    """

    last: _Point
    anchor: _Point
    driven_m: float
    next_anchor: _Point
    next_driven_m: float


class _Station:
    """A ticket: the track of its plausible CAMs, and that of all of them."""

    __slots__ = ("heard", "plausible", "station_id")

    def __init__(self) -> None:
        self.station_id = -1
        self.plausible: _Track | None = None
        self.heard: _Track | None = None


class Plausibility:
    """The checks of one receiver; several threads may call them."""

    def __init__(
        self, place: tuple[int, int], radio_range_m: float = RADIO_RANGE_M, most: int = MOST_NEIGHBOURS
    ) -> None:
        """`place`: latitude and longitude of the receiver, 0.1 microdegree. `most` tickets are remembered: the one that
        was heard longest ago makes room."""
        self._origin = place
        self._metres_east = _METRES_A_UNIT * cos(radians(place[0] / 1e7))
        self._north_m, self._east_m = 0.0, 0.0
        self.found: Counter[Implausibility] = Counter()
        """What was found until now; a CAM may count for several."""
        self._radio_range_m = radio_range_m
        self._most = most
        self._stations: OrderedDict[bytes, _Station] = OrderedDict()
        self._owners: dict[int, bytes] = {}
        """Station ID -> the ticket under which it was heard first, of those that are remembered."""
        self._turn = Lock()

    def move(self, place: tuple[int, int]) -> None:
        """Note the receiver's place."""
        self._north_m, self._east_m = self._metres(*place)

    def check(self, ticket: bytes, message: Cam, generated_us: int) -> tuple[Implausibility, ...]:
        """What is implausible about a CAM of this ticket (HashedId8), generated at an ITS time in us.

        An implausible CAM is remembered as such: the next one is compared with the last plausible one, or, where that
        is older than `MEMORY_S`, with the last one.
        """
        found = _by_itself(message)
        with self._turn:
            if message.position.latitude != _UNAVAILABLE_LATITUDE:
                self._compare_with_earlier(ticket, message.station_id, self._point(message, generated_us), found)
            if found:
                self.found.update(found)
        return tuple(found)

    def __len__(self) -> int:
        """Return the number of tickets that are remembered."""
        return len(self._stations)

    def _compare_with_earlier(self, ticket: bytes, station_id: int, point: _Point, found: list[Implausibility]) -> None:
        station = self._stations.get(ticket)
        if station is None:
            station = self._new_station(ticket)
        else:
            self._stations.move_to_end(ticket)
        if hypot(point.north_m - self._north_m, point.east_m - self._east_m) > self._radio_range_m:
            found.append(Implausibility.OUT_OF_RANGE)
        owner = self._owners.get(station_id)
        owned = owner is None or owner == ticket or self._yields(owner, point, found)
        self._compare_tracks(station, point, found)
        if owned and owner != ticket and not found:
            self._disown(ticket, station)
            self._owners[station_id] = ticket
            station.station_id = station_id

    def _metres(self, latitude: int, longitude: int) -> tuple[float, float]:
        """How far north and east of the origin a place is: within 0.1 % in radio range."""
        return (latitude - self._origin[0]) * _METRES_A_UNIT, (longitude - self._origin[1]) * self._metres_east

    def _point(self, message: Cam, generated_us: int) -> _Point:
        latitude, longitude, semi_major, *_ = message.position
        north_m, east_m = self._metres(latitude, longitude)
        confidence_m = min(max(semi_major / 100, LEAST_CONFIDENCE_M), MOST_CONFIDENCE_M)
        motion = message.motion
        if motion is None:
            return _Point(generated_us, north_m, east_m, confidence_m, 0.0, 0.0, nan, nan)
        heading, _, hundredths, _, direction, *_ = motion
        speed = most_speed = hundredths / 100
        if hundredths == _UNAVAILABLE_SPEED:
            speed, most_speed = nan, _highest_speed(message.station_type)
        degrees = nan if heading == _UNAVAILABLE_HEADING else heading / 10
        sign = 1.0 if direction == 0 else -1.0 if direction == 1 else nan
        return _Point(generated_us, north_m, east_m, confidence_m, speed, most_speed, degrees, sign)

    def _new_station(self, ticket: bytes) -> _Station:
        self._stations[ticket] = station = _Station()
        if len(self._stations) > self._most:
            self._disown(*self._stations.popitem(last=False))
        return station

    def _disown(self, ticket: bytes, station: _Station) -> None:
        if self._owners.get(station.station_id) == ticket:
            del self._owners[station.station_id]

    def _yields(self, owner: bytes, point: _Point, found: list[Implausibility]) -> bool:
        """Whether the ticket that has this station ID is silent; else its place is compared with this one."""
        track = self._stations[owner].plausible
        if track is None or point.time_us - track.last.time_us > _MEMORY_US:
            return True
        if _is_beyond_reach(track.last, point):
            found.append(Implausibility.DUPLICATE_STATION)
        return False

    def _compare_tracks(self, station: _Station, point: _Point, found: list[Implausibility]) -> None:
        """Compare with the station's earlier CAMs, and remember this one."""
        plausible, heard = station.plausible, station.heard
        recent = plausible is not None and point.time_us - plausible.last.time_us <= _MEMORY_US
        reference = plausible if recent else heard
        if reference is not None and abs(point.time_us - reference.last.time_us) <= _MEMORY_US:
            _compare(reference, point, found)
        if heard is not None and point.time_us <= heard.last.time_us:
            return  # it waited for a certificate, and comes after newer ones
        station.heard = _advanced(heard, point)
        if not found:
            station.plausible = station.heard = station.heard if heard is reference else _advanced(reference, point)


def _by_itself(message: Cam) -> list[Implausibility]:
    """What is implausible about a CAM, whatever was heard before."""
    found = list[Implausibility]()
    if (motion := message.motion) is None:
        return found
    speed, acceleration = motion.speed, motion.acceleration
    if speed > _SLOW * 100 and speed != _UNAVAILABLE_SPEED:
        highest = _highest_speed(message.station_type)
        if speed > 100 * (min(highest, HIGHEST_SPEED_BACKWARDS) if motion.drive_direction == 1 else highest):
            found.append(Implausibility.SPEED_TOO_HIGH)
    if abs(acceleration) > _HIGHEST_ACCELERATION_VALUE and acceleration != _UNAVAILABLE_ACCELERATION:
        found.append(Implausibility.ACCELERATION_TOO_HIGH)
    return found


def _highest_speed(station_type: int) -> float:
    if station_type < len(HIGHEST_SPEED):
        return HIGHEST_SPEED[station_type]
    return 0.0 if station_type == ROADSIDE_UNIT else _FAST


def _advanced(track: _Track | None, point: _Point) -> _Track:
    """The track with a further CAM; a new one after a gap."""
    if track is None or point.time_us - track.last.time_us > _MEMORY_US:
        return _Track(point, point, 0.0, point, 0.0)
    last, anchor, driven_m, next_anchor, next_driven_m = track
    step_m = (last.speed + point.speed) / 2e6 * (point.time_us - last.time_us)
    if point.time_us - next_anchor.time_us >= _BASELINE_US:
        return _Track(point, next_anchor, next_driven_m + step_m, point, 0.0)
    return _Track(point, anchor, driven_m + step_m, next_anchor, next_driven_m + step_m)


def _compare(track: _Track, point: _Point, found: list[Implausibility]) -> None:
    """Compare a CAM with its station's last one, and its movement with the speeds and headings since the anchor."""
    last, anchor, driven_m, _, _ = track
    seconds = (point.time_us - last.time_us) / 1e6
    speed, last_speed = point.speed, last.speed
    if _is_beyond_reach(last, point):
        found.append(Implausibility.POSITION_JUMP)
    if abs(speed - last_speed) > SPEED_TOLERANCE + HIGHEST_ACCELERATION * (abs(seconds) + LATENCY_S):
        found.append(Implausibility.SPEED_CHANGE)
    if seconds <= 0 or point.time_us - anchor.time_us < _LEAST_BASELINE_US:
        return
    driven_m += (last_speed + speed) / 2 * seconds
    north_m, east_m = point.north_m - anchor.north_m, point.east_m - anchor.east_m
    tolerance_m = _tolerance_m(anchor, point)
    turn = (point.heading - anchor.heading + 180) % 360 - 180
    half = radians(turn / 2)
    chord_m = driven_m * sin(half) / half if abs(half) > 0 else driven_m  # straight on, too, where no heading is known
    if abs(chord_m - hypot(north_m, east_m)) > tolerance_m and Implausibility.POSITION_JUMP not in found:
        found.append(Implausibility.SPEED_AGAINST_MOVEMENT)
    if abs(turn) <= LARGEST_TURN and anchor.direction == point.direction:
        middle = radians(anchor.heading) + half
        if (north_m * cos(middle) + east_m * sin(middle)) * point.direction < -tolerance_m:
            found.append(Implausibility.HEADING_AGAINST_MOVEMENT)


def _is_beyond_reach(last: _Point, point: _Point) -> bool:
    """Whether no vehicle comes from the one place to the other in the time between, at its speed and the highest
    acceleration."""
    seconds = abs(point.time_us - last.time_us) / 1e6
    reach_m = (last.most_speed + HIGHEST_ACCELERATION / 2 * seconds) * seconds
    distance_m = hypot(point.north_m - last.north_m, point.east_m - last.east_m)
    return distance_m > reach_m and distance_m > reach_m + _tolerance_m(last, point)


def _tolerance_m(first: _Point, second: _Point) -> float:
    """By how much the distance of two positions may differ from the distance driven."""
    speed = second.most_speed if second.most_speed > first.most_speed else first.most_speed
    return CONFIDENCE_FACTOR * hypot(first.confidence_m, second.confidence_m) + LATENCY_S * speed
