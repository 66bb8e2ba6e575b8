"""The components of a CAM or DENM as nodes: values with units and the names that ETSI's ASN.1 modules give them.

Of a vehicle's CAM, each component has the octets that its bits are in (UPER has no octet boundaries); components of
other messages have the octets of the whole message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from labconsole_v2x.inspection.field_tree import Node, Walk, degrees, hex_text, named, utc_text, with_unit
from labconsole_v2x.messages import cam, its_time
from labconsole_v2x.messages.asn1_modules import MessageError, MessageName, decode_values, value_names
from labconsole_v2x.messages.btp import Port
from labconsole_v2x.messages.common_data import CAM_MESSAGE_ID, DENM_MESSAGE_ID, check_header

_MESSAGES: dict[int, tuple[MessageName, int]] = {
    Port.CAM: ("CAM", CAM_MESSAGE_ID),
    Port.DENM: ("DENM", DENM_MESSAGE_ID),
}
_HEADER = {"protocolVersion": (0, 1), "messageID": (1, 2), "stationID": (2, 6)}
"""Octets of the ITS PDU header, with which every message begins (TS 102 894-2)."""
_UNITS: dict[str, tuple[int, str]] = {
    "altitudeValue": (2, "m"),
    "curvatureValue": (4, "1/m"),
    "deltaAltitude": (2, "m"),
    "headingConfidence": (1, "°"),
    "headingValue": (1, "°"),
    "lateralAccelerationConfidence": (1, "m/s²"),
    "lateralAccelerationValue": (1, "m/s²"),
    "longitudinalAccelerationConfidence": (1, "m/s²"),
    "longitudinalAccelerationValue": (1, "m/s²"),
    "pathDeltaTime": (2, "s"),
    "protectedZoneRadius": (0, "m"),
    "semiMajorConfidence": (2, "m"),
    "semiMajorOrientation": (1, "°"),
    "semiMinorConfidence": (2, "m"),
    "speedConfidence": (2, "m/s"),
    "speedLimit": (0, "km/h"),
    "speedValue": (2, "m/s"),
    "transmissionInterval": (0, "ms"),
    "validityDuration": (0, "s"),
    "vehicleLengthValue": (1, "m"),
    "vehicleWidth": (1, "m"),
    "verticalAccelerationConfidence": (1, "m/s²"),
    "verticalAccelerationValue": (1, "m/s²"),
    "yawRateValue": (2, "°/s"),
}
"""Decimal digits and unit of a component's value (TS 102 894-2)."""
_DEGREES = (
    *("latitude", "longitude", "deltaLatitude", "deltaLongitude", "protectedZoneLatitude", "protectedZoneLongitude"),
)
_TIMES_MS = ("detectionTime", "referenceTime", "expiryTime")
Moment = Callable[[int, int], str]
"""The text of a time's remainder in ms, by its modulus."""


def message_fields(walk: Walk, port: int, moment: Moment) -> None:
    """Read the message behind a BTP header, up to the end of the part."""
    start, octets = walk.at, walk.octets[walk.at : walk.end]
    if port not in _MESSAGES:
        with walk.part("message", "only CAM and DENM are decoded", size=len(octets)):
            walk.field("data", len(octets))
        return
    name, message_id = _MESSAGES[port]
    with walk.part(name, size=len(octets)):
        try:
            check_header(octets, message_id, name)
            values = decode_values(name, octets)
        except MessageError as error:
            walk.fault(str(error))
            return
        located = cam.component_octets(octets) if name == "CAM" else {}
        places = {item: iter(found) for item, found in located.items()} or {k: iter((v,)) for k, v in _HEADER.items()}
        walk.nodes += _Components(start, len(octets), places, moment).nodes(values)
        walk.at = walk.end


class _Components:
    def __init__(self, start: int, size: int, places: Mapping[str, Iterator[tuple[int, int]]], moment: Moment) -> None:
        self._start = start
        self._whole = (0, size)
        self._places = places
        self._moment = moment

    def nodes(self, components: Mapping[str, Any]) -> tuple[Node, ...]:
        return tuple(self._node(name, value) for name, value in components.items())

    def _node(self, name: str, value: Any) -> Node:
        """A component as asn1tools has it: dictionaries, lists, choices by name, bit strings with their size."""
        text = ""
        if isinstance(value, tuple) and not isinstance(value[0], bytes):
            text, value = value[0] or "", value[1]
        if isinstance(value, dict):
            children = self.nodes(value)
        elif isinstance(value, list):
            text = f"{len(value)} item{'' if len(value) == 1 else 's'}"
            children = tuple(self._node(f"{name}[{number}]", item) for number, item in enumerate(value))
        else:
            first, end = next(self._places.get(name, iter(())), self._whole)
            return Node(name, self._text(name, value), self._start + first, self._start + end)
        if not children:
            return Node(name, text, self._start, self._start + self._whole[1])
        return Node(name, text, min(one.start for one in children), max(one.end for one in children), children)

    def _text(self, name: str, value: Any) -> str:
        names = value_names().get(name, {})
        if isinstance(value, tuple):
            octets, size = value
            set_bits = [bit for bit in range(size) if octets[bit // 8] << bit % 8 & 0x80]
            return ", ".join(names.get(bit, f"bit {bit}") for bit in set_bits) or "none"
        if isinstance(value, bytes):
            return hex_text(value)
        if isinstance(value, bool) or not isinstance(value, int):
            return "of a later version of the standard" if value is None else str(value)
        if name == "generationDeltaTime":
            return self._moment(value, its_time.GENERATION_DELTA_TIME_MODULUS_MS)
        if name in _TIMES_MS:
            return f"{utc_text(value * 1000, 3)} ({value:,} ms)"
        if names.get(value, "") in ("unavailable", "outOfRange"):
            return named(value, names)
        if name in _DEGREES:
            return degrees(value)
        if name.startswith("steeringWheelAngle"):
            return f"{value * 1.5:.1f} °"
        if name in _UNITS:
            return with_unit(value, *_UNITS[name])
        return named(value, names)
