"""tshark reads what receivers have captured: stations, places and times are those of the scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import dist
from pathlib import Path
from random import Random
from typing import Any

import pytest

from labconsole_v2x.stations.capture import read_capture
from labconsole_v2x.stations.routes import CENTRE, Movement, Route, metres, vehicle_route
from tests.helpers.recorded_runs import record_runs
from tests.labconsole_v2x.live.live_lab import PROCESSES, LiveLab, Outcome, dissected, is_starved, run, steady_run

SEED = 1
"""The seed of runs in tests."""
ITS_EPOCH_S, LEAP_SECONDS = 1_072_915_200, 5
"""Unix time of the beginning of ITS time, and what TAI has gained on UTC since then."""
GENERATION_S = 0.05
"""In this time a CAM is generated once it is due (EN 302 637-2, 6.1.5): its position may be so old."""
CASES: Mapping[str, Mapping[str, Any]] = {
    "secured": {"senders": 10, "rate": 100.0, "instances": 2, "processes": 2, "root_curve": "brainpoolP384r1"},
    "brainpool": {"curve": "brainpoolP256r1", "authority_curve": "brainpoolP384r1", "compressed_r": True},
    "unsecured": {"security": "none"},
}
FIELDS = (
    "_ws.malformed",
    "frame.protocols",
    "frame.time_epoch",
    "eth.type",
    "geonw.src_pos.addr.mid",
    "geonw.src_pos.addr.type",
    "geonw.src_pos.tst",
    "geonw.src_pos.lat",
    "geonw.src_pos.long",
    "btpb.dstport",
    "its.stationID",
    "its.latitude",
    "its.longitude",
    "its.speedValue",
    "its.headingValue",
    "cam.generationDeltaTime",
    "ieee1609dot2.psid",
    "ieee1609dot2.generationTime",
    "ieee1609dot2.digest",
)


@dataclass(frozen=True)
class Captured:
    """A run, the fields of each captured packet as tshark reads them, and the packets' octets."""

    outcome: Outcome
    rows: list[dict[str, str]]
    octets: list[bytes]


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Captured]:
    def run_case(folder: Path, name: str) -> Outcome:
        launcher = PROCESSES if name == "secured" else None  # its load is more than one process carries
        return steady_run(lambda: run(folder, launcher=launcher, **CASES[name]), is_starved)

    def captured(outcome: Outcome) -> Captured:
        path = outcome.capture(tmp_path_factory.mktemp("capture") / "run.pcapng")
        return Captured(outcome, dissected(path, *FIELDS), [packet.octets for packet in read_capture(path)])

    runs = record_runs(tmp_path_factory, "live-capture", LiveLab, CASES, run_case)
    return {name: captured(outcome) for name, outcome in runs.items()}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, cases: Mapping[str, Captured]) -> Captured:
    """The run of a case, and its capture."""
    return cases[request.param]


def stations_of(outcome: Outcome) -> dict[str, tuple[int, str]]:
    """MAC address -> station and station ID."""
    tables = [outcome.samples.table("stations", role) for role in outcome.samples.roles("stations")]
    return {
        int(source).to_bytes(6, "big").hex(":"): (int(station), str(station_id))
        for table in tables
        for source, station, station_id in zip(table["source"], table["station"], table["station_id"], strict=True)
    }


def test_every_packet_is_well_formed_and_none_occurs_twice(case: Captured) -> None:
    outcome, rows = case.outcome, case.rows
    secured = outcome.parameters.security.value != "none"
    protocols = "eth:ethertype:gnw:ieee1609dot2:btpb:its" if secured else "eth:ethertype:gnw:btpb:its"
    assert {row["_ws.malformed"] for row in rows} == {""}
    assert {row["frame.protocols"] for row in rows} == {protocols}
    assert {(row["eth.type"], row["btpb.dstport"]) for row in rows} == {("0x8947", "2001")}
    assert {row["ieee1609dot2.psid"] for row in rows} == ({"36"} if secured else {""})
    assert len(case.octets) == len(set(case.octets)) == len(rows)
    own = sum(row["geonw.src_pos.addr.type"] == "15" for row in rows)
    assert len(rows) - own == outcome.figures["received"]
    assert own == len(outcome.samples.table("sent", "receiver")["source"]), "it hears its own, too"


def test_capture_of_a_high_load_has_more_than_a_thousand_packets(cases: Mapping[str, Captured]) -> None:
    rows = cases["secured"].rows
    assert len(rows) > 1000 and len({row["its.stationID"] for row in rows}) == 21
    with_digest = sum(row["ieee1609dot2.digest"] != "" for row in rows)
    assert 0 < with_digest < len(rows), "some have the certificate as signer"
    assert len({row["its.latitude"] for row in rows}) > 500, "each from its own place"


def test_stations_are_where_their_routes_lead(case: Captured) -> None:
    """When a CAM was due, or, where it is late, until it was sent. Of unsecured packets, which have no identity in
    themselves, only the stations are known."""
    stations, rows = stations_of(case.outcome), case.rows
    assert {row["geonw.src_pos.addr.mid"] for row in rows} == set(stations)
    assert all(row["its.stationID"] == stations[row["geonw.src_pos.addr.mid"]][1] for row in rows)
    routes = {
        number: vehicle_route(Random(f"{SEED}/{number}")) if number else Route() for number, _ in stations.values()
    }
    times = times_of(case.outcome)
    for row in rows:
        number, _ = stations[row["geonw.src_pos.addr.mid"]]
        place = row["its.latitude"], row["its.longitude"]
        assert place == (row["geonw.src_pos.lat"], row["geonw.src_pos.long"])
        if number == 0:
            assert place == tuple(map(str, CENTRE)) and row["its.speedValue"] == ""
        elif row["ieee1609dot2.generationTime"]:
            due_s, sent_s = times[row["geonw.src_pos.addr.mid"], int(row["ieee1609dot2.generationTime"])]
            due, sent = routes[number].at(due_s), routes[number].at(sent_s)
            if sent_s - due_s < GENERATION_S:
                assert (*place, row["its.speedValue"], row["its.headingValue"]) == in_cam(due)
            else:
                driven = [(due.east_m, due.north_m), metres(*map(int, place)), (sent.east_m, sent.north_m)]
                assert dist(driven[0], driven[1]) + dist(driven[1], driven[2]) < dist(driven[0], driven[2]) + 0.1


def times_of(outcome: Outcome) -> dict[tuple[str, int], tuple[float, float]]:
    """When each CAM was due and when it was sent, in s after T0, by MAC address and generation time."""
    columns = (outcome.column("sent", name) for name in ("source", "identity", "due_ns", "sent_ns"))
    return {
        (int(source).to_bytes(6, "big").hex(":"), int(identity)): (
            (int(due_ns) - outcome.begin_ns) / 1e9,
            (int(sent_ns) - outcome.begin_ns) / 1e9,
        )
        for source, identity, due_ns, sent_ns in zip(*columns, strict=True)
    }


def in_cam(movement: Movement) -> tuple[str, ...]:
    """Latitude, longitude (0.1 microdegree), speed (0.01 m/s) and heading (0.1 degree)."""
    heading = round(movement.heading * 10) % 3600
    return tuple(map(str, (movement.latitude, movement.longitude, round(movement.speed * 100), heading)))


def test_times_are_its_time(case: Captured) -> None:
    """TAI since 2004: each packet was captured a moment after its generation time."""
    captured_s = [float(row["frame.time_epoch"]) - ITS_EPOCH_S + LEAP_SECONDS for row in case.rows]
    assert all(before <= after for before, after in pairwise(captured_s))
    for row, at_s in zip(case.rows, captured_s, strict=True):
        assert -1 < ((at_s * 1000) - int(row["geonw.src_pos.tst"]) + 1000) % 2**32 - 1000 < 4000
        assert int(row["geonw.src_pos.tst"]) % 65_536 == int(row["cam.generationDeltaTime"])
        if row["ieee1609dot2.generationTime"]:
            assert int(row["ieee1609dot2.generationTime"]) // 1000 % 2**32 == int(row["geonw.src_pos.tst"])
