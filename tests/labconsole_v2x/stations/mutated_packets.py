"""Packets of a lab PKI, damaged in every way: on their way, before they were signed, and in their certificates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from labconsole_v2x.messages.cam import Cam, Motion, ProtectedZone, SpecialVehicle
from labconsole_v2x.messages.common_data import Position
from labconsole_v2x.messages.geonetworking import encode_basic_header
from labconsole_v2x.security.encoding import encode_signed_data, encode_signer, encode_to_be_signed_data
from labconsole_v2x.security.keys import signature_digest
from labconsole_v2x.security.reading import MalformedDataError
from labconsole_v2x.security.scanning import scan_certificate
from labconsole_v2x.security.structures import CAM_PSID, DENM_PSID, Curve, Header
from tests.helpers.mutations import mutations
from tests.labconsole_v2x.security.lab_certificates import (
    ACCIDENT,
    CAR,
    GRAZ,
    LATITUDE,
    LONGITUDE,
    NOW_US,
    Holder,
    cam_payload,
    denm_payload,
    root_authority,
    signed_cam,
    ticket,
    ticket_authority,
)

BASIC = encode_basic_header(1000, 1, secured=True)
PLACE = Position(LATITUDE, LONGITUDE)
PAYLOADS = (
    (CAM_PSID, cam_payload()),
    (CAM_PSID, cam_payload(Cam(7, 1, 15, PLACE, None, zones=(ProtectedZone(LATITUDE, LONGITUDE),)))),
    (
        CAM_PSID,
        cam_payload(CAR._replace(special=SpecialVehicle("rescueContainer", {"lightBarSirenInUse": (b"\x80", 2)}))),
    ),
    (CAM_PSID, cam_payload(CAR._replace(motion=Motion(1, 2, 3, 4, steering_angle=(5, 6), lane=1)))),
    (DENM_PSID, denm_payload(ACCIDENT)),
    (137, cam_payload()),
)


class Lab:
    """Stations with tickets on all curves, known to the receiver or not, and what they send."""

    def __init__(self) -> None:
        self.root = root_authority(Curve.BRAINPOOL_P384R1)
        self.authority = ticket_authority(self.root)
        foreign = ticket_authority(root_authority())
        self.stations = [
            *(ticket(self.authority, curve) for curve in Curve),
            ticket(self.authority, region=GRAZ),
            ticket(foreign),
        ]
        self._p256 = [one for one in self.stations if one.key.curve is Curve.P256]

    def originals(self) -> list[bytes]:
        """Right packets: signed with certificate and digest, on every curve, of every message; and unsecured ones."""
        packets = [encode_basic_header(1000, 1) + payload for _, payload in PAYLOADS[:2]]
        for number, station in enumerate(self.stations):
            psid, payload = PAYLOADS[number % len(PAYLOADS)]
            for digest in (False, True):
                packets.append(BASIC + signed_cam(station, NOW_US + number, digest=digest))
                tbs = encode_to_be_signed_data(payload, header_of(psid))
                packets.append(BASIC + signed_again(station, tbs, digest=digest))
        wanted = self.authority.certificate
        for header in (
            Header(CAM_PSID, NOW_US, inline_p2pcd_request=(b"abc", wanted.hashed_id3)),
            Header(CAM_PSID, NOW_US, requested_certificate=wanted.octets),
        ):
            tbs = encode_to_be_signed_data(cam_payload(), header)
            packets.append(BASIC + signed_again(self.stations[0], tbs))
        return packets

    def right(self, random: Random) -> bytes:
        """A packet with nothing wrong, of a known or unknown station."""
        psid, payload = random.choice(PAYLOADS)
        tbs = encode_to_be_signed_data(payload, header_of(psid, NOW_US + random.randrange(100_000)))
        return BASIC + signed_again(random.choice(self._p256), tbs, digest=random.random() < 0.5)

    def damaged_before_signature(self, random: Random) -> bytes:
        """A packet with a valid signature over damaged content or header."""
        psid, payload = random.choice(PAYLOADS)
        tbs = encode_to_be_signed_data(payload, header_of(psid, NOW_US + random.randrange(100_000)))
        (damaged,) = mutations(tbs, 1, random.randrange(1 << 32))
        return BASIC + signed_again(random.choice(self._p256), damaged, digest=random.random() < 0.5)

    def damaged_certificate(self, random: Random) -> bytes:
        """A packet with a valid signature of a key whose certificate is damaged."""
        station = random.choice(self._p256)
        (damaged,) = mutations(station.certificate.octets, 1, random.randrange(1 << 32))
        tbs = encode_to_be_signed_data(cam_payload(), Header(CAM_PSID, NOW_US + random.randrange(100_000)))
        try:
            canonical = scan_certificate(damaged).canonical
        except MalformedDataError:
            canonical = damaged
        signature = station.key.sign_digest(signature_digest("sha256", tbs, canonical))
        return BASIC + encode_signed_data("sha256", tbs, encode_signer((damaged,)), signature)


def header_of(psid: int, time_us: int = NOW_US) -> Header:
    """A header as the profile of the ITS-AID has it."""
    return Header(psid, time_us, location=None if psid == CAM_PSID else (LATITUDE, LONGITUDE, 0))


def signed_again(station: Holder, tbs: bytes, *, digest: bool = False) -> bytes:
    """Signed data with these octets as ToBeSignedData, whatever they are."""
    certificate, hash_name = station.certificate, station.key.curve.hash_name
    signer = encode_signer((certificate.octets,), certificate.hashed_id8 if digest else None)
    signature = station.key.sign_digest(signature_digest(hash_name, tbs, certificate.canonical))
    return encode_signed_data(hash_name, tbs, signer, signature)


def mutated_packets(lab: Lab, count: int, seed: int) -> Iterator[bytes]:
    """So many packets, each with a random kind of damage, and one in twelve without; the same ones for the same lab."""
    random, originals = Random(seed), lab.originals()
    streams = [mutations(packet, count, seed + number) for number, packet in enumerate(originals)]
    kinds: list[tuple[int, Callable[[], bytes]]] = [
        (54, lambda: next(random.choice(streams))),
        (12, lambda: _flipped(random, random.choice(originals))),
        (8, lambda: _spliced(random, *random.sample(originals, 2))),
        (4, lambda: random.randbytes(random.randrange(400))),
        (4, lambda: BASIC + b"\3\x81\0" + random.randbytes(random.randrange(400))),
        (6, lambda: lab.damaged_before_signature(random)),
        (4, lambda: lab.damaged_certificate(random)),
        (2, lambda: random.choice(originals)),
        (6, lambda: lab.right(random)),
    ]
    weights = [weight for weight, _ in kinds]
    for _ in range(count):
        ((_, create),) = random.choices(kinds, weights)
        yield create()


def _flipped(random: Random, packet: bytes) -> bytes:
    changed = bytearray(packet)
    for _ in range(random.randrange(1, 9)):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _spliced(random: Random, first: bytes, second: bytes) -> bytes:
    return first[: random.randrange(len(first))] + second[random.randrange(len(second)) :]
