"""A slicer of signed data and certificates (IEEE 1609.2, canonical OER) that keeps the octets that were received.

Nothing is decoded and encoded again: what is hashed is sliced, or spliced where a certificate is not in canonical form.
Errors of the octets are `MalformedDataError` only.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

from labconsole_v2x.security.encoding import (
    ELEVATION_OFFSET,
    compressed,
    encode_encryption_key,
    encode_signature,
    encode_verification_key,
)
from labconsole_v2x.security.reading import (
    POINT_FORMS,
    READ_ERRORS,
    MalformedDataError,
    UnsupportedError,
    check_end,
    check_position,
    malformed,
    read_choice,
    read_encryption_key,
    read_extensions,
    read_fixed,
    read_integer,
    read_key_on,
    read_length,
    read_list,
    read_name,
    read_octets,
    read_on_curve,
    read_open_type,
    read_optional,
    read_permission,
    read_region,
    read_signature,
    read_validity,
    unsupported,
)
from labconsole_v2x.security.structures import (
    Certificate,
    Curve,
    Header,
    IssuePermission,
    Permission,
    PermissionRange,
    Point,
    PointForm,
    Signature,
    SignedData,
)

__all__ = ["MalformedDataError", "UnsupportedError", "scan_certificate", "scan_signed_data"]

MAX_NESTING = 3
"""Signed data around signed data; deeper ones are refused."""
_MAX_KNOWN_CERTIFICATE = 1000
_HASHES = ("sha256", "sha384")
_SHORT_FORMS = {tag: form for tag, form in POINT_FORMS.items() if form is not PointForm.UNCOMPRESSED}
_P256, _X_ONLY = Curve.P256, PointForm.X_ONLY
_U16 = struct.Struct(">H").unpack_from
_U32 = struct.Struct(">I").unpack_from
_U64 = struct.Struct(">Q").unpack_from
_LOCATION = struct.Struct(">2iH").unpack_from


_PLAIN_OCTETS = 93
"""Octets around the payload of plain signed data: PSID and generationTime, signer as digest, P-256."""
_MOST_PLAIN_PAYLOAD = 127
_PLAIN = [
    (b"\x03\x81\x00\x40\x03\x80%c" % size, struct.Struct(f">7x{size}s2sBQB8sBB32s32s").unpack)
    for size in range(_MOST_PLAIN_PAYLOAD + 1)
]
"""By size of the payload: the octets at the beginning of plain signed data, and what unpacks the rest in one call."""


PlainParts = tuple[bytes, int, int, bytes, bytes, bytes, bytes]
"""Of plain signed data: payload, PSID, generationTime, HashedId8 of the signer, x of R, s, and tbs."""


def plain_parts(octets: bytes) -> PlainParts | None:
    """The parts of plain signed data, from one call of `struct`; None for all other octets."""
    size = len(octets) - _PLAIN_OCTETS
    if not 0 <= size <= _MOST_PLAIN_PAYLOAD:
        return None
    begin, unpack = _PLAIN[size]
    payload, kind, psid, generated, tag, signer, curve, form, r, s = unpack(octets)
    if octets[:7] == begin and kind == b"\x40\x01" and tag == curve == 0x80 and form in _SHORT_FORMS:
        return payload, psid, generated, signer, r, s, octets[3 : size + 18]
    return None


def scan_signed_data(octets: bytes) -> SignedData:
    """Slices a whole `Ieee1609Dot2Data` with signed data (6.3.1-6.3.4); raises `MalformedDataError`."""
    try:
        data, end = read_signed_data(octets, 0)
    except READ_ERRORS as error:
        raise MalformedDataError("Signed data is truncated or has broken text. Check that it is whole.") from error
    check_end(end, len(octets))
    return data


def scan_certificate(octets: bytes) -> Certificate:
    """Slices a whole explicit certificate (6.4.3) and hashes its canonical form; raises `MalformedDataError`."""
    try:
        parts, end = _certificate(octets, 0)
    except READ_ERRORS as error:
        raise MalformedDataError("The certificate is truncated or has broken text. Check that it is whole.") from error
    check_end(end, len(octets))
    canonical = octets
    for start, stop, octets_in_canonical_form in parts.splices:
        canonical = canonical[:start] + octets_in_canonical_form + canonical[stop:]
    hashed_id8 = hashlib.new(parts.hash_name, canonical).digest()[-8:]
    return parts.create(octets=octets, canonical=canonical, hashed_id8=hashed_id8)


def read_certificate_octets(octets: bytes, at: int) -> tuple[bytes, int]:
    """The octets of a certificate inside of others: a reader as those of `reading`."""
    _, end = _certificate(octets, at)
    return octets[at:end], end


def read_signed_data(octets: bytes, at: int) -> tuple[SignedData, int]:
    """Signed data inside of other octets: a reader as those of `reading`."""
    return _signed_data(octets, at, MAX_NESTING)


# Signed data


def _signed_data(octets: bytes, at: int, depth: int) -> tuple[SignedData, int]:
    if octets[at] != 3:
        malformed(f"Protocol version {octets[at]}", at)
    if octets[at + 1] != 0x81:
        malformed("Not signed data", at + 1)
    if octets[at + 2] > 1:
        unsupported(f"Hash algorithm {octets[at + 2]}", at + 2)
    hash_name = _HASHES[octets[at + 2]]
    start = at = at + 3

    # The usual payload, header and signature are read in place: one call each would take half of the time.
    payload: bytes | None
    unknown = False
    if octets[at : at + 3] == b"\x40\x03\x80":
        length = octets[at + 3]
        at += 4
        if length > 127:
            length, at = read_length(octets, at - 1)
        payload = octets[at : at + length]
        at += length
    else:
        payload, unknown, at = _payload(octets, at, depth)

    if octets[at] == 0x40 and octets[at + 1] == 1:
        header = Header(octets[at + 2], _U64(octets, at + 3)[0])
        header.plain = True
        at += 11
        tbs = octets[start:at]
    else:
        header_at = at
        header, at = _header(octets, at)
        tbs = octets[start:at]
        key = header.encryption_key
        if key is not None and key.point.form is PointForm.UNCOMPRESSED:
            received = encode_encryption_key(key)
            key_at = octets.index(received, header_at)
            tbs = octets[start:key_at] + encode_encryption_key(compressed(key)) + octets[key_at + len(received) : at]
    if unknown:
        header.unknown = True

    signer = octets[at]
    digest: bytes | None = None
    certificates: tuple[bytes, ...] = ()
    if signer == 0x80:
        digest = octets[at + 1 : at + 9]
        at += 9
    elif signer == 0x81:
        certificates, at = _signer_certificates(octets, at + 1)
    else:
        read_choice(signer, 3, "Signer", at)
        at += 1

    form = _SHORT_FORMS.get(octets[at + 1])
    if octets[at] == 0x80 and form is not None:
        middle, end = at + 34, at + 66
        signature = Signature(_P256, Point(form, octets[at + 2 : middle]), octets[middle:end])
    else:
        signature, end = read_signature(octets, at)
    return SignedData(hash_name, tbs, payload, header, digest, certificates, signature), end


def _payload(octets: bytes, at: int, depth: int) -> tuple[bytes | None, bool, int]:
    """`SignedDataPayload` (6.3.7) of any kind: its unsecured data, and whether it has unknown extensions."""
    preamble = octets[at]
    if preamble & 0x1F:
        malformed("Unused bits set", at)
    at += 1
    payload = None
    if preamble & 0x40:
        kind = octets[at + 1]
        if octets[at] == 3 and kind in (0x80, 0x83):
            content, at = read_octets(octets, at + 2)
            payload = content if kind == 0x80 else None
        elif kind == 0x82:
            unsupported("Encrypted data inside signed data", at)
        elif depth == 0:
            malformed("Signed data nested too deep", at)
        else:
            _, at = _signed_data(octets, at, depth - 1)
    if preamble & 0x20:
        if read_choice(octets[at], 2, "Hash of external data", at) == 0:
            at += 33
        else:
            _, at = read_open_type(octets, at + 1, read_fixed(48))
    if preamble & 0x80:
        _, at = read_extensions(octets, at)
    return payload, preamble >= 0x80, at


def _header(octets: bytes, at: int) -> tuple[Header, int]:
    """`HeaderInfo` (6.3.9) with any of its fields."""
    preamble = octets[at]
    if preamble & 0x01:
        malformed("Unused bits set", at)
    psid, at = read_integer(octets, at + 1)
    header = Header(psid)
    if preamble & 0x40:
        header.generation_time = _U64(octets, at)[0]
        at += 8
    if preamble & 0x20:
        header.expiry_time = _U64(octets, at)[0]
        at += 8
    if preamble & 0x10:
        latitude, longitude, elevation = _LOCATION(octets, at)
        check_position(latitude, longitude, at)
        header.location = (latitude, longitude, elevation - ELEVATION_OFFSET)
        at += 10
    if preamble & 0x08:
        header.p2pcd_learning_request = octets[at : at + 3]
        at += 3
    if preamble & 0x04:
        header.unknown = read_optional(octets, at)
        header.missing_crl, at = octets[at + 1 : at + 6], at + 6
        if header.unknown:
            _, at = read_extensions(octets, at)
    if preamble & 0x02:
        if octets[at] == 0x80:
            header.encryption_key, at = read_encryption_key(octets, at + 1)
        elif octets[at : at + 2] == b"\x81\x80":
            header.unknown, at = True, at + 18  # an AES key for the answer
        else:
            unsupported("Encryption key of unknown kind", at)
    if preamble & 0x80:
        present, at = read_extensions(octets, at)
        for number, start, end in present:
            if number == 0:
                header.inline_p2pcd_request, read = read_list(octets, start, read_fixed(3))
                check_end(read, end)
            elif number == 1:
                header.requested_certificate = octets[start:end]
            else:
                header.unknown = True
    return header, at


def _signer_certificates(octets: bytes, at: int) -> tuple[tuple[bytes, ...], int]:
    # The usual signer is one certificate, seen before, and a P-256 signature at the end of the packet.
    if octets[at : at + 2] == b"\x01\x01" and len(octets) - 68 - at <= _MAX_KNOWN_CERTIFICATE:
        certificate = octets[at + 2 : -66]
        if _is_certificate(certificate):
            return (certificate,), at + 2 + len(certificate)
    certificates, end = read_list(octets, at, read_certificate_octets)
    if not certificates:
        malformed("No certificate of the signer", at)
    return certificates, end


@lru_cache(maxsize=1024)
def _is_certificate(octets: bytes) -> bool:
    try:
        return _certificate(octets, 0)[1] == len(octets)
    except (MalformedDataError, *READ_ERRORS):
        return False


# Certificates


class _Parts(NamedTuple):
    create: Callable[..., Certificate]
    """Takes what depends on all of its octets: `octets`, `canonical` and `hashed_id8`."""
    splices: list[tuple[int, int, bytes]]
    """What differs in its canonical form (6.4.3), the last first: start, end and the octets there instead."""
    hash_name: str
    """The whole-certificate hash: that of its own key, whatever its issuer's."""


def _certificate(octets: bytes, at: int) -> tuple[_Parts, int]:
    if octets[at + 1] != 3:
        malformed(f"Certificate version {octets[at + 1]}", at + 1)
    if octets[at + 2] != 0:
        unsupported("Implicit certificate", at + 2)
    if octets[at] != 0x80:
        malformed("Certificate without signature", at)
    issuer, issuer_hash, start = _issuer(octets, at + 3)

    preamble = octets[start]
    name, at = read_name(octets, start + 1)
    at += 5  # CRACA and CRL series
    validity, at = read_validity(octets, at)
    region, assurance, encryption_key = None, None, None
    permissions: tuple[Permission, ...] = ()
    issue: tuple[IssuePermission, ...] = ()
    request: tuple[IssuePermission, ...] = ()
    splices: list[tuple[int, int, bytes]] = []
    if preamble & 0x40:
        region, at = read_region(octets, at)
    if preamble & 0x20:
        assurance, at = octets[at], at + 1
    if preamble & 0x10:
        permissions, at = read_list(octets, at, read_permission)
    if preamble & 0x08:
        issue, at = read_list(octets, at, read_issue_permission)
    if preamble & 0x04:
        request, at = read_list(octets, at, read_issue_permission)
    if preamble & 0x01:
        encryption_key, end = read_encryption_key(octets, at)
        if encryption_key.point.form is PointForm.UNCOMPRESSED:
            splices.insert(0, (at, end, encode_encryption_key(compressed(encryption_key))))
        at = end
    if octets[at] != 0x80:
        unsupported("Verification key indicator without a key", at)
    key, end = read_on_curve(octets, at + 1, "Verification key", read_key_on)
    if key.point.form is PointForm.UNCOMPRESSED:
        splices.insert(0, (at + 1, end, encode_verification_key(compressed(key))))
    if preamble & 0x80:
        _, end = read_extensions(octets, end)
    tbs_end = end + sum(len(compact) - (stop - first) for first, stop, compact in splices)
    signature, at = read_signature(octets, end)
    if signature.r.form is not _X_ONLY:
        x_only = Signature(signature.curve, Point(_X_ONLY, signature.r.x), signature.s)
        splices.insert(0, (end, at, encode_signature(x_only)))
    create = partial(
        Certificate,
        tbs=(start, tbs_end),
        issuer=issuer,
        issuer_hash=issuer_hash,
        name=name,
        validity=validity,
        region=region,
        assurance=assurance,
        permissions=permissions,
        issue_permissions=issue,
        request_permissions=request,
        encryption_key=encryption_key,
        verification_key=key,
        signature=signature,
    )
    return _Parts(create, splices, key.curve.hash_name), at


def _issuer(octets: bytes, at: int) -> tuple[bytes | None, str, int]:
    kind = read_choice(octets[at], 3, "Issuer", at)
    if kind == 1:
        if octets[at + 1] > 1:
            unsupported(f"Hash algorithm {octets[at + 1]}", at + 1)
        return None, _HASHES[octets[at + 1]], at + 2
    if kind == 0:
        return octets[at + 1 : at + 9], "sha256", at + 9
    issuer, at = read_open_type(octets, at + 1, read_fixed(8))
    return issuer, "sha384", at


def _permission_range(octets: bytes, at: int) -> tuple[PermissionRange, int]:
    """A `PsidSspRange` (6.4.30) of all SSPs or of bitmaps."""
    given = read_optional(octets, at)
    psid, at = read_integer(octets, at + 1)
    if not given:
        return PermissionRange(psid), at
    if octets[at] == 0x81:
        return PermissionRange(psid), at + 1
    if octets[at] != 0x82:
        unsupported("Range of permissions that are not bitmaps", at)
    (value, mask), at = read_open_type(octets, at + 1, _bitmap_range)
    return PermissionRange(psid, value, mask), at


def _bitmap_range(octets: bytes, at: int) -> tuple[tuple[bytes, bytes], int]:
    value, at = read_octets(octets, at)
    mask, at = read_octets(octets, at)
    return (value, mask), at


def read_issue_permission(octets: bytes, at: int) -> tuple[IssuePermission, int]:
    """`PsidGroupPermissions` (6.4.32)."""
    preamble = octets[at]
    ranges, min_chain, chain_range, end_entity = None, 1, 0, 0x80
    if preamble & 0x1F:
        malformed("Unused bits set", at)
    if read_choice(octets[at + 1], 2, "Subject permissions", at + 1) == 0:
        ranges, at = read_list(octets, at + 2, _permission_range)
    else:
        at += 2
    if preamble & 0x80:
        min_chain, at = read_integer(octets, at, signed=True)
    if preamble & 0x40:
        chain_range, at = read_integer(octets, at, signed=True)
    if preamble & 0x20:
        end_entity, at = octets[at], at + 1
    return IssuePermission(ranges, min_chain, chain_range, bool(end_entity & 0x80), bool(end_entity & 0x40)), at
