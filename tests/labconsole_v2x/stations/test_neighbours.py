"""The neighbour table: the newest CAM of each station, bounded, and updated by several threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from labconsole_v2x.messages.cam import Cam, Motion
from labconsole_v2x.messages.common_data import Position
from labconsole_v2x.stations.neighbours import MOST_NEIGHBOURS, Neighbour, NeighbourTable


def mac(number: int) -> bytes:
    return b"\2\0" + number.to_bytes(4, "big")


def car(number: int, speed: int = 1000) -> Cam:
    place = Position(488_500_000 + number, 23_500_000 - number)
    return Cam(number, 0, 5, place, Motion(900, 10, speed, 10))


def numbers(table: NeighbourTable, since_ns: int = 0) -> list[int]:
    return [neighbour.station_id for _, neighbour in table.heard_since(since_ns)]


def test_neighbour_is_as_of_its_newest_cam() -> None:
    table = NeighbourTable()
    table.update(mac(7), car(7, 1000), 100)
    table.update(mac(7), car(7, 1200), 200)
    assert len(table) == 1
    assert list(table.heard_since(0)) == [(mac(7), Neighbour(7, 200, 488_500_007, 23_499_993, 1200, 900))]


def test_packet_that_waited_does_not_replace_a_newer_one() -> None:
    table = NeighbourTable()
    table.update(mac(7), car(7, 1200), 200)
    table.update(mac(7), car(7, 1000), 100)
    assert [(one.heard_ns, one.speed) for _, one in table.heard_since(0)] == [(200, 1200)]


def test_roadside_unit_has_neither_speed_nor_heading() -> None:
    table = NeighbourTable()
    table.update(mac(1), Cam(1, 0, 15, Position(1, 2), None), 5)
    assert list(table.heard_since(0)) == [(mac(1), Neighbour(1, 5, 1, 2, None, None))]


def test_neighbours_heard_since_a_time_include_that_time() -> None:
    table = NeighbourTable()
    for number in range(1, 5):
        table.update(mac(number), car(number), number * 10)
    assert numbers(table, 20) == [2, 3, 4]
    assert numbers(table, 21) == [3, 4]
    assert numbers(table, 41) == []


def test_neighbour_heard_longest_ago_makes_room() -> None:
    table = NeighbourTable(3)
    for number in (1, 2, 3, 1, 4):
        table.update(mac(number), car(number), number)
    assert (len(table), numbers(table)) == (3, [3, 1, 4])


def test_table_is_bounded_by_default() -> None:
    table = NeighbourTable()
    for number in range(MOST_NEIGHBOURS + 10):
        table.update(mac(number), car(number), number)
    assert len(table) == MOST_NEIGHBOURS
    assert numbers(table) == list(range(10, MOST_NEIGHBOURS + 10))


@pytest.mark.usefixtures("switching_often")
def test_several_threads_update_a_full_table_while_it_is_read() -> None:
    table = NeighbourTable(200)
    message = car(1)

    def update(first: int) -> None:
        for number in range(3000):
            table.update(mac((first + number) % 300), message, number)
            if number % 20 == 0:
                assert len(list(table.heard_since(0))) <= 203

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(update, range(0, 280, 70)))
    assert len(table) == 200
