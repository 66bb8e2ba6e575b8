"""Routes: position, speed, acceleration, heading and curvature of a movement agree, judged by numerical derivatives."""

from __future__ import annotations

from math import atan2, cos, degrees, hypot, radians
from random import Random

import pytest

from labconsole_v2x.stations.routes import CENTRE, Movement, Route, place, vehicle_route

STEP_S = 1e-4
SEEDS = range(8)
TIMES_S = [number * 3.7 for number in range(40)]


def route(seed: int) -> Route:
    return vehicle_route(Random(f"route/{seed}"))


def around(seed: int, seconds: float) -> tuple[Movement, Movement, Movement]:
    """The movement just before, at and just after a time."""
    driven = route(seed)
    return driven.at(seconds - STEP_S), driven.at(seconds), driven.at(seconds + STEP_S)


def difference(degrees_a: float, degrees_b: float) -> float:
    """The signed angle from b to a, in degrees."""
    return (degrees_a - degrees_b + 180) % 360 - 180


@pytest.mark.parametrize("seed", SEEDS)
def test_speed_is_the_derivative_of_the_position(seed: int) -> None:
    for seconds in TIMES_S:
        before, now, after = around(seed, seconds)
        driven = hypot(after.east_m - before.east_m, after.north_m - before.north_m)
        assert driven / (2 * STEP_S) == pytest.approx(now.speed, rel=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_heading_is_the_direction_of_the_movement_from_north_clockwise(seed: int) -> None:
    for seconds in TIMES_S:
        before, now, after = around(seed, seconds)
        direction = degrees(atan2(after.east_m - before.east_m, after.north_m - before.north_m))
        assert 0 <= now.heading < 360
        assert difference(direction, now.heading) == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("seed", SEEDS)
def test_acceleration_is_the_derivative_of_the_speed(seed: int) -> None:
    for seconds in TIMES_S:
        before, now, after = around(seed, seconds)
        assert (after.speed - before.speed) / (2 * STEP_S) == pytest.approx(now.acceleration, abs=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_curvature_is_the_turn_a_metre_and_negative_clockwise(seed: int) -> None:
    for seconds in TIMES_S:
        before, now, after = around(seed, seconds)
        clockwise = radians(difference(after.heading, before.heading))
        assert clockwise > 0
        assert -clockwise / (2 * STEP_S * now.speed) == pytest.approx(now.curvature, rel=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_latitude_and_longitude_are_those_of_the_place_in_metres(seed: int) -> None:
    """A degree of latitude has 111.2 km on a sphere of 6,371 km; one of longitude has the cosine of that."""
    degree_m = 6_371_000 * 3.141592653589793 / 180
    for seconds in TIMES_S:
        now = route(seed).at(seconds)
        north_m = (now.latitude - CENTRE[0]) / 1e7 * degree_m
        east_m = (now.longitude - CENTRE[1]) / 1e7 * degree_m * cos(radians(CENTRE[0] / 1e7))
        assert (east_m, north_m) == pytest.approx((now.east_m, now.north_m), abs=0.02 + 1e-3 * hypot(east_m, north_m))


def test_vehicles_stay_in_the_area_at_the_speed_of_a_town() -> None:
    for seed in range(200):
        now = route(seed).at(seed * 1.1)
        assert hypot(now.east_m, now.north_m) < 700
        assert 4 < now.speed < 25


def test_same_seed_gives_the_same_route_and_another_seed_another() -> None:
    first = [route(seed).at(12.5) for seed in range(50)]
    assert first == [route(seed).at(12.5) for seed in range(50)]
    assert len({(now.latitude, now.longitude) for now in first}) == 50
    assert len({now.speed for now in first}) == 50


def test_position_changes_within_each_millisecond_of_a_cam_service() -> None:
    driven = route(1)
    places = {(now.latitude, now.longitude) for now in (driven.at(number / 1000) for number in range(1000))}
    assert len(places) > 900  # 0.1 microdegree is 1 cm; the vehicle drives about 1 cm in 1 ms


def test_standing_station_does_not_move() -> None:
    roadside = Route(10.0, -20.0)
    assert roadside.at(0) == roadside.at(1000) == Movement(10.0, -20.0, *place(10.0, -20.0))
