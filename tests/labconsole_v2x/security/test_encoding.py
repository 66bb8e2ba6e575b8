"""What a second codec reads from what is encoded here."""

from __future__ import annotations

from typing import Any

import pytest

from labconsole_v2x.security.encoding import (
    EncodingError,
    encode_certificate,
    encode_signature,
    encode_signed_data,
    encode_signer,
    encode_to_be_signed_certificate,
    encode_to_be_signed_data,
)
from labconsole_v2x.security.structures import (
    Circle,
    Curve,
    Header,
    IssuePermission,
    Permission,
    PermissionRange,
    Point,
    PointForm,
    PublicKey,
    Rectangle,
    Region,
    Signature,
    Validity,
)
from tests.labconsole_v2x.security import second_codec
from tests.labconsole_v2x.security.second_codec import certificate_value, signed_data_value

KEY = PublicKey(Curve.P256, Point(PointForm.COMPRESSED_Y1, b"x" * 32))
SIGNATURE = Signature(Curve.P256, Point(PointForm.X_ONLY, b"r" * 32), b"s" * 32)
WEEK = Validity(700_000_000, 700_000_000 + 168 * 3600)


def encoded_certificate(**given: Any) -> bytes:
    tbs = encode_to_be_signed_certificate(
        **({"name": "", "validity": WEEK, "verification_key": KEY, "permissions": [Permission(36, b"\1\0\0")]} | given)
    )
    return encode_certificate(tbs, b"issuer-1", "sha256", encode_signature(SIGNATURE))


def read_certificate(**given: Any) -> dict[str, Any]:
    read: dict[str, Any] = second_codec.decode_certificate(encoded_certificate(**given))["toBeSigned"]
    return read


def test_a_certificate_with_every_part_is_read_by_the_second_codec() -> None:
    issue = IssuePermission(
        (PermissionRange(36, b"\1\2\3", b"\xff\0\3"), PermissionRange(1_000_000)),
        min_chain=2,
        chain_range=-1,
        enrolment=True,
    )
    octets = encoded_certificate(
        name="Prüfstand",
        validity=Validity(5, 5 + 60),
        assurance=0xC0,
        permissions=[Permission(623, b"\1\x32", bitmap=False), Permission(622), Permission(37, b"\1\2\3\4")],
        issue_permissions=[issue],
        request_permissions=[IssuePermission(None), IssuePermission(None, 300, 128, False, True)],
        encryption_key=PublicKey(Curve.BRAINPOOL_P256R1, Point(PointForm.UNCOMPRESSED, b"x" * 32, b"y" * 32)),
    )
    bitmap_range = {"sspValue": b"\1\2\3", "sspBitmask": b"\xff\0\3"}
    expected = certificate_value(
        id=("name", "Prüfstand"),
        validityPeriod={"start": 5, "duration": ("minutes", 1)},
        assuranceLevel=b"\xc0",
        appPermissions=[
            {"psid": 623, "ssp": ("opaque", b"\1\x32")},
            {"psid": 622},
            {"psid": 37, "ssp": ("bitmapSsp", b"\1\2\3\4")},
        ],
        certIssuePermissions=[
            {
                "subjectPermissions": (
                    "explicit",
                    [{"psid": 36, "sspRange": ("bitmapSspRange", bitmap_range)}, {"psid": 1_000_000}],
                ),
                "minChainLength": 2,
                "chainLengthRange": -1,
                "eeType": (0xC0, 8),
            }
        ],
        certRequestPermissions=[
            {"subjectPermissions": ("all", 0)},
            {
                "subjectPermissions": ("all", 0),
                "minChainLength": 300,
                "chainLengthRange": 128,
                "eeType": (0x40, 8),
            },
        ],
        encryptionKey={
            "supportedSymmAlg": "aes128Ccm",
            "publicKey": ("eciesBrainpoolP256r1", ("uncompressedP256", {"x": b"x" * 32, "y": b"y" * 32})),
        },
    )
    assert octets == second_codec.encode_certificate(expected)


@pytest.mark.parametrize(
    ("region", "expected"),
    [
        (
            Circle(-900_000_000, 1_800_000_000, 65_535),
            ("circularRegion", {"center": {"latitude": -900_000_000, "longitude": 1_800_000_000}, "radius": 65_535}),
        ),
        (
            (Rectangle(4, 1, 2, 3), Rectangle(8, 5, 6, 7)),
            (
                "rectangularRegion",
                [
                    {"northWest": {"latitude": y, "longitude": x}, "southEast": {"latitude": y - 2, "longitude": x + 2}}
                    for y, x in ((4, 1), (8, 5))
                ],
            ),
        ),
        (
            ((0, 0), (0, 9), (-9, 0)),
            ("polygonalRegion", [{"latitude": y, "longitude": x} for y, x in ((0, 0), (0, 9), (-9, 0))]),
        ),
        (frozenset({276, 40}), ("identifiedRegion", [("countryOnly", 40), ("countryOnly", 276)])),
    ],
)
def test_regions_are_read_by_the_second_codec(region: Region, expected: Any) -> None:
    assert read_certificate(region=region)["region"] == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, ("years", 0)),
        (120, ("minutes", 2)),
        (66, ("seconds", 66)),
        (65_535, ("seconds", 65_535)),
        (65_580, ("minutes", 1_093)),
        (65_536 * 60, None),
        (66_000 * 60, ("hours", 1_100)),
        (65_536 * 3600, None),
        (65_580 * 3600, ("sixtyHours", 1_093)),
        (20 * 31_556_952, ("years", 20)),
    ],
)
def test_validity_is_exact_or_refused(seconds: int, expected: Any) -> None:
    validity = Validity(7, 7 + seconds)
    if expected is None:
        with pytest.raises(EncodingError, match=f"{seconds} s"):
            read_certificate(validity=validity)
    else:
        assert read_certificate(validity=validity)["validityPeriod"] == {"start": 7, "duration": expected}


def test_what_cannot_be_encoded_is_refused() -> None:
    with pytest.raises(EncodingError, match="three corners"):
        encoded_certificate(region=((0, 0), (1, 1)))
    with pytest.raises(EncodingError, match="P-384"):
        encoded_certificate(encryption_key=PublicKey(Curve.P384, Point(PointForm.COMPRESSED_Y0, b"x" * 48)))


@pytest.mark.parametrize(
    ("issuer", "issuer_hash", "expected"),
    [
        (None, "sha256", ("self", "sha256")),
        (None, "sha384", ("self", "sha384")),
        (b"issuer-1", "sha256", ("sha256AndDigest", b"issuer-1")),
        (b"issuer-2", "sha384", ("sha384AndDigest", b"issuer-2")),
    ],
)
def test_issuers_are_read_by_the_second_codec(issuer: bytes | None, issuer_hash: str, expected: Any) -> None:
    tbs = encode_to_be_signed_certificate(name="", validity=WEEK, verification_key=KEY)
    certificate = encode_certificate(tbs, issuer, issuer_hash, encode_signature(SIGNATURE))
    assert second_codec.decode_certificate(certificate)["issuer"] == expected


@pytest.mark.parametrize(
    ("curve", "size", "name"),
    [
        (Curve.P256, 32, "ecdsaNistP256"),
        (Curve.BRAINPOOL_P256R1, 32, "ecdsaBrainpoolP256r1"),
        (Curve.BRAINPOOL_P384R1, 48, "ecdsaBrainpoolP384r1"),
    ],
)
def test_keys_and_signatures_of_each_curve_are_read_by_the_second_codec(curve: Curve, size: int, name: str) -> None:
    x, y, s = b"x" * size, b"y" * size, b"s" * size
    forms: list[tuple[Point, Any]] = [
        (Point(PointForm.COMPRESSED_Y0, x), ("compressed-y-0", x)),
        (Point(PointForm.COMPRESSED_Y1, x), ("compressed-y-1", x)),
        (Point(PointForm.UNCOMPRESSED, x, y), (f"uncompressedP{size * 8}", {"x": x, "y": y})),
    ]
    for point, expected in forms:
        tbs = encode_to_be_signed_certificate(name="", validity=WEEK, verification_key=PublicKey(curve, point))
        octets = encode_certificate(tbs, None, curve.hash_name, encode_signature(Signature(curve, point, s)))
        read = second_codec.decode_certificate(octets)
        assert read["toBeSigned"]["verifyKeyIndicator"] == ("verificationKey", (name, expected))
        assert read["signature"] == (f"{name}Signature", {"rSig": expected, "sSig": s})


def test_nist_p384_takes_the_next_alternative_of_the_later_standard() -> None:
    # IEEE 1609.2-2022 adds ecdsaNistP384 after ecdsaBrainpoolP384r1, with the same content: all but the tags is alike.
    octets = {}
    for curve in (Curve.BRAINPOOL_P384R1, Curve.P384):
        point = Point(PointForm.COMPRESSED_Y0, b"x" * 48)
        tbs = encode_to_be_signed_certificate(name="", validity=WEEK, verification_key=PublicKey(curve, point))
        octets[curve] = encode_certificate(tbs, None, "sha384", encode_signature(Signature(curve, point, b"s" * 48)))
    expected = octets[Curve.BRAINPOOL_P384R1].replace(b"\x82\x31\x82x", b"\x83\x31\x82x")
    assert octets[Curve.P384] == expected.replace(b"\x82\x61\x82x", b"\x83\x61\x82x")
    assert octets[Curve.P384] != octets[Curve.BRAINPOOL_P384R1]


def encoded_data(header: Header, signer: bytes) -> bytes:
    return encode_signed_data(
        "sha256", encode_to_be_signed_data(b"payload", header), signer, encode_signature(SIGNATURE)
    )


def test_signed_data_with_every_header_field_is_read_by_the_second_codec() -> None:
    header = Header(
        psid=0x80FF,
        generation_time=700_000_000_000_000,
        expiry_time=700_000_001_000_000,
        location=(-900_000_000, 1_800_000_001, -4096),
        p2pcd_learning_request=b"one",
        missing_crl=b"two\x01\x02",
        encryption_key=KEY,
        inline_p2pcd_request=(b"abc", b"def"),
        requested_certificate=encoded_certificate(),
    )
    key = {"supportedSymmAlg": "aes128Ccm", "publicKey": ("eciesNistP256", ("compressed-y-1", b"x" * 32))}
    expected = signed_data_value(
        {
            "psid": 0x80FF,
            "expiryTime": 700_000_001_000_000,
            "generationLocation": {"latitude": -900_000_000, "longitude": 1_800_000_001, "elevation": 0},
            "p2pcdLearningRequest": b"one",
            "missingCrlIdentifier": {"cracaId": b"two", "crlSeries": 258},
            "encryptionKey": ("public", key),
            "inlineP2pcdRequest": [b"abc", b"def"],
            "requestedCertificate": certificate_value(),
        }
    )
    assert encoded_data(header, encode_signer(digest=b"digest-8")) == second_codec.encode_data(expected)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (Header(0), {"psid": 0}),
        (Header(37, 1, location=(1, 2, 3)), {"generationLocation": {"latitude": 1, "longitude": 2, "elevation": 4099}}),
        (Header(36, 1, inline_p2pcd_request=(b"abc",)), {"inlineP2pcdRequest": [b"abc"]}),
        (Header(36, 1, requested_certificate=encoded_certificate()), {"requestedCertificate": certificate_value()}),
    ],
)
def test_headers_are_read_by_the_second_codec(header: Header, expected: dict[str, Any]) -> None:
    time = {} if header.generation_time is None else {"generationTime": header.generation_time}
    data = second_codec.decode_data(encoded_data(header, encode_signer()))["content"][1]
    assert data["tbsData"]["headerInfo"] == {"psid": header.psid} | time | expected


def test_signers_are_read_by_the_second_codec() -> None:
    certificate = encoded_certificate()
    signers = [
        (encode_signer(digest=b"digest-8"), ("digest", b"digest-8")),
        (encode_signer([certificate] * 2), ("certificate", [certificate_value()] * 2)),
        (encode_signer(), ("self", 0)),
    ]
    for signer, expected in signers:
        assert second_codec.decode_data(encoded_data(Header(36), signer))["content"][1]["signer"] == expected
