"""Data that CAM and DENM share (TS 102 894-2): ITS PDU header, positions, path points.

Values are those of ASN.1, whole numbers in the unit that the field's name or docstring gives, with the value of the
standard for "unavailable" as default. Release 1 (CDD v1.3.1) and Release 2 (CDD v2) encode them to the same octets, and
both carry protocolVersion 2: version 1 (EN 302 637-2 v1.3.2 and -3 v1.2.2) has other encodings and is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from labconsole_v2x.messages.asn1_modules import MessageError
from labconsole_v2x.messages.bit_fields import Field, check_range, field

PROTOCOL_VERSION = 2
CAM_MESSAGE_ID, DENM_MESSAGE_ID = 2, 1


STATION_ID = field("stationID", 0, 2**32 - 1)
STATION_TYPE = field("stationType", 0, 255)


class Position(NamedTuple):
    """ReferencePosition: latitude and longitude in 0.1 microdegree, altitude and confidence ellipse in cm.

    `orientation` of the ellipse is in 0.1 degree, `altitude_confidence` an index of AltitudeConfidence.
    """

    latitude: int
    longitude: int
    semi_major: int = 4095
    semi_minor: int = 4095
    orientation: int = 3601
    altitude: int = 800_001
    altitude_confidence: int = 15


POSITION = (
    field("latitude", -900_000_000, 900_000_001),
    field("longitude", -1_800_000_000, 1_800_000_001),
    field("positionConfidenceEllipse.semiMajorConfidence", 0, 4095),
    field("positionConfidenceEllipse.semiMinorConfidence", 0, 4095),
    field("positionConfidenceEllipse.semiMajorOrientation", 0, 3601),
    field("altitude.altitudeValue", -100_000, 800_001),
    field("altitude.altitudeConfidence", 0, 15),
)


class PathPoint(NamedTuple):
    """A point relative to the one before: 0.1 microdegree, altitude in cm, time difference in 10 ms."""

    latitude: int
    longitude: int
    altitude: int = 12_800
    time: int | None = None


PATH_POINT = (
    field("pathPosition.deltaLatitude", -131_071, 131_072),
    field("pathPosition.deltaLongitude", -131_071, 131_072),
    field("pathPosition.deltaAltitude", -12_700, 12_800),
    field("pathDeltaTime", 1, 65_535, width=17),
)


def check_header(octets: bytes, message_id: int, name: str) -> None:
    """Check version and message ID of an ITS PDU header.

    Raises:
        MessageError: it is another version or message.
    """
    if len(octets) < 6:
        raise MessageError(f"{name} is truncated: {len(octets)} octets")
    if octets[0] != PROTOCOL_VERSION:
        raise MessageError(f"{name} has protocolVersion {octets[0]}: only {PROTOCOL_VERSION} is supported")
    if octets[1] != message_id:
        raise MessageError(f"not a {name}: its messageID is {octets[1]}")


def header(station_id: int, message_id: int) -> dict[str, int]:
    """Return an ITS PDU header as asn1tools' dictionary."""
    return {"protocolVersion": PROTOCOL_VERSION, "messageID": message_id} | to_components((STATION_ID,), (station_id,))


def to_components(fields: Sequence[Field], values: Iterable[int | None]) -> dict[str, Any]:
    """Return asn1tools' dictionaries of `values`, without those that are None.

    Raises:
        MessageError: a value is out of range.
    """
    components: dict[str, Any] = {}
    for item, value in zip(fields, values, strict=True):
        if value is None:
            continue
        check_range(item, value)
        inner = components
        for name in item.path[:-1]:
            inner = inner.setdefault(name, {})
        inner[item.path[-1]] = _bit_string(value, item.width) if item.bit_string else value
    return components


def from_components(fields: Sequence[Field], components: Mapping[str, Any]) -> list[Any]:
    """Return the values of asn1tools' dictionaries in the order of `fields`; None where one is absent.

    Raises:
        MessageError: a value is out of range (asn1tools reads any that its bits can express), or unknown.
    """
    values: list[int | None] = []
    for item in fields:
        value: Any = components
        for name in item.path:
            if name not in value:
                value = None
                break
            value = value[name]
            if value is None:  # asn1tools' form of an enumeration's later extension
                raise MessageError(f"{name} has a value of a later version of the standard")
        if item.bit_string and value is not None:
            value = int.from_bytes(value[0], "big") >> -item.width % 8
        if value is not None:
            check_range(item, value)
        values.append(value)
    return values


def _bit_string(value: int, width: int) -> tuple[bytes, int]:
    return (value << -width % 8).to_bytes(-(-width // 8), "big"), width
