"""Decentralized environmental notification messages, encoded and decoded in UPER.

EN 302 637-3 v1.3.1 (Release 1) and TS 103 831 (Release 2). Values are those of ASN.1, whole numbers in the units given
below; the contents here have the same octets in both releases. Event history (Release 2: event zone), à la carte
container and the extensions of Release 2 are skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from labconsole_v2x.messages.asn1_modules import decode_values, encode_values
from labconsole_v2x.messages.bit_fields import field
from labconsole_v2x.messages.common_data import (
    DENM_MESSAGE_ID,
    PATH_POINT,
    POSITION,
    STATION_TYPE,
    PathPoint,
    Position,
    check_header,
    from_components,
    header,
    to_components,
)


@dataclass(frozen=True, slots=True)
class Situation:
    """SituationContainer: cause and sub-cause code, quality 0 to 7, and the codes of a linked event."""

    cause: int
    sub_cause: int = 0
    quality: int = 0
    linked_cause: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Location:
    """LocationContainer: paths to the event, its speed and heading.

    `speed` in 0.01 m/s and `heading` in 0.1 degree are pairs of a value and its confidence.
    """

    traces: tuple[tuple[PathPoint, ...], ...]
    speed: tuple[int, int] | None = None
    heading: tuple[int, int] | None = None
    road_type: int | None = None


@dataclass(frozen=True, slots=True)
class Denm:
    """A DENM; times are ITS time in us, of which whole ms are sent.

    `termination` is 0 for a cancellation, 1 for a negation; `relevance_distance` and `traffic_direction` are the
    standard's indices.
    """

    station_id: int
    originating_station_id: int
    sequence_number: int
    detection_us: int
    reference_us: int
    station_type: int
    position: Position
    termination: int | None = None
    relevance_distance: int | None = None
    traffic_direction: int | None = None
    validity_s: int = 600
    interval_ms: int | None = None
    situation: Situation | None = None
    location: Location | None = None


_LATEST_MS = 2**42 - 1
_ACTION_AND_TIMES = (
    field("actionID.originatingStationID", 0, 2**32 - 1),
    field("actionID.sequenceNumber", 0, 65_535),
    field("detectionTime", 0, _LATEST_MS),
    field("referenceTime", 0, _LATEST_MS),
    STATION_TYPE,
)
_OPTIONAL = (
    field("termination", 0, 1),
    field("relevanceDistance", 0, 7),
    field("relevanceTrafficDirection", 0, 3),
    field("validityDuration", 0, 86_400),
    field("transmissionInterval", 1, 10_000),
)
_SITUATION = (
    field("informationQuality", 0, 7),
    field("eventType.causeCode", 0, 255),
    field("eventType.subCauseCode", 0, 255),
    field("linkedCause.causeCode", 0, 255),
    field("linkedCause.subCauseCode", 0, 255),
)
_LOCATION = (
    field("eventSpeed.speedValue", 0, 16_383),
    field("eventSpeed.speedConfidence", 1, 127),
    field("eventPositionHeading.headingValue", 0, 3601),
    field("eventPositionHeading.headingConfidence", 1, 127),
    field("roadType", 0, 3),
)
_management = attrgetter(*(name for name in Denm.__slots__[7:12]))
_ABSENT = (None, None)


def encode(denm: Denm) -> bytes:
    """Return the octets of a DENM.

    Raises:
        MessageError: a value is out of range, or a component is missing.
    """
    times = (denm.detection_us // 1000, denm.reference_us // 1000)
    action = (denm.originating_station_id, denm.sequence_number)
    management = to_components(_ACTION_AND_TIMES, (*action, *times, denm.station_type))
    management |= to_components(_OPTIONAL, _management(denm))
    management["eventPosition"] = to_components(POSITION, denm.position)
    content: dict[str, Any] = {"management": management}
    if denm.situation is not None:
        event = denm.situation
        values = (event.quality, event.cause, event.sub_cause, *(event.linked_cause or _ABSENT))
        content["situation"] = to_components(_SITUATION, values)
    if denm.location is not None:
        place = denm.location
        values = (*(place.speed or _ABSENT), *(place.heading or _ABSENT), place.road_type)
        content["location"] = to_components(_LOCATION, values)
        content["location"]["traces"] = [
            [to_components(PATH_POINT, point) for point in trace] for trace in place.traces
        ]
    return encode_values("DENM", {"header": header(denm.station_id, DENM_MESSAGE_ID), "denm": content})


def decode(octets: bytes) -> Denm:
    """Return the contents of a DENM.

    Raises:
        MessageError: the octets are not exactly one DENM of protocolVersion 2.
    """
    check_header(octets, DENM_MESSAGE_ID, "DENM")
    components = decode_values("DENM", octets)
    content = components["denm"]
    management = content["management"]
    *action, detection_ms, reference_ms, station_type = from_components(_ACTION_AND_TIMES, management)
    values = [components["header"]["stationID"], *action, detection_ms * 1000, reference_ms * 1000, station_type]
    values += [Position(*from_components(POSITION, management["eventPosition"]))]
    values += from_components(_OPTIONAL, management)
    values += [_situation(content["situation"]) if "situation" in content else None]
    values += [_location(content["location"]) if "location" in content else None]
    return Denm(*values)


def _situation(components: Mapping[str, Any]) -> Situation:
    quality, cause, sub_cause, *linked = from_components(_SITUATION, components)
    return Situation(cause, sub_cause, quality, None if linked[0] is None else (linked[0], linked[1]))


def _location(components: Mapping[str, Any]) -> Location:
    speed, speed_confidence, heading, heading_confidence, road_type = from_components(_LOCATION, components)
    return Location(
        tuple(
            tuple(PathPoint(*from_components(PATH_POINT, point)) for point in trace) for trace in components["traces"]
        ),
        None if speed is None else (speed, speed_confidence),
        None if heading is None else (heading, heading_confidence),
        road_type,
    )
