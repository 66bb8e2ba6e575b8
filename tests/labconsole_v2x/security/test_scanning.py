"""What the slicer reads from octets of a second codec and of a production car, and what it refuses."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from labconsole_v2x.security.encoding import encode_certificate, encode_signature, encode_to_be_signed_certificate
from labconsole_v2x.security.keys import SoftwareKey, load_public_key, signature_digest
from labconsole_v2x.security.scanning import MalformedDataError, UnsupportedError, scan_certificate, scan_signed_data
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
    Signature,
    Validity,
)
from tests.helpers.vectors import recorded
from tests.labconsole_v2x.security import second_codec
from tests.labconsole_v2x.security.lab_certificates import verify_digest
from tests.labconsole_v2x.security.second_codec import certificate_value, signed_data_value

BASIC_HEADER_OCTETS = 4
KEY = PublicKey(Curve.P256, Point(PointForm.COMPRESSED_Y1, b"x" * 32))
SIGNATURE = Signature(Curve.P256, Point(PointForm.X_ONLY, b"r" * 32), b"s" * 32)


# The production car


@pytest.mark.parametrize("name", ["gn_digest", "gn_fullcert"])
def test_signatures_of_a_production_car_are_valid_and_spoiled_ones_are_not(name: str) -> None:
    ticket = scan_certificate(recorded("at_cert"))
    key = load_public_key(ticket.verification_key)
    octets = recorded(name)[BASIC_HEADER_OCTETS:]
    data = scan_signed_data(octets)

    def is_valid(tbs: bytes, signature: Signature) -> bool:
        return verify_digest(key, signature, signature_digest(data.hash_name, tbs, ticket.canonical))

    assert is_valid(data.tbs, data.signature)
    for index in range(0, len(data.tbs), 7):
        spoiled = bytearray(data.tbs)
        spoiled[index] ^= 1
        assert not is_valid(bytes(spoiled), data.signature)
    assert not is_valid(data.tbs, replace(data.signature, s=data.signature.s[:-1] + bytes((data.signature.s[-1] ^ 1,))))


def test_the_production_car_names_its_ticket_by_its_hash() -> None:
    octets = recorded("at_cert")
    ticket = scan_certificate(octets)
    digest_packet = scan_signed_data(recorded("gn_digest")[BASIC_HEADER_OCTETS:])
    certificate_packet = scan_signed_data(recorded("gn_fullcert")[BASIC_HEADER_OCTETS:])

    assert digest_packet.digest == ticket.hashed_id8
    assert certificate_packet.certificates == (octets,)
    assert ticket.hashed_id3 == ticket.hashed_id8[-3:]
    assert digest_packet.header == Header(36, 501_427_678_847_076)
    assert [permission.psid for permission in ticket.permissions] == [36, 37]


# Certificates


@pytest.mark.parametrize(
    ("value", "region"),
    [
        (
            ("circularRegion", {"center": {"latitude": 1, "longitude": -2}, "radius": 500}),
            Circle(1, -2, 500),
        ),
        (
            (
                "rectangularRegion",
                [
                    {
                        "northWest": {"latitude": 900_000_000, "longitude": -1_799_999_999},
                        "southEast": {"latitude": -900_000_000, "longitude": 1_800_000_000},
                    },
                ],
            ),
            (Rectangle(900_000_000, -1_799_999_999, -900_000_000, 1_800_000_000),),
        ),
        (
            ("polygonalRegion", [{"latitude": y, "longitude": x} for y, x in ((0, 0), (0, 9), (9, 0))]),
            ((0, 0), (0, 9), (9, 0)),
        ),
        (
            (
                "identifiedRegion",
                [
                    ("countryOnly", 276),
                    ("countryAndRegions", {"countryOnly": 250, "regions": [1, 2]}),
                    (
                        "countryAndSubregions",
                        {
                            "country": 840,
                            "regionAndSubregions": [{"region": 1, "subregions": [2, 3]}],
                        },
                    ),
                ],
            ),
            frozenset({276, 250, 840}),
        ),
    ],
)
def test_regions_are_read(value: Any, region: Any) -> None:
    assert scan_certificate(second_codec.encode_certificate(certificate_value(region=value))).region == region


def test_every_part_of_a_certificate_is_read() -> None:
    ranges = [
        {"psid": 36, "sspRange": ("bitmapSspRange", {"sspValue": b"\1\2\3", "sspBitmask": b"\xff\0\3"})},
        {"psid": 139, "sspRange": ("all", 0)},
        {"psid": 1_000_000},
    ]
    octets = second_codec.encode_certificate(
        certificate_value(
            id=("name", "Prüfstand"),
            assuranceLevel=b"\xc0",
            appPermissions=[{"psid": 623, "ssp": ("opaque", b"\1\x32")}, {"psid": 622}],
            certIssuePermissions=[
                {
                    "subjectPermissions": ("explicit", ranges),
                    "minChainLength": 2,
                    "chainLengthRange": -1,
                    "eeType": (0xC0, 8),
                }
            ],
            certRequestPermissions=[{"subjectPermissions": ("all", 0)}],
            encryptionKey={
                "supportedSymmAlg": "aes128Ccm",
                "publicKey": ("eciesBrainpoolP256r1", ("compressed-y-0", b"e" * 32)),
            },
        )
    )
    certificate = scan_certificate(octets)

    assert certificate.octets[slice(*certificate.tbs)] == octets[12:-66]
    assert (certificate.issuer, certificate.issuer_hash, certificate.name) == (b"issuer-1", "sha256", "Prüfstand")
    assert certificate.validity == Validity(700_000_000, 700_000_000 + 168 * 3600)
    assert certificate.assurance == 0xC0
    assert certificate.permissions == (Permission(623, b"\1\x32", bitmap=False), Permission(622))
    assert certificate.issue_permissions == (
        IssuePermission(
            (PermissionRange(36, b"\1\2\3", b"\xff\0\3"), PermissionRange(139), PermissionRange(1_000_000)),
            min_chain=2,
            chain_range=-1,
            application=True,
            enrolment=True,
        ),
    )
    assert certificate.request_permissions == (IssuePermission(None),)
    encryption_key = PublicKey(Curve.BRAINPOOL_P256R1, Point(PointForm.COMPRESSED_Y0, b"e" * 32))
    assert certificate.encryption_key == encryption_key
    assert (certificate.verification_key, certificate.signature) == (KEY, SIGNATURE)


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [
        (("microseconds", 1), 1),  # the end is excluded, so it is rounded up
        (("milliseconds", 1001), 2),
        (("seconds", 60), 60),
        (("minutes", 3), 180),
        (("sixtyHours", 2), 432_000),
        (("years", 3), 3 * 31_556_952),
    ],
)
def test_validity_is_read_in_every_unit(duration: Any, seconds: int) -> None:
    value = certificate_value(validityPeriod={"start": 5, "duration": duration})
    assert scan_certificate(second_codec.encode_certificate(value)).validity == Validity(5, 5 + seconds)


@pytest.mark.parametrize("curve", Curve)
def test_canonical_form_is_that_of_the_twin_with_compressed_keys_and_x_only(curve: Curve) -> None:
    key, encryption_key = SoftwareKey.generate(curve).public_key, SoftwareKey.generate().public_key
    twin = _certificate(key, encryption_key, PointForm.X_ONLY)
    for form in (PointForm.COMPRESSED_Y0, PointForm.UNCOMPRESSED):
        other = _certificate(_uncompressed(key), _uncompressed(encryption_key), form)
        assert other.octets != twin.octets
        assert other.canonical == twin.octets
        assert other.hashed_id8 == hashlib.new(curve.hash_name, twin.octets).digest()[-8:]
    assert twin.canonical == twin.octets


def test_canonical_form_of_octets_of_the_second_codec() -> None:
    value = certificate_value()
    canonical = second_codec.encode_certificate(value)
    value["signature"] = ("ecdsaNistP256Signature", {"rSig": ("compressed-y-0", b"r" * 32), "sSig": b"s" * 32})
    uncompressed = ("uncompressedP256", {"x": b"x" * 32, "y": b"y" * 32})  # odd, as compressed-y-1 says
    value["toBeSigned"]["verifyKeyIndicator"] = ("verificationKey", ("ecdsaNistP256", uncompressed))
    certificate = scan_certificate(second_codec.encode_certificate(value))
    assert certificate.canonical == canonical
    assert certificate.hashed_id8 == hashlib.sha256(canonical).digest()[-8:]


def _certificate(key: PublicKey, encryption_key: PublicKey, form: PointForm) -> Any:
    size = key.curve.size
    r = Point(form, b"r" * size, b"y" * size if form is PointForm.UNCOMPRESSED else b"")
    tbs = encode_to_be_signed_certificate(
        name="twin", validity=Validity(0, 60), verification_key=key, encryption_key=encryption_key
    )
    return scan_certificate(
        encode_certificate(tbs, b"issuer-1", "sha384", encode_signature(Signature(key.curve, r, b"s" * size)))
    )


def _uncompressed(key: PublicKey) -> PublicKey:
    numbers = load_public_key(key).public_numbers()
    size = key.curve.size
    return PublicKey(
        key.curve, Point(PointForm.UNCOMPRESSED, numbers.x.to_bytes(size, "big"), numbers.y.to_bytes(size, "big"))
    )


# Signed data


def test_every_field_of_the_header_is_read() -> None:
    requested = second_codec.encode_certificate(certificate_value())
    octets = second_codec.encode_data(
        signed_data_value(
            {
                "psid": 0x80FF,
                "expiryTime": 700_000_001_000_000,
                "generationLocation": {"latitude": -1, "longitude": 2, "elevation": 4096 + 500},
                "p2pcdLearningRequest": b"one",
                "missingCrlIdentifier": {"cracaId": b"two", "crlSeries": 258},
                "encryptionKey": (
                    "public",
                    {"supportedSymmAlg": "aes128Ccm", "publicKey": ("eciesNistP256", ("compressed-y-1", b"x" * 32))},
                ),
                "inlineP2pcdRequest": [b"abc", b"def"],
                "requestedCertificate": certificate_value(),
            }
        )
    )
    data = scan_signed_data(octets)
    assert data.header == Header(
        0x80FF,
        700_000_000_000_000,
        700_000_001_000_000,
        (-1, 2, 500),
        b"one",
        b"two\x01\x02",
        KEY,
        (b"abc", b"def"),
        requested,
    )
    assert octets[3 : 3 + len(data.tbs)] == data.tbs
    assert (data.payload, data.digest, data.certificates) == (b"payload", b"digest-8", ())
    assert (data.hash_name, data.signature) == ("sha256", SIGNATURE)


def _with_additions(bitmap: str, *additions: str) -> bytes:
    """Signed data whose header ends with these extension additions, as hexadecimal octets."""
    octets = second_codec.encode_data(signed_data_value())
    end = octets.index(b"\x80digest-8")
    start = end - 11  # preamble, PSID, and time
    return (
        octets[:start] + b"\xc0" + octets[start + 1 : end] + bytes.fromhex(bitmap + "".join(additions)) + octets[end:]
    )


@pytest.mark.parametrize(
    ("bitmap", "additions", "requests", "unknown"),
    [
        ("0206c0", ["050101616263", "03c0ffee"], (b"abc",), False),  # two bits, IEEE 1609.2-2016
        ("0205a0", ["050101616263", "0107"], (b"abc",), True),  # three bits, as a production car sends
        ("020420", ["0107"], (), True),
        ("0403000080", ["820100" + "00" * 256], (), True),  # the 17th of 21
        ("0206" + "00", [], (), False),
    ],
)
def test_extension_bitmaps_of_any_length_are_read(
    bitmap: str, additions: list[str], requests: tuple[bytes, ...], unknown: bool
) -> None:
    octets = _with_additions(bitmap, *additions)
    data = scan_signed_data(octets)
    assert (data.header.inline_p2pcd_request, data.header.unknown) == (requests, unknown)
    assert data.tbs == octets[3 : octets.index(b"\x80digest-8")]
    assert data.header.generation_time == 700_000_000_000_000


@pytest.mark.parametrize(
    ("bitmap", "additions"),
    [
        ("0109", []),  # no octet of bits
        ("020980", ["00"]),  # nine unused bits
        ("020680", ["060101616263" + "00"]),  # an octet after the list
        ("020680", ["050201616263"]),  # two octets for the number of items
        ("020680", ["81050101616263"]),  # a length that is not the shortest
        ("020680", ["84ffffffff"]),
    ],
)
def test_broken_extensions_are_refused(bitmap: str, additions: list[str]) -> None:
    with pytest.raises(MalformedDataError):
        scan_signed_data(_with_additions(bitmap, *additions))


def test_extensions_of_the_payload_are_passed_over_and_reported() -> None:
    # IEEE 1609.2-2022 adds "omitted", a NULL, which is an open type without octets.
    usual = b"\x40\x03\x80\x07payload"
    octets = second_codec.encode_data(signed_data_value())
    data = scan_signed_data(octets.replace(usual, b"\xc0" + usual[1:] + b"\x02\x07\x80\x00"))
    assert (data.payload, data.header) == (b"payload", Header(36, 700_000_000_000_000, unknown=True))


def test_all_kinds_of_signer_are_read() -> None:
    certificates = [certificate_value(), certificate_value(id=("name", "second"))]
    octets = tuple(map(second_codec.encode_certificate, certificates))
    several = scan_signed_data(second_codec.encode_data(signed_data_value(signer=("certificate", certificates))))
    one = second_codec.encode_data(signed_data_value(signer=("certificate", certificates[:1])))
    alone = scan_signed_data(second_codec.encode_data(signed_data_value(signer=("self", 0))))
    assert several.certificates == octets
    assert [scan_signed_data(one).certificates for _ in range(2)] == [octets[:1]] * 2  # the second one is remembered
    assert (alone.digest, alone.certificates) == (None, ())
    with pytest.raises(MalformedDataError, match="No certificate"):
        scan_signed_data(second_codec.encode_data(signed_data_value(signer=("certificate", []))))


@pytest.mark.parametrize("length", [0, 1, 127, 128, 255, 256, 1398, 65_536])
def test_payloads_of_any_length_are_read(length: int) -> None:
    payload = random.Random(length).randbytes(length)
    value = signed_data_value(
        tbsData={
            "payload": {"data": {"protocolVersion": 3, "content": ("unsecuredData", payload)}},
            "headerInfo": {"psid": 36},
        }
    )
    data = scan_signed_data(second_codec.encode_data(value))
    assert (data.payload, data.header) == (payload, Header(36))


@pytest.mark.parametrize(
    "payload",
    [
        {"extDataHash": ("sha256HashedData", bytes(32))},
        {"extDataHash": ("sha384HashedData", bytes(48))},
        {"data": {"protocolVersion": 3, "content": ("signedCertificateRequest", b"request")}},
    ],
)
def test_other_payloads_than_unsecured_data_are_passed_over(payload: Any) -> None:
    value = signed_data_value(tbsData={"payload": payload, "headerInfo": {"psid": 37, "generationTime": 9}})
    data = scan_signed_data(second_codec.encode_data(value))
    assert (data.payload, data.header, data.digest) == (None, Header(37, 9), b"digest-8")


def test_signed_data_inside_signed_data_is_passed_over() -> None:
    # Put together here: pycrate encodes the inner header in both places.
    outer = second_codec.encode_data(signed_data_value({"psid": 37}))
    data = scan_signed_data(outer.replace(b"\x03\x80\x07payload", SIGNED_DATA))
    assert (data.payload, data.header.psid, len(data.tbs)) == (None, 37, len(outer) + len(SIGNED_DATA) - 10 - 3 - 75)


def test_data_nested_without_end_is_refused() -> None:
    octets = b"\x03\x81\x00\x40" * 100_000
    with pytest.raises(MalformedDataError, match="nested"):
        scan_signed_data(octets)


def test_the_longer_curve_is_read_from_its_extension() -> None:
    key = ("ecdsaBrainpoolP384r1", ("compressed-y-0", b"x" * 48))
    for r in (("x-only", b"r" * 48), ("uncompressedP384", {"x": b"r" * 48, "y": b"y" * 48})):
        signature = ("ecdsaBrainpoolP384r1Signature", {"rSig": r, "sSig": b"s" * 48})
        certificate = certificate_value(verifyKeyIndicator=("verificationKey", key)) | {
            "issuer": ("sha384AndDigest", b"issuer-2"),
            "signature": signature,
        }
        scanned = scan_certificate(second_codec.encode_certificate(certificate))
        data = scan_signed_data(second_codec.encode_data(signed_data_value(hashId="sha384", signature=signature)))
        assert (scanned.issuer, scanned.issuer_hash) == (b"issuer-2", "sha384")
        assert scanned.verification_key.curve is data.signature.curve is Curve.BRAINPOOL_P384R1
        assert (data.signature.r.x, data.signature.s, data.hash_name) == (b"r" * 48, b"s" * 48, "sha384")


# What is refused


def _changed(octets: bytes, at: int, value: int) -> bytes:
    return octets[:at] + bytes((value,)) + octets[at + 1 :]


SIGNED_DATA = second_codec.encode_data(signed_data_value())
CERTIFICATE = second_codec.encode_certificate(certificate_value())
KEY_AT = CERTIFICATE.index(b"\x83" + b"x" * 32)
PLAIN_CERTIFICATE = second_codec.encode_certificate(certificate_value(appPermissions=[{"psid": 0x26E}]))
SSP_AT = CERTIFICATE.index(b"\x81\x04\x03\x01\x00\x00")


@pytest.mark.parametrize(
    ("octets", "scan", "message"),
    [
        (_changed(CERTIFICATE, 2, 1), scan_certificate, "Implicit"),
        (_changed(CERTIFICATE, 3, 0x83), scan_certificate, "Issuer"),
        (_changed(CERTIFICATE, KEY_AT - 1, 0x84), scan_certificate, "Verification key on curve 4"),  # SM2
        (_changed(CERTIFICATE, len(CERTIFICATE) - 66, 0x84), scan_certificate, "Signature on curve 4"),
        (_changed(SIGNED_DATA, len(SIGNED_DATA) - 66, 0x84), scan_signed_data, "Signature on curve 4"),
        (_changed(SIGNED_DATA, 2, 2), scan_signed_data, "Hash algorithm 2"),  # SM3
    ],
)
def test_what_is_not_supported_is_named(octets: bytes, scan: Callable[[bytes], object], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        scan(octets)


@pytest.mark.parametrize(
    ("octets", "scan"),
    [
        (_changed(SIGNED_DATA, 0, 2), scan_signed_data),
        (_changed(SIGNED_DATA, 1, 0x80), scan_signed_data),
        (_changed(SIGNED_DATA, len(SIGNED_DATA) - 65, 0x81), scan_signed_data),  # R without octets
        (_changed(CERTIFICATE, 0, 0), scan_certificate),
        (_changed(CERTIFICATE, 0, 0x81), scan_certificate),
        (_changed(CERTIFICATE, 1, 2), scan_certificate),
        (_changed(CERTIFICATE, KEY_AT, 0x80), scan_certificate),  # a key by its x only
        (_changed(CERTIFICATE, SSP_AT + 1, 5), scan_certificate),  # an open type longer than its content
        (_changed(PLAIN_CERTIFICATE, PLAIN_CERTIFICATE.index(b"\0\2\2\x6e"), 1), scan_certificate),  # an unused bit
        (second_codec.encode_certificate(certificate_value(appPermissions=[{"psid": 1}] * 1025)), scan_certificate),
        (b"", scan_signed_data),
        (b"", scan_certificate),
    ],
)
def test_what_breaks_the_standard_is_refused(octets: bytes, scan: Callable[[bytes], object]) -> None:
    with pytest.raises(MalformedDataError):
        scan(octets)


@pytest.mark.parametrize(("octets", "scan"), [(SIGNED_DATA, scan_signed_data), (CERTIFICATE, scan_certificate)])
def test_truncated_octets_and_trailing_ones_are_refused(octets: bytes, scan: Callable[[bytes], object]) -> None:
    for length in range(len(octets)):
        with pytest.raises(MalformedDataError):
            scan(octets[:length])
    with pytest.raises(MalformedDataError, match="Trailing"):
        scan(octets + b"\0")


def test_mutants_raise_nothing_but_malformed_data_errors() -> None:
    rich_header = {
        "generationLocation": {"latitude": 1, "longitude": 2, "elevation": 3},
        "inlineP2pcdRequest": [b"abc"],
        "requestedCertificate": certificate_value(),
    }
    region = ("identifiedRegion", [("countryAndRegions", {"countryOnly": 250, "regions": [1, 2]})])
    issue = [{"subjectPermissions": ("explicit", [{"psid": 36, "sspRange": ("all", 0)}]), "minChainLength": 2}]
    rich_certificate = certificate_value(id=("name", "é"), region=region, certIssuePermissions=issue)
    seeds: list[tuple[bytes, Callable[[bytes], object]]] = [
        (SIGNED_DATA, scan_signed_data),
        (second_codec.encode_data(signed_data_value(rich_header)), scan_signed_data),
        (second_codec.encode_data(signed_data_value(signer=("certificate", [rich_certificate]))), scan_signed_data),
        (second_codec.encode_certificate(rich_certificate), scan_certificate),
    ]
    source = random.Random(13)
    refused = 0
    for number in range(5_000):
        octets, scan = seeds[number % len(seeds)]
        mutant = bytearray(octets)
        for _ in range(source.randint(1, 4)):
            at = source.randrange(len(mutant))
            kind = source.randrange(4)
            if kind == 0:
                mutant[at] ^= 1 << source.randrange(8)
            elif kind == 1:
                mutant[at] = source.choice((0, 0x7F, 0x80, 0x81, 0x84, 0xFF))
            elif kind == 2:
                del mutant[at : at + source.randint(1, 9)]
            else:
                mutant[at:at] = source.randbytes(source.randint(1, 9))
            mutant = mutant or bytearray(1)
        try:
            scan(bytes(mutant))
        except MalformedDataError:
            refused += 1
    assert 1_000 < refused < 5_000  # many, and not all: a bit of the payload may be any
