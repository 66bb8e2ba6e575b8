"""Lab certificates in all forms that Vanetza reads, packets signed with them, and recorded exchanges with socktap.

Record again with `python tests/labconsole_v2x/vanetza/exchange.py SOCKTAP VERSION`; it takes half a minute.
"""

from __future__ import annotations

import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[3]))

from labconsole_v2x.messages import cam
from labconsole_v2x.messages.btp import Port, encode_btp_b
from labconsole_v2x.messages.cam import Cam, Motion
from labconsole_v2x.messages.common_data import Position
from labconsole_v2x.messages.geonetworking import (
    Address,
    PositionVector,
    encode_basic_header,
    encode_shb,
    parse_packet,
)
from labconsole_v2x.messages.its_time import generation_delta_time, gn_timestamp
from labconsole_v2x.security.encoding import (
    encode_signature,
    encode_signed_data,
    encode_signer,
    encode_to_be_signed_data,
)
from labconsole_v2x.security.issuing import TICKET_PERMISSIONS, LabPki, issue
from labconsole_v2x.security.keys import SoftwareKey, load_public_key, signature_digest
from labconsole_v2x.security.reading import read_signature
from labconsole_v2x.security.scanning import scan_certificate, scan_signed_data
from labconsole_v2x.security.signing import PacketSigner
from labconsole_v2x.security.structures import (
    CAM_PSID,
    GN_MANAGEMENT_PSID,
    Certificate,
    Curve,
    Header,
    IssuePermission,
    Permission,
    PermissionRange,
    Point,
    PointForm,
    PublicKey,
    Validity,
)
from labconsole_v2x.security.trust import TrustStore
from labconsole_v2x.security.verification import its_now
from tests.labconsole_v2x.vanetza.socktap import LATITUDE, LONGITUDE, Socktap

RECORDED = Path(__file__).with_name("exchange.toml")
VANETZA_CURVES = (Curve.P256, Curve.BRAINPOOL_P256R1, Curve.BRAINPOOL_P384R1)
"""Vanetza does not know NIST P-384."""
DAY_S = 86_400
CONSOLE, SOCKTAP = "console", "socktap"


@dataclass(frozen=True)
class Form:
    """The form of what a ticket contains: keys with their whole point, and R of its issuer's signature."""

    verification_key: bool = False
    encryption_key: bool | None = None
    """Whether the encryption key has its whole point; None for a ticket without one."""
    r: PointForm = PointForm.X_ONLY


FORMS = {
    "uncompressed verification key": Form(verification_key=True),
    "uncompressed verification and encryption key": Form(verification_key=True, encryption_key=True),
    "uncompressed R of its signature": Form(r=PointForm.UNCOMPRESSED),
    "uncompressed keys and R": Form(verification_key=True, encryption_key=True, r=PointForm.UNCOMPRESSED),
}
"""Forms that are not canonical, of which Vanetza calculates the canonical form."""
FORMS_REFUSED_BY_VANETZA = {
    "compressed R of its signature": Form(r=PointForm.COMPRESSED_Y0),
    "uncompressed encryption key only": Form(encryption_key=True),
}
"""Vanetza 26.06 has no canonical form for a compressed R, and overlooks an uncompressed encryption key on its own."""


@dataclass(frozen=True)
class Station:
    """A ticket and its key."""

    ticket: Certificate
    key: SoftwareKey

    @classmethod
    def of(cls, pki: LabPki, curve: Curve = Curve.P256, form: Form | None = None) -> Station:
        """A station with a new ticket, valid for a week since a day."""
        key, start_s = SoftwareKey.generate(curve), its_now() // 1_000_000 - DAY_S
        if form is None:
            return cls(pki.ticket(key.public_key, start_s), key)
        encryption_key = None if form.encryption_key is None else SoftwareKey.generate().public_key
        ticket = issue(
            _FormKey(pki.aa_key, form.r),
            uncompressed(key.public_key) if form.verification_key else key.public_key,
            Validity(start_s, start_s + 7 * DAY_S),
            issuer=pki.aa,
            permissions=TICKET_PERMISSIONS,
            encryption_key=uncompressed(encryption_key) if form.encryption_key and encryption_key else encryption_key,
        )
        return cls(ticket, key)

    def payload(self, time_us: int) -> bytes:
        """A car's CAM in BTP-B and a single-hop broadcast, as it is signed."""
        content = Cam(7, generation_delta_time(time_us), 5, Position(LATITUDE, LONGITUDE), Motion(900, 10, 1389, 127))
        sender = PositionVector(Address(b"\2\0\0\0\0\1", 5), gn_timestamp(time_us), LATITUDE, LONGITUDE)
        return encode_shb(sender, encode_btp_b(Port.CAM, cam.encode(content)))

    def cam(self, *, certificate: bool, header: Header | None = None) -> bytes:
        """A secured CAM of now, with the certificate or the digest as signer."""
        header = header or Header(CAM_PSID, its_now())
        data = PacketSigner(self.ticket, self.key).sign(
            self.payload(header.generation_time or 0), header, include_certificate=certificate
        )
        return encode_basic_header(60_000, 1, secured=True) + data

    def cam_with_short_bitmap(self, header: Header) -> bytes:
        """A CAM with an inlineP2pcdRequest in a bitmap of two bits (IEEE 1609.2-2016) instead of four."""
        four_bits, two_bits = bytes.fromhex("020480"), bytes.fromhex("020680")
        tbs = encode_to_be_signed_data(self.payload(its_now()), header)
        assert tbs.count(four_bits) == 1
        tbs = tbs.replace(four_bits, two_bits)
        digest = signature_digest(self.key.curve.hash_name, tbs, self.ticket.canonical)
        signer = encode_signer([self.ticket.octets])
        data = encode_signed_data(self.key.curve.hash_name, tbs, signer, self.key.sign_digest(digest))
        return encode_basic_header(60_000, 1, secured=True) + data


class _FormKey:
    """A key whose signatures have R in the given form."""

    def __init__(self, key: SoftwareKey, form: PointForm) -> None:
        self._key = replace(key, compressed_r=form is not PointForm.X_ONLY)
        self._uncompressed = form is PointForm.UNCOMPRESSED

    @property
    def curve(self) -> Curve:
        return self._key.curve

    @property
    def public_key(self) -> PublicKey:
        return self._key.public_key

    def sign_digest(self, digest: bytes) -> bytes:
        octets = self._key.sign_digest(digest)
        if not self._uncompressed:
            return octets
        signature, _ = read_signature(octets, 0)
        return encode_signature(replace(signature, r=uncompressed(PublicKey(self.curve, signature.r)).point))


def uncompressed(key: PublicKey) -> PublicKey:
    """The same key with its whole point."""
    numbers, size = load_public_key(key).public_numbers(), key.curve.size
    return PublicKey(
        key.curve, Point(PointForm.UNCOMPRESSED, numbers.x.to_bytes(size, "big"), numbers.y.to_bytes(size, "big"))
    )


def spoiled(packet: bytes) -> bytes:
    """A packet with another octet in its CAM, which is signed."""
    at = packet.index(b"\x07\xd1") + 12  # after the destination port, 2001
    return packet[:at] + bytes((packet[at] ^ 1,)) + packet[at + 1 :]


def secured(packet: bytes) -> bytes:
    """The signed data of a packet."""
    octets = parse_packet(packet).secured
    assert octets is not None
    return octets


def trust_store(root: Certificate, *authorities: Certificate) -> TrustStore:
    """A store that trusts a root and knows these authorities."""
    trust = TrustStore()
    trust.add_root(root)
    for authority in authorities:
        fault = trust.add(authority)
        assert fault is None, fault
    return trust


# Recorded exchanges


@dataclass(frozen=True)
class RecordedPacket:
    """A packet of an exchange: from socktap, or from here with socktap's verdict on it."""

    sender: str
    octets: bytes
    verdict: str = ""


@dataclass(frozen=True)
class Exchange:
    """An exchange with socktap, its packets in order; `ticket` is socktap's."""

    name: str
    root: Certificate
    authority: Certificate
    ticket: Certificate
    packets: tuple[RecordedPacket, ...]

    def from_socktap(self) -> list[bytes]:
        """The packets that socktap signed."""
        return [packet.octets for packet in self.packets if packet.sender == SOCKTAP]

    def from_console(self, verdict: str) -> list[bytes]:
        """The packets signed here on which socktap had this verdict."""
        return [packet.octets for packet in self.packets if (packet.sender, packet.verdict) == (CONSOLE, verdict)]


def recorded_exchanges() -> list[Exchange]:
    """The exchanges of `exchange.toml`."""
    with RECORDED.open("rb") as file:
        content = tomllib.load(file)
    return [
        Exchange(
            name=entry["name"],
            root=scan_certificate(bytes.fromhex(entry["root"])),
            authority=scan_certificate(bytes.fromhex(entry["authority"])),
            ticket=scan_certificate(bytes.fromhex(entry["ticket"])),
            packets=tuple(
                RecordedPacket(packet["sender"], bytes.fromhex(packet["octets"]), packet.get("verdict", ""))
                for packet in entry["packet"]
            ),
        )
        for entry in content["exchange"]
    ]


def _record(program: str) -> Iterator[Exchange]:
    start_s = its_now() // 1_000_000 - DAY_S
    pki = LabPki.create(start_s)
    yield _recorded(program, "NIST P-256", pki, Station.of(pki), Station.of(pki))
    for name, root, authority, ticket in (
        ("brainpoolP256r1", *(Curve.BRAINPOOL_P256R1,) * 3),
        ("brainpoolP384r1", *(Curve.BRAINPOOL_P384R1,) * 3),
        ("root on brainpoolP384r1, the others on NIST P-256", Curve.BRAINPOOL_P384R1, Curve.P256, Curve.P256),
        ("AA on brainpoolP384r1, the others on NIST P-256", Curve.P256, Curve.BRAINPOOL_P384R1, Curve.P256),
    ):
        mixed = LabPki.create(start_s, root_curve=root, authority_curve=authority)
        yield _recorded(program, name, mixed, Station.of(mixed, ticket), Station.of(mixed, ticket))
    for name, form in FORMS.items():
        stations = (Station.of(pki, form=form) for _ in range(2))
        yield _recorded(program, f"tickets with {name}", pki, *stations)
    yield _recorded_requests(program, pki)
    yield _recorded_beacon(program, start_s)


def _recorded(program: str, name: str, pki: LabPki, peer: Station, car: Station) -> Exchange:
    """CAMs of both sides with certificate and digest, and a spoiled one of the console."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Socktap(program, Path(folder), peer.ticket, peer.key, [pki.aa]) as tap,
    ):
        packets = [RecordedPacket(SOCKTAP, tap.packet()) for _ in range(3)]
        sent = [car.cam(certificate=True), car.cam(certificate=False)]
        for packet in (*sent, spoiled(sent[1])):
            packets.append(RecordedPacket(CONSOLE, packet, tap.verdict(packet)))
    return Exchange(name, pki.root, pki.aa, peer.ticket, tuple(packets))


def _recorded_requests(program: str, pki: LabPki) -> Exchange:
    """socktap's request of an unknown ticket, and its answer to the request of its AA."""
    peer, car = Station.of(pki), Station.of(pki)
    with (
        tempfile.TemporaryDirectory() as folder,
        Socktap(program, Path(folder), peer.ticket, peer.key, [pki.aa]) as tap,
    ):
        packets = [RecordedPacket(SOCKTAP, tap.packet())]
        unknown = car.cam(certificate=False)
        packets.append(RecordedPacket(CONSOLE, unknown, tap.verdict(unknown)))
        packets.append(RecordedPacket(SOCKTAP, awaited(tap, lambda header: header.inline_p2pcd_request)))
        request = car.cam_with_short_bitmap(Header(CAM_PSID, its_now(), inline_p2pcd_request=(pki.aa.hashed_id3,)))
        packets.append(RecordedPacket(CONSOLE, request, tap.verdict(request)))
        packets.append(RecordedPacket(SOCKTAP, awaited(tap, lambda header: header.requested_certificate)))
    return Exchange("requests of certificates", pki.root, pki.aa, peer.ticket, tuple(packets))


def awaited(tap: Socktap, wanted: Callable[[Header], object]) -> bytes:
    """The first of the next packets with a header as wanted; raises AssertionError after 50 packets."""
    packet = tap.next_packet()
    for _ in range(50):
        if wanted(scan_signed_data(secured(packet)).header):
            return packet
        packet = tap.packet()
    raise AssertionError("socktap sends no such packet")


def _recorded_beacon(program: str, start_s: int) -> Exchange:
    """A beacon, to which the generic profile applies."""
    ranges, permissions = (PermissionRange(GN_MANAGEMENT_PSID),), (Permission(GN_MANAGEMENT_PSID),)
    root_key, aa_key, key = (SoftwareKey.generate() for _ in range(3))
    validity = Validity(start_s, start_s + 7 * DAY_S)
    issues = IssuePermission(ranges, min_chain=2)
    root = issue(root_key, root_key.public_key, validity, name="RCA", issue_permissions=(issues,))
    issues = IssuePermission(ranges)
    authority = issue(root_key, aa_key.public_key, validity, issuer=root, name="AA", issue_permissions=(issues,))
    ticket = issue(aa_key, key.public_key, validity, issuer=authority, permissions=permissions)
    with tempfile.TemporaryDirectory() as folder, Socktap(program, Path(folder), ticket, key, application="-") as tap:
        packets = (RecordedPacket(SOCKTAP, tap.packet()),)
    return Exchange("GeoNetworking beacon", root, authority, ticket, packets)


def _write(exchanges: list[Exchange], version: str) -> None:
    lines = [f"# Recorded on {time.strftime('%Y-%m-%d', time.gmtime())} with socktap of Vanetza {version}."]
    for exchange in exchanges:
        lines += ["", "[[exchange]]", f'name = "{exchange.name}"']
        for key in ("root", "authority", "ticket"):
            lines.append(f'{key} = "{getattr(exchange, key).octets.hex()}"')
        for packet in exchange.packets:
            lines += ["[[exchange.packet]]", f'sender = "{packet.sender}"']
            lines += [f'verdict = "{packet.verdict}"'] if packet.verdict else []
            lines.append(f'octets = "{packet.octets.hex()}"')
    RECORDED.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    _write(list(_record(sys.argv[1])), sys.argv[2])
