"""Routes of stations: where a station is at a time, how fast it drives and in which direction.

Vehicles drive in circles, at a speed that rises and falls, so that each CAM differs from the one before and the
generation rules of EN 302 637-2 (heading, position, speed) all come into effect. A roadside station does not move.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, degrees, pi, radians, sin
from random import Random
from typing import NamedTuple

from labconsole_v2x.security.regions import EARTH_RADIUS_M

CENTRE = (594_050_000, 179_500_000)
"""Latitude and longitude, 0.1 microdegree, of the area in which stations drive."""
_UNITS_A_METRE = degrees(1 / EARTH_RADIUS_M) * 1e7
_AREA_M = 600.0
_RADIUS_M = (60.0, 180.0)
_SPEED_M_S = (8.0, 18.0)
_SPEED_CHANGE = (0.1, 0.3)
"""By which share of its mean the speed rises and falls."""
_CHANGE_PERIOD_S = (8.0, 20.0)


class Movement(NamedTuple):
    """Position in m from `CENTRE` and in 0.1 microdegree, and the motion there.

    Speed in m/s, acceleration in m/s2, heading in degrees from north, clockwise, curvature in 1/m: a clockwise turn is
    negative, as in CurvatureValue (TS 102 894-2, A.14).
    """

    east_m: float
    north_m: float
    latitude: int
    longitude: int
    speed: float = 0.0
    acceleration: float = 0.0
    heading: float = 0.0
    curvature: float = 0.0


@dataclass(frozen=True)
class Route:
    """A circle around (`east_m`, `north_m`), driven clockwise; with a speed of 0 a place."""

    east_m: float = 0.0
    north_m: float = 0.0
    radius_m: float = 0.0
    speed: float = 0.0
    """Mean, in m/s."""
    change: float = 0.0
    """By how much the speed rises and falls, in m/s."""
    period_s: float = 1.0
    start: float = 0.0
    """Angle from north at the beginning, in radians."""

    def at(self, seconds: float) -> Movement:
        """Where the station is so many seconds after the beginning."""
        if not self.speed:
            return Movement(self.east_m, self.north_m, *place(self.east_m, self.north_m))
        turns = 2 * pi / self.period_s
        driven = self.speed * seconds + self.change / turns * (1 - cos(turns * seconds))
        angle = self.start + driven / self.radius_m
        east, north = self.east_m + self.radius_m * sin(angle), self.north_m + self.radius_m * cos(angle)
        return Movement(
            east,
            north,
            *place(east, north),
            self.speed + self.change * sin(turns * seconds),
            self.change * turns * cos(turns * seconds),
            degrees(angle + pi / 2) % 360,
            -1 / self.radius_m,
        )


def place(east_m: float, north_m: float) -> tuple[int, int]:
    """Latitude and longitude, 0.1 microdegree, of a place so many metres from `CENTRE`."""
    latitude, longitude = CENTRE
    shrink = cos(radians(latitude / 1e7))
    return round(latitude + north_m * _UNITS_A_METRE), round(longitude + east_m * _UNITS_A_METRE / shrink)


def metres(latitude: int, longitude: int) -> tuple[float, float]:
    """Metres east and north of `CENTRE` of a latitude and longitude: the inverse of `place`."""
    shrink = cos(radians(CENTRE[0] / 1e7))
    return (longitude - CENTRE[1]) * shrink / _UNITS_A_METRE, (latitude - CENTRE[0]) / _UNITS_A_METRE


def vehicle_route(random: Random) -> Route:
    """The route of a vehicle somewhere in the area."""
    speed = random.uniform(*_SPEED_M_S)
    return Route(
        random.uniform(-_AREA_M, _AREA_M) / 2,
        random.uniform(-_AREA_M, _AREA_M) / 2,
        random.uniform(*_RADIUS_M),
        speed,
        speed * random.uniform(*_SPEED_CHANGE),
        random.uniform(*_CHANGE_PERIOD_S),
        random.uniform(0, 2 * pi),
    )
