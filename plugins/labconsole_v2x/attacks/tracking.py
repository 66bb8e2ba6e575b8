"""A simple tracker (A-PSN-01): links the pseudonyms of stations across their changes, from what any receiver hears.

It has two ways, apart from each other: identifiers that stay or continue, and motion that continues.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import pairwise
from math import cos, hypot, radians, sin
from typing import NamedTuple

from labconsole_v2x.messages import cam
from labconsole_v2x.messages.asn1_modules import MessageError
from labconsole_v2x.messages.btp import BtpError, Port, parse_btp
from labconsole_v2x.messages.geonetworking import (
    ETHERTYPE,
    GeoNetworkingError,
    PositionVector,
    parse_packet,
    parse_unsecured,
)
from labconsole_v2x.security.reading import MalformedDataError
from labconsole_v2x.security.regions import EARTH_RADIUS_M
from labconsole_v2x.security.scanning import scan_certificate, scan_signed_data
from labconsole_v2x.stations.capture import ETHERNET_HEADER

LONGEST_SILENCE_S = 30.0
"""A pseudonym is not linked to one that was heard longer ago."""
MOST_SEQUENCE_STEPS = 8
"""A sequence number continues another one that is so much smaller at most: some packets are not heard."""
PATH_GATE_M, PATH_GATE_US = 3.0, 200_000
"""A point of a path history is that of a station that was as near at that time; a newer one may be its own."""
MOTION_GATE_M, MOTION_GATE_M_S = 5.0, 5.0
"""A station is as near to its predicted place, and further away by so much for each second of silence."""
_ETHERTYPE = ETHERTYPE.to_bytes(2, "big")
_PATH_TIME_US = 10_000


class PathTrace(NamedTuple):
    """A point of a path history: time in us, place in 0.1 microdegree."""

    time_us: int
    latitude: int
    longitude: int


class Observation(NamedTuple):
    """What a packet says of its sender; `time_us` is when it was heard, speed in m/s, heading in degrees."""

    time_us: int
    mac: bytes
    gn_mac: bytes
    latitude: int
    longitude: int
    speed: float
    heading: float
    digest: bytes | None = None
    """HashedId8 of the ticket; None in a packet that is not secured."""
    station_id: int | None = None
    """None in a packet without CAM."""
    path: tuple[PathTrace, ...] = ()
    sequence_number: int | None = None


def observe(frame: bytes, time_us: int) -> Observation | None:
    """What a frame says of its sender; None for one that cannot be read. No signature is verified."""
    if frame[12:14] != _ETHERTYPE:
        return None
    try:
        return _observed(frame, time_us)
    except (GeoNetworkingError, MalformedDataError, BtpError, MessageError):
        return None


def _observed(frame: bytes, time_us: int) -> Observation:
    packet = parse_packet(frame[ETHERNET_HEADER:])
    digest, unsecured = None, packet.unsecured
    if packet.secured is not None:
        data = scan_signed_data(packet.secured)
        unsecured = parse_unsecured(data.payload or b"")
        digest = data.digest
        if digest is None and data.certificates:
            digest = scan_certificate(data.certificates[0]).hashed_id8
    assert unsecured is not None
    vector = unsecured.sender
    seen = Observation(
        time_us,
        frame[6:12],
        vector.address.mac,
        vector.latitude,
        vector.longitude,
        vector.speed / 100,
        vector.heading / 10,
        digest,
        sequence_number=unsecured.sequence_number,
    )
    if not unsecured.payload:
        return seen
    btp = parse_btp(unsecured.next_header, unsecured.payload)
    if btp.destination_port != Port.CAM:
        return seen
    message = cam.decode(btp.payload)
    low = message.low_frequency
    path = tuple(_path(low, vector, time_us)) if low is not None else ()
    return seen._replace(station_id=message.station_id, path=path)


def _path(low: cam.LowFrequency, vector: PositionVector, time_us: int) -> Iterator[PathTrace]:
    latitude, longitude = vector.latitude, vector.longitude
    for point in low.path:
        if point.time is None:
            return
        latitude, longitude = latitude + point.latitude, longitude + point.longitude
        time_us -= point.time * _PATH_TIME_US
        yield PathTrace(time_us, latitude, longitude)


def _metres_between(one: Observation, other: Observation | PathTrace) -> tuple[float, float]:
    """How far north and east of the one place the other is, for places near each other."""
    north, east = radians((other.latitude - one.latitude) / 1e7), radians((other.longitude - one.longitude) / 1e7)
    return EARTH_RADIUS_M * north, EARTH_RADIUS_M * east * cos(radians(one.latitude / 1e7))


@dataclass
class Track:
    """The packets of one pseudonym, in order of time."""

    observations: list[Observation] = field(default_factory=list)

    @property
    def first(self) -> Observation:
        """The first packet that has all identifiers."""
        return self.observations[0]

    @property
    def last(self) -> Observation:
        """The last packet."""
        return self.observations[-1]

    @property
    def sequence_numbers(self) -> list[int]:
        """Those of its packets."""
        return [one.sequence_number for one in self.observations if one.sequence_number is not None]

    def near(self, point: PathTrace) -> bool:
        """Whether the station was at a place at a time."""
        at = bisect_left(self.observations, point.time_us, key=lambda one: one.time_us)
        return any(
            abs(one.time_us - point.time_us) <= PATH_GATE_US and hypot(*_metres_between(one, point)) <= PATH_GATE_M
            for one in self.observations[max(0, at - 1) : at + 1]
        )


def tracks_of(observations: Iterable[Observation]) -> list[Track]:
    """The packets by pseudonym: where one identifier is another one, it is another pseudonym.

    A packet without ticket or station ID is of the newest pseudonym with its addresses.
    """
    tracks: dict[tuple[Hashable, ...], Track] = {}
    newest: dict[tuple[bytes, bytes], Track] = {}
    for one in observations:
        addresses = (one.mac, one.gn_mac)
        if one.station_id is None:
            track = newest.get(addresses)
        else:
            track = newest[addresses] = tracks.setdefault((*addresses, one.digest, one.station_id), Track())
        if track is not None:
            track.observations.append(one)
    return list(tracks.values())


class Reason(StrEnum):
    """Why two pseudonyms are of one station."""

    TICKET = "the same ticket"
    MAC_ADDRESS = "the same MAC address"
    GN_ADDRESS = "the same GeoNetworking address"
    STATION_ID = "the same station ID"
    PATH_HISTORY = "its path history is that of the other"
    SEQUENCE_NUMBER = "its sequence numbers continue"
    MOTION = "it is where the other one would be"


class Link(NamedTuple):
    """Two tracks, by their numbers, that are of one station, says the tracker."""

    before: int
    after: int
    reason: Reason


def link_by_identifiers(tracks: Sequence[Track]) -> list[Link]:
    """Links by any identifier that stays or continues; each track has one successor.

    The surest come first: equal identifiers, then path histories, then sequence numbers, the nearest first:
    those may continue by chance.
    """
    links, ended, begun = [], set[int](), set[int]()
    numbers = [partial(_continued_numbers, steps) for steps in range(1, MOST_SEQUENCE_STEPS + 1)]
    finders: list[Callable[[Track, Track], Reason | None]] = [_equal_identifier, _continued_path, *numbers]
    for find in finders:
        for after, before in _candidates(tracks):
            if before in ended or after in begun:
                continue
            reason = find(tracks[before], tracks[after])
            if reason is not None:
                links.append(Link(before, after, reason))
                ended.add(before)
                begun.add(after)
    return links


def _candidates(tracks: Sequence[Track]) -> Iterator[tuple[int, int]]:
    """Each track in order of its beginning, with those that ended before it, the one that ended last first."""
    ends = sorted(range(len(tracks)), key=lambda number: -tracks[number].last.time_us)
    for after in sorted(range(len(tracks)), key=lambda number: tracks[number].first.time_us):
        begin_us = tracks[after].first.time_us
        for before in ends:
            silent_us = begin_us - tracks[before].last.time_us
            if 0 < silent_us <= LONGEST_SILENCE_S * 1e6:
                yield after, before


def _equal_identifier(before: Track, after: Track) -> Reason | None:
    old, new = before.first, after.first
    if old.digest is not None and old.digest == new.digest:
        return Reason.TICKET
    if old.mac == new.mac:
        return Reason.MAC_ADDRESS
    if old.gn_mac == new.gn_mac:
        return Reason.GN_ADDRESS
    return Reason.STATION_ID if old.station_id == new.station_id else None


def _continued_path(before: Track, after: Track) -> Reason | None:
    begin_us = after.first.time_us
    path = next((one.path for one in after.observations if one.path), ())
    old = (point for point in path if begin_us - point.time_us > PATH_GATE_US)
    return Reason.PATH_HISTORY if any(map(before.near, old)) else None


def _continued_numbers(steps: int, before: Track, after: Track) -> Reason | None:
    numbers = before.sequence_numbers[-1:] + after.sequence_numbers[:1]
    continues = len(numbers) == 2 and (numbers[1] - numbers[0]) % 65_536 == steps
    return Reason.SEQUENCE_NUMBER if continues else None


def link_by_motion(
    tracks: Sequence[Track], gate_m: float = MOTION_GATE_M, gate_m_s: float = MOTION_GATE_M_S
) -> list[Link]:
    """Links by place alone: driven on at the last speed and heading, and nearest first, each track at most once."""
    near = []
    for after, before in _candidates(tracks):
        last, first = tracks[before].last, tracks[after].first
        silent_s = (first.time_us - last.time_us) / 1e6
        north_m, east_m = _metres_between(last, first)
        driven_m, heading = last.speed * silent_s, radians(last.heading)
        distance_m = hypot(north_m - driven_m * cos(heading), east_m - driven_m * sin(heading))
        if distance_m <= gate_m + gate_m_s * silent_s:
            near.append((distance_m, before, after))
    links, ended, begun = [], set[int](), set[int]()
    for _, before, after in sorted(near):
        if before not in ended and after not in begun:
            links.append(Link(before, after, Reason.MOTION))
            ended.add(before)
            begun.add(after)
    return links


class TrackingScore(NamedTuple):
    """How often a tracker was right."""

    changes: int
    """Of all stations."""
    linked: int
    """Changes that it has linked."""
    wrong: int
    """Its links that are not a change of one station."""

    @property
    def success_rate(self) -> float:
        """Linked changes among all, in %; 0 without any."""
        return self.linked / self.changes * 100 if self.changes else 0.0


def score(tracks: Sequence[Track], links: Sequence[Link], station_of: Callable[[Track], Hashable]) -> TrackingScore:
    """Compare links with the truth: which station a track is of."""
    by_station: dict[Hashable, list[int]] = {}
    for number in sorted(range(len(tracks)), key=lambda one: tracks[one].first.time_us):
        by_station.setdefault(station_of(tracks[number]), []).append(number)
    changes = {pair for numbers in by_station.values() for pair in pairwise(numbers)}
    linked = len({(link.before, link.after) for link in links} & changes)
    return TrackingScore(len(changes), linked, len(links) - linked)
