"""Certificate distribution: stations that learn ticket and authority from each other's octets alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from labconsole_v2x.security.distribution import CertificateInclusion, Distribution
from labconsole_v2x.security.scanning import scan_signed_data
from labconsole_v2x.security.structures import CAM_PSID, Header
from labconsole_v2x.security.trust import TrustStore
from labconsole_v2x.security.verification import Outcome, Reason, Verifier
from tests.labconsole_v2x.security.lab_certificates import (
    NOW_US,
    Holder,
    cam_payload,
    root_authority,
    signed,
    signed_cam,
    signed_denm,
    ticket,
    ticket_authority,
)

ROOT = root_authority()
AUTHORITIES = [ticket_authority(ROOT) for _ in range(2)]
STEP_US = 100_000


class Station:
    """A station of 10 Hz with its own ticket; it trusts the root and knows its own authority."""

    def __init__(
        self, authority: Holder, policy: CertificateInclusion = CertificateInclusion.ETSI, *, knows_own: bool = True
    ) -> None:
        self.holder = ticket(authority)
        self.trust = TrustStore()
        self.trust.add_root(ROOT.certificate)
        if knows_own:
            self.trust.add(authority.certificate)
        self.verifier = Verifier(self.trust)
        self.distribution = Distribution(self.holder.certificate, self.trust, policy)

    def send(self, now_us: int) -> bytes:
        included = self.distribution.next_cam(now_us)
        header = Header(
            CAM_PSID,
            now_us,
            inline_p2pcd_request=included.inline_p2pcd_request,
            requested_certificate=included.requested_certificate,
        )
        return signed(self.holder, header, cam_payload(), digest=not included.certificate)

    def receive(self, packet: bytes, now_us: int) -> list[Outcome]:
        """Verify a packet and those that waited for what it taught."""
        outcomes = []
        packets = [packet]
        while packets:
            outcomes.append(self.verifier.verify(packets.pop(0), now_us))
            self.distribution.note(outcomes[-1])
            packets += [packet.octets for packet in self.trust.released()]
        return outcomes


def times(start: int = 0) -> Iterator[int]:
    while True:
        yield NOW_US + start * STEP_US
        start += 1


def has_certificate(packet: bytes) -> bool:
    return bool(scan_signed_data(packet).certificates)


def test_receiver_with_the_root_only_learns_authority_and_ticket_from_the_air() -> None:
    sender, receiver = Station(AUTHORITIES[0]), Station(AUTHORITIES[1])
    clock = times()
    sender.send(next(clock))  # with certificate, not heard by the receiver

    now_us = next(clock)
    digest = sender.send(now_us)
    assert not has_certificate(digest)
    assert [o.reason for o in receiver.receive(digest, now_us)] == [Reason.UNKNOWN_SIGNER]
    now_us = next(clock)
    request = receiver.send(now_us)
    assert scan_signed_data(request).header.inline_p2pcd_request == (sender.holder.certificate.hashed_id3,)
    assert [o.reason for o in sender.receive(request, now_us)] == [Reason.UNKNOWN_ISSUER]

    now_us = next(clock)
    certificate = sender.send(now_us)
    assert has_certificate(certificate)
    assert scan_signed_data(certificate).header.inline_p2pcd_request == (AUTHORITIES[1].certificate.hashed_id3,)
    assert [o.reason for o in receiver.receive(certificate, now_us)] == [Reason.UNKNOWN_ISSUER]
    now_us = next(clock)
    request = receiver.send(now_us)  # with the receiver's certificate, since the sender is a new neighbour
    assert scan_signed_data(request).header.inline_p2pcd_request == (AUTHORITIES[0].certificate.hashed_id3,)
    sender.receive(request, now_us)

    now_us = next(clock)
    answer = sender.send(now_us)
    assert scan_signed_data(answer).header.requested_certificate == AUTHORITIES[0].certificate.octets
    learnt = receiver.receive(answer, now_us)
    assert [outcome.accepted for outcome in learnt] == [True] * 3  # the answer, and both packets that waited
    assert learnt[0].chain == (sender.holder.certificate, AUTHORITIES[0].certificate, ROOT.certificate)
    assert scan_signed_data(receiver.send(next(clock))).header.inline_p2pcd_request == ()


def test_station_without_any_authority_learns_both_from_two_neighbours() -> None:
    neighbours = [Station(authority) for authority in AUTHORITIES]
    listener = Station(AUTHORITIES[0], knows_own=False)
    clock = times()
    for _ in range(6):
        for station in (*neighbours, listener):
            now_us = next(clock)
            packet = station.send(now_us)
            for other in (*neighbours, listener):
                if other is not station:
                    other.receive(packet, now_us)
    for authority in AUTHORITIES:
        assert listener.trust.issuer(authority.certificate.hashed_id8) is not None
    for neighbour in neighbours:
        now_us = next(clock)
        assert listener.receive(neighbour.send(now_us), now_us)[0].accepted


def inclusions(policy: CertificateInclusion, count: int) -> list[bool]:
    station = Station(AUTHORITIES[0], policy)
    clock = times()
    return [station.distribution.next_cam(next(clock)).certificate for _ in range(count)]


def test_certificate_is_sent_once_a_second_always_or_never() -> None:
    assert inclusions(CertificateInclusion.ETSI, 21) == [n % 10 == 0 for n in range(21)]
    assert all(inclusions(CertificateInclusion.ALWAYS, 21))
    assert not any(inclusions(CertificateInclusion.NEVER, 21))


def quiet_station(policy: CertificateInclusion = CertificateInclusion.ETSI) -> Station:
    """A station that has just sent its certificate and knows both authorities."""
    station = Station(AUTHORITIES[0], policy)
    station.trust.add(AUTHORITIES[1].certificate)
    station.send(NOW_US)
    return station


def test_new_neighbour_gets_the_certificate_at_once_and_the_second_starts_again() -> None:
    station, neighbour = quiet_station(), ticket(AUTHORITIES[1])
    station.receive(signed_cam(neighbour), NOW_US)
    sent = [has_certificate(station.send(NOW_US + 550_000 + n * STEP_US)) for n in range(11)]
    assert sent == [True, *[False] * 9, True]
    station.receive(signed_cam(neighbour, NOW_US + 1), NOW_US)
    assert not has_certificate(station.send(NOW_US + 1_650_000))


def test_unknown_digest_is_a_new_neighbour() -> None:
    station = quiet_station()
    station.receive(signed_cam(ticket(AUTHORITIES[1]), digest=True), NOW_US)
    assert has_certificate(station.send(NOW_US + STEP_US))


def known_neighbour(station: Station) -> Holder:
    neighbour = ticket(AUTHORITIES[1])
    station.trust.add(neighbour.certificate)
    return neighbour


@pytest.mark.parametrize("policy", [CertificateInclusion.ETSI, CertificateInclusion.NEVER])
def test_request_for_the_own_ticket_is_answered_with_the_next_cam(policy: CertificateInclusion) -> None:
    station = quiet_station(policy)
    hashed_id3 = station.holder.certificate.hashed_id3
    station.receive(signed_cam(known_neighbour(station), inline_p2pcd_request=(hashed_id3,)), NOW_US)
    packets = [station.send(NOW_US + n * STEP_US) for n in (1, 2)]
    assert [has_certificate(p) for p in packets] == [policy is CertificateInclusion.ETSI, False]


def test_request_for_an_authority_is_answered_once() -> None:
    station = quiet_station()
    wanted = AUTHORITIES[1].certificate
    request = signed_cam(known_neighbour(station), inline_p2pcd_request=(wanted.hashed_id3, b"xyz"))
    station.receive(request, NOW_US)
    answers = [scan_signed_data(station.send(NOW_US + n * STEP_US)).header for n in (1, 2)]
    assert [header.requested_certificate for header in answers] == [wanted.octets, None]


def test_answer_waits_for_a_cam_without_certificate() -> None:
    station = quiet_station()
    wanted = AUTHORITIES[1].certificate
    assert not has_certificate(station.send(NOW_US + STEP_US))
    station.receive(signed_cam(known_neighbour(station), inline_p2pcd_request=(wanted.hashed_id3,)), NOW_US)
    packets = [scan_signed_data(station.send(NOW_US + 1_000_000 + n)) for n in (0, 1)]
    assert [bool(data.certificates) for data in packets] == [True, False]
    assert [data.header.requested_certificate for data in packets] == [None, wanted.octets]


def test_station_that_sends_once_a_second_answers_between_its_certificates() -> None:
    """Its own certificate is due with each CAM, and requests come all the time."""
    station = quiet_station()
    wanted, neighbour = AUTHORITIES[1].certificate, known_neighbour(station)
    packets = []
    for second in range(1, 7):
        station.receive(signed_cam(neighbour, NOW_US + second, inline_p2pcd_request=(wanted.hashed_id3,)), NOW_US)
        packets.append(scan_signed_data(station.send(NOW_US + second * 1_000_000)))
    assert [bool(data.certificates) for data in packets] == [False, True] * 3
    assert [data.header.requested_certificate for data in packets] == [wanted.octets, None] * 3


def test_answer_of_another_station_suppresses_the_own_one() -> None:
    station = quiet_station()
    wanted = AUTHORITIES[1].certificate
    neighbour = known_neighbour(station)
    station.receive(signed_cam(neighbour, inline_p2pcd_request=(wanted.hashed_id3,)), NOW_US)
    station.receive(signed_cam(neighbour, NOW_US + 1, requested_certificate=wanted.octets), NOW_US)
    assert scan_signed_data(station.send(NOW_US + STEP_US)).header.requested_certificate is None


def test_rejected_packets_and_other_messages_request_nothing() -> None:
    station = quiet_station()
    neighbour = known_neighbour(station)
    hashed_id3 = station.holder.certificate.hashed_id3
    station.receive(signed_cam(neighbour, NOW_US - 5_000_000, inline_p2pcd_request=(hashed_id3,)), NOW_US)
    station.receive(signed(neighbour, Header(137, NOW_US, inline_p2pcd_request=(hashed_id3,))), NOW_US)
    assert not has_certificate(station.send(NOW_US + STEP_US))


def test_denm_of_an_unknown_authority_leads_to_a_request_too() -> None:
    station = quiet_station()
    authority = ticket_authority(ROOT)
    station.receive(signed_denm(ticket(authority)), NOW_US)
    included = station.distribution.next_cam(NOW_US + STEP_US)
    assert included.inline_p2pcd_request == (authority.certificate.hashed_id3,)


def test_requests_are_bounded() -> None:
    station = quiet_station()
    for number in range(20):
        station.receive(signed_cam(ticket(AUTHORITIES[0]), NOW_US + number, digest=True), NOW_US)
    assert len(station.distribution.next_cam(NOW_US).inline_p2pcd_request) == 8


@pytest.mark.parametrize("policy", CertificateInclusion)
def test_request_for_an_authority_is_answered_whatever_the_policy(policy: CertificateInclusion) -> None:
    station = quiet_station(policy)
    wanted = AUTHORITIES[1].certificate
    station.receive(signed_cam(known_neighbour(station), inline_p2pcd_request=(wanted.hashed_id3,)), NOW_US)
    packets = [scan_signed_data(station.send(NOW_US + n * STEP_US)) for n in (1, 2)]
    assert [data.header.requested_certificate for data in packets] == [wanted.octets, None]
    always = policy in (CertificateInclusion.ALWAYS, CertificateInclusion.CONGESTION)  # the channel is free
    assert [bool(data.certificates) for data in packets] == [False, always]


def test_several_authorities_are_answered_between_the_own_certificates() -> None:
    station = quiet_station(CertificateInclusion.ALWAYS)
    wanted = [authority.certificate for authority in AUTHORITIES]
    request = signed_cam(known_neighbour(station), inline_p2pcd_request=tuple(one.hashed_id3 for one in wanted))
    station.receive(request, NOW_US)
    included = [station.distribution.next_cam(NOW_US + n * STEP_US) for n in range(1, 5)]
    assert [one.requested_certificate for one in included] == [wanted[0].octets, None, wanted[1].octets, None]
    assert [one.certificate for one in included] == [False, True, False, True]


def with_certificate(station: Station, channel_ratio: float, count: int) -> list[bool]:
    """Which of the next CAMs include the certificate at this channel busy ratio."""
    times_us = (NOW_US + number * STEP_US for number in range(1, count + 1))
    return [station.distribution.next_cam(time_us, channel_ratio).certificate for time_us in times_us]


@pytest.mark.parametrize(("channel_ratio", "omitted"), [(0.0, 0), (0.06, 1), (0.3, 5), (0.6, 10), (1.0, 10)])
def test_certificates_are_omitted_the_more_often_the_busier_the_channel(channel_ratio: float, omitted: int) -> None:
    station = quiet_station(CertificateInclusion.CONGESTION)
    assert with_certificate(station, channel_ratio, 66) == 66 // (omitted + 1) * [*[False] * omitted, True]


def test_certificate_follows_the_channel_busy_ratio_as_it_changes() -> None:
    station = quiet_station(CertificateInclusion.CONGESTION)
    assert with_certificate(station, 1.0, 3) == [False] * 3
    assert with_certificate(station, 0.18, 5) == [True, False, False, False, True]  # 3 omitted at 0.18
    assert with_certificate(station, 0.0, 2) == [True, True]


@pytest.mark.parametrize("cause", ["request for the ticket", "new neighbour", "unknown digest"])
def test_certificate_comes_at_once_on_a_busy_channel_where_it_is_needed(cause: str) -> None:
    station = quiet_station(CertificateInclusion.CONGESTION)
    assert with_certificate(station, 1.0, 2) == [False] * 2
    if cause == "request for the ticket":
        hashed_id3 = station.holder.certificate.hashed_id3
        station.receive(signed_cam(known_neighbour(station), inline_p2pcd_request=(hashed_id3,)), NOW_US)
    else:
        station.receive(signed_cam(ticket(AUTHORITIES[1]), digest=cause == "unknown digest"), NOW_US)
    assert with_certificate(station, 1.0, 11) == [True, *[False] * 10]


def test_own_certificate_waits_for_the_answer_on_a_busy_channel() -> None:
    station = quiet_station(CertificateInclusion.CONGESTION)
    requests = (station.holder.certificate.hashed_id3, AUTHORITIES[1].certificate.hashed_id3)
    station.receive(signed_cam(known_neighbour(station), inline_p2pcd_request=requests), NOW_US)
    included = [station.distribution.next_cam(NOW_US + n * STEP_US, 1.0) for n in range(1, 4)]
    assert [one.requested_certificate for one in included] == [AUTHORITIES[1].certificate.octets, None, None]
    assert [one.certificate for one in included] == [False, True, False]


def test_station_that_never_sends_its_certificate_still_requests_those_of_others() -> None:
    station = quiet_station(CertificateInclusion.NEVER)
    neighbour = ticket(AUTHORITIES[1])
    station.receive(signed_cam(neighbour, digest=True), NOW_US)
    assert station.distribution.next_cam(NOW_US).inline_p2pcd_request == (neighbour.certificate.hashed_id3,)


def test_known_certificate_is_not_requested() -> None:
    station = quiet_station()
    neighbour = ticket(AUTHORITIES[1])
    station.receive(signed_cam(neighbour, digest=True), NOW_US)
    station.receive(signed_cam(neighbour, NOW_US + 1), NOW_US)
    assert station.distribution.next_cam(NOW_US).inline_p2pcd_request == ()


def test_changed_ticket_is_sent_at_once_and_nothing_heard_before_is_requested_or_answered() -> None:
    """A request or an answer that waited would link the new ticket to the old one."""
    station, new = quiet_station(), ticket(AUTHORITIES[0])
    header = Header(CAM_PSID, NOW_US, inline_p2pcd_request=(AUTHORITIES[0].certificate.hashed_id3,))
    station.receive(signed(known_neighbour(station), header), NOW_US)
    station.receive(signed_cam(ticket(AUTHORITIES[1]), NOW_US, digest=True), NOW_US)
    station.distribution.change_ticket(new.certificate)
    included = [station.distribution.next_cam(NOW_US + number * STEP_US) for number in range(2)]
    assert [one.certificate for one in included] == [True, False]
    assert [(one.inline_p2pcd_request, one.requested_certificate) for one in included] == [((), None)] * 2
    station.receive(
        signed_cam(known_neighbour(station), NOW_US + 1, inline_p2pcd_request=(new.certificate.hashed_id3,)), NOW_US
    )
    assert station.distribution.next_cam(NOW_US + 2 * STEP_US).certificate, "requests for the new ticket are answered"
