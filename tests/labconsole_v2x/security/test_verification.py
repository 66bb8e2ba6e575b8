"""The receiver's path with real chains and signatures: each reason, both orders of checks, time windows, bad input."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from labconsole_v2x.messages.cam import SpecialVehicle
from labconsole_v2x.messages.geonetworking import parse_packet
from labconsole_v2x.messages.its_time import (
    GENERATION_DELTA_TIME_MODULUS_MS,
    GN_TIMESTAMP_MODULUS_MS,
    full_time,
    generation_delta_time,
    gn_timestamp,
)
from labconsole_v2x.security.encoding import YEAR_S, encode_octets
from labconsole_v2x.security.keys import CURVES, SoftwareKey
from labconsole_v2x.security.scanning import scan_certificate, scan_signed_data
from labconsole_v2x.security.structures import (
    CAM_PSID,
    Curve,
    Header,
    Permission,
    Point,
    PointForm,
    PublicKey,
    Validity,
)
from labconsole_v2x.security.trust import TrustStore
from labconsole_v2x.security.verification import CheckOrder, CheckSettings, Outcome, Reason, Verifier
from tests.helpers.vectors import recorded
from tests.labconsole_v2x.security.lab_certificates import (
    CAR,
    CARAVAN,
    GRAZ,
    HOUR_S,
    LATITUDE,
    LONGITUDE,
    NOW_S,
    NOW_US,
    PERMISSIONS,
    Holder,
    cam_payload,
    certify,
    root_authority,
    signed,
    signed_cam,
    signed_denm,
    spoiled,
    ticket,
    ticket_authority,
)

ROOT = root_authority()
AUTHORITY = ticket_authority(ROOT)
TICKET = ticket(AUTHORITY)
LOCAL_TICKET = ticket(AUTHORITY, region=GRAZ)
HERE = (LATITUDE, LONGITUDE, 0)
FAR_AWAY = (LATITUDE + 10_000_000, LONGITUDE, 0)


def receiver(order: CheckOrder = CheckOrder.CHEAP_FIRST, *known: Holder, **settings: Any) -> Verifier:
    """A receiver that trusts the root and knows the authority, or `known` instead."""
    trust = TrustStore()
    trust.add_root(ROOT.certificate)
    for holder in known or (AUTHORITY,):
        trust.add(holder.certificate)
    return Verifier(trust, CheckSettings(order=order, **settings))


def on_other_curve(packet: bytes) -> bytes:
    """The packet with a signature of an unknown choice."""
    at = len(packet) - 66
    assert packet[at] == 0x80
    return packet[:at] + b"\x84" + packet[at + 1 :]


def later(start_s: int, end_s: int) -> Holder:
    return ticket(AUTHORITY, validity=Validity(NOW_S + start_s, NOW_S + end_s))


PACKETS: dict[Reason, tuple[Callable[[], bytes], dict[str, Any]]] = {
    Reason.ACCEPTED: (lambda: signed_cam(TICKET), {}),
    Reason.MALFORMED: (lambda: signed_cam(TICKET)[:-1], {}),
    Reason.UNSECURED: (lambda: b"\3\x80" + encode_octets(cam_payload()), {}),
    Reason.UNSUPPORTED_VERSION: (lambda: b"\2" + signed_cam(TICKET)[1:], {}),
    Reason.UNSUPPORTED_CURVE: (lambda: on_other_curve(signed_cam(TICKET)), {}),
    Reason.PROFILE_BROKEN: (lambda: signed_cam(TICKET, expiry_time=NOW_US + 1), {}),
    Reason.TOO_OLD: (lambda: signed_cam(TICKET, NOW_US - 2_000_001), {}),
    Reason.IN_FUTURE: (lambda: signed_cam(TICKET, NOW_US + 200_001), {}),
    Reason.MESSAGE_EXPIRED: (lambda: signed(TICKET, Header(137, NOW_US, expiry_time=NOW_US)), {}),
    Reason.UNKNOWN_ITS_AID: (lambda: signed(TICKET, Header(138, NOW_US)), {}),
    Reason.NOT_YET_VALID: (lambda: signed_cam(later(1, HOUR_S)), {}),
    Reason.EXPIRED: (lambda: signed_cam(later(-HOUR_S, 0)), {}),
    Reason.OUTSIDE_REGION: (lambda: signed_denm(LOCAL_TICKET, location=FAR_AWAY), {}),
    Reason.UNKNOWN_SIGNER: (lambda: signed_cam(TICKET, digest=True), {}),
    Reason.SIGNATURE_INVALID: (lambda: spoiled(signed_cam(TICKET)), {}),
    Reason.CHAIN_INVALID: (lambda: signed_cam(ticket(AUTHORITY, permissions=(*PERMISSIONS, Permission(139)))), {}),
    Reason.UNKNOWN_ISSUER: (lambda: signed_cam(ticket(ticket_authority(ROOT))), {}),
    Reason.CONTENT_MALFORMED: (lambda: signed(TICKET, Header(CAM_PSID, NOW_US), cam_payload()[:-1]), {}),
    Reason.PERMISSION_MISSING: (
        lambda: signed(
            TICKET,
            Header(CAM_PSID, NOW_US),
            cam_payload(CAR._replace(special=SpecialVehicle("rescueContainer", {"lightBarSirenInUse": (b"\x80", 2)}))),
        ),
        {},
    ),
}


@pytest.mark.parametrize("order", CheckOrder)
@pytest.mark.parametrize("reason", PACKETS)
def test_packet_has_its_reason(reason: Reason, order: CheckOrder) -> None:
    packet, settings = PACKETS[reason]
    assert receiver(order, **settings).verify(packet(), NOW_US).reason is reason


def test_every_reason_is_covered() -> None:
    assert {*PACKETS, Reason.DUPLICATE, Reason.REVOKED} == set(Reason)


@pytest.mark.parametrize("order", CheckOrder)
@pytest.mark.parametrize("distrusted", [ROOT, AUTHORITY, TICKET])
def test_packets_below_a_distrusted_certificate_are_rejected_as_revoked(order: CheckOrder, distrusted: Holder) -> None:
    verifier = receiver(order)
    assert verifier.verify(signed_cam(TICKET), NOW_US).accepted
    verifier.trust.distrust(distrusted.certificate.hashed_id8)
    for digest in (True, False):
        outcome = verifier.verify(signed_cam(TICKET, NOW_US + 1, digest=digest), NOW_US + 1)
        assert (outcome.reason, outcome.missing) == (Reason.REVOKED, None)
    other = verifier.verify(signed_cam(ticket(AUTHORITY)), NOW_US).reason
    assert other is (Reason.ACCEPTED if distrusted is TICKET else Reason.REVOKED)


def test_accepted_outcome_has_chain_header_payload_and_message() -> None:
    outcome = receiver().verify(signed_cam(TICKET), NOW_US)
    assert outcome.accepted
    assert outcome.signature_valid
    assert outcome.signer == TICKET.certificate
    assert outcome.chain == (TICKET.certificate, AUTHORITY.certificate, ROOT.certificate)
    assert outcome.header == Header(CAM_PSID, NOW_US)
    assert outcome.payload == cam_payload()
    assert outcome.message == CAR


def test_clock_gives_the_time_of_reception() -> None:
    assert receiver().verify(signed_cam(TICKET)).reason is not Reason.ACCEPTED
    trust = receiver().trust
    assert Verifier(trust, clock=lambda: NOW_US).verify(signed_cam(TICKET)).accepted


@pytest.mark.parametrize("order", CheckOrder)
def test_duplicate_is_rejected_even_with_the_other_s_of_its_signature(order: CheckOrder) -> None:
    packet = signed_cam(TICKET)
    s = int.from_bytes(packet[-32:], "big")
    twin = packet[:-32] + (CURVES[Curve.P256].group_order - s).to_bytes(32, "big")
    verifier = receiver(order)
    assert verifier.verify(packet, NOW_US).accepted
    assert verifier.verify(packet, NOW_US).reason is Reason.DUPLICATE
    assert verifier.verify(twin, NOW_US).reason is Reason.DUPLICATE
    assert receiver(order).verify(twin, NOW_US).accepted


def test_rejected_packet_does_not_make_the_right_one_a_duplicate() -> None:
    verifier = receiver()
    packet = signed_cam(TICKET)
    assert verifier.verify(spoiled(packet), NOW_US).reason is Reason.SIGNATURE_INVALID
    assert verifier.verify(packet, NOW_US).accepted


def test_duplicate_window_is_bounded() -> None:
    verifier = receiver(duplicate_window=2)
    packets = [signed_cam(TICKET, NOW_US + number) for number in range(3)]
    assert [verifier.verify(packet, NOW_US).accepted for packet in packets] == [True] * 3
    reasons = [verifier.verify(packet, NOW_US).reason for packet in reversed(packets)]
    assert reasons == [Reason.DUPLICATE, Reason.DUPLICATE, Reason.ACCEPTED]


def test_order_decides_which_fault_is_reported() -> None:
    packet = signed_cam(TICKET, NOW_US - 3_000_000, expiry_time=NOW_US)
    cheap = receiver(CheckOrder.CHEAP_FIRST).verify(spoiled(packet), NOW_US)
    assert (cheap.reason, cheap.signature_valid) == (Reason.PROFILE_BROKEN, None)
    thorough = receiver(CheckOrder.SIGNATURE_FIRST)
    assert thorough.verify(spoiled(packet), NOW_US).reason is Reason.SIGNATURE_INVALID
    outcome = thorough.verify(packet, NOW_US)
    assert (outcome.reason, outcome.signature_valid) == (Reason.PROFILE_BROKEN, True)
    assert outcome.further == (Reason.TOO_OLD, Reason.MESSAGE_EXPIRED)
    assert outcome.profile_faults == ("expiryTime is present",)


def test_signature_first_reports_what_else_is_wrong_where_the_issuer_is_unknown() -> None:
    packet = signed_cam(ticket(ticket_authority(ROOT)), NOW_US - 3_000_000)
    outcome = receiver(CheckOrder.SIGNATURE_FIRST).verify(packet, NOW_US)
    assert (outcome.reason, outcome.signature_valid, outcome.chain) == (Reason.UNKNOWN_ISSUER, True, ())
    assert outcome.further == (Reason.TOO_OLD,)


@pytest.mark.parametrize(
    ("sign", "past_us"), [(signed_cam, 2_000_000), (signed_denm, 600_000_000)], ids=["CAM", "DENM"]
)
def test_acceptance_window_includes_both_limits(sign: Callable[[Holder, int], bytes], past_us: int) -> None:
    def reason(time_us: int) -> Reason:
        return receiver().verify(sign(TICKET, time_us), NOW_US).reason

    assert [reason(NOW_US - past_us - late) for late in (0, 1)] == [Reason.ACCEPTED, Reason.TOO_OLD]
    assert [reason(NOW_US + 200_000 + early) for early in (0, 1)] == [Reason.ACCEPTED, Reason.IN_FUTURE]


@pytest.mark.parametrize(
    ("shortened", "modulus_ms"),
    [(gn_timestamp, GN_TIMESTAMP_MODULUS_MS), (generation_delta_time, GENERATION_DELTA_TIME_MODULUS_MS)],
)
def test_packets_around_a_wrap_of_message_times_are_accepted(shortened: Callable[[int], int], modulus_ms: int) -> None:
    wrap_us = NOW_US - NOW_US % (modulus_ms * 1000)
    validity = Validity(wrap_us // 1_000_000 - 1, wrap_us // 1_000_000 + 1)
    years = Validity(NOW_S - 2 * YEAR_S, NOW_S + 2 * YEAR_S)
    root = certify(None, validity=years, issue_permissions=ROOT.certificate.issue_permissions)
    authority = certify(root, validity=years, issue_permissions=AUTHORITY.certificate.issue_permissions)
    trust = TrustStore()
    trust.add_root(root.certificate)
    trust.add(authority.certificate)
    verifier = Verifier(trust)
    car = ticket(authority, validity=validity)
    for time_us in (wrap_us - 1000, wrap_us):
        message = CAR._replace(generation_delta_time=generation_delta_time(time_us))
        outcome = verifier.verify(signed(car, Header(CAM_PSID, time_us), cam_payload(message)), wrap_us + 5000)
        assert outcome.accepted
        assert full_time(shortened(time_us), modulus_ms, wrap_us + 5000) == time_us
    assert shortened(wrap_us) == 0


def test_region_of_a_ticket_limits_the_position_in_a_cam() -> None:
    inside, outside = (signed(LOCAL_TICKET, Header(CAM_PSID, NOW_US), cam_payload(cam)) for cam in (CAR, CARAVAN))
    assert receiver().verify(inside, NOW_US).accepted
    assert receiver().verify(outside, NOW_US).reason is Reason.OUTSIDE_REGION
    assert receiver(decode_content=False).verify(outside, NOW_US).accepted


def test_ticket_without_region_has_that_of_its_authority() -> None:
    local = ticket_authority(ROOT, region=GRAZ)
    verifier, car = receiver(CheckOrder.CHEAP_FIRST, local), ticket(local)
    for location, reason in ((FAR_AWAY, Reason.OUTSIDE_REGION), (HERE, Reason.ACCEPTED), (FAR_AWAY, None)):
        outcome = verifier.verify(signed_denm(car, location=location), NOW_US)
        assert outcome.reason is (reason or Reason.OUTSIDE_REGION)


@pytest.mark.parametrize("digest", [False, True])
@pytest.mark.parametrize("curve", Curve)
def test_chains_mix_curves_and_hashes(curve: Curve, digest: bool) -> None:
    root = root_authority(Curve.BRAINPOOL_P384R1)
    authority = ticket_authority(root, curve)
    trust = TrustStore()
    trust.add_root(root.certificate)
    for ticket_curve in Curve:
        car = ticket(authority, ticket_curve)
        assert trust.add(authority.certificate) is None
        if digest:
            assert trust.add(car.certificate) is None
        assert Verifier(trust).verify(signed_cam(car, digest=digest), NOW_US).accepted


def test_hash_other_than_that_of_the_signers_curve_is_refused() -> None:
    outcome = receiver().verify(signed(TICKET, Header(CAM_PSID, NOW_US), hash_name="sha384"), NOW_US)
    assert outcome.reason is Reason.SIGNATURE_INVALID


def test_r_as_compressed_point_is_accepted() -> None:
    key = SoftwareKey.generate(compressed_r=True)
    car = ticket(AUTHORITY, verification_key=key.public_key)
    packet = signed_cam(Holder(car.certificate, key))
    assert scan_signed_data(packet).signature.r.form is not PointForm.X_ONLY
    assert receiver().verify(packet, NOW_US).accepted


def test_other_encoding_of_a_stored_certificate_is_the_same_signer() -> None:
    certificate = TICKET.certificate
    at = len(certificate.octets) - 65
    assert certificate.octets[at] == 0x80  # R as x only
    verifier = receiver(CheckOrder.CHEAP_FIRST, AUTHORITY, TICKET)
    stored = len(verifier.trust)
    octets = certificate.octets[:at] + b"\x82" + certificate.octets[at + 1 :]
    outcome = verifier.verify(signed(TICKET, Header(CAM_PSID, NOW_US), certificates=(octets,)), NOW_US)
    assert (outcome.reason, outcome.new_signer) == (Reason.ACCEPTED, False)
    assert len(verifier.trust) == stored


def test_public_key_that_is_not_a_point_is_refused() -> None:
    broken = PublicKey(Curve.P256, Point(PointForm.COMPRESSED_Y0, b"\xff" * 32))
    outcome = receiver().verify(signed_cam(ticket(AUTHORITY, verification_key=broken)), NOW_US)
    assert outcome.reason is Reason.CHAIN_INVALID
    assert "not a point" in outcome.detail


def test_signer_self_and_two_certificates_break_the_profile() -> None:
    octets = TICKET.certificate.octets
    for certificates in ((), (octets, AUTHORITY.certificate.octets)):
        packet = signed(TICKET, Header(CAM_PSID, NOW_US), certificates=certificates)
        for order in CheckOrder:
            assert receiver(order).verify(packet, NOW_US).reason is Reason.PROFILE_BROKEN


def test_malformed_certificate_of_the_signer_is_reported() -> None:
    octets = TICKET.certificate.octets
    packet = signed(TICKET, Header(CAM_PSID, NOW_US), certificates=(octets[:1] + b"\4" + octets[2:],))
    assert receiver().verify(packet, NOW_US).reason in (Reason.UNSUPPORTED_VERSION, Reason.MALFORMED)


def verify_all(verifier: Verifier, packets: list[bytes]) -> list[Outcome]:
    return [verifier.verify(packet, NOW_US) for packet in packets]


def test_packets_wait_for_ticket_and_authority_and_are_accepted_then() -> None:
    authority = ticket_authority(ROOT)
    car = ticket(authority)
    verifier = receiver()
    early = [signed_cam(car, digest=True), signed_cam(car, NOW_US + 1), signed_cam(car, NOW_US + 2, digest=True)]
    outcomes = verify_all(verifier, early)
    assert [o.reason for o in outcomes] == [Reason.UNKNOWN_SIGNER, Reason.UNKNOWN_ISSUER, Reason.UNKNOWN_ISSUER]
    assert [o.missing for o in outcomes] == [car.certificate.hashed_id8] + [authority.certificate.hashed_id8] * 2
    assert [o.new_signer for o in outcomes] == [False, True, False]
    assert verifier.trust.released() == []
    answer = signed_cam(TICKET, requested_certificate=authority.certificate.octets)
    assert verifier.verify(answer, NOW_US).accepted
    released = [packet.octets for packet in verifier.trust.released()]
    assert released == early
    assert all(outcome.accepted for outcome in verify_all(verifier, released))
    assert verifier.trust.released() == []


def test_authority_is_learnt_from_a_packet_of_its_own_unknown_ticket() -> None:
    authority = ticket_authority(ROOT)
    packet = signed_cam(ticket(authority), requested_certificate=authority.certificate.octets)
    assert receiver().verify(packet, NOW_US).accepted


def test_nothing_is_learnt_from_a_packet_that_a_cheap_check_rejects() -> None:
    """Else a sender with public data alone would cost the receiver a verification a packet."""
    verifier, stored = receiver(), ticket_authority(ROOT)
    packet = signed_cam(TICKET, NOW_US - HOUR_S * 1_000_000, requested_certificate=stored.certificate.octets)
    assert verifier.verify(packet, NOW_US).reason is Reason.TOO_OLD
    assert verifier.trust.find(stored.certificate.hashed_id8) is None


def test_authority_of_an_unknown_root_is_not_learnt() -> None:
    verifier = receiver()
    stored = len(verifier.trust)
    foreign = ticket_authority(root_authority())
    for octets in (foreign.certificate.octets, b"garbage"):
        verifier.verify(signed_cam(TICKET, requested_certificate=octets), NOW_US)
    assert len(verifier.trust) == stored + 1  # the ticket


def test_certificate_of_a_packet_with_invalid_signature_is_not_stored() -> None:
    verifier = receiver()
    stored = len(verifier.trust)
    assert verifier.verify(spoiled(signed_cam(ticket(AUTHORITY))), NOW_US).reason is Reason.SIGNATURE_INVALID
    assert verifier.verify(spoiled(signed_cam(ticket(root_authority()))), NOW_US).reason is Reason.SIGNATURE_INVALID
    assert len(verifier.trust) == stored


@pytest.mark.parametrize("order", CheckOrder)
def test_mutated_packets_never_raise(order: CheckOrder) -> None:
    random = Random(13)
    verifier = receiver(order)
    aa = AUTHORITY.certificate.octets
    originals = [
        signed_cam(TICKET),
        signed_cam(TICKET, digest=True),
        signed_denm(TICKET),
        signed_cam(TICKET, inline_p2pcd_request=(b"abc",), requested_certificate=aa),
    ]
    reasons = set()
    for _ in range(2500):
        packet = bytearray(random.choice(originals))
        for _ in range(random.randint(1, 4)):
            packet[random.randrange(len(packet))] = random.randrange(256)
        cut = random.choice((None, None, None, random.randrange(len(packet))))
        reasons.add(verifier.verify(bytes(packet[:cut]), NOW_US).reason)
    assert {Reason.MALFORMED, Reason.SIGNATURE_INVALID, Reason.UNSUPPORTED_VERSION} <= reasons


def test_packets_of_a_production_car_have_valid_signatures_and_an_unknown_issuer() -> None:
    car = scan_certificate(recorded("at_cert"))
    verifier = Verifier(TrustStore())
    for name, reason in (("digest", Reason.UNKNOWN_SIGNER), ("fullcert", Reason.UNKNOWN_ISSUER), ("digest", None)):
        packet = parse_packet(recorded(f"gn_{name}")).secured
        assert packet is not None
        outcome = verifier.verify(packet, scan_signed_data(packet).header.generation_time)
        assert outcome.reason is (reason or Reason.UNKNOWN_ISSUER)
    assert outcome.signature_valid
    assert outcome.signer == car
    assert outcome.missing == car.issuer
