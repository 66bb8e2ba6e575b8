"""Interchange with Vanetza's socktap: each side accepts the other's packets and drops spoiled ones.

Recorded exchanges are judged always, a running socktap where `LABCONSOLE_SOCKTAP` names the program (see README.md).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from labconsole_v2x.messages.cam import Cam
from labconsole_v2x.messages.geonetworking import encode_basic_header
from labconsole_v2x.security.encoding import (
    encode_certificate,
    encode_signature,
    encode_signed_data,
    encode_signer,
    encode_to_be_signed_certificate,
    encode_to_be_signed_data,
)
from labconsole_v2x.security.issuing import LabPki
from labconsole_v2x.security.scanning import scan_certificate, scan_signed_data
from labconsole_v2x.security.structures import CAM_PSID, GN_MANAGEMENT_PSID, Certificate, Curve, Header
from labconsole_v2x.security.verification import CheckSettings, Outcome, Reason, Verifier, its_now
from tests.labconsole_v2x.vanetza.exchange import (
    DAY_S,
    FORMS,
    FORMS_REFUSED_BY_VANETZA,
    VANETZA_CURVES,
    Exchange,
    Form,
    Station,
    awaited,
    recorded_exchanges,
    secured,
    spoiled,
    trust_store,
)
from tests.labconsole_v2x.vanetza.socktap import (
    ACCEPTED,
    DROPPED,
    LATITUDE,
    LONGITUDE,
    STATION_ID,
    Socktap,
    vanetza_now,
)

EXCHANGES = {exchange.name: exchange for exchange in recorded_exchanges()}
CAM_EXCHANGES = [name for name in EXCHANGES if name not in ("requests of certificates", "GeoNetworking beacon")]
PROGRAM = os.environ.get("LABCONSOLE_SOCKTAP", "")
live = pytest.mark.skipif(not PROGRAM, reason="LABCONSOLE_SOCKTAP does not name Vanetza's socktap")
CERTIFICATE = [pytest.param(True, id="certificate"), pytest.param(False, id="digest")]


def judged(verifier: Verifier, packet: bytes) -> Outcome:
    """The outcome of a recorded packet at the time at which it was signed."""
    octets = secured(packet)
    return verifier.verify(octets, scan_signed_data(octets).header.generation_time)


def receiver(exchange: Exchange) -> Verifier:
    """A receiver that knows root and AA of a recorded exchange."""
    return Verifier(trust_store(exchange.root, exchange.authority))


# Recorded packets of socktap


@pytest.mark.parametrize("name", EXCHANGES)
def test_packets_of_socktap_are_accepted(name: str) -> None:
    exchange, verifier = EXCHANGES[name], receiver(EXCHANGES[name])
    outcomes = [judged(verifier, packet) for packet in exchange.from_socktap()]
    assert [outcome.reason for outcome in outcomes] == [Reason.ACCEPTED] * len(outcomes)
    for outcome in outcomes:
        assert outcome.signer == exchange.ticket
        assert outcome.chain == (exchange.ticket, exchange.authority, exchange.root)


@pytest.mark.parametrize("name", CAM_EXCHANGES)
def test_socktap_signed_both_with_the_certificate_and_with_its_canonical_hash(name: str) -> None:
    exchange = EXCHANGES[name]
    data = [scan_signed_data(secured(packet)) for packet in exchange.from_socktap()]
    assert {(part.digest, part.certificates) for part in data} == {
        (None, (exchange.ticket.octets,)),
        (exchange.ticket.hashed_id8, ()),
    }
    assert (exchange.ticket.canonical == exchange.ticket.octets) is not name.startswith("tickets with")


@pytest.mark.parametrize("name", CAM_EXCHANGES)
def test_cams_of_socktap_have_its_station_and_position(name: str) -> None:
    verifier = receiver(EXCHANGES[name])
    for packet in EXCHANGES[name].from_socktap():
        message = judged(verifier, packet).message
        assert isinstance(message, Cam)
        assert (message.station_id, message.position.latitude, message.position.longitude) == (
            STATION_ID,
            LATITUDE,
            LONGITUDE,
        )


def test_beacon_of_socktap_keeps_the_generic_profile() -> None:
    (packet,) = EXCHANGES["GeoNetworking beacon"].from_socktap()
    outcome = judged(receiver(EXCHANGES["GeoNetworking beacon"]), packet)
    assert outcome.header is not None
    assert (outcome.header.psid, outcome.profile_faults) == (GN_MANAGEMENT_PSID, ())


def test_socktap_requests_an_unknown_ticket_by_its_hashed_id3() -> None:
    exchange = EXCHANGES["requests of certificates"]
    (with_certificate,) = exchange.from_console(ACCEPTED)
    car = scan_certificate(scan_signed_data(secured(with_certificate)).certificates[0])
    headers = [scan_signed_data(secured(packet)).header for packet in exchange.from_socktap()]
    assert [header.inline_p2pcd_request for header in headers] == [(), (car.hashed_id3,), ()]


def test_authority_is_learnt_from_the_answer_of_socktap() -> None:
    exchange = EXCHANGES["requests of certificates"]
    verifier = Verifier(trust_store(exchange.root))
    first, _, answer = exchange.from_socktap()
    outcome = judged(verifier, first)
    assert (outcome.reason, outcome.missing) == (Reason.UNKNOWN_ISSUER, exchange.authority.hashed_id8)
    assert judged(verifier, answer).accepted
    assert len(verifier.trust.released()) == 1
    assert judged(verifier, first).accepted


# Recorded packets of socktap, spoiled


def places_of(packet: bytes, exchange: Exchange) -> dict[str, tuple[int, int, Reason]]:
    """Octet, bit and the expected reason of flips in a recorded packet's signed data."""
    data = scan_signed_data(packet)
    header = packet.index(b"\x40\x01\x24", len(data.payload or b""))  # HeaderInfo: generationTime, PSID 36
    signer = header + 11
    places = {
        "protocol version": (0, 0, Reason.UNSUPPORTED_VERSION),
        "hash algorithm": (2, 0, Reason.SIGNATURE_INVALID),
        "payload": (20, 3, Reason.SIGNATURE_INVALID),
        "ITS-AID": (header + 2, 6, Reason.UNKNOWN_ITS_AID),
        "ITS-AID of DENM": (header + 2, 0, Reason.PROFILE_BROKEN),
        "microsecond of the generation time": (header + 10, 0, Reason.SIGNATURE_INVALID),
        "century of the generation time": (header + 3, 0, Reason.IN_FUTURE),
        "r": (len(packet) - 64, 7, Reason.SIGNATURE_INVALID),
        "s": (len(packet) - 1, 0, Reason.SIGNATURE_INVALID),
    }
    if data.digest is not None:
        return places | {"digest of the signer": (signer + 1, 0, Reason.UNKNOWN_SIGNER)}
    certificate = packet.index(exchange.ticket.octets, signer)
    key = packet.index(exchange.ticket.verification_key.point.x, certificate)
    return places | {
        "issuer of the ticket": (certificate + 4, 0, Reason.SIGNATURE_INVALID),
        "key of the ticket": (key + 31, 0, Reason.CHAIN_INVALID),
        "signature of the ticket": (certificate + len(exchange.ticket.octets) - 1, 0, Reason.SIGNATURE_INVALID),
    }


def flipped(octets: bytes, at: int, bit: int) -> bytes:
    """The octets with one bit flipped."""
    return octets[:at] + bytes((octets[at] ^ 1 << bit,)) + octets[at + 1 :]


@pytest.mark.parametrize("number", [0, 1], ids=["certificate", "digest"])
def test_flipped_bit_is_rejected_for_what_it_breaks(number: int) -> None:
    exchange = EXCHANGES["NIST P-256"]
    packet = secured(exchange.from_socktap()[number])
    time_us = scan_signed_data(packet).header.generation_time
    places = places_of(packet, exchange)
    reasons = {}
    for name, (at, bit, _) in places.items():
        verifier = receiver(exchange)
        if number:
            assert verifier.trust.add(exchange.ticket) is None
        reasons[name] = verifier.verify(flipped(packet, at, bit), time_us).reason
    assert reasons == {name: reason for name, (_, _, reason) in places.items()}


@pytest.mark.parametrize("number", [0, 1, 2])
def test_no_packet_with_a_flipped_bit_is_accepted(number: int) -> None:
    exchange = EXCHANGES["NIST P-256"]
    packet = secured(exchange.from_socktap()[number])
    time_us = scan_signed_data(packet).header.generation_time
    verifier = Verifier(
        trust_store(exchange.root, exchange.authority, exchange.ticket), CheckSettings(duplicate_window=0)
    )
    accepted = [
        (at, bit)
        for at in range(len(packet))
        for bit in range(8)
        if verifier.verify(flipped(packet, at, bit), time_us).accepted
    ]
    # Not signed: whether R is given as x-only or compressed, in the packet's signature and in its ticket's.
    certificate_end = len(packet) - 66
    forms = [len(packet) - 65] + ([certificate_end - 65] if scan_signed_data(packet).certificates else [])
    assert accepted == [(at, 1) for at in sorted(forms)]
    assert verifier.verify(packet, time_us).accepted


# Recorded packets of the console, which socktap judged


@pytest.mark.parametrize("name", CAM_EXCHANGES)
def test_packets_have_the_verdict_of_socktap(name: str) -> None:
    exchange, verifier = EXCHANGES[name], receiver(EXCHANGES[name])
    for verdict, reason in ((ACCEPTED, Reason.ACCEPTED), (DROPPED, Reason.SIGNATURE_INVALID)):
        packets = exchange.from_console(verdict)
        assert packets
        assert {judged(verifier, packet).reason for packet in packets} == {reason}


@pytest.mark.parametrize("name", CAM_EXCHANGES)
def test_what_socktap_accepted_is_encoded_so_today(name: str) -> None:
    for packet in EXCHANGES[name].from_console(ACCEPTED):
        data = scan_signed_data(secured(packet))
        assert data.payload is not None
        encoded = encode_signed_data(
            data.hash_name,
            encode_to_be_signed_data(data.payload, data.header),
            encode_signer(data.certificates, data.digest),
            encode_signature(data.signature),
        )
        assert encode_basic_header(60_000, 1, secured=True) + encoded == packet
        for octets in data.certificates:
            assert encoded_again(scan_certificate(octets)) == octets


def encoded_again(certificate: Certificate) -> bytes:
    """A certificate encoded from its fields."""
    tbs = encode_to_be_signed_certificate(
        name=certificate.name,
        validity=certificate.validity,
        verification_key=certificate.verification_key,
        permissions=certificate.permissions,
        encryption_key=certificate.encryption_key,
    )
    return encode_certificate(tbs, certificate.issuer, certificate.issuer_hash, encode_signature(certificate.signature))


# A running socktap


@dataclass(frozen=True)
class Lab:
    """A PKI, and socktap as a station of it."""

    pki: LabPki
    socktap: Socktap


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """socktap with a ticket on NIST P-256, and its AA's certificate."""
    pki = LabPki.create(its_now() // 1_000_000 - DAY_S)
    station = Station.of(pki)
    with Socktap(PROGRAM, tmp_path_factory.mktemp("socktap"), station.ticket, station.key, [pki.aa]) as socktap:
        yield Lab(pki, socktap)


def verdicts(lab: Lab, station: Station) -> list[str]:
    """socktap's verdicts on a CAM with the certificate, and on one with the digest."""
    return [lab.socktap.verdict(station.cam(certificate=certificate)) for certificate in (True, False)]


@live
@pytest.mark.parametrize("curve", VANETZA_CURVES)
def test_socktap_accepts_cams_on_each_of_its_curves(lab: Lab, curve: Curve) -> None:
    assert verdicts(lab, Station.of(lab.pki, curve)) == [ACCEPTED, ACCEPTED]


@live
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_socktap_hashes_the_same_canonical_form(lab: Lab, form: Form) -> None:
    station = Station.of(lab.pki, form=form)
    assert station.ticket.octets != station.ticket.canonical
    assert verdicts(lab, station) == [ACCEPTED, ACCEPTED]


@live
@pytest.mark.xfail(
    raises=AssertionError, reason="Vanetza 26.06 does not calculate the canonical form of these (README.md)"
)
@pytest.mark.parametrize("form", FORMS_REFUSED_BY_VANETZA.values(), ids=FORMS_REFUSED_BY_VANETZA)
def test_socktap_hashes_the_same_canonical_form_of_other_tickets(lab: Lab, form: Form) -> None:
    assert verdicts(lab, Station.of(lab.pki, form=form)) == [ACCEPTED, ACCEPTED]


@live
def test_socktap_drops_a_spoiled_packet_and_accepts_the_next(lab: Lab) -> None:
    station = Station.of(lab.pki)
    packet = station.cam(certificate=True)
    assert [lab.socktap.verdict(octets) for octets in (spoiled(packet), packet[:-1] + bytes((packet[-1] ^ 1,)))] == [
        DROPPED,
        DROPPED,
    ]
    assert lab.socktap.verdict(packet) == ACCEPTED


@live
def test_socktap_requests_the_ticket_of_an_unknown_digest(lab: Lab) -> None:
    station = Station.of(lab.pki)
    assert lab.socktap.verdict(station.cam(certificate=False)) == DROPPED
    awaited(lab.socktap, lambda header: station.ticket.hashed_id3 in header.inline_p2pcd_request)
    assert verdicts(lab, station) == [ACCEPTED, ACCEPTED]


@live
def test_socktap_answers_a_request_and_its_authority_is_learnt(lab: Lab) -> None:
    station = Station.of(lab.pki)
    header = Header(CAM_PSID, its_now(), inline_p2pcd_request=(lab.pki.aa.hashed_id3,))
    assert lab.socktap.verdict(station.cam_with_short_bitmap(header)) == ACCEPTED
    answer = awaited(lab.socktap, lambda header: header.requested_certificate)
    verifier = Verifier(trust_store(lab.pki.root))
    judged(verifier, answer)  # its ticket is not known: only the authority is learnt
    assert verifier.trust.find(lab.pki.aa.hashed_id8) is not None


@live
@pytest.mark.xfail(
    raises=AssertionError, reason="Vanetza 26.06 hashes a bitmap of two bits instead of that received (README.md)"
)
@pytest.mark.parametrize("field", ["inline_p2pcd_request", "requested_certificate"])
def test_socktap_accepts_header_extensions(lab: Lab, field: str) -> None:
    extension = {"inline_p2pcd_request": (b"abc",), "requested_certificate": lab.pki.aa.octets}[field]
    header = Header(CAM_PSID, its_now(), **{field: extension})  # type: ignore[arg-type]
    assert lab.socktap.verdict(Station.of(lab.pki).cam(certificate=True, header=header)) == ACCEPTED


STATIONS = {curve.title: (curve, None) for curve in VANETZA_CURVES} | {
    name: (Curve.P256, form) for name, form in FORMS.items()
}


@live
@pytest.mark.parametrize("name", STATIONS)
def test_packets_of_a_running_socktap_are_accepted_and_spoiled_ones_rejected(name: str, tmp_path: Path) -> None:
    pki = LabPki.create(its_now() // 1_000_000 - DAY_S, root_curve=Curve.BRAINPOOL_P384R1)
    station = Station.of(pki, *STATIONS[name])
    verifier = Verifier(trust_store(pki.root, pki.aa), clock=vanetza_now)
    with Socktap(PROGRAM, tmp_path, station.ticket, station.key, [pki.aa]) as socktap:
        for number in range(5):
            packet = socktap.packet()
            assert verifier.verify(secured(spoiled(packet))).reason is Reason.SIGNATURE_INVALID
            outcome = verifier.verify(secured(packet))
            assert (outcome.reason, outcome.new_signer) == (Reason.ACCEPTED, number == 0)


@live
@pytest.mark.xfail(
    raises=AssertionError, reason="socktap of Vanetza 26.06 counts ITS time without leap seconds (README.md)"
)
def test_packets_of_a_running_socktap_are_in_time(lab: Lab) -> None:
    verifier = Verifier(trust_store(lab.pki.root, lab.pki.aa))
    packet = awaited(lab.socktap, lambda header: not header.requested_certificate)
    assert verifier.verify(secured(packet)).reason is not Reason.TOO_OLD
