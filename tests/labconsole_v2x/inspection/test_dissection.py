"""The tree of a packet: values and octets as tshark has them, and a tree for any octets."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import pytest

from labconsole_v2x.inspection.dissection import dissect
from labconsole_v2x.inspection.field_tree import Node, as_text, innermost
from labconsole_v2x.messages import cam, denm
from labconsole_v2x.messages.btp import Port, encode_btp_b
from labconsole_v2x.messages.geonetworking import (
    Address,
    Area,
    PositionVector,
    Shape,
    encode_basic_header,
    encode_gbc,
    encode_shb,
)
from labconsole_v2x.messages.its_time import its_us
from labconsole_v2x.security.encryption import encrypt_to_certificate
from labconsole_v2x.security.issuing import LabPki
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.structures import CAM_PSID, GN_MANAGEMENT_PSID, Circle, Curve, Header
from labconsole_v2x.stations.capture import (
    ETHERNET,
    IEEE80211_RADIOTAP,
    CapturedPacket,
    ethernet_frame,
    read_capture,
)
from tests.helpers.mutations import mutations
from tests.helpers.vectors import recorded
from tests.labconsole_v2x.inspection.road_capture import (
    LATITUDE,
    LONGITUDE,
    NOW_US,
    TIME_NS,
    Vehicle,
    write_capture,
)
from tests.labconsole_v2x.messages.packets import cam_packet, denm_packet
from tests.labconsole_v2x.messages.random_messages import random_cam, random_denm, random_vector


@pytest.fixture(scope="module")
def vehicle(pki: LabPki) -> Vehicle:
    return Vehicle.of(pki, 42, region=Circle(LATITUDE, LONGITUDE, 5000))


def frame(packet: bytes, *, time_ns: int = TIME_NS) -> CapturedPacket:
    octets = ethernet_frame(packet, b"\2\0\0\0\0\1")
    return CapturedPacket(time_ns, ETHERNET, octets, len(octets))


def every(nodes: Sequence[Node], path: str = "") -> Iterator[tuple[str, Node]]:
    """All nodes in the order of the tree, each with its path."""
    for node in nodes:
        yield f"{path}/{node.name}", node
        yield from every(node.children, f"{path}/{node.name}")


def found(nodes: Sequence[Node], end: str) -> list[Node]:
    """The nodes whose path ends so."""
    return [node for path, node in every(nodes) if path.endswith(f"/{end}")]


def one(nodes: Sequence[Node], end: str) -> Node:
    (node,) = found(nodes, end)
    return node


# tshark as judge


def number(text: str) -> str:
    return str(int(text, 0))


def scaled(digits: int, unit: str) -> Callable[[str], str]:
    return lambda text: f"{int(text) / 10**digits:.{digits}f} {unit}"


def hexadecimal(text: str) -> str:
    return text.replace(":", "")


def utc(text: str) -> str:
    """ITS time in us, as the console shows it: TAI is 5 s ahead of UTC since 2017."""
    return f"{datetime(2004, 1, 1) + timedelta(seconds=-5, microseconds=int(text)):%Y-%m-%dT%H:%M:%S.%fZ}"


def lifetime(text: str) -> str:
    """Multiplier and base, 50 ms, 1 s, 10 s or 100 s (EN 302 636-4-1, 9.6.4)."""
    return f"{(int(text) >> 2) * (0.05, 1, 10, 100)[int(text) & 3]:g} s"


def any_text(text: str) -> None:
    """The value has another form; its octets are compared."""


@dataclass(frozen=True)
class Judged:
    """How a field of tshark is compared: the node's path, and the text that its raw value must have."""

    node: str
    text: Callable[[str], str | None] = number
    before_bracket: bool = False


HEADERS = {
    "geonw.bh": Judged("basicHeader", any_text),
    "geonw.bh.version": Judged("basicHeader/version"),
    "geonw.bh.rhl": Judged("basicHeader/remainingHopLimit"),
    "geonw.bh.lt": Judged("basicHeader/lifetime", lifetime),
    "geonw.ch": Judged("commonHeader", any_text),
    "geonw.ch.htype": Judged("commonHeader/headerType", any_text),
    "geonw.ch.tclass": Judged("commonHeader/trafficClass", any_text),
    "geonw.ch.plength": Judged("commonHeader/payloadLength", lambda text: f"{text} octets"),
    "geonw.ch.mhl": Judged("commonHeader/maximumHopLimit"),
    "geonw.seq_num": Judged("geoBroadcast/sequenceNumber"),
    "geonw.src_pos": Judged("sourcePositionVector", any_text),
    "geonw.src_pos.addr": Judged("sourcePositionVector/gnAddress", any_text),
    "geonw.src_pos.addr.mid": Judged("sourcePositionVector/gnAddress/mid", lambda text: text),
    "geonw.src_pos.tst": Judged("sourcePositionVector/timestamp", lambda text: f"{int(text):,} ms ("),
    "geonw.src_pos.lat": Judged("sourcePositionVector/latitude", scaled(7, "°")),
    "geonw.src_pos.long": Judged("sourcePositionVector/longitude", scaled(7, "°")),
    "geonw.src_pos.speed": Judged("sourcePositionVector/speed", scaled(2, "m/s")),
    "geonw.src_pos.hdg": Judged("sourcePositionVector/heading", scaled(1, "°")),
    "geonw.gxc.latitude": Judged("geoAreaPosLatitude", scaled(7, "°")),
    "geonw.gxc.longitude": Judged("geoAreaPosLongitude", scaled(7, "°")),
    "btpb": Judged("BTP-B", any_text),
    "btpb.dstport": Judged("BTP-B/destinationPort", any_text),
    "btpb.dstportinf": Judged("BTP-B/destinationPortInfo"),
    "its.stationID": Judged("header/stationID"),
    "its.messageID": Judged("header/messageID", any_text),
}
SECURITY = {
    "ieee1609dot2.Ieee1609Dot2Data_element": Judged("Ieee1609Dot2Data", any_text),
    "ieee1609dot2.signedData_element": Judged("signedData", any_text),
    "ieee1609dot2.tbsData_element": Judged("tbsData", any_text),
    "ieee1609dot2.payload_element": Judged("tbsData/payload", any_text),
    "ieee1609dot2.unsecuredData": Judged("unsecuredData", any_text),
    "ieee1609dot2.headerInfo_element": Judged("headerInfo", any_text),
    "ieee1609dot2.psid": Judged("psid", any_text),
    "ieee1609dot2.generationTime": Judged("generationTime", utc),
    "ieee1609dot2.generationLocation_element": Judged("generationLocation", any_text),
    "ieee1609dot2.elevation": Judged("elevation", lambda text: f"{(int(text) - 4096) / 10:.1f} m"),
    "ieee1609dot2.signer": Judged("signer", any_text),
    "ieee1609dot2.digest": Judged("digest (HashedId8)", hexadecimal),
    "ieee1609dot2.Certificate_element": Judged("certificate/Certificate", any_text),
    "ieee1609dot2.requestedCertificate_element": Judged("requestedCertificate/Certificate", any_text),
    "ieee1609dot2.version": Judged("Certificate/version"),
    "ieee1609dot2.issuer": Judged("issuer", any_text),
    "ieee1609dot2.sha256AndDigest": Judged("sha256AndDigest (HashedId8)", hexadecimal),
    "ieee1609dot2.toBeSigned_element": Judged("toBeSigned", any_text),
    "ieee1609dot2.name": Judged("id/name", lambda text: text),
    "ieee1609dot2.cracaId": Judged("cracaId (HashedId3)", hexadecimal),
    "ieee1609dot2.crlSeries": Judged("crlSeries"),
    "ieee1609dot2.validityPeriod_element": Judged("validityPeriod", any_text),
    "ieee1609dot2.start": Judged("validityPeriod/start", lambda text: utc(f"{text}000000").replace(".000000", "")),
    "ieee1609dot2.hours": Judged("duration/hours"),
    "ieee1609dot2.region": Judged("region", any_text),
    "ieee1609dot2.appPermissions": Judged("appPermissions", lambda text: f"{text} item"),
    "ieee1609dot2.PsidSsp_element": Judged("PsidSsp", any_text),
    "ieee1609dot2.bitmapSsp": Judged("bitmapSsp", hexadecimal),
    "ieee1609dot2.certIssuePermissions": Judged("certIssuePermissions", lambda text: f"{text} item"),
    "ieee1609dot2.PsidGroupPermissions_element": Judged("PsidGroupPermissions", any_text),
    "ieee1609dot2.PsidSspRange_element": Judged("PsidSspRange", any_text),
    "ieee1609dot2.sspValue": Judged("sspValue", hexadecimal),
    "ieee1609dot2.sspBitmask": Judged("sspBitmask", hexadecimal),
    "ieee1609dot2.verifyKeyIndicator": Judged("verifyKeyIndicator", any_text),
    "ieee1609dot2.verificationKey": Judged("verificationKey", any_text),
    "ieee1609dot2.signature": Judged("signature", any_text),
    "ieee1609dot2.rSig": Judged("rSig", any_text),
    "ieee1609dot2.sSig": Judged("sSig", hexadecimal),
    "ieee1609dot2.HashedId3": Judged("HashedId3", hexadecimal),
    "ieee1609dot2.nonce": Judged("nonce", hexadecimal),
    "ieee1609dot2.ccmCiphertext": Judged("ccmCiphertext", any_text),
}
CAM = {
    "cam.generationDeltaTime": Judged("generationDeltaTime", lambda text: f"{int(text):,} ms ("),
    "cam.stationType": Judged("basicContainer/stationType", any_text),
    "its.latitude": Judged("referencePosition/latitude", scaled(7, "°")),
    "its.longitude": Judged("referencePosition/longitude", scaled(7, "°")),
    "its.altitudeValue": Judged("altitude/altitudeValue", scaled(2, "m")),
    "its.headingValue": Judged("heading/headingValue", scaled(1, "°")),
    "its.speedValue": Judged("speed/speedValue", scaled(2, "m/s")),
    "cam.driveDirection": Judged("driveDirection", any_text),
    "its.vehicleLengthValue": Judged("vehicleLengthValue", scaled(1, "m")),
    "its.longitudinalAccelerationValue": Judged("longitudinalAccelerationValue", scaled(1, "m/s²")),
    "its.curvatureValue": Judged("curvatureValue", scaled(4, "1/m")),
    "its.yawRateValue": Judged("yawRateValue", scaled(2, "°/s")),
    "cam.lanePosition": Judged("lanePosition", any_text),
    "cam.vehicleRole": Judged("vehicleRole", any_text),
    "its.deltaLatitude": Judged("pathPosition/deltaLatitude", scaled(7, "°")),
    "its.deltaAltitude": Judged("pathPosition/deltaAltitude", scaled(2, "m")),
    "its.pathDeltaTime": Judged("pathDeltaTime", scaled(2, "s")),
}
"""Fields whose octets tshark counts by the size of the value, and not by where its bits begin and end."""
DENM = {
    "its.originatingStationID": Judged("actionID/originatingStationID"),
    "its.sequenceNumber": Judged("actionID/sequenceNumber"),
    "denm.detectionTime": Judged("detectionTime", lambda text: utc(f"{text}000")[:-4] + "Z"),
    "its.latitude": Judged("eventPosition/latitude", scaled(7, "°")),
    "denm.validityDuration": Judged("validityDuration", scaled(0, "s")),
    "denm.informationQuality": Judged("informationQuality", any_text),
    "its.causeCode": Judged("causeCode", any_text),
}


def packets_of_all_kinds(pki: LabPki, vehicle: Vehicle) -> list[bytes]:
    """Beacon, SHB and GBC; unsecured, encrypted, and signed with digest or certificate, on four curves."""
    random = Random("packet tree")
    packets = []
    for kind in ("vehicle", "special vehicle", "toll zone", "roadside unit") * 5:
        packets.append(cam_packet(random_vector(random), random_cam(random, kind)))
        packets.append(vehicle.signed_cam(random_cam(random, kind), certificate=random.random() < 0.5))
    for place in range(15):
        area = Area(Shape(place % 3), random.randint(-900_000_000, 900_000_000), -place, 500 + place, place, 90)
        packets.append(denm_packet(random_vector(random), area, place, random_denm(random)))
        body = encode_btp_b(Port.DENM, denm.encode(random_denm(random)))
        header = Header(37, NOW_US, location=(LATITUDE, LONGITUDE, place))
        unsecured = encode_gbc(random_vector(random), area, 1, body)
        basic = encode_basic_header(60_000, 10, secured=True)
        packets.append(vehicle.secured(unsecured, header, certificate=True, basic=basic))
    for curve in (Curve.BRAINPOOL_P256R1, Curve.BRAINPOOL_P384R1):
        key = SoftwareKey.generate(curve, compressed_r=curve is Curve.BRAINPOOL_P256R1)
        other = Vehicle(3, pki.ticket(key.public_key, NOW_US // 1_000_000 - 60), key)
        packets += [other.signed_cam(certificate=True), other.signed_cam()]
    asking = Header(CAM_PSID, NOW_US, inline_p2pcd_request=(b"abc", b"def"))
    answering = Header(CAM_PSID, NOW_US, requested_certificate=pki.aa.octets)
    packets += [vehicle.signed_cam(header=header) for header in (asking, answering)]
    vector = vehicle.position(NOW_US)
    secured = encode_basic_header(1000, 1, secured=True)
    packets.append(secured + encrypt_to_certificate(b"\x03\x80\x01a", pki.aa))
    packets.append(vehicle.secured(encode_shb(vector, b"", next_header=0), Header(GN_MANAGEMENT_PSID, NOW_US)))
    return packets


@dataclass(frozen=True)
class Seen:
    """A field as tshark shows it."""

    start: int
    size: int
    value: str


def by_tshark(path: Path) -> list[dict[str, list[Seen]]]:
    """The fields of each packet by name, in their order."""
    text = subprocess.run(["tshark", "-n", "-r", path, "-T", "pdml"], check=True, capture_output=True).stdout
    packets = []
    for packet in ElementTree.fromstring(text):
        fields: dict[str, list[Seen]] = {}
        for element in packet.iter():
            if element.tag in ("field", "proto") and element.get("pos") is not None:
                seen = Seen(int(element.get("pos", "")), int(element.get("size", "")), element.get("show", ""))
                fields.setdefault(element.get("name", ""), []).append(seen)
        packets.append(fields)
    return packets


def in_bits(tree: Sequence[Node]) -> bool:
    """Whether it is the tree of a vehicle's CAM, whose components have octets of their own."""
    containers = [node.value for node in found(tree, "highFrequencyContainer")]
    special = found(tree, "specialVehicleContainer") or found(tree, "cenDsrcTollingZone")
    return containers == ["basicVehicleContainerHighFrequency"] and not special


def test_values_and_octets_are_those_of_tshark(tmp_path: Path, pki: LabPki, vehicle: Vehicle) -> None:
    path = write_capture(tmp_path / "kinds.pcapng", *packets_of_all_kinds(pki, vehicle))
    compared: dict[str, int] = {}
    for packet, fields in zip(read_capture(path), by_tshark(path), strict=True):
        assert "_ws.malformed" not in fields
        tree = dissect(packet)
        assert not [node for _, node in every(tree) if node.fault]
        message = CAM if found(tree, "CAM") else DENM if found(tree, "DENM") else {}
        plain = in_bits(tree)
        paths = list(every(tree))
        for name, judged in (HEADERS | SECURITY | message).items():
            nodes = [node for path, node in paths if path.endswith(f"/{judged.node}")]
            seen = fields.get(name, [])
            assert len(nodes) == len(seen), f"{name}: {len(nodes)} nodes instead of {len(seen)}\n{as_text(tree)}"
            for node, one_seen in zip(nodes, seen, strict=True):
                compared[name] = compared.get(name, 0) + 1
                expected = judged.text(one_seen.value)
                if expected is not None and not node.value.startswith(("unavailable", "outOfRange")):
                    assert node.value.startswith(expected), f"{name}: {node.value} instead of {expected}"
                if name not in message:
                    assert (node.start, node.end - node.start) == (one_seen.start, one_seen.size), name
                elif plain:
                    extensible = name == "its.pathDeltaTime"  # the bit that says so is a part of it here
                    assert 0 <= one_seen.start - node.start <= extensible, name
                    assert 0 <= node.end - one_seen.start - one_seen.size <= 1, name
                else:
                    assert node.start <= one_seen.start and one_seen.start + one_seen.size <= node.end, name
    assert set(compared) == set(HEADERS | SECURITY | CAM | DENM), "each field occurs"


# Other octets


def test_packets_of_a_production_car_are_shown_whole() -> None:
    for name in ("gn_digest", "gn_fullcert"):
        tree = dissect(frame(recorded(name)))
        assert not [node for _, node in every(tree) if node.fault]
        assert one(tree, "header/stationID").value == "1289795728"
        assert one(tree, "headerInfo/psid").value == "CAM (36)"


def test_each_octet_leads_to_the_smallest_field(vehicle: Vehicle) -> None:
    packet = frame(vehicle.signed_denm())
    tree = dissect(packet)
    for octet in range(len(packet.octets)):
        path = innermost(tree, octet)
        assert path and path[-1].start <= octet < path[-1].end
    where = one(tree, "headerInfo/generationTime").start
    assert [node.name for node in innermost(tree, where)][-3:] == ["tbsData", "headerInfo", "generationTime"]
    message = one(tree, "DENM")
    assert innermost(tree, message.end - 1)[-1] is message, "its components have no octets of their own"
    assert innermost(tree, len(packet.octets)) == ()


def test_text_of_a_tree_has_a_line_for_each_field(vehicle: Vehicle) -> None:
    tree = dissect(frame(vehicle.unsigned_cam()))
    lines = as_text(tree).splitlines()
    assert len(lines) == len(list(every(tree)))
    assert "    remainingHopLimit: 1" in lines and "  basicHeader" in lines


def test_a_fault_leaves_the_rest_of_the_tree(pki: LabPki, vehicle: Vehicle) -> None:
    packet = bytearray(frame(vehicle.signed_cam(certificate=True)).octets)
    whole = dissect(frame(vehicle.signed_cam(certificate=True)))
    packet[one(whole, "CAM/header/protocolVersion").start] = 9
    tree = dissect(CapturedPacket(TIME_NS, ETHERNET, bytes(packet), len(packet)))
    assert one(tree, "CAM/not readable").value == "CAM has protocolVersion 9: only 2 is supported"
    assert one(tree, "headerInfo/generationTime") and one(tree, "signer/certificate"), "what follows is read"
    version = one(whole, "certificate/Certificate/version").start
    packet[version + 1] = 1
    tree = dissect(CapturedPacket(TIME_NS, ETHERNET, bytes(packet), len(packet)))
    fault = one(tree, "Certificate/not readable")
    assert fault.value.startswith("Implicit certificate, at octet") and fault.fault
    assert (fault.start, fault.end) == (version + 2, len(packet))
    assert not found(tree, "signedData/signature"), "where it begins is unknown"


def test_a_length_that_passes_the_end_leaves_what_is_signed_around_it(vehicle: Vehicle) -> None:
    packet = bytearray(frame(vehicle.signed_cam()).octets)
    length = one(dissect(frame(vehicle.signed_cam())), "commonHeader/payloadLength")
    packet[length.start : length.end] = b"\x03\xe8"
    tree = dissect(CapturedPacket(TIME_NS, ETHERNET, bytes(packet), len(packet)))
    (fault,) = (node for _, node in every(tree) if node.fault)
    assert fault.value.startswith("Truncated: 45 octets instead of 1000")
    assert one(tree, "CAM/header/stationID").value == "42", "what there is of it is read"
    assert one(tree, "headerInfo/generationTime") and one(tree, "signedData/signature/sSig")


def test_a_container_of_a_later_version_is_named(vehicle: Vehicle) -> None:
    body = cam.encode(vehicle.cam())
    before = f"{int.from_bytes(body, 'big'):0{len(body) * 8}b}"[:199]  # up to the choice of highFrequencyContainer
    bits = before + "1" + "0" * 7 + "00000001" + "0" * 9  # the first extension: an octet of zeros
    unsecured = encode_shb(vehicle.position(NOW_US), encode_btp_b(Port.CAM, int(bits, 2).to_bytes(28, "big")))
    tree = dissect(frame(encode_basic_header(1000, 1) + unsecured))
    assert one(tree, "camParameters/highFrequencyContainer").value == "of a later version of the standard"


def test_every_flipped_bit_of_a_message_has_a_tree(vehicle: Vehicle) -> None:
    packet = frame(vehicle.unsigned_cam())
    message = one(dissect(packet), "CAM")
    for bit in range(message.start * 8, message.end * 8):
        octets = bytearray(packet.octets)
        octets[bit // 8] ^= 0x80 >> bit % 8
        tree = dissect(packet._replace(octets=bytes(octets)))
        assert found(tree, "CAM/header/stationID") or found(tree, "CAM/not readable")


def test_every_cut_of_a_packet_has_a_tree_with_one_reason(vehicle: Vehicle) -> None:
    octets = frame(vehicle.signed_cam(certificate=True)).octets
    for size in range(14, len(octets)):
        tree = dissect(CapturedPacket(TIME_NS, ETHERNET, octets[:size], size))
        faults = [node for _, node in every(tree) if node.fault]
        assert faults and all(node.value for node in faults), size
        assert max(node.end for _, node in every(tree)) <= size
    cut = dissect(CapturedPacket(TIME_NS, ETHERNET, octets[:100], len(octets)))
    assert cut[-1].value == f"The capture has kept 100 of {len(octets)} octets"


@pytest.mark.parametrize("count", [100, pytest.param(600, marks=pytest.mark.nightly)])
def test_mutated_packets_have_a_tree(pki: LabPki, vehicle: Vehicle, count: int) -> None:
    """Nightly: 600 of each packet alone find rare damage that has no tree."""
    asking = Header(CAM_PSID, NOW_US, inline_p2pcd_request=(b"abc",))
    answering = Header(CAM_PSID, NOW_US, requested_certificate=pki.root.octets)
    secured = encode_basic_header(1000, 1, secured=True)
    packets = [
        vehicle.signed_cam(certificate=True, header=asking),
        vehicle.signed_cam(header=answering),
        vehicle.signed_denm(),
        vehicle.unsigned_cam(),
        secured + encrypt_to_certificate(b"\x03\x80\x01a", pki.aa),
    ]
    for seed, packet in enumerate(packets):
        for octets in mutations(frame(packet).octets, count, seed):
            tree = dissect(CapturedPacket(TIME_NS, ETHERNET, octets, len(octets)))
            assert tree and all(0 <= node.start <= node.end <= len(octets) for _, node in every(tree))


def test_frames_of_radiotap_and_other_protocols() -> None:
    sender = PositionVector(Address(b"\2\0\0\0\0\x2a", 5), 1000, LATITUDE, LONGITUDE)
    beacon = encode_basic_header(1000, 1) + bytes.fromhex("0010008000000100") + encode_shb(sender, b"")[8:32]
    radio = b"\x88\0" + bytes(24) + bytes.fromhex("aaaa030000008947") + beacon + b"\1\2\3\4"
    octets = b"\0\0\x09\0\x02\0\0\0\x10" + radio
    tree = dissect(CapturedPacket(0, IEEE80211_RADIOTAP, octets, len(octets)))
    assert [node.name for node in tree] == ["IEEE 802.11", "GeoNetworking", "frame check sequence"]
    assert one(tree, "beacon/sourcePositionVector/timestamp").value == "1,000 ms", "no time says which remainder"
    assert tree[-1].value == "01020304" and tree[-1].end == len(octets)
    (nothing,) = dissect(CapturedPacket(0, ETHERNET, bytes(14), 14))
    assert nothing.fault and "no GeoNetworking packet" in nothing.value


def test_a_time_is_completed_by_the_signature_or_the_capture(vehicle: Vehicle) -> None:
    late_ns = TIME_NS + 400 * 86_400 * 10**9
    signed = one(dissect(frame(vehicle.signed_cam(), time_ns=late_ns)), "generationDeltaTime")
    assert signed.value.endswith("(2023-11-14T22:13:20.000Z)"), "the capture's clock is wrong"
    unsigned = one(dissect(frame(vehicle.unsigned_cam(), time_ns=TIME_NS + 10**9)), "generationDeltaTime")
    assert unsigned.value.endswith("(2023-11-14T22:13:20.000Z)")
    assert its_us(TIME_NS) == NOW_US


def test_unknown_bits_of_a_message_are_named(vehicle: Vehicle) -> None:
    content = vehicle.cam()._replace(station_type=200, low_frequency=random_cam(Random(1)).low_frequency)
    tree = dissect(frame(vehicle.signed_cam(content)))
    assert one(tree, "basicContainer/stationType").value == "200"
    assert one(tree, "driveDirection").value == "unavailable (2)"


def test_keys_and_signatures_of_every_curve_and_form_are_shown(pki: LabPki) -> None:
    for curve in Curve:
        for compressed in (False, True):
            key = SoftwareKey.generate(curve, compressed_r=compressed)
            station = Vehicle(3, pki.ticket(key.public_key, NOW_US // 1_000_000 - 60), key)
            tree = dissect(frame(station.signed_cam(certificate=True)))
            assert not [node for _, node in every(tree) if node.fault]
            signature = one(tree, "signedData/signature")
            assert signature.value == curve.title
            r, s = signature.children
            assert (r.value == "x-only") is not compressed
            assert s.end - s.start == curve.size and s.end == signature.end
