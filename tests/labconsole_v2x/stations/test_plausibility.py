"""Plausibility of CAMs: what no vehicle does is found, and what genuine stations do is not."""

from __future__ import annotations

from typing import Any

import pytest

from labconsole_v2x.messages.cam import Cam, Motion
from labconsole_v2x.messages.common_data import Position
from labconsole_v2x.stations.plausibility import HIGHEST_SPEED, MEMORY_S, Implausibility, Plausibility
from labconsole_v2x.stations.routes import CENTRE, Route, place

TICKET, OTHER_TICKET = b"ticket-1", b"ticket-2"
CAR, AMBULANCE, TRAM, ROADSIDE_UNIT, PEDESTRIAN = 5, 10, 11, 15, 1
STATION_ID = 4711
FOUND = Implausibility


def cam(east_m: float = 0.0, north_m: float = 0.0, *, speed: float = 10.0, heading: float = 90.0, **values: Any) -> Cam:
    """The CAM of a station in this place, which drives to the east unless it says otherwise."""
    motion = Motion(
        round(heading * 10), 10, round(speed * 100), 10, values.pop("direction", 0), acceleration=values.pop("acc", 0)
    )
    position = Position(*place(east_m, north_m), 50, 50, 0)
    return Cam(STATION_ID, 0, CAR, position, motion)._replace(**values)


def at(seconds: float) -> int:
    """ITS time in us."""
    return 700_000_000_000_000 + round(seconds * 1e6)


class Receiver:
    """A receiver in the centre, and what it finds in the CAMs of tickets."""

    def __init__(self, **settings: Any) -> None:
        self.plausibility = Plausibility(CENTRE, **settings)

    def hear(self, seconds: float, message: Cam, ticket: bytes = TICKET) -> set[Implausibility]:
        return set(self.plausibility.check(ticket, message, at(seconds)))

    def drive(self, begin_s: float, end_s: float, **values: Any) -> None:
        """Hear a station that drives to the east with 10 m/s at 10 Hz, and find nothing."""
        for tenth in range(round(begin_s * 10), round(end_s * 10)):
            assert self.hear(tenth / 10, cam(tenth, **values)) == set()


@pytest.mark.parametrize(
    ("station_type", "highest"), [(CAR, 140.0), (AMBULANCE, 85.0), (TRAM, 30.0), (PEDESTRIAN, 30.0), (ROADSIDE_UNIT, 0)]
)
def test_speed_beyond_the_station_type_is_implausible(station_type: int, highest: float) -> None:
    for speed, found in ((highest, set()), (max(30.01, highest + 0.01), {FOUND.SPEED_TOO_HIGH})):
        assert Receiver().hear(0, cam(speed=speed, station_type=station_type)) == found


def test_speed_backwards_has_a_limit_of_its_own() -> None:
    assert Receiver().hear(0, cam(speed=31, direction=1)) == {FOUND.SPEED_TOO_HIGH}
    assert Receiver().hear(0, cam(speed=31)) == set()


@pytest.mark.parametrize(("value", "found"), [(90, set()), (-91, {FOUND.ACCELERATION_TOO_HIGH}), (161, set())])
def test_acceleration_beyond_the_grip_of_tyres_is_implausible(value: int, found: set[Implausibility]) -> None:
    assert Receiver().hear(0, cam(acc=value)) == found


def test_jump_of_the_position_is_implausible_until_the_station_is_back() -> None:
    receiver = Receiver()
    receiver.drive(0, 1)
    assert receiver.hear(1.0, cam(10, 30)) == {FOUND.POSITION_JUMP}
    receiver.drive(1.1, 2)
    assert receiver.plausibility.found == {FOUND.POSITION_JUMP: 1}


def test_station_that_jumps_and_stays_is_believed_again_once_what_was_before_is_old() -> None:
    receiver = Receiver()
    receiver.drive(0, 1)
    found = [receiver.hear(1 + tenth / 10, cam(10 + tenth, 200)) for tenth in range(100)]
    assert all(found[:29]) and not any(found[round(MEMORY_S * 10) :])


def test_accelerating_vehicle_reaches_what_its_acceleration_allows() -> None:
    """From 10 m/s with 9 m/s2 it drives 28 m in two seconds, and has some metres of tolerance; with 60 m it jumps."""
    for east_m, found in ((28, set()), (60, {FOUND.POSITION_JUMP})):
        receiver = Receiver()
        receiver.hear(0, cam(0))
        assert receiver.hear(2, cam(east_m, speed=28)) - {FOUND.SPEED_AGAINST_MOVEMENT} == found


def test_confidence_of_the_position_is_room_within_limits() -> None:
    def jump(metres: float, semi_major: int) -> set[Implausibility]:
        receiver = Receiver()
        for seconds, east_m in ((0.0, 0.0), (0.1, metres)):
            message = cam(east_m, speed=0)
            position = message.position._replace(semi_major=semi_major)
            found = receiver.hear(seconds, message._replace(position=position))
        return found

    assert jump(5, 50) == {FOUND.POSITION_JUMP} and jump(5, 250) == set()
    assert jump(20, 4000) == jump(20, 4095) == {FOUND.POSITION_JUMP}, "a large ellipse buys 13 m at most"


def test_change_of_speed_beyond_the_grip_of_tyres_is_implausible() -> None:
    for speed, found in ((11.7, set()), (13.0, {FOUND.SPEED_CHANGE}), (7.0, {FOUND.SPEED_CHANGE})):
        receiver = Receiver()
        receiver.drive(0, 0.4)
        assert receiver.hear(0.4, cam(4, speed=speed)) == found


@pytest.mark.parametrize("speed", [0.0, 30.0])
def test_speed_that_is_not_that_of_the_movement_is_found_within_a_second(speed: float) -> None:
    receiver = Receiver()
    found = [receiver.hear(tenth / 10, cam(tenth, speed=speed)) for tenth in range(100)]
    assert all(each <= {FOUND.SPEED_AGAINST_MOVEMENT, FOUND.POSITION_JUMP} for each in found)
    assert all(found[9:]) and not found[0]


def test_heading_against_the_movement_is_implausible_unless_the_vehicle_reverses() -> None:
    for direction, found in ((0, {FOUND.HEADING_AGAINST_MOVEMENT}), (1, set()), (2, set())):
        receiver = Receiver()
        for tenth in range(20):
            last = receiver.hear(tenth / 10, cam(tenth, heading=270, direction=direction))
        assert last == found


def test_heading_against_the_movement_is_found_in_turns_too() -> None:
    receiver, route = Receiver(), Route(0, 0, 60, 15)
    for tenth in range(20):
        movement = route.at(tenth / 10)
        message = cam(movement.east_m, movement.north_m, speed=15, heading=(movement.heading + 180) % 360)
        last = receiver.hear(tenth / 10, message)
    assert last == {FOUND.HEADING_AGAINST_MOVEMENT}


@pytest.mark.parametrize(("radius_m", "speed"), [(3.0, 5.0), (8.0, 5.0), (30.0, 15.0)])
def test_turns_at_the_grip_of_tyres_are_plausible(radius_m: float, speed: float) -> None:
    receiver, route = Receiver(), Route(0, 0, radius_m, speed)
    for tenth in range(100):
        movement = route.at(tenth / 10)
        message = cam(movement.east_m, movement.north_m, speed=movement.speed, heading=movement.heading)
        assert receiver.hear(tenth / 10, message) == set()


def test_emergency_braking_and_a_start_are_plausible() -> None:
    """From 35 m/s with 8.8 m/s2 to a stop of two seconds, then with 4 m/s2 to 35 m/s again."""
    receiver, east_m, speed = Receiver(), 0.0, 35.0
    for tenth in range(200):
        assert receiver.hear(tenth / 10, cam(east_m, speed=speed)) == set()
        slower, faster = max(0.0, speed - 0.88), min(35.0, speed + 0.4)
        after = speed if tenth < 20 else slower if tenth < 80 else faster
        east_m, speed = east_m + (speed + after) / 20, after


def test_station_id_of_another_station_is_implausible_where_that_one_is_not() -> None:
    receiver = Receiver()
    receiver.drive(0, 1)
    assert receiver.hear(1.0, cam(300), OTHER_TICKET) == {FOUND.DUPLICATE_STATION}
    receiver.drive(1.1, 2)
    assert receiver.hear(2.0, cam(310, station_id=9), OTHER_TICKET) == set(), "under its own it is another station"


def test_station_id_is_free_again_once_its_station_is_silent() -> None:
    receiver = Receiver()
    receiver.drive(0, 1)
    assert receiver.hear(1 + MEMORY_S, cam(300), OTHER_TICKET) == set()
    assert receiver.hear(1.1 + MEMORY_S, cam(10)) == {FOUND.DUPLICATE_STATION}, "now it is the other one's"


@pytest.mark.parametrize("station_id", [STATION_ID, STATION_ID + 1])
def test_change_of_pseudonym_is_plausible_even_with_the_same_station_id(station_id: int) -> None:
    receiver = Receiver()
    receiver.drive(0, 2)
    for tenth in range(20, 80):
        assert receiver.hear(tenth / 10, cam(tenth, station_id=station_id), OTHER_TICKET) == set()


def test_position_beyond_radio_range_is_implausible_from_where_the_receiver_is() -> None:
    receiver = Receiver(radio_range_m=500)
    assert receiver.hear(0, cam(490)) == set()
    assert receiver.hear(10, cam(510)) == {FOUND.OUT_OF_RANGE}
    receiver.plausibility.move(place(300, 0))
    assert receiver.hear(20, cam(790)) == set() and receiver.hear(30, cam(-210)) == {FOUND.OUT_OF_RANGE}


def test_values_that_are_unavailable_are_no_fault() -> None:
    receiver = Receiver()
    for tenth in range(30):
        motion = Motion(3601, 127, 16_383, 127)
        assert receiver.hear(tenth / 10, cam(tenth)._replace(motion=motion)) == set()
    for tenth in range(100, 130):
        assert receiver.hear(tenth / 10, cam(0, -tenth, heading=360.1)) == set(), "it has no heading"
    nowhere = Position(900_000_001, 1_800_000_001)
    assert receiver.hear(13, cam()._replace(position=nowhere)) == set()
    assert receiver.hear(13.1, cam(0, -131)) == set()


def test_roadside_unit_stays_where_it_is() -> None:
    receiver = Receiver()
    unit = cam(0, station_type=ROADSIDE_UNIT, motion=None)
    assert receiver.hear(0, unit) == receiver.hear(1, unit) == set()
    assert receiver.hear(1.1, cam(40, station_type=ROADSIDE_UNIT, motion=None)) == {FOUND.POSITION_JUMP}


def test_packet_that_waited_is_compared_and_changes_nothing() -> None:
    """It comes after newer ones, once the certificate of its signer is known."""
    receiver = Receiver()
    receiver.drive(1, 4)
    assert receiver.hear(2.05, cam(20.5)) == set() and receiver.hear(2.15, cam(200)) == {FOUND.POSITION_JUMP}
    assert FOUND.POSITION_JUMP in receiver.hear(5.5, cam(200)), "the last one is that of 3.9 s"


def test_memory_is_bounded_and_station_ids_go_with_their_tickets() -> None:
    receiver = Receiver(most=10)
    for number in range(1000):
        assert receiver.hear(number / 1000, cam(station_id=number), number.to_bytes(8, "big")) == set()
    assert len(receiver.plausibility) == len(receiver.plausibility._owners) == 10
    for number in range(1000):
        receiver.hear(2 + number / 1000, cam(station_id=number), TICKET)
    assert len(receiver.plausibility._owners) <= 10, "a ticket has one station ID at a time"


def test_ticket_that_was_heard_longest_ago_makes_room() -> None:
    receiver = Receiver(most=2)
    for tenth, ticket in enumerate((b"a", b"b", b"a", b"c")):
        receiver.hear(tenth / 10, cam(station_id=ticket[0]), ticket)
    assert FOUND.DUPLICATE_STATION in receiver.hear(0.5, cam(300, station_id=ord("a")), b"c")
    assert FOUND.DUPLICATE_STATION not in receiver.hear(0.6, cam(300, station_id=ord("b")), b"c")


def test_observations_are_those_of_ts_103_759() -> None:
    named = {kind: kind.observation for kind in Implausibility if kind.observation is not None}
    assert {(one.target, one.number) for one in named.values()} == {(3, 4), (4, 3), (4, 5), (5, 4)}
    assert named[FOUND.POSITION_JUMP].name == "Position-ChangeTooLarge"
    assert len(HIGHEST_SPEED) == 12
