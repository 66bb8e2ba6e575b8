"""tshark reads what stations send in every mode, and finds in it what the scenario says: not our decoder's opinion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256, sha384
from itertools import pairwise
from math import pi
from pathlib import Path
from random import Random

import pytest

from labconsole_v2x.security.distribution import CertificateInclusion
from labconsole_v2x.security.structures import Curve
from labconsole_v2x.stations.capture import capture_header, packet_block
from labconsole_v2x.stations.routes import Movement, Route, vehicle_route
from labconsole_v2x.stations.sending import PASSENGER_CAR, ROADSIDE_UNIT, CamSender, SecurityMode
from tests.labconsole_v2x.messages.packets import dissected
from tests.labconsole_v2x.stations.cam_senders import BEGIN_NS, Lab, its_us_of, set_clock

KNOWN_TO_TSHARK = (Curve.P256, Curve.BRAINPOOL_P256R1, Curve.BRAINPOOL_P384R1)
CAMS = 110
"""CAMs of each station: at 1 Hz they cross the wrap of generationDeltaTime, after 65.5 s."""
HEADERS = ("_ws.malformed", "geonw.bh.version", "geonw.bh.nh", "geonw.bh.lt.base", "geonw.bh.lt.mult", "geonw.bh.rhl")
COMMON = ("geonw.ch.nh", "geonw.ch.htype", "geonw.ch.flags.mob", "geonw.ch.mhl", "btpb.dstport", "eth.src", "eth.dst")
SECURITY = (
    "ieee1609dot2.hashId",
    "ieee1609dot2.psid",
    "ieee1609dot2.generationTime",
    "ieee1609dot2.signer",
    "ieee1609dot2.digest",
    "ieee1609dot2.start",
    "ieee1609dot2.signature",
)
VECTOR = ("type", "mid", "tst", "lat", "long", "pai", "speed", "hdg")
CONTENT = ("its.stationID", "cam.generationDeltaTime", "cam.stationType", "its.latitude", "its.longitude")
MOTION = (
    "its.headingValue",
    "its.speedValue",
    "its.longitudinalAccelerationValue",
    "its.curvatureValue",
    "its.yawRateValue",
    "cam.driveDirection",
    "cam.pathHistory",
)
FIELDS = (
    *HEADERS,
    *COMMON,
    *SECURITY,
    *(f"geonw.src_pos.{'addr.' if name in ('type', 'mid') else ''}{name}" for name in VECTOR),
    *CONTENT,
    *MOTION,
)


@dataclass(frozen=True)
class Station:
    """A station of the scenario: what it sends follows from this."""

    mode: SecurityMode
    curve: Curve
    route: Route
    interval_ms: int
    station_type: int
    sender: CamSender

    @property
    def ticket(self) -> bytes:
        assert self.sender.ticket is not None
        return self.sender.ticket.octets

    @property
    def hashed_id8(self) -> bytes:
        hashed = sha384 if self.curve is Curve.BRAINPOOL_P384R1 else sha256
        return hashed(self.ticket).digest()[-8:]

    def times_ns(self) -> Iterator[int]:
        return (BEGIN_NS + number * self.interval_ms * 1_000_000 for number in range(CAMS))

    def at(self, now_ns: int) -> Movement:
        return self.route.at((now_ns - BEGIN_NS) / 1e9)


def stations() -> Iterator[Station]:
    """Vehicles of each mode and curve, and roadside units."""
    random = Random("dissected")
    for curve in KNOWN_TO_TSHARK:
        lab = Lab(curve)
        for mode in SecurityMode:
            for interval_ms in (100, 250, 1000) if curve is Curve.P256 else (250,):
                route, sender = vehicle_route(random), lab.sender(mode)
                yield Station(mode, curve, route, interval_ms, PASSENGER_CAR, sender)
        sender = lab.sender(inclusion=CertificateInclusion.ALWAYS, station_type=ROADSIDE_UNIT)
        yield Station(SecurityMode.FULL, curve, Route(12.0, -34.0), 1000, ROADSIDE_UNIT, sender)


def has_certificate(station: Station, number: int) -> bool:
    """Once a second, or always where a roadside unit sends once a second."""
    return number * station.interval_ms % 1000 == 0


def security_row(station: Station, number: int, its_us: int) -> list[str]:
    if station.mode is SecurityMode.NONE:
        return [""] * len(SECURITY)
    certificate = has_certificate(station, number)
    return [
        "1" if station.curve is Curve.BRAINPOOL_P384R1 else "0",
        "36",
        str(its_us),
        "1" if certificate else "0",
        "" if certificate else station.hashed_id8.hex(),
        str(its_us_of(BEGIN_NS) // 1_000_000 - 3600) if certificate else "",
        {Curve.P256: "0", Curve.BRAINPOOL_P256R1: "1", Curve.BRAINPOOL_P384R1: "2"}[station.curve],
    ]


def low_frequency_numbers(station: Station) -> list[int]:
    """Which CAMs have the low frequency container: the first, and then each 500 ms."""
    every = max(1, 500 // station.interval_ms)
    return [number for number in range(CAMS) if number % every == 0]


def motion_row(station: Station, number: int, now: Movement) -> list[str]:
    if station.station_type == ROADSIDE_UNIT:
        return [""] * len(MOTION)
    low = low_frequency_numbers(station)
    return [
        str(round(now.heading * 10) % 3600),
        str(round(now.speed * 100)),
        str(round(now.acceleration * 10)),
        str(round(-10_000 / station.route.radius_m)),  # clockwise
        str(round(-now.speed / station.route.radius_m * 180 / pi * 100)),
        "0",
        str(min(low.index(number), 5)) if number in low else "",
    ]


def expected_row(station: Station, number: int, now_ns: int) -> list[str]:
    its_us, now = its_us_of(now_ns), station.at(now_ns)
    its_ms = its_us // 1000
    mac = station.sender.identity.mac.hex(":")
    secured, roadside = station.mode is not SecurityMode.NONE, station.station_type == ROADSIDE_UNIT
    place = [str(now.latitude), str(now.longitude)]
    station_type = str(station.station_type)
    motion = [str(round(now.speed * 100)), str(round(now.heading * 10) % 3600)]
    return [
        *("", "1", "2" if secured else "1", "1", "1", "1"),
        *("2", "0x50", "0" if roadside else "1", "1", "2001", mac, "ff:ff:ff:ff:ff:ff"),
        *security_row(station, number, its_us),
        *(station_type, mac, str(its_ms % 2**32), *place, "1", *motion),
        *(str(station.sender.identity.station_id), str(its_ms % 65_536), station_type, *place),
        *motion_row(station, number, now),
    ]


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[Station, int, int]]]:
    """A capture of all stations; and of each packet the station, its number, and when it was sent."""
    path, packets = tmp_path_factory.mktemp("dissected") / "stations.pcapng", []
    with pytest.MonkeyPatch.context() as patch, path.open("wb") as file:
        clock = set_clock(patch)
        file.write(capture_header(["channel"], "lab console"))
        for station in stations():
            for number, now_ns in enumerate(station.times_ns()):
                clock.now_ns = now_ns
                file.write(packet_block(now_ns, station.sender.create(station.at(now_ns)).frame))
                packets.append((station, number, now_ns))
    return path, packets


def test_tshark_reads_in_every_packet_what_the_scenario_says(
    sent: tuple[Path, list[tuple[Station, int, int]]],
) -> None:
    path, packets = sent
    rows = dissected(path, *FIELDS)
    assert len(rows) == len(packets) > 2000
    for row, (station, number, now_ns) in zip(rows, packets, strict=True):
        expected = expected_row(station, number, now_ns)
        differing = {
            field: values for field, *values in zip(FIELDS, row, expected, strict=True) if values[0] != values[1]
        }
        assert not differing, (station.mode, station.curve, number)


def test_tshark_reads_the_path_that_was_driven(sent: tuple[Path, list[tuple[Station, int, int]]]) -> None:
    """Each point is relative to the one after it, and as long ago as the low frequency containers are apart."""
    path, packets = sent
    rows = dissected(path, "its.pathDeltaTime", "its.deltaLatitude", "its.deltaLongitude", occurrence="a")
    assert len(rows) == len(packets)
    with_path = 0
    for row, (station, number, now_ns) in zip(rows, packets, strict=True):
        low = low_frequency_numbers(station)
        before = [n for n in low if n < number][-5:][::-1] if number in low else []
        if station.station_type == ROADSIDE_UNIT:
            before = []
        apart_ms = max(500, station.interval_ms)
        places = [station.at(now_ns), *(station.at(BEGIN_NS + n * station.interval_ms * 1_000_000) for n in before)]
        steps = list(pairwise(places))
        expected = [
            ",".join(str(apart_ms // 10) for _ in before),
            ",".join(str(point.latitude - after.latitude) for after, point in steps),
            ",".join(str(point.longitude - after.longitude) for after, point in steps),
        ]
        assert row == expected, (station.mode, station.curve, number)
        with_path += bool(before)
    assert with_path > 500
