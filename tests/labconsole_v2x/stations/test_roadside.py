"""Messages of a road-side unit: signed under the ITS-AID of their service, verified, and on its port only."""

from __future__ import annotations

from random import Random

import pytest

from labconsole_v2x.messages.btp import encode_btp_b
from labconsole_v2x.messages.geonetworking import Area, Kind, Shape, encode_shb, parse_packet, parse_unsecured
from labconsole_v2x.security.issuing import ROADSIDE_PERMISSIONS, ROADSIDE_RANGES, TICKET_PERMISSIONS, LabPki
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.scanning import scan_signed_data
from labconsole_v2x.security.signing import PacketSigner
from labconsole_v2x.security.structures import Certificate, Header, Permission
from labconsole_v2x.security.trust import TrustStore
from labconsole_v2x.security.verification import Outcome, Reason, Verifier
from labconsole_v2x.stations.receiving import REASONS, ReceivedFrame, VerifiedCheck
from labconsole_v2x.stations.roadside import RoadsideMessage, RoadsideSender, RoadsideService, read_roadside_message
from labconsole_v2x.stations.routes import CENTRE, Movement
from labconsole_v2x.stations.sending import Identity
from tests.labconsole_v2x.security.lab_certificates import NOW_S, NOW_US, VECTOR, spoiled
from tests.labconsole_v2x.stations.receivers import BASIC

PLACE = Movement(0, 0, *CENTRE)
AREA = Area(Shape.CIRCLE, *CENTRE, 500)
CONTENT = bytes(range(60))


@pytest.fixture(scope="module")
def pki() -> LabPki:
    return LabPki.create(NOW_S - 3600, further_ranges=ROADSIDE_RANGES)


@pytest.fixture
def clock() -> list[int]:
    return [NOW_US]


def receiver(pki: LabPki, clock: list[int]) -> Verifier:
    trust = TrustStore()
    trust.add_root(pki.root)
    assert trust.add(pki.aa) is None
    return Verifier(trust, clock=lambda: clock[0])


def unit(pki: LabPki, clock: list[int], permissions: tuple[Permission, ...] = ROADSIDE_PERMISSIONS) -> RoadsideSender:
    key = SoftwareKey.generate()
    ticket = pki.ticket(key.public_key, NOW_S - 60, permissions=permissions)
    return RoadsideSender(Identity.of(ticket.hashed_id8), ticket, key, PLACE, clock=lambda: clock[0])


def secured_of(frame: bytes) -> bytes:
    packet = parse_packet(frame[14:])
    assert packet.secured is not None
    return packet.secured


def verified(verifier: Verifier, frame: bytes) -> tuple[Outcome, RoadsideMessage | None]:
    outcome = verifier.verify(secured_of(frame))
    return outcome, read_roadside_message(outcome)


def signed(ticket: Certificate, key: SoftwareKey, message: bytes) -> bytes:
    return PacketSigner(ticket, key).sign(
        encode_shb(VECTOR, message), Header(540_801, NOW_US), include_certificate=True
    )


def test_ports_and_its_aids_are_those_of_the_registries() -> None:
    assert {service.name: (service.psid, int(service.port)) for service in RoadsideService} == {
        "SPATEM": (137, 2004),
        "MAPEM": (138, 2003),
        "IVIM": (139, 2006),
        "SAEM": (0x084081, 2005),
    }


@pytest.mark.parametrize("service", RoadsideService)
@pytest.mark.parametrize("area", [None, AREA], ids=["SHB", "GBC"])
def test_message_of_each_service_is_accepted_and_its_content_arrives(
    pki: LabPki, clock: list[int], service: RoadsideService, area: Area | None
) -> None:
    sender, verifier = unit(pki, clock), receiver(pki, clock)
    sent = sender.create(service, CONTENT, area)
    outcome, message = verified(verifier, sent.frame)
    assert (outcome.reason, outcome.signature_valid, outcome.psid) == (Reason.ACCEPTED, True, service.psid)
    assert outcome.signer is not None and outcome.signer.octets == sender.ticket.octets
    assert message == RoadsideMessage(service, CONTENT)
    packet, inner = parse_packet(sent.frame[14:]), parse_unsecured(outcome.payload or b"")
    assert (packet.basic.remaining_hops, inner.kind) == ((1, Kind.SHB) if area is None else (10, Kind.GBC))
    assert (inner.area, inner.mobile, inner.sender.address.mac) == (area, False, sender.identity.mac)
    assert (inner.sender.latitude, inner.sender.longitude) == CENTRE
    assert sent.identity == outcome.generation_time == NOW_US


def test_ticket_is_sent_each_second_and_its_digest_in_between(pki: LabPki, clock: list[int]) -> None:
    sender, verifier = unit(pki, clock), receiver(pki, clock)
    sent = []
    for at_us in (0, 0, 500_000, 999_999, 1_000_000, 1_900_000, 2_000_000):
        clock[0] = NOW_US + at_us
        sent.append(sender.create(RoadsideService.SPATEM, CONTENT))
        assert verified(verifier, sent[-1].frame)[0].accepted
        assert (scan_signed_data(secured_of(sent[-1].frame)).digest is None) is sent[-1].with_certificate
    assert [each.with_certificate for each in sent] == [True, False, False, False, True, False, True]
    assert len({each.identity for each in sent}) == len(sent)


def test_altered_replayed_old_and_unknown_packets_are_refused_by_reason(pki: LabPki, clock: list[int]) -> None:
    sender, verifier = unit(pki, clock), receiver(pki, clock)
    frame = sender.create(RoadsideService.SAEM, CONTENT).frame
    reasons = []
    for octets in (spoiled(frame), frame.replace(CONTENT, CONTENT[::-1]), frame, frame):
        outcome, message = verified(verifier, octets)
        reasons.append(outcome.reason)
        assert (message is not None) is outcome.accepted
    assert reasons == [Reason.SIGNATURE_INVALID, Reason.SIGNATURE_INVALID, Reason.ACCEPTED, Reason.DUPLICATE]
    digest = sender.create(RoadsideService.SAEM, CONTENT).frame
    assert verified(receiver(pki, clock), digest)[0].reason is Reason.UNKNOWN_SIGNER
    clock[0] += 601_000_000
    assert verified(receiver(pki, clock), frame)[0].reason is Reason.TOO_OLD


@pytest.mark.parametrize("service", RoadsideService)
def test_unit_without_the_permission_is_refused(pki: LabPki, clock: list[int], service: RoadsideService) -> None:
    others = tuple(each for each in (*TICKET_PERMISSIONS, *ROADSIDE_PERMISSIONS) if each.psid != service.psid)
    outcome, message = verified(receiver(pki, clock), unit(pki, clock, others).create(service, CONTENT).frame)
    assert (outcome.reason, message) == (Reason.UNKNOWN_ITS_AID, None)


def test_message_on_the_port_of_another_service_is_refused(pki: LabPki, clock: list[int]) -> None:
    """Who may announce services sends signal phases, under its own ITS-AID."""
    key = SoftwareKey.generate()
    ticket = pki.ticket(key.public_key, NOW_S - 60, permissions=ROADSIDE_PERMISSIONS)
    outcome = receiver(pki, clock).verify(signed(ticket, key, encode_btp_b(2004, CONTENT)))
    assert outcome.accepted
    assert read_roadside_message(outcome) is None
    assert (outcome.reason, outcome.detail) == (Reason.PERMISSION_MISSING, "port 2004 under the ITS-AID of SAEM")


@pytest.mark.parametrize(("port", "reason"), [(2005, Reason.ACCEPTED), (2004, Reason.PERMISSION_MISSING)])
def test_every_receiver_refuses_it(pki: LabPki, clock: list[int], port: int, reason: Reason) -> None:
    key = SoftwareKey.generate()
    ticket = pki.ticket(key.public_key, NOW_S - 60, permissions=ROADSIDE_PERMISSIONS)
    packet = BASIC + signed(ticket, key, encode_btp_b(port, CONTENT))
    checked = VerifiedCheck(receiver(pki, clock)).check(ReceivedFrame(b"", packet, 0))
    assert REASONS[checked.reason] == reason.value


def test_content_without_headers_is_refused(pki: LabPki, clock: list[int]) -> None:
    random, key = Random(1), SoftwareKey.generate()
    ticket = pki.ticket(key.public_key, NOW_S - 60, permissions=ROADSIDE_PERMISSIONS)
    verifier = receiver(pki, clock)
    for number in range(200):
        payload, header = random.randbytes(random.randrange(1, 40)), Header(540_801, NOW_US + number)
        outcome = verifier.verify(PacketSigner(ticket, key).sign(payload, header, include_certificate=True))
        assert outcome.accepted
        assert read_roadside_message(outcome) is None
        assert outcome.reason in (Reason.CONTENT_MALFORMED, Reason.PERMISSION_MISSING)
