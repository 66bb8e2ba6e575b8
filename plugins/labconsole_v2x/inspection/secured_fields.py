"""Secured packets and their certificates as nodes, with the field names of IEEE 1609.2 (profile of TS 103 097).

The octets of a node leave out a length in front of it, as Wireshark's do; those of a CHOICE have its tag.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from labconsole_v2x.inspection.capture_certificates import identified
from labconsole_v2x.inspection.field_tree import Walk, degrees, named, utc_text, with_unit
from labconsole_v2x.inspection.inspector import ITS_AIDS
from labconsole_v2x.security.encoding import DURATION_UNITS_US, ELEVATION_OFFSET, PROTOCOL_VERSION
from labconsole_v2x.security.encryption import KEY_SIZE, NONCE_SIZE, TAG_SIZE
from labconsole_v2x.security.reading import (
    MalformedDataError,
    malformed,
    read_length,
    read_on_curve,
    read_point,
    read_region,
    unsupported,
)
from labconsole_v2x.security.scanning import MAX_NESTING, scan_certificate
from labconsole_v2x.security.structures import Circle, Curve, PointForm, Region

_CONTENTS = {0: "unsecuredData", 1: "signedData", 2: "encryptedData", 3: "signedCertificateRequest"}
_HASHES = {0: "sha256", 1: "sha384"}
_SIGNERS = {0: "digest", 1: "certificate", 2: "self"}
_ISSUERS = {0: "sha256AndDigest", 1: "self", 2: "sha384AndDigest"}
_IDS = {0: "linkageData", 1: "name", 2: "binaryId", 3: "none"}
_DURATIONS = dict(enumerate(("microseconds", "milliseconds", "seconds", "minutes", "hours", "sixtyHours", "years")))
_RECIPIENTS = {
    0: "pskRecipInfo",
    1: "symmRecipInfo",
    2: "certRecipInfo",
    3: "signedDataRecipInfo",
    4: "rekRecipInfo",
}
_POINT_FORMS = {
    PointForm.X_ONLY: "x-only",
    PointForm.COMPRESSED_Y0: "compressed-y-0",
    PointForm.COMPRESSED_Y1: "compressed-y-1",
    PointForm.UNCOMPRESSED: "uncompressed",
}


def secured_data(walk: Walk, unsecured: Callable[[], None], depth: int = MAX_NESTING) -> None:
    """Read an `Ieee1609Dot2Data` (6.3.3); `unsecured` reads the GeoNetworking packet in it."""
    with walk.part("Ieee1609Dot2Data" if depth == MAX_NESTING else "data"):
        if walk.number("protocolVersion", 1) != PROTOCOL_VERSION:
            malformed(f"Only version {PROTOCOL_VERSION} is supported", walk.at - 1)
        tag = walk.at
        content = walk.choice(_CONTENTS, "Content")
        if content == "unsecuredData":
            with walk.part(content, size=walk.skip(read_length)):
                unsecured()
        elif content == "signedData" and depth:
            with walk.part(content):
                _signed_data(walk, unsecured, depth)
        elif content == "encryptedData":
            with walk.part(content):
                _encrypted_data(walk)
        else:
            unsupported(f"{content} here", tag)


def _signed_data(walk: Walk, unsecured: Callable[[], None], depth: int) -> None:
    walk.number("hashId", 1, lambda value: named(value, _HASHES))
    with walk.part("tbsData", "ToBeSignedData"):
        with walk.part("payload"):
            bits = walk.preamble(0x1F)
            if bits & 0x40:
                secured_data(walk, unsecured, depth - 1)
            if bits & 0x20:
                with walk.part("extDataHash"):
                    if walk.choice(_HASHES, "Hash of external data") == "sha256":
                        walk.field("sha256HashedData", 32)
                    else:
                        walk.octet_string("sha384HashedData")
            if bits & 0x80:
                walk.extensions({})
        with walk.part("headerInfo"):
            _header_info(walk)
    with walk.part("signer") as part:
        part.value = walk.choice(_SIGNERS, "Signer")
        if part.value == "digest":
            walk.field("digest (HashedId8)", 8)
        elif part.value == "certificate":
            walk.items("certificate", lambda _: _certificate(walk))
    _signature(walk)


def _header_info(walk: Walk) -> None:
    bits = walk.preamble(0x01)
    walk.integer("psid", lambda value: named(value, ITS_AIDS))
    for mask, name in ((0x40, "generationTime"), (0x20, "expiryTime")):
        if bits & mask:
            walk.number(name, 8, utc_text)
    if bits & 0x10:
        with walk.part("generationLocation"):
            for name in ("latitude", "longitude"):
                walk.field(name, 4, lambda octets: degrees(int.from_bytes(octets, "big", signed=True)))
            walk.number("elevation", 2, lambda value: with_unit(value - ELEVATION_OFFSET, 1, "m"))
    if bits & 0x08:
        walk.field("p2pcdLearningRequest (HashedId3)", 3)
    if bits & 0x04:
        with walk.part("missingCrlIdentifier"):
            extended = walk.optional()
            walk.field("cracaId (HashedId3)", 3)
            walk.number("crlSeries", 2)
            if extended:
                walk.extensions({})
    if bits & 0x02:
        with walk.part("encryptionKey"):
            if walk.choice({0: "public", 1: "symmetric"}, "Encryption key") == "public":
                _encryption_key(walk, "public")
            else:
                walk.choice({0: "aes128Ccm"}, "Symmetric key")
                walk.field("symmetric (aes128Ccm)", KEY_SIZE)
    if bits & 0x80:
        walk.extensions(
            {
                0: ("inlineP2pcdRequest", lambda: walk.each(lambda _: walk.field("HashedId3", 3))),
                1: ("requestedCertificate", lambda: _certificate(walk)),
            }
        )


def _signature(walk: Walk) -> None:
    def read(curve: Curve) -> None:
        _point(walk, "rSig", curve.size)
        walk.field("sSig", curve.size)

    _on_curve(walk, "signature", read)


def _on_curve(walk: Walk, name: str, read: Callable[[Curve], object]) -> None:
    """A CHOICE between curves, of which `read` reads the alternative."""
    with walk.part(name) as part:

        def alternative(octets: bytes, at: int, curve: Curve) -> tuple[None, int]:
            part.value, walk.at = curve.title, at
            read(curve)
            return None, walk.at

        read_on_curve(walk.octets, walk.at, name, alternative)


def _point(walk: Walk, name: str, size: int) -> None:
    with walk.part(name) as part:
        point, _ = read_point(walk.octets, walk.at, size)
        part.value = _POINT_FORMS[point.form]
        walk.at += 1
        walk.field("x", size)
        if point.form is PointForm.UNCOMPRESSED:
            walk.field("y", size)


def _encryption_key(walk: Walk, name: str) -> None:
    with walk.part(name):
        walk.number("supportedSymmAlg", 1, lambda value: named(value, {0: "aes128Ccm"}))
        _on_curve(walk, "publicKey", lambda curve: _point(walk, "point", curve.size))


def _encrypted_data(walk: Walk) -> None:
    """`EncryptedData` (6.3.30)."""

    def recipient(_: int) -> None:
        with walk.part("recipient") as part:
            part.value = walk.choice(_RECIPIENTS, "Recipient")
            walk.field("recipientId (HashedId8)", 8)
            if part.value == "symmRecipInfo":
                _ciphertext(walk, "encKey")
            elif part.value != "pskRecipInfo":
                _on_curve(walk, "encKey", wrapped_key)

    def wrapped_key(curve: Curve) -> None:
        _point(walk, "v", curve.size)
        walk.field("c", KEY_SIZE)
        walk.field("t", TAG_SIZE)

    walk.items("recipients", recipient)
    _ciphertext(walk, "ciphertext")


def _ciphertext(walk: Walk, name: str) -> None:
    with walk.part(name) as part:
        part.value = walk.choice({0: "aes128ccm"}, "Symmetric algorithm")
        walk.field("nonce", NONCE_SIZE)
        walk.octet_string("ccmCiphertext")


def _certificate(walk: Walk) -> None:
    """An explicit certificate (6.4.3)."""
    start = walk.at
    with walk.part("Certificate") as part:
        signed = walk.optional()
        walk.number("version", 1)
        if walk.number("type", 1, lambda value: named(value, {0: "explicit", 1: "implicit"})) != 0:
            unsupported("Implicit certificate", walk.at - 1)
        with walk.part("issuer") as issuer:
            issuer.value = walk.choice(_ISSUERS, "Issuer")
            if issuer.value == "self":
                walk.number("hash", 1, lambda value: named(value, _HASHES))
            elif issuer.value == "sha256AndDigest":
                walk.field("sha256AndDigest (HashedId8)", 8)
            else:
                walk.octet_string("sha384AndDigest (HashedId8)")
        with walk.part("toBeSigned", "ToBeSignedCertificate"):
            _to_be_signed_certificate(walk)
        if signed:
            _signature(walk)
        try:
            part.value = identified(scan_certificate(walk.octets[start : walk.at]))
        except MalformedDataError:
            return


def _to_be_signed_certificate(walk: Walk) -> None:
    bits = walk.preamble()
    with walk.part("id") as part:
        part.value = walk.choice(_IDS, "Certificate identifier")
        if part.value == "name":
            walk.octet_string("name", lambda octets: octets.decode())
        elif part.value == "binaryId":
            walk.octet_string("binaryId")
        elif part.value == "linkageData":
            grouped = walk.optional()
            walk.number("iCert", 2)
            walk.field("linkage-value", 9)
            if grouped:
                walk.field("group-linkage-value", 13)
    walk.field("cracaId (HashedId3)", 3)
    walk.number("crlSeries", 2)
    with walk.part("validityPeriod"):
        walk.number("start", 4, lambda seconds: utc_text(seconds * 1_000_000, 0))
        with walk.part("duration") as part:
            unit = walk.choice(_DURATIONS, "Duration")
            count = walk.number(unit, 2)
            unit_us = DURATION_UNITS_US[list(_DURATIONS.values()).index(unit)]
            part.value = str(timedelta(microseconds=count * unit_us))
    if bits & 0x40:
        walk.read("region", read_region, _region_text)
    if bits & 0x20:
        walk.number("assuranceLevel", 1, lambda value: f"level {value >> 5}, confidence {value & 3}")
    if bits & 0x10:
        walk.items("appPermissions", lambda _: _permission(walk))
    for mask, name in ((0x08, "certIssuePermissions"), (0x04, "certRequestPermissions")):
        if bits & mask:
            walk.items(name, lambda _: _group_permissions(walk))
    if bits & 0x01:
        _encryption_key(walk, "encryptionKey")
    with walk.part("verifyKeyIndicator") as part:
        part.value = walk.choice({0: "verificationKey"}, "Verification key indicator")
        _on_curve(walk, part.value, lambda curve: _point(walk, "point", curve.size))
    if bits & 0x80:
        walk.extensions({})


def _permission(walk: Walk) -> None:
    """`PsidSsp` (6.4.28)."""
    with walk.part("PsidSsp"):
        given = walk.optional()
        walk.integer("psid", lambda value: named(value, ITS_AIDS))
        if given:
            with walk.part("ssp") as part:
                part.value = walk.choice({0: "opaque", 1: "bitmapSsp"}, "Service specific permissions")
                if part.value == "bitmapSsp":
                    walk.skip(read_length)
                walk.octet_string(part.value)


def _group_permissions(walk: Walk) -> None:
    """`PsidGroupPermissions` (6.4.32)."""
    with walk.part("PsidGroupPermissions"):
        bits = walk.preamble(0x1F)
        with walk.part("subjectPermissions") as part:
            part.value = walk.choice({0: "explicit", 1: "all"}, "Subject permissions")
            if part.value == "explicit":
                walk.items("explicit", lambda _: _permission_range(walk))
        for mask, name in ((0x80, "minChainLength"), (0x40, "chainLengthRange")):
            if bits & mask:
                walk.integer(name, signed=True)
        if bits & 0x20:
            walk.number(
                "eeType",
                1,
                lambda value: ", ".join(name for mask, name in ((0x80, "app"), (0x40, "enrol")) if value & mask),
            )


def _permission_range(walk: Walk) -> None:
    """`PsidSspRange` (6.4.30)."""
    with walk.part("PsidSspRange"):
        given = walk.optional()
        walk.integer("psid", lambda value: named(value, ITS_AIDS))
        if given:
            with walk.part("sspRange") as part:
                part.value = walk.choice({0: "opaque", 1: "all", 2: "bitmapSspRange"}, "Range of permissions")
                if part.value == "opaque":
                    walk.each(lambda _: walk.octet_string("opaque"))
                elif part.value == "bitmapSspRange":
                    walk.skip(read_length)
                    walk.octet_string("sspValue")
                    walk.octet_string("sspBitmask")


def _region_text(region: Region) -> str:
    if isinstance(region, Circle):
        return f"circle of {region.radius:,} m around {degrees(region.latitude)}, {degrees(region.longitude)}"
    if isinstance(region, frozenset):
        return f"countries (UN M49) {', '.join(map(str, sorted(region)))}"
    corners = [one for one in region if isinstance(one, tuple)]
    if corners:
        places = (f"{degrees(latitude)}, {degrees(longitude)}" for latitude, longitude in corners)
        return f"polygon of {len(corners)} corners: {'; '.join(places)}"
    return "; ".join(
        f"rectangle from {degrees(one.north)}, {degrees(one.west)} to {degrees(one.south)}, {degrees(one.east)}"
        for one in region
        if not isinstance(one, tuple)
    )
