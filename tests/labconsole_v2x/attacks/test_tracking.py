"""A-PSN-01: what a tracker links when everything changes, when one layer stays, and when stations are silent."""

from __future__ import annotations

from functools import cache
from math import cos, degrees, radians
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from labconsole_v2x.attacks.tracking import (
    Link,
    Observation,
    PathTrace,
    Reason,
    TrackingScore,
    link_by_identifiers,
    link_by_motion,
    observe,
    score,
    tracks_of,
)
from labconsole_v2x.messages.geonetworking import parse_packet
from labconsole_v2x.security.regions import EARTH_RADIUS_M
from labconsole_v2x.security.scanning import scan_signed_data
from labconsole_v2x.stations import sending
from labconsole_v2x.stations.routes import vehicle_route
from labconsole_v2x.stations.sending import ALL_LAYERS, Layer
from tests.labconsole_v2x.attacks.tracked_stations import RSU, Drive, Vehicle

METRE = degrees(1 / EARTH_RADIUS_M) * 1e7
"""In 0.1 microdegree of latitude."""
REASONS = {
    Layer.TICKET: Reason.TICKET,
    Layer.MAC_ADDRESS: Reason.MAC_ADDRESS,
    Layer.GN_ADDRESS: Reason.GN_ADDRESS,
    Layer.STATION_ID: Reason.STATION_ID,
    Layer.PATH_HISTORY: Reason.PATH_HISTORY,
    Layer.SEQUENCE_NUMBERS: Reason.SEQUENCE_NUMBER,
}


@pytest.fixture
def fixed_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sequence numbers that do not continue each other by chance: 8 of 65,536 pairs do."""
    monkeypatch.setattr(sending, "os", SimpleNamespace(urandom=Random(1).randbytes))


@pytest.mark.usefixtures("fixed_starts")
def test_change_of_all_layers_is_linked_by_no_identifier() -> None:
    drive = Drive(vehicles=10)
    tracks = drive.tracks()
    assert len(tracks) == 30
    assert link_by_identifiers(tracks) == []
    assert score(tracks, [], drive.station_of) == TrackingScore(20, 0, 0)


@pytest.mark.usefixtures("fixed_starts")
@pytest.mark.parametrize("layer", Layer)
def test_change_that_leaves_one_layer_is_always_linked(layer: Layer) -> None:
    drive = Drive(layers=ALL_LAYERS - {layer}, silence_s=1.0)
    tracks = drive.tracks()
    links = link_by_identifiers(tracks)
    assert len(tracks) == 18
    assert score(tracks, links, drive.station_of) == TrackingScore(12, 12, 0)
    assert {link.reason for link in links} == {REASONS[layer]}


@cache
def linked_by_motion(silence_s: float) -> TrackingScore:
    """How many changes of 30 vehicles the tracker links by motion, if they are silent for so long."""
    return Drive(vehicles=30, silence_s=silence_s).scores()[1]


def test_motion_links_nearly_every_change_at_10_hz_without_silence() -> None:
    by_motion = linked_by_motion(0.0)
    assert by_motion.changes == 60
    assert by_motion.success_rate >= 95


def test_motion_links_fewer_changes_the_longer_vehicles_are_silent() -> None:
    rates = [linked_by_motion(silence_s).success_rate for silence_s in (0.0, 4.0, 8.0)]
    assert rates[0] > rates[1] > rates[2]
    assert rates[2] < 60, "in 8 s vehicles of 600 m x 600 m mix"


def test_motion_links_a_vehicle_that_is_alone_across_a_silence() -> None:
    _, by_motion = Drive(vehicles=1, silence_s=2.0).scores()
    assert by_motion == TrackingScore(2, 2, 0)


def seen_at(name: str, time_s: float, north_m: float, **values: Any) -> Observation:
    """A packet of a pseudonym that drives east, unless `values` say something else."""
    octets = name.encode().ljust(6, b".")
    place = (500_000_000 + round(north_m * METRE), 0)
    defaults = {"speed": 0.0, "heading": 90.0, "digest": octets, "station_id": int.from_bytes(octets, "big")}
    return Observation(round(time_s * 1e6), octets, octets, *place, **(defaults | values))


def linked_pairs(*packets: Observation) -> list[tuple[str, str]]:
    """The names of the tracks that motion links."""
    tracks = tracks_of(packets)
    names = [track.first.mac.decode().rstrip(".") for track in tracks]
    return sorted((names[link.before], names[link.after]) for link in link_by_motion(tracks))


def test_motion_is_predicted_with_speed_and_heading() -> None:
    east = round(80 * METRE / cos(radians(50)))
    old = seen_at("old", 0, 0, speed=40.0)
    assert linked_pairs(old, seen_at("new", 2, 0)._replace(longitude=east)) == [("old", "new")]
    assert linked_pairs(old, seen_at("new", 2, 80)) == []
    assert linked_pairs(old._replace(heading=0.0), seen_at("new", 2, 80)) == [("old", "new")]


def test_gate_grows_with_silence() -> None:
    old = seen_at("old", 0, 0)
    assert linked_pairs(old, seen_at("new", 2, 12)) == [("old", "new")]
    assert linked_pairs(old, seen_at("new", 0.1, 12)) == []


def test_nearest_pairs_are_linked_first() -> None:
    old = [seen_at("a", 0, 8), seen_at("b", 0, 0)]
    new = [seen_at("c", 3, 7), seen_at("d", 3.01, 15)]
    assert linked_pairs(*old, *new) == [("a", "c"), ("b", "d")]
    assert linked_pairs(*old[::-1], *new) == [("a", "c"), ("b", "d")]


def test_each_track_has_one_link_by_identifiers_and_the_newest_is_taken() -> None:
    same = {"station_id": 7}
    first, other = seen_at("first", 0, 0, **same), seen_at("other", 0, 0, **same)
    new, twin = seen_at("new", 2, 0, **same), seen_at("twin", 2, 0, **same)
    heard_longer = tracks_of([first, other, other._replace(time_us=1_500_000), new])
    assert link_by_identifiers(heard_longer) == [Link(1, 2, Reason.STATION_ID)]
    assert link_by_identifiers(heard_longer[::-1]) == [Link(1, 0, Reason.STATION_ID)]
    assert link_by_identifiers(tracks_of([first, new, twin])) == [Link(0, 1, Reason.STATION_ID)]
    again = seen_at("again", 4, 0, **same)
    assert link_by_identifiers(tracks_of([first, new, again])) == [
        Link(0, 1, Reason.STATION_ID),
        Link(1, 2, Reason.STATION_ID),
    ]


def test_number_that_continues_by_chance_does_not_take_the_place_of_a_surer_link() -> None:
    old = [seen_at("old", 0, 0, sequence_number=5), seen_at("newer", 0.1, 9, sequence_number=7)]
    same = seen_at("same", 1, 0, sequence_number=8, station_id=old[0].station_id)
    assert link_by_identifiers(tracks_of([*old, same])) == [Link(0, 2, Reason.STATION_ID)]
    nearest = seen_at("near", 1, 0, sequence_number=6)
    assert link_by_identifiers(tracks_of([*old, nearest])) == [Link(0, 2, Reason.SEQUENCE_NUMBER)]
    far_and_near = [old[0], old[1]._replace(sequence_number=3), nearest]
    assert link_by_identifiers(tracks_of(far_and_near)) == [Link(0, 2, Reason.SEQUENCE_NUMBER)]


def test_path_history_of_a_station_that_was_elsewhere_at_that_time_is_not_a_link() -> None:
    old = [seen_at("old", number / 10, number) for number in range(30)]

    def linked(time_s: float, north_m: float) -> bool:
        point = PathTrace(round(time_s * 1e6), 500_000_000 + round(north_m * METRE), 0)
        return bool(link_by_identifiers(tracks_of([*old, seen_at("new", 4, 40, path=(point,))])))

    assert linked(2, 20)
    assert not linked(2, 26)
    assert not linked(3.5, 29), "nothing was heard at that time"
    assert not linked(4, 40), "its own place"


def test_path_point_about_as_new_as_the_pseudonym_is_not_a_link() -> None:
    """Times in a path are rounded: its first point may seem older than the first packet, near where the old one was."""
    old = seen_at("old", 2.9, 29)
    new = seen_at("new", 3.0, 30)
    later = new._replace(time_us=3_500_000, path=(PathTrace(2_995_000, new.latitude, new.longitude),))
    assert link_by_identifiers(tracks_of([old, new, later])) == []


def test_place_that_no_vehicle_can_reach_is_not_linked() -> None:
    tracks = Drive(vehicles=1, changes=1).tracks()
    (before, after), far = tracks, 30_000
    moved = [one._replace(latitude=one.latitude + far) for one in after.observations]
    assert len(link_by_motion(tracks)) == 1
    assert link_by_motion([before, *tracks_of(moved)]) == []


def test_each_track_has_one_predecessor_and_one_successor() -> None:
    """Two vehicles at one place: of four possible links there are two."""
    tracks = Drive(vehicles=1, changes=1).tracks()
    twins = [tracks_of([one._replace(mac=b"twin" + one.mac[4:]) for one in track.observations])[0] for track in tracks]
    links = link_by_motion([*tracks, *twins])
    assert len(links) == len({link.before for link in links}) == len({link.after for link in links}) == 2


def test_pseudonym_is_not_linked_to_one_of_long_ago_or_one_that_is_still_heard() -> None:
    drive = Drive(vehicles=1, changes=1, layers=ALL_LAYERS - {Layer.STATION_ID})
    before, after = drive.tracks()
    for shift_us in (31_000_000, -1_000_000):
        shifted = tracks_of([one._replace(time_us=one.time_us + shift_us) for one in after.observations])
        assert link_by_identifiers([before, *shifted]) == []
        assert link_by_motion([before, *shifted]) == []
    assert len(link_by_identifiers([before, after])) == 1


def test_eavesdropper_reads_what_is_in_a_packet_without_verifying_it() -> None:
    vehicle = Vehicle(1, vehicle_route(Random(1)))
    movement = vehicle.route.at(3)
    frame = vehicle.sender.create(movement).frame
    seen = observe(frame, 77)
    assert seen is not None and vehicle.sender.ticket is not None
    assert (seen.mac, seen.gn_mac, seen.digest, seen.station_id) == vehicle.names()
    assert (seen.time_us, seen.latitude, seen.longitude) == (77, movement.latitude, movement.longitude)
    assert (seen.speed, seen.heading) == (
        pytest.approx(movement.speed, abs=0.01),
        pytest.approx(movement.heading, abs=0.06),
    )
    by_digest = observe(vehicle.sender.create(movement).frame, 78)
    assert by_digest is not None and by_digest.digest == seen.digest
    secured = parse_packet(frame[14:]).secured
    assert secured is not None and scan_signed_data(secured).certificates
    forged = frame[:-1] + bytes((frame[-1] ^ 1,))
    assert observe(forged, 77) == seen
    unicast = observe(vehicle.sender.unicast(RSU, b"\7\xe0\0\0x", movement), 79)
    assert unicast is not None
    assert (unicast.digest, unicast.station_id, unicast.gn_mac) == (None, None, seen.gn_mac)
    assert unicast.sequence_number is not None
    for octets in (b"", frame[:30], frame[:12] + b"\x08\x00" + frame[14:], frame[:14] + bytes(40), frame[:120]):
        assert observe(octets, 0) is None


def test_score_counts_wrong_links() -> None:
    drive = Drive(vehicles=2, changes=1)
    tracks = drive.tracks()
    assert [drive.station_of(track) for track in tracks] == [0, 1, 0, 1]
    links = [Link(0, 2, Reason.MOTION), Link(1, 2, Reason.MOTION), Link(0, 3, Reason.MOTION)]
    result = score(tracks, links, drive.station_of)
    assert (result, result.success_rate) == (TrackingScore(2, 1, 2), 50)
    assert score([], [], drive.station_of).success_rate == 0
