"""GeoNetworking and BTP headers: round trips, the kinds that are only read, and what is refused."""

from __future__ import annotations

import re
from random import Random

import pytest

from labconsole_v2x.messages.btp import BtpError, BtpPacket, encode_btp_b, parse_btp
from labconsole_v2x.messages.geonetworking import (
    Address,
    Area,
    BasicHeader,
    GeoNetworkingError,
    Kind,
    Packet,
    PositionVector,
    Shape,
    ShortPositionVector,
    carried_payload,
    encode_basic_header,
    encode_gbc,
    encode_guc,
    encode_shb,
    lifetime_octet,
    parse_packet,
    parse_unsecured,
)
from tests.labconsole_v2x.messages.random_messages import random_vector

MAC = bytes.fromhex("fe384ce0b890")
SENDER = PositionVector(Address(MAC, 5), 0xBF6B2B74, 524_626_024, 107_219_301, True, 66, 959)
VECTOR = bytes.fromhex("1400fe384ce0b890bf6b2b741f45286806640965804203bf")
"""The position vector that a production car has sent (../shared/vectors)."""
SEQUENCE = bytes.fromhex("01020000")


def common(header_type: int, length: int = 2, next_header: int = 2) -> bytes:
    return bytes((next_header << 4, header_type, 0, 0x80, 0, length, 10, 0))


def test_header_octets_are_those_of_a_production_car() -> None:
    media_data = bytes.fromhex("0000a000")
    octets = encode_basic_header(1000, 1, secured=True) + encode_shb(SENDER, bytes(50), media_data=media_data)
    assert octets == bytes.fromhex("12000501" + "2050028000320100") + VECTOR + media_data + bytes(50)


def test_the_payload_that_a_packet_carries_is_found_without_reading_its_other_headers() -> None:
    random = Random("carried")
    area = Area(Shape.CIRCLE, 1, 2, 3)
    shb = encode_shb(random_vector(random), random.randbytes(60), next_header=1) + bytes(3)  # Ethernet's padding
    gbc = encode_gbc(random_vector(random), area, 7, random.randbytes(60))
    for octets in (shb, gbc):
        packet = parse_unsecured(octets)
        assert carried_payload(octets) == (packet.next_header, packet.payload)
    for octets in (b"", shb[:8], shb[:36], shb[:-4], gbc[:40], gbc[:-1], bytes(60)):
        with pytest.raises(GeoNetworkingError) as raised:
            parse_unsecured(octets)
        with pytest.raises(GeoNetworkingError, match=f"^{re.escape(str(raised.value))}$"):
            carried_payload(octets)


def test_shb_and_gbc_survive_encoding_and_parsing() -> None:
    random = Random("geonetworking")
    for _ in range(200):
        sender, payload = random_vector(random), random.randbytes(random.randint(0, 300))
        class_, mobile, media_data = random.randint(0, 255), random.random() < 0.5, random.randbytes(4)
        shb = parse_unsecured(
            encode_shb(sender, payload, next_header=1, traffic_class=class_, mobile=mobile, media_data=media_data)
        )
        assert (shb.kind, shb.next_header, shb.max_hops) == (Kind.SHB, 1, 1)
        assert (shb.traffic_class, shb.mobile, shb.media_data) == (class_, mobile, media_data)
        assert (shb.sender, shb.payload) == (sender, payload)

        place = (random.randint(-900_000_000, 900_000_000), random.randint(-1_800_000_000, 1_800_000_000))
        size = (random.randint(0, 65_535), random.randint(0, 65_535), random.randint(0, 360))
        area, number, hops = (
            Area(random.choice(list(Shape)), *place, *size),
            random.getrandbits(16),
            random.randrange(256),
        )
        gbc = parse_unsecured(encode_gbc(sender, area, number, payload, max_hops=hops, mobile=mobile))
        assert (gbc.kind, gbc.sender, gbc.area, gbc.payload) == (Kind.GBC, sender, area, payload)
        assert (gbc.sequence_number, gbc.max_hops, gbc.mobile) == (number, hops, mobile)


def test_guc_survives_encoding_and_parsing_and_has_the_octets_of_the_standard() -> None:
    random = Random("unicast")
    for _ in range(200):
        sender, receiver, number = random_vector(random), random_vector(random), random.getrandbits(16)
        destination = ShortPositionVector(*receiver[:4])
        payload, hops, mobile = random.randbytes(random.randint(0, 300)), random.randrange(256), random.random() < 0.5
        guc = parse_unsecured(encode_guc(sender, destination, number, payload, max_hops=hops, mobile=mobile))
        assert (guc.kind, guc.sender, guc.destination, guc.payload) == (Kind.GUC, sender, destination, payload)
        assert (guc.sequence_number, guc.max_hops, guc.mobile) == (number, hops, mobile)
    octets = encode_guc(SENDER, ShortPositionVector(*SENDER[:4]), 0x0102, b"ab", traffic_class=0)
    assert octets == common(0x20) + SEQUENCE + VECTOR + VECTOR[:20] + b"ab"


def test_unsecured_packets_are_parsed_whole_and_secured_ones_left_untouched() -> None:
    part = encode_shb(SENDER, b"payload")
    packet = parse_packet(encode_basic_header(60_000, 1) + part)
    assert packet == Packet(BasicHeader(False, 60_000, 1), None, parse_unsecured(part))
    secured = parse_packet(encode_basic_header(60_000, 7, secured=True) + b"any octets")
    assert secured == Packet(BasicHeader(True, 60_000, 7), b"any octets", None)


def test_beacon_guc_and_gac_are_read() -> None:
    beacon = parse_unsecured(common(0x10, 0, 0) + VECTOR + bytes(10))  # Ethernet's padding follows
    assert (beacon.kind, beacon.sender, beacon.payload) == (Kind.BEACON, SENDER, b"")

    guc = parse_unsecured(common(0x20) + SEQUENCE + VECTOR + VECTOR[:20] + b"ab")
    assert (guc.kind, guc.sequence_number, guc.sender, guc.payload) == (Kind.GUC, 0x0102, SENDER, b"ab")
    assert guc.destination == ShortPositionVector(Address(MAC, 5), 0xBF6B2B74, 524_626_024, 107_219_301)

    area = bytes.fromhex("ffffffff000000020064003200b40000")
    gac = parse_unsecured(common(0x32) + SEQUENCE + VECTOR + area + b"ab")
    assert (gac.kind, gac.area, gac.payload) == (Kind.GAC, Area(Shape.ELLIPSE, -1, 2, 100, 50, 180), b"ab")


@pytest.mark.parametrize(
    ("octets", "reason"),
    [
        (b"\x12\x00\x05", "basic header is truncated: 3 octets"),
        (b"\x02\x00\x05\x01", "version 0 is not supported"),
        (b"\x13\x00\x05\x01", "next header 3 of the basic header"),
        (b"\x11\x00\x05\x01" + common(0x50)[:7], "common header is truncated: 7 octets"),
        (b"\x11\x00\x05\x01" + common(0x50) + VECTOR, "extended header is truncated: 32 octets"),
        (b"\x11\x00\x05\x01" + common(0x50) + VECTOR + bytes(5), "payload is truncated: 1 octets instead of 2"),
        (b"\x11\x00\x05\x01" + common(0x51) + SEQUENCE + VECTOR + bytes(2), r"header type 5, subtype 1 \(TSB\)"),
        (b"\x11\x00\x05\x01" + common(0x60) + bytes(60), r"header type 6, subtype 0 \(location service\)"),
        (b"\x11\x00\x05\x01" + common(0x43) + bytes(60), "header type 4, subtype 3"),
    ],
)
def test_packets_that_cannot_be_read_are_refused_with_the_reason(octets: bytes, reason: str) -> None:
    with pytest.raises(GeoNetworkingError, match=reason):
        parse_packet(octets)


@pytest.mark.parametrize(
    ("lifetime_ms", "octet", "kept_ms"),
    [
        (50, 1 << 2 | 0, 50),
        (3150, 63 << 2 | 0, 3150),
        (3199, 63 << 2 | 0, 3150),
        (3200, 3 << 2 | 1, 3000),
        (1000, 1 << 2 | 1, 1000),
        (60_000, 6 << 2 | 2, 60_000),
        (600_000, 6 << 2 | 3, 600_000),
        (6_300_000, 63 << 2 | 3, 6_300_000),
    ],
)
def test_lifetimes_are_kept_as_multiplier_and_base(lifetime_ms: int, octet: int, kept_ms: int) -> None:
    assert lifetime_octet(lifetime_ms) == octet
    assert parse_packet(encode_basic_header(lifetime_ms, 1, secured=True)).basic.lifetime_ms == kept_ms


def test_values_that_no_header_can_have_are_refused() -> None:
    for lifetime_ms in (49, 6_300_001):
        with pytest.raises(GeoNetworkingError, match="lifetime"):
            encode_basic_header(lifetime_ms, 1)
    with pytest.raises(GeoNetworkingError, match="hop limit 256"):
        encode_basic_header(1000, 256)
    for faulty in (
        SENDER._replace(speed=16_384),
        SENDER._replace(latitude=1 << 31),
        SENDER._replace(address=Address(MAC[:5], 5)),
        SENDER._replace(address=Address(MAC, 32)),
    ):
        with pytest.raises(GeoNetworkingError):
            encode_shb(faulty, b"")
        with pytest.raises(GeoNetworkingError):
            encode_gbc(faulty, Area(Shape.CIRCLE, 0, 0, 1), 0, b"")
    with pytest.raises(GeoNetworkingError):
        encode_shb(SENDER, bytes(65_536))
    with pytest.raises(GeoNetworkingError, match="media-dependent data has 3 octets"):
        encode_shb(SENDER, b"", media_data=bytes(3))
    with pytest.raises(GeoNetworkingError):
        encode_gbc(SENDER, Area(Shape.CIRCLE, 0, 0, 65_536), 0, b"")


def test_btp_a_has_a_source_port_and_btp_b_has_port_info() -> None:
    octets = encode_btp_b(2002, b"denm", 9)
    assert octets == bytes.fromhex("07d20009") + b"denm"
    assert parse_btp(2, octets) == BtpPacket(2002, None, 9, b"denm")
    assert parse_btp(1, octets) == BtpPacket(2002, 9, None, b"denm")
    with pytest.raises(BtpError, match="next header 3 of GeoNetworking is not BTP"):
        parse_btp(3, octets)
    with pytest.raises(BtpError, match="truncated: 3 octets"):
        parse_btp(2, octets[:3])
    with pytest.raises(BtpError, match="port 65536"):
        encode_btp_b(65_536, b"")
