"""tshark reads packets with CAMs and DENMs; damaged ones raise the expected errors only."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from labconsole_v2x.messages import cam, denm
from labconsole_v2x.messages.asn1_modules import MessageError
from labconsole_v2x.messages.btp import BtpError, Port, encode_btp_b, parse_btp
from labconsole_v2x.messages.cam import Cam
from labconsole_v2x.messages.denm import Denm
from labconsole_v2x.messages.geonetworking import (
    Area,
    GeoNetworkingError,
    PositionVector,
    Shape,
    ShortPositionVector,
    encode_basic_header,
    encode_guc,
    parse_packet,
)
from tests.helpers.mutations import mutations
from tests.labconsole_v2x.messages.packets import cam_packet, denm_packet, dissected, write_capture
from tests.labconsole_v2x.messages.random_messages import random_cam, random_denm, random_vector

KINDS = ("vehicle", "vehicle", "toll zone", "special vehicle", "roadside unit")


VECTOR_FIELDS = (
    "geonw.src_pos.addr.manual",
    "geonw.src_pos.addr.type",
    "geonw.src_pos.addr.mid",
    "geonw.src_pos.tst",
    "geonw.src_pos.lat",
    "geonw.src_pos.long",
    "geonw.src_pos.pai",
    "geonw.src_pos.speed",
    "geonw.src_pos.hdg",
)


def vector_row(vector: PositionVector) -> list[str]:
    address = vector.address
    numbers = (vector.timestamp, vector.latitude, vector.longitude, int(vector.accurate), vector.speed, vector.heading)
    return [str(int(address.manual)), str(address.station_type), address.mac.hex(":"), *map(str, numbers)]


def test_tshark_reads_the_fields_of_every_cam(tmp_path: Path) -> None:
    random = Random("tshark cam")
    sent = [(random_vector(random), random_cam(random, kind)) for kind in KINDS * 40]
    path = tmp_path / "cam.pcap"
    write_capture(path, [cam_packet(*one) for one in sent])
    fields = ("_ws.malformed", "geonw.bh.rhl", "geonw.ch.htype", "btpb.dstport", *VECTOR_FIELDS)
    contents = ("its.stationID", "cam.generationDeltaTime", "its.latitude", "its.longitude", "its.altitudeValue")
    motion = ("its.headingValue", "its.speedValue", "its.yawRateValue", "its.curvatureValue", "its.vehicleLengthValue")
    rows = dissected(path, *fields, *contents, *motion)
    assert len(rows) == len(sent)
    for row, (vector, message) in zip(rows, sent, strict=True):
        place, moved = message.position, message.motion
        numbers = (message.station_id, message.generation_delta_time, place.latitude, place.longitude, place.altitude)
        assert row[:-5] == ["", "1", "0x50", "2001", *vector_row(vector), *map(str, numbers)]
        if moved is None:
            assert row[-5:] == [""] * 5
        else:
            expected = (moved.heading, moved.speed, moved.yaw_rate, moved.curvature, moved.length)
            assert row[-5:] == list(map(str, expected))


def test_tshark_reads_the_headers_of_every_geounicast(tmp_path: Path) -> None:
    random = Random("tshark guc")
    sent = [(random_vector(random), random_vector(random), number) for number in range(40)]
    path = tmp_path / "guc.pcap"
    payload = encode_btp_b(Port.CERTIFICATE_REQUEST, bytes(40))
    write_capture(
        path,
        [
            encode_basic_header(10_000, 10) + encode_guc(sender, ShortPositionVector(*receiver[:4]), number, payload)
            for sender, receiver, number in sent
        ],
    )
    fields = ("_ws.malformed", "geonw.ch.htype", "geonw.seq_num", "btpb.dstport", *VECTOR_FIELDS)
    destination = [name.replace("src", "dst") for name in VECTOR_FIELDS[:6]]
    for row, (sender, receiver, number) in zip(dissected(path, *fields, *destination), sent, strict=True):
        expected = ["", "0x20", f"0x{number:04x}", "2016", *vector_row(sender), *vector_row(receiver)[:6]]
        assert row == expected


def test_tshark_reads_the_fields_of_every_denm(tmp_path: Path) -> None:
    random = Random("tshark denm")
    sent = []
    for number in range(120):
        place = (random.randint(-900_000_000, 900_000_000), random.randint(-1_800_000_000, 1_800_000_000))
        area = Area(Shape(number % 3), *place, random.randint(1, 65_535), random.randint(0, 65_535), number)
        sent.append((random_vector(random), area, number, random_denm(random)))
    path = tmp_path / "denm.pcap"
    write_capture(path, [denm_packet(*one) for one in sent])
    header = ("_ws.malformed", "geonw.bh.rhl", "geonw.ch.htype", "geonw.seq_num", "btpb.dstport", "btpb.dstportinf")
    area_fields = ("geonw.gxc.latitude", "geonw.gxc.longitude", "geonw.gxc.radius", "geonw.gxc.distancea")
    action = ("its.originatingStationID", "its.sequenceNumber", "denm.detectionTime", "denm.referenceTime")
    contents = ("its.latitude", "its.longitude", "denm.validityDuration", "its.causeCode", "its.subCauseCode")
    rows = dissected(path, *header, *area_fields, *VECTOR_FIELDS, *action, *contents)
    assert len(rows) == len(sent)
    for row, (vector, area, number, message) in zip(rows, sent, strict=True):
        distances = [str(area.a), ""] if area.shape == Shape.CIRCLE else ["", str(area.a)]
        place = [str(area.latitude), str(area.longitude), *distances]
        assert row[:10] == ["", "10", f"0x4{area.shape:x}", f"0x{number:04x}", "2002", "0x0003", *place]
        assert row[10:19] == vector_row(vector)
        action = (message.originating_station_id, message.sequence_number)
        times = (message.detection_us // 1000, message.reference_us // 1000)
        position = (message.position.latitude, message.position.longitude)
        event = ("", "") if message.situation is None else (message.situation.cause, message.situation.sub_cause)
        assert row[19:] == list(map(str, (*action, *times, *position, message.validity_s, *event)))


@pytest.mark.parametrize("count", [300, pytest.param(2_000, marks=pytest.mark.nightly)])
def test_damaged_packets_raise_the_expected_errors_only(count: int) -> None:
    """Nightly: 2,000 of each packet alone find rare damage that raises another error."""
    random = Random("damaged")
    area = Area(Shape.RECTANGLE, 1, 2, 3, 4, 5)
    packets = [cam_packet(random_vector(random), random_cam(random, kind)) for kind in KINDS]
    packets.append(denm_packet(random_vector(random), area, 1, random_denm(random)))
    refused = read = 0
    for seed, packet in enumerate(packets):
        for damaged in mutations(packet, count, seed):
            try:
                unsecured = parse_packet(damaged).unsecured
                if unsecured is None:
                    continue
                btp = parse_btp(unsecured.next_header, unsecured.payload)
                message = denm.decode(btp.payload) if btp.destination_port == Port.DENM else cam.decode(btp.payload)
                assert isinstance(message, Cam | Denm)
                read += 1
            except (GeoNetworkingError, BtpError, MessageError):
                refused += 1
    assert refused > count
    assert read > count


@pytest.mark.parametrize("count", [80, pytest.param(400, marks=pytest.mark.nightly)])
def test_damaged_messages_that_are_read_can_be_sent_again(count: int) -> None:
    """Nightly: 400 of each kind alone find rare values that are read and not written."""
    random = Random("again")
    for seed, kind in enumerate(KINDS):
        octets = cam.encode(random_cam(random, kind))
        for damaged in mutations(octets, count, seed):
            try:
                message = cam.decode(damaged)
            except MessageError:
                continue
            assert cam.decode(cam.encode(message)) == message
