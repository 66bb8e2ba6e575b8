"""Cooperative awareness messages, encoded and decoded in UPER.

EN 302 637-2 v1.4.1 (Release 1) and TS 103 900 (Release 2). All values are those of ASN.1, whole numbers in the units
given below, so that a message is the same after decoding and encoding. The contents here have the same octets in both
releases; extension containers of Release 2 are skipped.

A vehicle's CAM without special container or toll zone is encoded and decoded here, bit by bit (8 us instead of 60 to
100 us); asn1tools does it for all others, and decides about all that is malformed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from labconsole_v2x.messages.asn1_modules import MessageError, decode_values, encode_values
from labconsole_v2x.messages.bit_fields import (
    BitReader,
    BitWriter,
    Field,
    Layout,
    LocatingReader,
    NotReadableError,
    field,
)
from labconsole_v2x.messages.common_data import (
    CAM_MESSAGE_ID,
    PATH_POINT,
    POSITION,
    PROTOCOL_VERSION,
    STATION_ID,
    STATION_TYPE,
    PathPoint,
    Position,
    check_header,
    from_components,
    header,
    to_components,
)


class TollZone(NamedTuple):
    """CenDsrcTollingZone: a tolling station of 5.8 GHz that a vehicle passes; 0.1 microdegree."""

    latitude: int
    longitude: int
    zone_id: int | None = None


class Motion(NamedTuple):
    """BasicVehicleContainerHighFrequency; confidences and directions are the standard's indices.

    Heading in 0.1 degree, speed in 0.01 m/s, length and width in 0.1 m, accelerations in 0.1 m/s2, curvature in
    1/10,000 m, yaw rate in 0.01 degree/s, steering angle in 1.5 degrees. Pairs are a value and its confidence.
    """

    heading: int
    heading_confidence: int
    speed: int
    speed_confidence: int
    drive_direction: int = 2
    length: int = 1023
    length_confidence: int = 4
    width: int = 62
    acceleration: int = 161
    acceleration_confidence: int = 102
    curvature: int = 1023
    curvature_confidence: int = 7
    curvature_mode: int = 2
    yaw_rate: int = 32_767
    yaw_rate_confidence: int = 8
    acceleration_control: int | None = None
    lane: int | None = None
    steering_angle: tuple[int, int] | None = None
    lateral_acceleration: tuple[int, int] | None = None
    vertical_acceleration: tuple[int, int] | None = None
    performance_class: int | None = None
    toll_zone: TollZone | None = None


class LowFrequency(NamedTuple):
    """BasicVehicleContainerLowFrequency; lowBeamHeadlightsOn is the most significant bit of `lights`."""

    role: int = 0
    lights: int = 0
    path: tuple[PathPoint, ...] = ()


class ProtectedZone(NamedTuple):
    """ProtectedCommunicationZone: 0.1 microdegree, radius in m, expiry as ITS time in ms."""

    latitude: int
    longitude: int
    kind: int = 0
    expiry_ms: int | None = None
    radius: int | None = None
    zone_id: int | None = None


class SpecialVehicle(NamedTuple):
    """SpecialVehicleContainer: its choice ("rescueContainer" ...), and the components as in asn1tools."""

    kind: str
    components: Mapping[str, Any]


class Cam(NamedTuple):
    """A CAM: `motion` of a vehicle, or None for a roadside unit with its `zones`."""

    station_id: int
    generation_delta_time: int
    station_type: int
    position: Position
    motion: Motion | None
    low_frequency: LowFrequency | None = None
    zones: tuple[ProtectedZone, ...] = ()
    special: SpecialVehicle | None = None


_MANDATORY = (
    field("heading.headingValue", 0, 3601),
    field("heading.headingConfidence", 1, 127),
    field("speed.speedValue", 0, 16_383),
    field("speed.speedConfidence", 1, 127),
    field("driveDirection", 0, 2),
    field("vehicleLength.vehicleLengthValue", 1, 1023),
    field("vehicleLength.vehicleLengthConfidenceIndication", 0, 4),
    field("vehicleWidth", 1, 62),
    field("longitudinalAcceleration.longitudinalAccelerationValue", -160, 161),
    field("longitudinalAcceleration.longitudinalAccelerationConfidence", 0, 102),
    field("curvature.curvatureValue", -1023, 1023),
    field("curvature.curvatureConfidence", 0, 7),
    field("curvatureCalculationMode", 0, 2, width=3),
    field("yawRate.yawRateValue", -32_766, 32_767),
    field("yawRate.yawRateConfidence", 0, 8),
)
_OPTIONAL: tuple[tuple[Field, ...], ...] = (
    (field("accelerationControl", 0, 127, bit_string=True),),
    (field("lanePosition", -1, 14),),
    (
        field("steeringWheelAngle.steeringWheelAngleValue", -511, 512),
        field("steeringWheelAngle.steeringWheelAngleConfidence", 1, 127),
    ),
    (
        field("lateralAcceleration.lateralAccelerationValue", -160, 161),
        field("lateralAcceleration.lateralAccelerationConfidence", 0, 102),
    ),
    (
        field("verticalAcceleration.verticalAccelerationValue", -160, 161),
        field("verticalAcceleration.verticalAccelerationConfidence", 0, 102),
    ),
    (field("performanceClass", 0, 7),),
)
_DELTA_TIME = field("generationDeltaTime", 0, 65_535)
_ROLE_AND_LIGHTS = (field("vehicleRole", 0, 15), field("exteriorLights", 0, 255, bit_string=True))
_TOLL_ZONE = (
    field("protectedZoneLatitude", -900_000_000, 900_000_001),
    field("protectedZoneLongitude", -1_800_000_000, 1_800_000_001),
    field("cenDsrcTollingZoneID", 0, 2**27 - 1),
)
_ZONE = (
    *_TOLL_ZONE[:2],
    field("protectedZoneType", 0, 1),
    field("expiryTime", 0, 2**42 - 1),
    field("protectedZoneRadius", 1, 2**16 - 1),  # 1 to 255, extensible
    field("protectedZoneID", 0, 2**27 - 1),
)


def encode(cam: Cam) -> bytes:
    """Return the octets of a CAM.

    Raises:
        MessageError: a value is out of range, or a component is missing.
    """
    if cam.motion is None or cam.motion.toll_zone or cam.special or cam.zones:
        return encode_values("CAM", _components(cam))
    return _write_vehicle(cam, cam.motion)


def decode(octets: bytes) -> Cam:
    """Return the contents of a CAM.

    Raises:
        MessageError: the octets are not exactly one CAM of protocolVersion 2.
    """
    check_header(octets, CAM_MESSAGE_ID, "CAM")
    try:
        return _read_vehicle(BitReader(octets))
    except NotReadableError:
        return _cam(decode_values("CAM", octets))


def component_octets(octets: bytes) -> dict[str, list[tuple[int, int]]]:
    """Return by name the octets (first, end) in which the components of a vehicle's CAM are, in their order.

    Empty for a CAM that is not decoded bit by bit.
    """
    bits = LocatingReader(octets)
    try:
        _read_vehicle(bits)
    except NotReadableError:
        return {}
    return bits.found


_FLAG = field("flag", 0, 1)
_NO_FLAG = field("flag", 0, 0, width=1)
_HEAD = Layout(
    (
        field("protocolVersion", 0, 255),
        field("messageID", 0, 255),
        STATION_ID,
        _DELTA_TIME,
        _NO_FLAG,  # CamParameters has no extension
        _FLAG,  # and perhaps a low frequency container
        _NO_FLAG,  # but no special vehicle container
        _NO_FLAG,  # BasicContainer has no extension
        STATION_TYPE,
        *POSITION,
        field("highFrequencyContainer", 0, 0, width=2),
        field("optionalComponents", 0, 63, width=6),
        field("cenDsrcTollingZone", 0, 0, width=1),
        *_MANDATORY,
    )
)
_OPTIONAL_LAYOUTS = [Layout(fields) for fields in _OPTIONAL]
_LOW_FREQUENCY = Layout((_NO_FLAG, *_ROLE_AND_LIGHTS, field("pathHistory", 0, 40)))
_POINT = Layout((_FLAG, *PATH_POINT[:3]))
_POINT_TIME = Layout(PATH_POINT[3:])
_NOTHING = (None,) * len(_OPTIONAL)


def _parts(motion: Motion) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The values of `_MANDATORY`, and of `_OPTIONAL`."""
    return motion[: len(_MANDATORY)], motion[len(_MANDATORY) : -1]


def _write_vehicle(cam: Cam, motion: Motion) -> bytes:
    bits = BitWriter()
    mandatory, optional = _parts(motion)
    flags = 0
    for value in optional:
        flags = flags << 1 | (value is not None)
    low = cam.low_frequency
    head = (PROTOCOL_VERSION, CAM_MESSAGE_ID, cam.station_id, cam.generation_delta_time, 0, low is not None, 0, 0)
    bits.write(_HEAD, (*head, cam.station_type, *cam.position, 0, flags, 0, *mandatory))
    if flags:
        for layout, value in zip(_OPTIONAL_LAYOUTS, optional, strict=True):
            if value is not None:
                bits.write(layout, value if isinstance(value, tuple) else (value,))
    if low is not None:
        bits.write(_LOW_FREQUENCY, (0, low.role, low.lights, len(low.path)))
        for *delta, time in low.path:
            bits.write(_POINT, (time is not None, *delta))
            if time is not None:
                bits.write(_POINT_TIME, (time,))
    return bits.octets()


def _read_vehicle(bits: BitReader) -> Cam:
    """Return a vehicle's CAM without special container and toll zone; NotReadableError is raised for all others."""
    head = bits.read(_HEAD)
    flags = head[17]
    optional = _read_optional(bits, flags) if flags else _NOTHING
    low = None
    if head[5]:
        _, role, lights, count = bits.read(_LOW_FREQUENCY)
        points = []
        for _ in range(count):
            timed, *place = bits.read(_POINT)
            points.append(PathPoint(*place, *(bits.read(_POINT_TIME) if timed else (None,))))
        low = LowFrequency(role, lights, tuple(points))
    if bits.left >= 8:
        raise NotReadableError
    return Cam(head[2], head[3], head[8], Position(*head[9:16]), Motion._make((*head[19:], *optional, None)), low)


def _read_optional(bits: BitReader, flags: int) -> tuple[Any, ...]:
    found: list[Any] = []
    for at, layout in enumerate(_OPTIONAL_LAYOUTS):
        values = bits.read(layout) if flags >> 5 - at & 1 else (None,)
        found.append(tuple(values) if len(values) > 1 else values[0])
    return tuple(found)


def _components(cam: Cam) -> dict[str, Any]:
    parameters: dict[str, Any] = {
        "basicContainer": to_components((STATION_TYPE,), (cam.station_type,))
        | {"referencePosition": to_components(POSITION, cam.position)}
    }
    if cam.motion is None:
        zones = [to_components(_ZONE, zone) for zone in cam.zones]
        parameters["highFrequencyContainer"] = (
            "rsuContainerHighFrequency",
            {"protectedCommunicationZonesRSU": zones} if zones else {},
        )
    elif cam.zones:
        raise MessageError(
            "protected communication zones are sent by roadside units only: this CAM has a vehicle's motion"
        )
    else:
        parameters["highFrequencyContainer"] = ("basicVehicleContainerHighFrequency", _motion_components(cam.motion))
    if cam.low_frequency is not None:
        low = cam.low_frequency
        container = to_components(_ROLE_AND_LIGHTS, (low.role, low.lights))
        container["pathHistory"] = [to_components(PATH_POINT, point) for point in low.path]
        parameters["lowFrequencyContainer"] = ("basicVehicleContainerLowFrequency", container)
    if cam.special is not None:
        parameters["specialVehicleContainer"] = (cam.special.kind, cam.special.components)
    content = to_components((_DELTA_TIME,), (cam.generation_delta_time,)) | {"camParameters": parameters}
    return {"header": header(cam.station_id, CAM_MESSAGE_ID), "cam": content}


def _motion_components(motion: Motion) -> dict[str, Any]:
    mandatory, optional = _parts(motion)
    components = to_components(_MANDATORY, mandatory)
    for fields, value in zip(_OPTIONAL, optional, strict=True):
        if value is not None:
            components |= to_components(fields, value if isinstance(value, tuple) else (value,))
    if motion.toll_zone is not None:
        zone = motion.toll_zone
        components["cenDsrcTollingZone"] = to_components(_TOLL_ZONE, (zone.latitude, zone.longitude, zone.zone_id))
    return components


def _cam(components: Mapping[str, Any]) -> Cam:
    content = components["cam"]
    parameters = content["camParameters"]
    basic = parameters["basicContainer"]
    kind, high = parameters["highFrequencyContainer"]
    motion: Motion | None = None
    zones: tuple[ProtectedZone, ...] = ()
    if kind == "basicVehicleContainerHighFrequency":
        motion = _motion(high)
    elif kind == "rsuContainerHighFrequency":
        found = high.get("protectedCommunicationZonesRSU", ())
        zones = tuple(ProtectedZone(*from_components(_ZONE, zone)) for zone in found)
    else:
        raise MessageError("CAM has a high frequency container of an unknown kind")
    low = None
    if "lowFrequencyContainer" in parameters:
        kind, container = parameters["lowFrequencyContainer"]
        if kind != "basicVehicleContainerLowFrequency":
            raise MessageError("CAM has a low frequency container of an unknown kind")
        points = tuple(PathPoint(*from_components(PATH_POINT, point)) for point in container["pathHistory"])
        low = LowFrequency(*[*from_components(_ROLE_AND_LIGHTS, container), points])
    special = parameters.get("specialVehicleContainer")
    if special is not None and special[0] is None:
        raise MessageError("CAM has a special vehicle container of an unknown kind")
    return Cam(
        components["header"]["stationID"],
        content["generationDeltaTime"],
        basic["stationType"],
        Position(*from_components(POSITION, basic["referencePosition"])),
        motion,
        low,
        zones,
        None if special is None else SpecialVehicle(*special),
    )


def _motion(components: Mapping[str, Any]) -> Motion:
    optional: list[Any] = []
    for fields in _OPTIONAL:
        values = from_components(fields, components)
        optional.append(values[0] if len(values) == 1 else None if values[0] is None else tuple(values))
    zone = components.get("cenDsrcTollingZone")
    toll_zone = None if zone is None else TollZone(*from_components(_TOLL_ZONE, zone))
    return Motion(*[*from_components(_MANDATORY, components), *optional, toll_zone])
