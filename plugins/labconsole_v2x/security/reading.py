"""Readers of canonical OER (ITU-T X.696) and of the points, keys, signatures, regions and permissions of IEEE 1609.2.

Each reader takes the octets and an offset, and returns a value and the offset after it. A reader may pass the end of
the octets, since slices do not raise: who starts it compares the last offset with the end (`check_end`), and turns
`READ_ERRORS` into a `MalformedDataError`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NoReturn, TypeVar

from labconsole.errors import UserError
from labconsole_v2x.security.encoding import DURATION_UNITS_US
from labconsole_v2x.security.structures import (
    Circle,
    Curve,
    Permission,
    Point,
    PointForm,
    PublicKey,
    Rectangle,
    Region,
    Signature,
    Validity,
)

MAX_ITEMS = 1024
"""Items of a list; more are refused."""
READ_ERRORS = (IndexError, struct.error, UnicodeDecodeError)
"""What a reader raises, besides `MalformedDataError`, where the octets are truncated."""
_CURVES = {0x80 | curve.choice: curve for curve in Curve}
POINT_FORMS = {0x80 | form.value: form for form in PointForm}
_U16 = struct.Struct(">H").unpack_from
_U32 = struct.Struct(">I").unpack_from
_CIRCLE = struct.Struct(">2iH").unpack_from
_RECTANGLE = struct.Struct(">4i").unpack_from
_CORNER = struct.Struct(">2i").unpack_from
T = TypeVar("T")
Reader = Callable[[bytes, int], tuple[T, int]]
CurveReader = Callable[[bytes, int, Curve], tuple[T, int]]


class MalformedDataError(UserError):
    """Octets that are not what they should be; the message says what is wrong and at which octet."""


class UnsupportedError(MalformedDataError):
    """Well-formed, but of a kind that this console does not handle: implicit certificates, other curves."""


def malformed(what: str, at: int) -> NoReturn:
    raise MalformedDataError(f"{what}, at octet {at}. Check where these octets come from.")


def unsupported(what: str, at: int) -> NoReturn:
    raise UnsupportedError(
        f"{what}, at octet {at}: not supported. Use explicit certificates on NIST or brainpool curves."
    )


def check_end(end: int, expected: int) -> None:
    if end != expected:
        malformed("Trailing octets" if end < expected else "Truncated", min(end, expected))


def read_length(octets: bytes, at: int) -> tuple[int, int]:
    """A length determinant in its shortest form (X.696, 8.6)."""
    length = octets[at]
    if length < 128:
        return length, at + 1
    start, end = at + 1, at + 1 + length - 128
    length = int.from_bytes(octets[start:end], "big")
    if length < 128 or end - start > 4 or octets[start] == 0:
        malformed("Length not in its shortest form", at)
    if length > len(octets) - end:
        malformed(f"Length of {length} passes the end", at)
    return length, end


def read_octets(octets: bytes, at: int) -> tuple[bytes, int]:
    """An octet string of variable size."""
    length, at = read_length(octets, at)
    return octets[at : at + length], at + length


def read_integer(octets: bytes, at: int, *, signed: bool = False) -> tuple[int, int]:
    """A PSID, a number of items, or a chain length: eight octets at most."""
    value, end = read_octets(octets, at)
    if not 1 <= len(value) <= 8 or (len(value) > 1 and value[0] == 0 and not signed):
        malformed("Integer not in its shortest form", at)
    return int.from_bytes(value, "big", signed=signed), end


def read_list(octets: bytes, at: int, read: Reader[T]) -> tuple[tuple[T, ...], int]:
    """A SEQUENCE OF; `read` reads an item."""
    start = at
    count, at = read_integer(octets, at)
    if count > MAX_ITEMS:
        malformed(f"List of {count} items", start)
    items = []
    for _ in range(count):
        item, at = read(octets, at)
        items.append(item)
    return tuple(items), at


def read_fixed(size: int) -> Reader[bytes]:
    return lambda octets, at: (octets[at : at + size], at + size)


def read_extensions(octets: bytes, at: int) -> tuple[list[tuple[int, int, int]], int]:
    """The extension additions that are present, each as its number and where its octets start and end."""
    bitmap, end = read_octets(octets, at)
    if not 2 <= len(bitmap) <= 33 or bitmap[0] > 7:
        malformed("Broken bitmap of extension additions", at)
    present = int.from_bytes(bitmap[1:], "big")
    bits = 8 * (len(bitmap) - 1)
    found = []
    for number in range(bits - bitmap[0]):
        if present >> (bits - 1 - number) & 1:
            length, start = read_length(octets, end)
            end = start + length
            found.append((number, start, end))
    return found, end


def read_open_type(octets: bytes, at: int, read: Reader[T]) -> tuple[T, int]:
    length, start = read_length(octets, at)
    value, end = read(octets, start)
    if end != start + length:
        malformed("Length of an extension differs from its content", at)
    return value, end


def read_optional(octets: bytes, at: int) -> bool:
    """The preamble of a SEQUENCE with one optional part, or of one that is extensible and has none."""
    if octets[at] & 0x7F:
        malformed("Unused bits set", at)
    return octets[at] == 0x80


def read_choice(tag: int, choices: int, what: str, at: int) -> int:
    """The number of a CHOICE's alternative; those from `choices` on are unknown."""
    if not 0x80 <= tag < 0x80 + choices:
        unsupported(f"{what} of kind {tag & 0x7F}", at)
    return tag & 0x7F


# Points, keys and signatures


def read_point(octets: bytes, at: int, size: int) -> tuple[Point, int]:
    """An `EccP256CurvePoint` or `EccP384CurvePoint` (6.3.23), with coordinates of `size` octets."""
    form = POINT_FORMS.get(octets[at])
    if form is None:
        malformed("Point of unknown form", at)
    at += 1
    middle = at + size
    if form is PointForm.UNCOMPRESSED:
        return Point(form, octets[at:middle], octets[middle : middle + size]), middle + size
    return Point(form, octets[at:middle]), middle


def read_on_curve(
    octets: bytes, at: int, what: str, read: Callable[[bytes, int, Curve], tuple[T, int]]
) -> tuple[T, int]:
    """A CHOICE between curves; those after the extension marker are open types."""
    curve = _CURVES.get(octets[at])
    if curve is None:
        unsupported(f"{what} on curve {octets[at] & 0x7F}", at)
    if curve.choice < 2:
        return read(octets, at + 1, curve)
    return read_open_type(octets, at + 1, lambda octets, at: read(octets, at, curve))


def read_key_on(octets: bytes, at: int, curve: Curve) -> tuple[PublicKey, int]:
    point, end = read_point(octets, at, curve.size)
    if point.form is PointForm.X_ONLY:
        malformed("Public key without its y", at)
    return PublicKey(curve, point), end


def read_signature(octets: bytes, at: int) -> tuple[Signature, int]:
    """A `Signature` (6.3.28)."""
    return read_on_curve(octets, at, "Signature", _signature_on)


def _signature_on(octets: bytes, at: int, curve: Curve) -> tuple[Signature, int]:
    r, at = read_point(octets, at, curve.size)
    end = at + curve.size
    return Signature(curve, r, octets[at:end]), end


def read_encryption_key(octets: bytes, at: int) -> tuple[PublicKey, int]:
    """A `PublicEncryptionKey` (6.3.20)."""
    if octets[at] != 0:
        unsupported(f"Symmetric algorithm {octets[at]}", at)
    read_choice(octets[at + 1], 2, "Encryption key", at + 1)
    return read_on_curve(octets, at + 1, "Encryption key", read_key_on)


# Places


def read_region(octets: bytes, at: int) -> tuple[Region, int]:
    """A `GeographicRegion` (6.4.17); of identified regions the country only, whatever part of it is named."""
    kind = read_choice(octets[at], 4, "Region", at)
    if kind == 0:
        latitude, longitude, radius = _CIRCLE(octets, at + 1)
        check_position(latitude, longitude, at)
        return Circle(latitude, longitude, radius), at + 11
    if kind == 1:
        return read_list(octets, at + 1, _rectangle)
    if kind == 2:
        return read_list(octets, at + 1, _corner)
    countries, at = read_list(octets, at + 1, _identified_region)
    return frozenset(countries), at


def _rectangle(octets: bytes, at: int) -> tuple[Rectangle, int]:
    north, west, south, east = _RECTANGLE(octets, at)
    check_position(north, west, at)
    check_position(south, east, at + 8)
    return Rectangle(north, west, south, east), at + 16


def _corner(octets: bytes, at: int) -> tuple[tuple[int, int], int]:
    latitude, longitude = _CORNER(octets, at)
    check_position(latitude, longitude, at)
    return (latitude, longitude), at + 8


def _identified_region(octets: bytes, at: int) -> tuple[int, int]:
    kind = read_choice(octets[at], 3, "Identified region", at)
    country = _U16(octets, at + 1)[0]
    if kind == 0:
        return country, at + 3
    _, at = read_list(octets, at + 3, read_fixed(1) if kind == 1 else _subregions)
    return country, at


def _subregions(octets: bytes, at: int) -> tuple[None, int]:
    _, at = read_list(octets, at + 1, read_fixed(2))
    return None, at


def check_position(latitude: int, longitude: int, at: int) -> None:
    if not (-900_000_000 <= latitude <= 900_000_001 and -1_799_999_999 <= longitude <= 1_800_000_001):
        malformed("Position outside the globe", at)


# Names, validity and permissions


def read_name(octets: bytes, at: int) -> tuple[str, int]:
    """A `CertificateId` (6.4.9) as text: empty for "none" and linkage data, hexadecimal for a binary identifier."""
    kind = read_choice(octets[at], 4, "Certificate identifier", at)
    if kind == 3:
        return "", at + 1
    if kind == 0:
        return "", at + (26 if read_optional(octets, at + 1) else 13)
    value, end = read_octets(octets, at + 1)
    return value.decode() if kind == 1 else value.hex(), end


def read_permission(octets: bytes, at: int) -> tuple[Permission, int]:
    """A `PsidSsp` (6.4.28)."""
    given = read_optional(octets, at)
    psid, at = read_integer(octets, at + 1)
    if not given:
        return Permission(psid), at
    if octets[at] == 0x81:
        ssp, at = read_open_type(octets, at + 1, read_octets)
        return Permission(psid, ssp), at
    read_choice(octets[at], 1, "Service specific permissions", at)
    ssp, at = read_octets(octets, at + 1)
    return Permission(psid, ssp, bitmap=False), at


def read_validity(octets: bytes, at: int) -> tuple[Validity, int]:
    """A `ValidityPeriod` (6.4.14); its end is rounded up to whole seconds."""
    unit = DURATION_UNITS_US[read_choice(octets[at + 4], len(DURATION_UNITS_US), "Duration", at)]
    start = _U32(octets, at)[0]
    return Validity(start, start - (-_U16(octets, at + 5)[0] * unit // 10**6)), at + 7
