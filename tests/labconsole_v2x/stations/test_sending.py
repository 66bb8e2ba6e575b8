"""CAMs as a station sends them: none twice, signed or not, in the sizes that the source states."""

from __future__ import annotations

import time
from hashlib import sha256, sha384
from random import Random
from statistics import median

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils

from labconsole_v2x.messages.geonetworking import parse_packet
from labconsole_v2x.security.distribution import CertificateInclusion
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.scanning import scan_signed_data
from labconsole_v2x.security.structures import CAM_PSID, Certificate, Curve, SignedData
from labconsole_v2x.security.verification import Reason, Verifier
from labconsole_v2x.stations.routes import Route, vehicle_route
from labconsole_v2x.stations.sending import (
    ROADSIDE_UNIT,
    CamSender,
    Identity,
    PlaceholderKey,
    SecurityMode,
    SentCam,
    packet_hash,
)
from tests.labconsole_v2x.security import second_codec
from tests.labconsole_v2x.security.lab_certificates import signature_of
from tests.labconsole_v2x.stations.cam_senders import BEGIN_NS, Clock, Lab, its_us_of, set_clock

MS = 1_000_000
HEADER = 14
"""Octets of the Ethernet header."""
SECURED = (SecurityMode.FULL, SecurityMode.SIGNED, SecurityMode.HEADER)
SOURCE_SIZES = {"without": 89, "digest": 180, "certificate": 450}
"""Sizes in the source, in octets."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return set_clock(monkeypatch)


@pytest.fixture(scope="module")
def lab() -> Lab:
    return Lab()


def packet_of(sent: SentCam) -> bytes:
    return sent.frame[HEADER:]


def data_of(sent: SentCam) -> SignedData:
    secured = parse_packet(packet_of(sent)).secured
    assert secured is not None
    return scan_signed_data(secured)


@pytest.mark.parametrize("mode", SecurityMode)
def test_no_two_packets_of_several_instances_are_alike(mode: SecurityMode, lab: Lab) -> None:
    """As fast as they are created, at one place: what differs is the time and the sender."""
    senders, here = [lab.sender(mode) for _ in range(5)], vehicle_route(Random(1)).at(3)
    sent = [sender.create(here) for _ in range(800) for sender in senders]
    assert len({cam.frame for cam in sent}) == len(sent)
    assert len({(cam.frame[6:12], cam.identity) for cam in sent}) == len(sent)


@pytest.mark.parametrize("mode", SecurityMode)
def test_no_two_packets_are_alike_even_if_the_clock_stops_or_steps_back(
    mode: SecurityMode, lab: Lab, clock: Clock
) -> None:
    sender, roadside = lab.sender(mode), Route().at(0)
    sent = [sender.create(roadside) for _ in range(300)]
    clock.now_ns -= 50 * MS
    sent += [sender.create(roadside) for _ in range(300)]
    assert len({cam.frame for cam in sent}) == len({cam.identity for cam in sent}) == 600


@pytest.mark.parametrize("mode", SECURED)
def test_identity_is_the_generation_time_and_increases_within_a_microsecond(
    mode: SecurityMode, lab: Lab, clock: Clock
) -> None:
    sender, route = lab.sender(mode), vehicle_route(Random(2))
    identities = [sender.create(route.at(0)).identity for _ in range(20)]
    assert identities == [its_us_of(BEGIN_NS) + number for number in range(20)]
    clock.now_ns += 100 * MS
    sent = sender.create(route.at(0.1))
    assert sent.identity == its_us_of(BEGIN_NS) + 100_000
    assert data_of(sent).header.generation_time == sent.identity


def test_identity_without_security_is_a_hash_of_the_packet(lab: Lab) -> None:
    sent = lab.sender(SecurityMode.NONE).create(Route().at(0))
    expected = int.from_bytes(sha256(packet_of(sent)).digest()[:8], "big") >> 1
    assert sent.identity == expected == packet_hash(packet_of(sent))
    assert 0 < sent.identity < 1 << 63
    assert (sent.sign_ns, sent.with_certificate) == (0, False)
    assert parse_packet(packet_of(sent)).secured is None


def test_generation_time_is_the_wall_clock_now(lab: Lab) -> None:
    before = its_us_of(time.time_ns())
    sent = lab.sender().create(Route().at(0))
    assert before <= sent.identity <= its_us_of(time.time_ns())
    assert sent.sign_ns > 0


@pytest.mark.parametrize("curve", Curve, ids=str)
@pytest.mark.parametrize("compressed_r", [False, True])
def test_receiver_accepts_signed_packets_of_every_curve(curve: Curve, compressed_r: bool, clock: Clock) -> None:
    lab = Lab(curve)
    sender, verifier = lab.sender(compressed_r=compressed_r), Verifier(lab.trust())
    route = vehicle_route(Random(3))
    for number in range(12):
        clock.now_ns = BEGIN_NS + number * 100 * MS
        sent = sender.create(route.at(number / 10))
        assert sent.with_certificate is (number in (0, 10))
        octets = parse_packet(packet_of(sent)).secured
        assert octets is not None
        assert verifier.verify(octets, its_us_of(clock.now_ns)).reason is Reason.ACCEPTED


def test_second_codec_reads_packets_on_p384_and_the_library_verifies_them(clock: Clock) -> None:
    """tshark 4.0 has no field for keys on NIST P-384."""
    key = SoftwareKey.generate(Curve.P384)
    sender = Lab(Curve.P384).sender(key=key)
    assert sender.ticket is not None
    for kind in ("certificate", "digest"):
        sent = sender.create(vehicle_route(Random(4)).at(1))
        choice, signed = second_codec.decode_data(packet_of(sent)[4:])["content"]
        assert (choice, signed["hashId"], signed["signer"][0]) == ("signedData", "sha384", kind)
        header = signed["tbsData"]["headerInfo"]
        assert (header["psid"], header["generationTime"]) == (CAM_PSID, sent.identity)
        tbs = second_codec.encode_to_be_signed_data(signed["tbsData"])
        _, signature = signed["signature"]  # unknown to the codec: an x-only R, and s
        assert (signature[0], len(signature)) == (0x80, 1 + 48 + 48)
        r, s = (int.from_bytes(signature[at : at + 48], "big") for at in (1, 49))
        digest = sha384(sha384(tbs).digest() + sha384(sender.ticket.octets).digest()).digest()
        algorithm = ec.ECDSA(utils.Prehashed(hashes.SHA384()))
        key.private.public_key().verify(utils.encode_dss_signature(r, s), digest, algorithm)


def test_header_without_signature_has_the_size_of_a_signed_packet_and_is_accepted_by_no_receiver(
    lab: Lab, clock: Clock
) -> None:
    here = vehicle_route(Random(5)).at(0)
    signed, placeholder = lab.sender(), lab.sender(SecurityMode.HEADER)
    for _ in range(2):  # with certificate, then with digest
        cams = [sender.create(here) for sender in (signed, placeholder)]
        assert len({len(cam.frame) for cam in cams}) == 1
        octets = parse_packet(packet_of(cams[1])).secured
        assert octets is not None
        outcome = Verifier(lab.trust()).verify(octets, its_us_of(clock.now_ns))
        assert outcome.reason in (Reason.SIGNATURE_INVALID, Reason.UNKNOWN_SIGNER)
    key = SoftwareKey.generate(Curve.P384)
    placeholder_key = PlaceholderKey(key.public_key)
    assert placeholder_key.curve is Curve.P384
    assert len(signature_of(placeholder_key, bytes(48)).s) == 48


def sizes(sender: CamSender, clock: Clock, *, certificate: bool = False) -> list[int]:
    """Sizes of the GeoNetworking packets of ten seconds at 10 Hz, with certificate or not."""
    route, found = vehicle_route(Random(6)), []
    for number in range(100):
        clock.now_ns = BEGIN_NS + number * 100 * MS
        sent = sender.create(route.at(number / 10))
        if sent.with_certificate is certificate:
            found.append(len(packet_of(sent)))
    return found


def test_sizes_are_near_those_of_the_source(lab: Lab, clock: Clock) -> None:
    """Its certificates are of an earlier standard, with explicit extensions that implicit defaults have replaced."""
    without = sizes(lab.sender(SecurityMode.NONE), clock)
    digest = sizes(lab.sender(), clock)
    certificate = sizes(lab.sender(inclusion=CertificateInclusion.ALWAYS), clock, certificate=True)
    assert len(without) == len(certificate) == 100
    assert len(digest) == 90
    assert median(without) == pytest.approx(SOURCE_SIZES["without"], rel=0.12)
    assert median(digest) == pytest.approx(SOURCE_SIZES["digest"], rel=0.12)
    assert 0.65 * SOURCE_SIZES["certificate"] < median(certificate) <= SOURCE_SIZES["certificate"]
    assert max(without) < min(digest) and max(digest) < min(certificate)


def test_certificate_adds_its_octets_in_place_of_the_digest(lab: Lab, clock: Clock) -> None:
    sender = lab.sender(inclusion=CertificateInclusion.ALWAYS)
    other = lab.sender(inclusion=CertificateInclusion.NEVER)
    here = vehicle_route(Random(7)).at(0)
    assert isinstance(sender.ticket, Certificate)
    # A choice octet and the digest of 8; a choice octet, the number of certificates in two octets, and the certificate.
    assert len(sender.create(here).frame) - len(other.create(here).frame) == len(sender.ticket.octets) + 2 - 8


def test_names_of_a_sender_follow_from_its_ticket(lab: Lab) -> None:
    sender = lab.sender()
    assert sender.ticket is not None
    hashed_id8 = sha256(sender.ticket.octets).digest()[-8:]
    assert sender.identity.station_id == int.from_bytes(hashed_id8[4:], "big")
    assert sender.identity.mac[1:] == hashed_id8[3:]
    frame = sender.create(Route().at(0)).frame
    assert frame[:14] == b"\xff" * 6 + sender.identity.mac + b"\x89\x47"


def test_mac_addresses_are_of_single_stations_and_administered_locally() -> None:
    for first in range(256):
        mac = Identity.of(bytes((9, 9, first, 1, 2, 3, 4, 5))).mac
        assert len(mac) == 6
        assert mac[0] & 3 == 2
        assert mac[0] >> 2 == first >> 2


def test_roadside_unit_sends_neither_motion_nor_path(lab: Lab, clock: Clock) -> None:
    sender = lab.sender(SecurityMode.NONE, station_type=ROADSIDE_UNIT)
    lengths = set()
    for number in range(12):
        clock.now_ns = BEGIN_NS + number * 100 * MS
        lengths.add(len(sender.create(Route().at(0)).frame))
    assert len(lengths) == 1
    assert max(lengths) < 85 + HEADER
