"""Refill of a pool over the PKI, directly and through a roadside unit that learns nothing of the station."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import pytest

from labconsole.errors import UserError
from labconsole_v2x.messages.geonetworking import Address, Kind, ShortPositionVector, parse_packet
from labconsole_v2x.pki.authorization_authority import Post, RemoteAuthority
from labconsole_v2x.pki.http_transport import AuthorityServer, post
from labconsole_v2x.pki.station_requests import CertifiedKey, authorize, enrol
from labconsole_v2x.security.issuing import TICKET_PERMISSIONS, LabPki
from labconsole_v2x.security.structures import Validity
from labconsole_v2x.security.verification import its_now
from labconsole_v2x.stations.capture import ethernet_frame
from labconsole_v2x.stations.pseudonyms import WEEK_S, Pseudonym, PseudonymPolicy, PseudonymPool
from labconsole_v2x.stations.refill import (
    ATTEMPTS,
    LARGEST_MESSAGE,
    MOST_ANSWERS,
    MOST_REQUESTS,
    RsuRelay,
    RsuRequester,
)
from labconsole_v2x.stations.routes import Route, vehicle_route
from labconsole_v2x.stations.sending import ROADSIDE_UNIT, CamSender, Identity
from labconsole_v2x.stations.transports import Transport, TransportKind, TransportSettings, open_transport
from tests.helpers.udp_ports import free_udp_port
from tests.labconsole_v2x.pki.pki_lab import EA_URL, ITS_ID, PkiLab

URL = "http://aa.test/"
ROUTE = vehicle_route(Random(1))
RSU = ShortPositionVector(Address(Identity.of(b"roadside").mac, ROADSIDE_UNIT), 0, 0, 0)
HEADER, PORT_2016 = 14, bytes.fromhex("07e00000")


class Air:
    """Frames between a station and an RSU; `lost` decides which are lost, by their number."""

    def __init__(self, lost: Callable[[int], bool] = lambda number: False) -> None:
        self.frames: list[bytes] = []
        self._lost = lost

    def connect(self, requester: RsuRequester, relay: RsuRelay) -> None:
        self.requester, self.relay = requester, relay

    def send(self, frame: bytes) -> None:
        self.frames.append(frame)
        if not self._lost(len(self.frames) - 1):
            self.relay.take(frame)
            self.requester.take(frame)


@contextmanager
def linked(answer: Post, air: Air | None = None, *, attempt_s: float = 5.0) -> Iterator[Air]:
    """A station and an RSU whose AA answers so."""
    air = air or Air()
    station, rsu = CamSender(Identity.of(b"a car...")), CamSender(Identity.of(b"roadside"), station_type=ROADSIDE_UNIT)
    requester = RsuRequester(air.send, station, RSU, lambda: ROUTE.at(0), attempt_s=attempt_s)
    with RsuRelay(URL, answer, air.send, rsu, Route().at(0)) as relay:
        air.connect(requester, relay)
        yield air


def reverse(url: str, octets: bytes) -> bytes:
    assert url == URL
    return octets[::-1]


class Station:
    """An enrolled station of a PKI with EA and AA, at the present time."""

    def __init__(self, folder: Path) -> None:
        self.lab = PkiLab(folder, LabPki.create(its_now() // 1_000_000 - 3600), its_now())
        pki = self.lab.pki
        self.credential = enrol(ITS_ID, self.lab.canonical, RemoteAuthority(EA_URL, pki.ea), pki.root, self.lab.post)

    def authorize(self, url: str, way: Post, count: int, validity: Validity) -> Iterator[Pseudonym]:
        pki, aa = self.lab.pki, RemoteAuthority(url, self.lab.pki.aa)
        for _ in range(count):
            given: CertifiedKey = authorize(
                self.credential, TICKET_PERMISSIONS, pki.ea, aa, pki.root, way, validity=validity
            )
            yield Pseudonym(given.certificate, given.key)


@pytest.fixture
def station(tmp_path: Path) -> Station:
    return Station(tmp_path)


def filled(station: Station, url: str, way: Post) -> list[Pseudonym]:
    """The tickets of a pool that was filled with two for the present week and two for the next."""
    pool, now_s = PseudonymPool(PseudonymPolicy(most_valid=2, preload_s=WEEK_S)), its_now() // 1_000_000
    assert pool.missing(now_s) == 4
    assert pool.refill(partial(station.authorize, url, way), now_s) == 4
    assert pool.missing(now_s) == 0
    tickets = [*pool.valid(now_s), *pool.valid(now_s + WEEK_S)]
    assert len({one.ticket.hashed_id8 for one in tickets}) == 4
    return tickets


def test_pool_is_refilled_over_the_pki(station: Station) -> None:
    """F-PSN-02."""
    with AuthorityServer("127.0.0.1", 0, station.lab.aa.answer) as server:
        filled(station, server.url, post)


def test_pool_is_refilled_through_an_rsu_that_learns_neither_station_nor_ticket(station: Station) -> None:
    """F-PSN-05: the request as GeoUnicast, and over HTTP from the RSU to the AA."""
    with (
        AuthorityServer("127.0.0.1", 0, station.lab.aa.answer) as server,
        linked(lambda _, octets: post(server.url, octets)) as air,
    ):
        tickets = filled(station, URL, air.requester.post)
    assert len(air.frames) == 2 * len(tickets)
    packets = [parse_packet(frame[HEADER:]).unsecured for frame in air.frames]
    assert {packet.kind for packet in packets if packet is not None} == {Kind.GUC}
    assert all(packet is not None and packet.payload[:4] == PORT_2016 for packet in packets)
    assert max(len(frame) for frame in air.frames) < 1100 + 60 < LARGEST_MESSAGE
    seen = b"".join(air.frames)
    secrets = [ITS_ID, station.credential.certificate.hashed_id8, station.credential.certificate.octets]
    for one in tickets:
        secrets += [one.ticket.octets, one.ticket.hashed_id8, one.ticket.verification_key.point.x]
    assert not [secret for secret in secrets if secret in seen]


def test_request_and_response_go_over_real_sockets() -> None:
    group = TransportSettings(TransportKind.MULTICAST, "127.0.0.1", "239.118.122.98", free_udp_port())
    ended = threading.Event()

    def read(transport: Transport, take: Callable[[bytes], bool]) -> None:
        while not ended.is_set():
            frame = transport.receive()
            if frame is not None:
                take(frame)

    with ExitStack() as resources:
        here, there = (resources.enter_context(closing(open_transport(group, receiver=False))) for _ in range(2))
        requester = RsuRequester(here.send, CamSender(Identity.of(b"a car...")), RSU, lambda: ROUTE.at(0))
        roadside = CamSender(Identity.of(b"roadside"), station_type=ROADSIDE_UNIT)
        relay = resources.enter_context(RsuRelay(URL, reverse, there.send, roadside, Route().at(0)))
        threads = resources.enter_context(ThreadPoolExecutor(2))
        resources.callback(ended.set)
        for transport, take in ((here, requester.take), (there, relay.take)):
            threads.submit(read, transport, take)
        octets = bytes(range(256)) * 5
        assert [requester.post(URL, octets[: 600 + number]) for number in range(20)] == [
            octets[: 600 + number][::-1] for number in range(20)
        ]


def test_frames_go_between_the_addresses_of_station_and_rsu() -> None:
    with linked(reverse) as air:
        assert air.requester.post(URL, b"request") == b"tseuqer"
    station, rsu = Identity.of(b"a car...").mac, Identity.of(b"roadside").mac
    assert [(frame[:6], frame[6:12]) for frame in air.frames] == [(rsu, station), (station, rsu)]


def test_fault_of_a_relay_is_raised_at_its_end() -> None:
    def faulty(url: str, octets: bytes) -> bytes:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), linked(faulty, attempt_s=0.05) as air, suppress(UserError):
        air.requester.post(URL, b"request")


@pytest.mark.parametrize("lost", [{0}, {1}, {0, 2}], ids=str)
def test_lost_packet_is_sent_again_and_posted_once(lost: set[int]) -> None:
    posted = []

    def answer(url: str, octets: bytes) -> bytes:
        posted.append(octets)
        return reverse(url, octets)

    with linked(answer, Air(lambda number: number in lost), attempt_s=0.1) as air:
        assert air.requester.post(URL, b"request") == b"tseuqer"
    assert posted == [b"request"]


def test_rsu_that_does_not_answer_is_named_after_so_many_attempts() -> None:
    nothing_arrives = linked(reverse, Air(lambda number: True), attempt_s=0.02)
    with nothing_arrives as air, pytest.raises(UserError, match="answer 3 requests: check that it is in range"):
        air.requester.post(URL, b"request")
    assert len(air.frames) == ATTEMPTS
    numbers = {frame[-15:-7] for frame in air.frames}
    assert len(numbers) == 1


def test_refusal_of_the_rsu_says_why() -> None:
    def unreachable(url: str, octets: bytes) -> bytes:
        raise UserError(f"{url} does not answer \x1b[1m(refused): check it.")

    reason = r"The RSU .* has no response of the AA: http://aa.test/ does not"
    with linked(unreachable) as air, pytest.raises(UserError, match=reason) as error:
        air.requester.post(URL, b"request")
    assert "\x1b" not in str(error.value)


def test_what_does_not_fit_a_packet_is_refused_with_its_size() -> None:
    with linked(lambda url, octets: octets + b"x") as air:
        with pytest.raises(UserError, match=r"has 1,386 octets, and a packet to the RSU takes 1,385"):
            air.requester.post(URL, bytes(LARGEST_MESSAGE + 1))
        assert not air.frames
        with pytest.raises(UserError, match=r"no response of the AA: it has 1,386 octets"):
            air.requester.post(URL, bytes(LARGEST_MESSAGE))
        assert len(air.requester.post(URL, bytes(LARGEST_MESSAGE - 1))) == LARGEST_MESSAGE
    largest = max(len(frame) for frame in air.frames)
    assert largest - HEADER - 4 - 8 - 48 == 1398, "payload of a GeoUnicast: itsGnMaxSduSize"


def test_responses_that_nothing_waits_for_are_ignored() -> None:
    with linked(reverse) as air:
        air.requester.post(URL, b"request")
        request, response = air.frames
        assert not air.requester.take(response), "it came already"
        assert not air.requester.take(request)
        other = bytearray(response)
        other[-15] ^= 1
        assert not air.requester.take(bytes(other))
        for octets in (b"", b"abc", response[:40], response[:-8], ethernet_frame(bytes(60), bytes(6))):
            assert not air.requester.take(octets)
            assert not air.relay.take(octets)
        before = len(air.frames)
        assert not air.relay.take(_message(b"\1" + bytes(8) + b"octets")), "a response to an RSU"
        elsewhere = CamSender(Identity.of(b"a car...")).unicast(
            ShortPositionVector(Address(bytes(6), 15), 0, 0, 0), request[HEADER + 60 :], ROUTE.at(0)
        )
        assert not air.relay.take(elsewhere), "of another RSU"
        assert len(air.frames) == before


def test_response_of_another_station_is_ignored_while_one_waits() -> None:
    forged: list[bool] = []

    class Forging(Air):
        def send(self, frame: bytes) -> None:
            if frame[6:12] == Identity.of(b"a car...").mac:
                number = frame[-15:-7]
                payload = PORT_2016 + b"\1" + number + b"forged"
                target = ShortPositionVector(Address(frame[6:12], 5), 0, 0, 0)
                forged.append(
                    self.requester.take(CamSender(Identity.of(b"attacker")).unicast(target, payload, ROUTE.at(0)))
                )
            super().send(frame)

    with linked(reverse, Forging()) as air:
        assert air.requester.post(URL, b"request") == b"tseuqer"
    assert forged == [False]


def test_requests_that_wait_at_an_rsu_are_bounded() -> None:
    leave, posted = threading.Event(), []

    def slow(url: str, octets: bytes) -> bytes:
        leave.wait(30)
        posted.append(octets)
        return octets

    with linked(slow, attempt_s=30.0) as air, ThreadPoolExecutor(MOST_REQUESTS + 1) as stations:
        first = stations.submit(air.requester.post, URL, b"first")
        deadline = time.monotonic() + 30
        while air.relay._waiting.qsize() or not air.frames:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        rest = [stations.submit(air.requester.post, URL, b"%d" % number) for number in range(MOST_REQUESTS)]
        while air.relay._waiting.qsize() < MOST_REQUESTS:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        air.relay.take(_message(b"\0" + b"too many" + b"octets"))
        assert air.relay.ignored == 1
        leave.set()
        assert [one.result() for one in (first, *rest)] == [b"first", *(b"%d" % n for n in range(MOST_REQUESTS))]
    assert len(posted) == MOST_REQUESTS + 1


def _message(octets: bytes) -> bytes:
    """A frame of a station to the RSU."""
    return CamSender(Identity.of(b"a car...")).unicast(RSU, PORT_2016 + octets, ROUTE.at(0))


def test_answers_that_an_rsu_keeps_are_bounded() -> None:
    with linked(reverse) as air:
        for _ in range(MOST_ANSWERS + 10):
            air.requester.post(URL, b"request")
        assert len(air.relay._known) == MOST_ANSWERS


def test_requests_of_several_stations_get_their_own_responses() -> None:
    with linked(reverse) as air, ThreadPoolExecutor(8) as threads:
        wanted = [b"request %d" % number for number in range(40)]
        assert list(threads.map(partial(air.requester.post, URL), wanted)) == [one[::-1] for one in wanted]


def test_request_is_sent_under_one_identity_while_it_changes() -> None:
    sender = CamSender(Identity.of(b"a car..."), clock=lambda: sender.change_identity() or its_now())  # type: ignore[func-returns-value]
    before = sender.identity
    frame = sender.unicast(ShortPositionVector(Address(bytes(6), 15), 0, 0, 0), b"", ROUTE.at(0))
    packet = parse_packet(frame[HEADER:]).unsecured
    assert packet is not None
    assert packet.sender.address.mac == frame[6:12] == before.mac != sender.identity.mac


def test_authority_refuses_a_validity_beyond_the_policy(station: Station) -> None:
    pool = PseudonymPool(PseudonymPolicy(lifetime_s=2 * WEEK_S, most_valid=1, preload_s=2 * WEEK_S))
    with pytest.raises(UserError, match="refuses"):
        pool.refill(partial(station.authorize, URL, station.lab.post), its_now() // 1_000_000)
    ahead = replace(PseudonymPolicy(), most_valid=1, preload_s=15 * WEEK_S)
    with pytest.raises(UserError, match="refuses"):
        PseudonymPool(ahead).refill(partial(station.authorize, URL, station.lab.post), its_now() // 1_000_000)
