"""Canonical OER (ITU-T X.696) of certificates and signed data of IEEE 1609.2: the inverse of `scanning`.

What is given must fit the standard; `EncodingError` says what does not.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from labconsole.errors import UserError
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

PROTOCOL_VERSION = 3
YEAR_S = 31_556_952
"""Seconds of a year in a `Duration` (IEEE 1609.2, 6.4.16)."""
ELEVATION_OFFSET = 4096
"""An `Elevation` of 0 is 409.6 m below the ellipsoid, in 0.1 m."""
DURATION_UNITS_US = (1, 1000, *(10**6 * seconds for seconds in (1, 60, 3600, 60 * 3600, YEAR_S)))
"""The choices of a `Duration`, in us: from microseconds to years."""
_HASH_CHOICES = {"sha256": 0, "sha384": 1}
_SIGNED_DATA = {name: bytes((PROTOCOL_VERSION, 0x81, choice)) for name, choice in _HASH_CHOICES.items()}
_X_ONLY_TAG = PointForm.X_ONLY.tag
_U16_MAX = 65535
_OCTETS = tuple(bytes((value,)) for value in range(256))
T = TypeVar("T")


class EncodingError(UserError):
    """A value that a certificate or signed data cannot carry."""


def encode_length(length: int) -> bytes:
    """A length determinant (X.696, 8.6)."""
    if length < 128:
        return bytes((length,))
    octets = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes((0x80 | len(octets),)) + octets


def encode_octets(octets: bytes) -> bytes:
    """An octet string of variable size, or an open type."""
    length = len(octets)
    return (_OCTETS[length] if length < 128 else encode_length(length)) + octets


def encode_unsigned(value: int) -> bytes:
    """An integer without upper bound, from 0 on: a PSID, or the number of items of a list."""
    if value < 256:
        return b"\1" + _OCTETS[value]
    return encode_octets(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def _signed(value: int) -> bytes:
    return encode_octets(value.to_bytes((value + (value < 0)).bit_length() // 8 + 1, "big", signed=True))


def encode_list(items: Sequence[T], encode: Callable[[T], bytes]) -> bytes:
    """A SEQUENCE OF."""
    return encode_unsigned(len(items)) + b"".join(map(encode, items))


def _curve_choice(curve: Curve, octets: bytes) -> bytes:
    """The alternative for a curve: those after the extension marker are open types."""
    return curve.tag + (octets if curve.choice < 2 else encode_octets(octets))


def encode_point(point: Point) -> bytes:
    """An `EccP256CurvePoint` or `EccP384CurvePoint`."""
    return point.form.tag + point.x + point.y


def compressed(key: PublicKey) -> PublicKey:
    """The key with its point compressed, as canonical forms have it."""
    if key.point.form is not PointForm.UNCOMPRESSED:
        return key
    form = PointForm.COMPRESSED_Y1 if key.point.y[-1] & 1 else PointForm.COMPRESSED_Y0
    return replace(key, point=Point(form, key.point.x))


def encode_verification_key(key: PublicKey) -> bytes:
    """A `PublicVerificationKey`."""
    return _curve_choice(key.curve, encode_point(key.point))


def encode_encryption_key(key: PublicKey) -> bytes:
    """A `PublicEncryptionKey` for AES-128-CCM; its curve has 256 bits."""
    if key.curve.size != 32:
        raise EncodingError(f"{key.curve.title} cannot encrypt. Choose NIST P-256 or brainpoolP256r1.")
    return b"\0" + _curve_choice(key.curve, encode_point(key.point))


def encode_signature(signature: Signature) -> bytes:
    """A `Signature`."""
    return _curve_choice(signature.curve, encode_point(signature.r) + signature.s)


def encode_x_only_signature(curve: Curve, integers: bytes) -> bytes:
    """A `Signature` with R as x only, of its integers r and s one after the other."""
    return _curve_choice(curve, _X_ONLY_TAG + integers)


def encode_name(name: str) -> bytes:
    """A `CertificateId` (6.4.9); an empty name is "none"."""
    return b"\x81" + encode_octets(name.encode()) if name else b"\x83"


def encode_permission(permission: Permission) -> bytes:
    """A `PsidSsp` (6.4.28)."""
    psid = encode_unsigned(permission.psid)
    if permission.ssp is None:
        return b"\0" + psid
    octets = encode_octets(permission.ssp)
    return b"\x80" + psid + (b"\x81" + encode_octets(octets) if permission.bitmap else b"\x80" + octets)


def _permission_range(given: PermissionRange) -> bytes:
    psid = encode_unsigned(given.psid)
    if given.bitmap_value is None or given.bitmap_mask is None:
        return b"\0" + psid
    return (
        b"\x80" + psid + b"\x82" + encode_octets(encode_octets(given.bitmap_value) + encode_octets(given.bitmap_mask))
    )


def encode_issue_permission(permission: IssuePermission) -> bytes:
    """A `PsidGroupPermissions` (6.4.32)."""
    # Canonical OER leaves out what has its default: one certificate follows, and it is for applications.
    preamble, octets = 0, b"\x81"
    if permission.ranges is not None:
        octets = b"\x80" + encode_list(permission.ranges, _permission_range)
    if permission.min_chain != 1:
        preamble, octets = 0x80, octets + _signed(permission.min_chain)
    if permission.chain_range != 0:
        preamble, octets = preamble | 0x40, octets + _signed(permission.chain_range)
    if not permission.application or permission.enrolment:
        flags = permission.application << 7 | permission.enrolment << 6
        preamble, octets = preamble | 0x20, octets + bytes((flags,))
    return bytes((preamble,)) + octets


def _rectangle(given: Rectangle) -> bytes:
    return struct.pack(">4i", given.north, given.west, given.south, given.east)


def encode_region(region: Region) -> bytes:
    """A `GeographicRegion`; the countries of identified regions in ascending order."""
    if isinstance(region, Circle):
        return b"\x80" + struct.pack(">2iH", region.latitude, region.longitude, region.radius)
    if isinstance(region, frozenset):
        return b"\x83" + encode_list(sorted(region), lambda country: b"\x80" + country.to_bytes(2, "big"))
    rectangles = [corner for corner in region if isinstance(corner, Rectangle)]
    if rectangles:
        return b"\x81" + encode_list(rectangles, _rectangle)
    corners = [corner for corner in region if not isinstance(corner, Rectangle)]
    if len(corners) < 3:
        raise EncodingError("A polygon has at least three corners. Add corners, or choose another kind of region.")
    return b"\x82" + encode_list(corners, lambda corner: struct.pack(">2i", *corner))


def encode_validity(validity: Validity) -> bytes:
    """A `ValidityPeriod`, in the largest unit that is exact."""
    duration = validity.end_s - validity.start_s
    for choice, unit in reversed(tuple(enumerate(DURATION_UNITS_US))):
        count, rest = divmod(duration * 10**6, unit)
        if not rest and 0 <= count <= _U16_MAX:
            return struct.pack(">IBH", validity.start_s, 0x80 | choice, count)
    raise EncodingError(f"A validity of {duration} s cannot be encoded. Choose whole hours, or years of {YEAR_S} s.")


def encode_to_be_signed_certificate(
    *,
    name: str,
    validity: Validity,
    verification_key: PublicKey,
    region: Region | None = None,
    assurance: int | None = None,
    permissions: Sequence[Permission] = (),
    issue_permissions: Sequence[IssuePermission] = (),
    request_permissions: Sequence[IssuePermission] = (),
    encryption_key: PublicKey | None = None,
) -> bytes:
    """A `ToBeSignedCertificate` (6.4.8) without CRACA and CRL series, as TS 103 097 asks; an empty name is "none"."""
    fields = (
        encode_region(region) if region is not None else b"",
        bytes((assurance,)) if assurance is not None else b"",
        encode_list(permissions, encode_permission) if permissions else b"",
        encode_list(issue_permissions, encode_issue_permission) if issue_permissions else b"",
        encode_list(request_permissions, encode_issue_permission) if request_permissions else b"",
        b"",  # canRequestRollover
        encode_encryption_key(encryption_key) if encryption_key else b"",
    )
    preamble = sum(0x40 >> index for index, field in enumerate(fields) if field)
    constant = encode_name(name) + bytes(5) + encode_validity(validity)
    return bytes((preamble,)) + constant + b"".join(fields) + b"\x80" + encode_verification_key(verification_key)


def encode_certificate(tbs: bytes, issuer: bytes | None, issuer_hash: str, signature: bytes) -> bytes:
    """An explicit `Certificate` (6.4.3) with an encoded signature; `issuer` is a HashedId8, None if self-signed."""
    if issuer is None:
        identifier = bytes((0x81, _HASH_CHOICES[issuer_hash]))
    else:
        identifier = b"\x80" + issuer if issuer_hash == "sha256" else b"\x82" + encode_octets(issuer)
    return bytes((0x80, PROTOCOL_VERSION, 0)) + identifier + tbs + signature


def encode_header(header: Header) -> bytes:
    """A `HeaderInfo` (6.3.9); fields that this console does not know are never written."""
    preamble, fields = 0, encode_unsigned(header.psid)
    if header.generation_time is not None:
        preamble = 0x40
        fields += header.generation_time.to_bytes(8, "big")
    if header.expiry_time is not None:
        preamble |= 0x20
        fields += header.expiry_time.to_bytes(8, "big")
    if header.location is not None:
        preamble |= 0x10
        latitude, longitude, elevation = header.location
        fields += struct.pack(">2iH", latitude, longitude, elevation + ELEVATION_OFFSET)
    if header.p2pcd_learning_request is not None:
        preamble |= 0x08
        fields += header.p2pcd_learning_request
    if header.missing_crl is not None:
        preamble |= 0x04
        fields += b"\0" + header.missing_crl
    if header.encryption_key is not None:
        preamble |= 0x02
        fields += b"\x80" + encode_encryption_key(header.encryption_key)
    if header.inline_p2pcd_request or header.requested_certificate is not None:
        preamble |= 0x80
        fields += _header_extensions(header)
    return _OCTETS[preamble] + fields


def _header_extensions(header: Header) -> bytes:
    """The bitmap of four additions (IEEE 1609.2-2022) and those that are present, as open types."""
    bitmap, fields = 0, b""
    if header.inline_p2pcd_request:
        bitmap, fields = 0x80, encode_octets(encode_list(header.inline_p2pcd_request, bytes))
    if header.requested_certificate is not None:
        bitmap, fields = bitmap | 0x40, fields + encode_octets(header.requested_certificate)
    return bytes((2, 4, bitmap)) + fields


def encode_to_be_signed_data(payload: bytes, header: Header) -> bytes:
    """`ToBeSignedData` (6.3.6) around unsecured data."""
    return b"\x40\x03\x80" + encode_octets(payload) + encode_header(header)


def encode_to_be_signed_hash(digest: bytes, header: Header) -> bytes:
    """`ToBeSignedData` (6.3.6) of external data, of which it has only the SHA-256."""
    return b"\x20\x80" + digest + encode_header(header)


def encode_signer(certificates: Iterable[bytes] = (), digest: bytes | None = None) -> bytes:
    """A `SignerIdentifier`: a HashedId8, or certificates as their octets, or "self" with neither."""
    if digest is not None:
        return b"\x80" + digest
    octets = tuple(certificates)
    return b"\x81" + encode_list(octets, bytes) if octets else b"\x82"


def encode_signed_data(hash_name: str, tbs: bytes, signer: bytes, signature: bytes) -> bytes:
    """`Ieee1609Dot2Data` with signed data: its parts are already encoded."""
    return _SIGNED_DATA[hash_name] + tbs + signer + signature
