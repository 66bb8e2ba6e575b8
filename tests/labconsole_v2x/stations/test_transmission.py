"""Stations send in open loop: due times do not depend on how long sending takes, and each row says when it was due."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from math import dist
from random import Random

import pytest

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole.processes import own_cores
from labconsole_v2x.messages import cam
from labconsole_v2x.messages.btp import parse_btp
from labconsole_v2x.messages.geonetworking import parse_packet
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.structures import Curve
from labconsole_v2x.stations.cam_timing import CamTiming, RuleTiming
from labconsole_v2x.stations.channel import ChannelLoad
from labconsole_v2x.stations.routes import Route, metres, vehicle_route
from labconsole_v2x.stations.sending import SecurityMode
from labconsole_v2x.stations.transmission import Instance, SentPacket, Transmission
from labconsole_v2x.stations.transports import Transport, TransportKind, TransportSettings, open_transport
from tests.helpers.udp_ports import free_udp_port
from tests.labconsole_v2x.stations.cam_senders import Lab, its_us_of

MS = 1_000_000
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class SlowKey(SoftwareKey):
    """A key that takes some ms for a signature, as a token does."""

    seconds: float = 0.0

    @classmethod
    def taking(cls, seconds: float) -> SlowKey:
        return cls(SoftwareKey.generate().private, Curve.P256, seconds=seconds)

    def sign_digest(self, digest: bytes) -> bytes:
        time.sleep(self.seconds)
        return super().sign_digest(digest)


class BusyChannel(ChannelLoad):
    """A channel whose busy ratio the test sets."""

    def __init__(self, ratio: float) -> None:
        super().__init__()
        self.set_ratio = ratio

    def ratio(self, now_ns: int) -> float:
        return self.set_ratio


@pytest.fixture(scope="module")
def lab() -> Lab:
    return Lab(start_s=its_us_of(time.time_ns()) // 1_000_000 - 60)


@pytest.fixture
def transport() -> Iterator[Transport]:
    settings = TransportSettings(TransportKind.MULTICAST, LOOPBACK, "239.118.122.97", free_udp_port())
    with closing(open_transport(settings, receiver=False)) as opened:
        yield opened


def instance(lab: Lab, station: int = 1, rate: float = 20, offset_ns: int = 0, key: SlowKey | None = None) -> Instance:
    mode = SecurityMode.FULL if key else SecurityMode.NONE
    sender = lab.sender(mode, key=key)
    return Instance(station, 0, vehicle_route(Random(station)), sender, CamTiming(offset_ns, rate))


def run(transmission: Transmission, seconds: float, meanwhile: Callable[[int], None] = lambda begin_ns: None) -> int:
    """Send for so long and wait for the end; returns the beginning."""
    begin_ns = now_ns() + 20 * MS
    transmission.start(begin_ns, begin_ns + round(seconds * 1e9))
    meanwhile(begin_ns)
    while transmission.running:
        time.sleep(0.005)
    transmission.stop()
    return begin_ns


def due_ms(rows: list[SentPacket], begin_ns: int) -> list[float]:
    return [(row.due_ns - begin_ns) / MS for row in rows]


def test_cams_are_sent_when_they_are_due_until_the_end(lab: Lab, transport: Transport) -> None:
    rows: list[SentPacket] = []
    one = instance(lab, rate=50, offset_ns=7 * MS)
    transmission = Transmission(transport, [one], rows.append)
    begin_ns = run(transmission, 0.4)
    assert due_ms(rows, begin_ns) == [7 + 20 * number for number in range(20)]
    assert transmission.sent == transmission.sent_by[1] == 20
    assert all(row.sent_ns >= row.due_ns for row in rows)
    assert all(after.sent_ns > before.sent_ns for before, after in pairwise(rows))


@pytest.mark.skipif(sys.platform != "linux", reason="cores of a thread: Linux only")
def test_cams_are_sent_on_the_cores_that_are_given(lab: Lab, transport: Transport) -> None:
    core, found = min(own_cores()), set[frozenset[int]]()
    run(Transmission(transport, [instance(lab)], lambda row: found.add(own_cores()), cores={core}), 0.1)
    assert found == {frozenset({core})}


def test_row_describes_the_frame_that_was_sent(lab: Lab, transport: Transport) -> None:
    rows: list[SentPacket] = []
    one = instance(lab, 3, key=SlowKey.taking(0.001))
    run(Transmission(transport, [one], rows.append), 0.12)
    frames = [transport.receive() for _ in rows]
    assert len(rows) == 3
    for row, frame in zip(rows, frames, strict=True):
        assert frame is not None
        assert (row.station, row.source) == (3, int.from_bytes(frame[6:12], "big"))
        assert row.size == len(frame) - 14
        assert row.identity.to_bytes(8, "big") in frame
        assert 1 * MS <= row.sign_ns <= row.sent_ns - row.due_ns
    assert [row.certificate for row in rows] == [1, 0, 0]
    assert rows[0].size > rows[1].size + 80


def test_slow_sender_does_not_shift_due_times(lab: Lab, transport: Transport) -> None:
    """Each signature takes 30 ms, a CAM is due each 20 ms: the delay grows, and is recorded."""
    rows: list[SentPacket] = []
    begin_ns = run(Transmission(transport, [instance(lab, rate=50, key=SlowKey.taking(0.03))], rows.append), 0.3)
    assert due_ms(rows, begin_ns) == [20 * number for number in range(len(rows))]
    late_ms = [(row.sent_ns - row.due_ns) / MS for row in rows]
    assert all(late >= 30 + 10 * number - 1 for number, late in enumerate(late_ms))


def test_sender_that_is_too_slow_ends_with_the_run_and_counts_what_is_left(lab: Lab, transport: Transport) -> None:
    """Soon after the end none is sent any more; those of a stopped station were not due."""
    rows: list[SentPacket] = []
    instances = [instance(lab, number, 50, key=SlowKey.taking(0.1)) for number in (1, 2)]
    transmission = Transmission(transport, instances, rows.append)
    transmission.switch(2, on=False)
    run(transmission, 0.5)
    assert len(rows) <= 9
    assert transmission.too_late == 25 - len(rows)


def test_interruption_leaves_no_due_time_out(lab: Lab, transport: Transport) -> None:
    rows: list[SentPacket] = []

    def record(row: SentPacket) -> None:
        if not rows:
            time.sleep(0.15)
        rows.append(row)

    begin_ns = run(Transmission(transport, [instance(lab, rate=100)], record), 0.3)
    assert due_ms(rows, begin_ns) == [10 * number for number in range(30)]
    assert rows[1].sent_ns - rows[1].due_ns > 100 * MS


def test_instances_are_served_in_the_order_of_their_due_times(lab: Lab, transport: Transport) -> None:
    rows: list[SentPacket] = []
    instances = [instance(lab, number, 20, offset_ns=(7 - number) * 5 * MS) for number in range(1, 6)]
    begin_ns = run(Transmission(transport, instances, rows.append), 0.2)
    assert len(rows) == 20
    assert due_ms(rows, begin_ns) == sorted(due_ms(rows, begin_ns))
    assert [row.station for row in rows[:5]] == [5, 4, 3, 2, 1]
    assert {row.source for row in rows} == {one.source for one in instances}


def test_movement_is_that_of_the_due_time(lab: Lab, transport: Transport) -> None:
    """Also of a CAM that is sent a little late: the route is as in the scenario."""
    rows: list[SentPacket] = []

    def record(row: SentPacket) -> None:
        rows.append(row)
        time.sleep(0.03)

    one = instance(lab, rate=50)
    begin_ns = run(Transmission(transport, [one], record), 0.1)
    in_time = 0
    for row in rows:
        place = received_place(transport)
        if row.sent_ns - row.due_ns < 50 * MS:
            expected = one.route.at((row.due_ns - begin_ns) / 1e9)
            assert place == (expected.latitude, expected.longitude)
            in_time += 1
    assert len(rows) > 1 and in_time > 0


def test_movement_of_a_cam_that_is_late_is_that_of_its_generation_time(lab: Lab, transport: Transport) -> None:
    """A CAM is generated within 50 ms (EN 302 637-2, 6.1.5). An older place is implausible to receivers."""
    rows: list[SentPacket] = []
    recorded_ns: list[int] = []

    def record(row: SentPacket) -> None:
        rows.append(row)
        time.sleep(0.1)
        recorded_ns.append(now_ns())

    one = instance(lab, rate=50)
    begin_ns = run(Transmission(transport, [one], record), 0.1)
    places = [metres(*received_place(transport)) for _ in rows]
    assert len(rows) > 3
    for place, earliest_ns, row in zip(places[1:], recorded_ns, rows[1:], strict=False):
        assert earliest_ns - row.due_ns > 50 * MS
        earliest, latest = (one.route.at((at_ns - begin_ns) / 1e9) for at_ns in (earliest_ns, row.sent_ns))
        ends = [(movement.east_m, movement.north_m) for movement in (earliest, latest)]
        assert dist(ends[0], place) + dist(place, ends[1]) < dist(*ends) + 0.05, "between the two, but for rounding"


def received_place(transport: Transport) -> tuple[int, int]:
    """Latitude and longitude in the next CAM."""
    frame = transport.receive()
    assert frame is not None
    unsecured = parse_packet(frame[14:]).unsecured
    assert unsecured is not None
    position = cam.decode(parse_btp(unsecured.next_header, unsecured.payload).payload).position
    return position.latitude, position.longitude


def test_station_stops_and_starts_and_the_others_continue(lab: Lab, transport: Transport) -> None:
    rows: list[SentPacket] = []
    transmission = Transmission(transport, [instance(lab, number, 50) for number in (1, 2)], rows.append)

    def switched(station: int, on: bool) -> int:
        transmission.switch(station, on=on)
        assert transmission.is_on(station) is on
        assert transmission.is_on(2)
        return now_ns()

    switches = []

    def meanwhile(begin_ns: int) -> None:
        for seconds, on in ((0.2, False), (0.5, True)):
            time.sleep(max(0.0, (begin_ns - now_ns()) / 1e9 + seconds))
            switches.append(switched(1, on))

    begin_ns = run(transmission, 0.8, meanwhile)
    off_ns, on_ns = switches
    one, other = ([row for row in rows if row.station == station] for station in (1, 2))
    assert due_ms(other, begin_ns) == [20 * number for number in range(40)]
    assert [row for row in one if row.due_ns > off_ns and row.sent_ns < on_ns] == []
    assert len(one) < 40 and one[-1].sent_ns > on_ns
    assert set(due_ms(one, begin_ns)) < set(due_ms(other, begin_ns))  # due times stay what they were
    assert (transmission.sent_by[1], transmission.sent_by[2]) == (len(one), 40)
    assert transmission.skipped == 0


@pytest.mark.parametrize(("ratio", "sent"), [(0.1, 8), (0.35, 4), (0.45, 2)])
def test_dcc_skips_due_times_and_counts_them(ratio: float, sent: int, lab: Lab, transport: Transport) -> None:
    """In 0.8 s at 10 Hz; the state rises by one step each 100 ms from the beginning on."""
    rows: list[SentPacket] = []
    load = BusyChannel(ratio)
    transmission = Transmission(transport, [instance(lab, rate=10)], rows.append, dcc=True, load=load)
    begin_ns = run(transmission, 0.8)
    assert (len(rows), transmission.skipped) == (sent, 8 - sent)
    assert due_ms(rows, begin_ns) == [800 // sent * number for number in range(sent)]


def test_busy_channel_changes_nothing_without_dcc(lab: Lab, transport: Transport) -> None:
    rows: list[SentPacket] = []
    transmission = Transmission(transport, [instance(lab, rate=20)], rows.append, load=BusyChannel(1.0))
    run(transmission, 0.4)
    assert (len(rows), transmission.skipped) == (8, 0)


def test_due_time_without_a_change_is_not_one_that_dcc_skipped(lab: Lab, transport: Transport) -> None:
    rows: list[SentPacket] = []
    one = Instance(1, 0, Route(), lab.sender(SecurityMode.NONE), RuleTiming(0))
    transmission = Transmission(transport, [one], rows.append, dcc=True, load=BusyChannel(0.0))
    run(transmission, 0.5)
    assert (len(rows), transmission.skipped) == (1, 0)


def test_stop_ends_the_thread_before_the_end(lab: Lab, transport: Transport) -> None:
    rows: list[SentPacket] = []
    transmission = Transmission(transport, [instance(lab, rate=100)], rows.append)
    begin_ns = now_ns()
    transmission.start(begin_ns, begin_ns + 3_600_000 * MS)
    while not rows:
        time.sleep(0.005)
    assert transmission.running
    transmission.stop()
    assert not transmission.running
    assert "sender" not in {thread.name for thread in threading.enumerate()}
    assert len(rows) < 1000


def test_stop_before_the_start_ends_nothing(lab: Lab, transport: Transport) -> None:
    Transmission(transport, [instance(lab)], lambda row: None).stop()


def test_fault_in_the_thread_is_raised_where_the_run_is_watched(lab: Lab, transport: Transport) -> None:
    transport.close()
    transmission = Transmission(transport, [instance(lab)], lambda row: None)
    with pytest.raises(UserError, match=r"^A frame cannot be sent over UDP multicast "):
        run(transmission, 0.2)
    transmission.stop()
