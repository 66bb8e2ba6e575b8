"""CAMs: encoded and decoded, judged by pycrate, by the modules of Release 2 and by a production car."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from pycrate_asn1dir.ITS_CAM_2 import CAM_PDU_Descriptions

from labconsole_v2x.messages.asn1_modules import MessageError, decode_values, encode_values
from labconsole_v2x.messages.btp import Port, parse_btp
from labconsole_v2x.messages.cam import Cam, LowFrequency, Motion, SpecialVehicle, decode, encode
from labconsole_v2x.messages.common_data import PathPoint, Position
from labconsole_v2x.messages.geonetworking import Kind, parse_packet, parse_unsecured
from tests.helpers.vectors import recorded
from tests.labconsole_v2x.messages.random_messages import LIGHTS_AND_SIREN, random_cam

PYCRATE_CAM = CAM_PDU_Descriptions.CAM
KINDS = ("vehicle", "toll zone", "special vehicle", "roadside unit")

POSITION = Position(524_626_014, 107_219_472, 286, 280, 877, 9750, 10)
MOTION = Motion(
    heading=958,
    heading_confidence=10,
    speed=218,
    speed_confidence=4,
    drive_direction=1,
    length=42,
    length_confidence=3,
    width=18,
    acceleration=-18,
    acceleration_confidence=101,
    curvature=-25,
    curvature_confidence=3,
    curvature_mode=1,
    yaw_rate=-20,
    yaw_rate_confidence=7,
    acceleration_control=0b0100001,
    lane=-1,
    steering_angle=(-511, 126),
    lateral_acceleration=(7, 8),
    vertical_acceleration=(-9, 10),
    performance_class=2,
)
LOW = LowFrequency(6, 0b10000001, (PathPoint(-131_071, 131_072, 5, 65_535), PathPoint(1, -2)))
CAM = Cam(1_289_795_728, 11_883, 5, POSITION, MOTION, LOW, (), LIGHTS_AND_SIREN)

# The same message in the names of EN 302 637-2 and TS 102 894-2.
VALUES: dict[str, Any] = {
    "header": {"protocolVersion": 2, "messageID": 2, "stationID": 1_289_795_728},
    "cam": {
        "generationDeltaTime": 11_883,
        "camParameters": {
            "basicContainer": {
                "stationType": 5,
                "referencePosition": {
                    "latitude": 524_626_014,
                    "longitude": 107_219_472,
                    "positionConfidenceEllipse": {
                        "semiMajorConfidence": 286,
                        "semiMinorConfidence": 280,
                        "semiMajorOrientation": 877,
                    },
                    "altitude": {"altitudeValue": 9750, "altitudeConfidence": "alt-020-00"},
                },
            },
            "highFrequencyContainer": (
                "basicVehicleContainerHighFrequency",
                {
                    "heading": {"headingValue": 958, "headingConfidence": 10},
                    "speed": {"speedValue": 218, "speedConfidence": 4},
                    "driveDirection": "backward",
                    "vehicleLength": {
                        "vehicleLengthValue": 42,
                        "vehicleLengthConfidenceIndication": "trailerPresenceIsUnknown",
                    },
                    "vehicleWidth": 18,
                    "longitudinalAcceleration": {
                        "longitudinalAccelerationValue": -18,
                        "longitudinalAccelerationConfidence": 101,
                    },
                    "curvature": {"curvatureValue": -25, "curvatureConfidence": "onePerMeter-0-002"},
                    "curvatureCalculationMode": "yawRateNotUsed",
                    "yawRate": {"yawRateValue": -20, "yawRateConfidence": "outOfRange"},
                    "accelerationControl": (0b0100001, 7),
                    "lanePosition": -1,
                    "steeringWheelAngle": {"steeringWheelAngleValue": -511, "steeringWheelAngleConfidence": 126},
                    "lateralAcceleration": {"lateralAccelerationValue": 7, "lateralAccelerationConfidence": 8},
                    "verticalAcceleration": {"verticalAccelerationValue": -9, "verticalAccelerationConfidence": 10},
                    "performanceClass": 2,
                },
            ),
            "lowFrequencyContainer": (
                "basicVehicleContainerLowFrequency",
                {
                    "vehicleRole": "emergency",
                    "exteriorLights": (0b10000001, 8),
                    "pathHistory": [
                        {
                            "pathPosition": {"deltaLatitude": -131_071, "deltaLongitude": 131_072, "deltaAltitude": 5},
                            "pathDeltaTime": 65_535,
                        },
                        {"pathPosition": {"deltaLatitude": 1, "deltaLongitude": -2, "deltaAltitude": 12_800}},
                    ],
                },
            ),
            "specialVehicleContainer": ("rescueContainer", {"lightBarSirenInUse": (0b11, 2)}),
        },
    },
}


def pycrate_values(octets: bytes) -> dict[str, Any]:
    PYCRATE_CAM.from_uper(octets)
    values: dict[str, Any] = PYCRATE_CAM.get_val()
    return values


@pytest.mark.parametrize("special", [None, LIGHTS_AND_SIREN])
def test_every_component_is_where_the_standard_has_it(special: SpecialVehicle | None) -> None:
    parameters = VALUES["cam"]["camParameters"]
    kept = {name: value for name, value in parameters.items() if special or name != "specialVehicleContainer"}
    expected = {**VALUES, "cam": {**VALUES["cam"], "camParameters": kept}}
    octets = encode(CAM._replace(special=special))
    assert pycrate_values(octets) == expected
    assert decode(octets) == CAM._replace(special=special)


@pytest.mark.parametrize("kind", KINDS)
def test_pycrate_and_the_modules_of_both_releases_read_the_same_contents(kind: str) -> None:
    random = Random(f"cam {kind}")
    for _ in range(60):
        cam = random_cam(random, kind)
        octets = encode(cam)
        assert decode(octets) == cam
        values = pycrate_values(octets)
        assert bytes(PYCRATE_CAM.to_uper()) == octets
        basic = values["cam"]["camParameters"]["basicContainer"]
        assert values["header"]["stationID"] == cam.station_id
        assert basic["stationType"] == cam.station_type
        assert basic["referencePosition"]["longitude"] == cam.position.longitude
        for release in (1, 2):
            assert encode_values("CAM", decode_values("CAM", octets, release), release) == octets


def test_extension_containers_of_release_2_are_skipped() -> None:
    values = decode_values("CAM", encode(CAM), 2)
    plain = encode_values("CAM", values, 2)
    height = {"containerId": 3, "containerData": b"\x40\x80"}
    values["cam"]["camParameters"]["extensionContainers"] = [height]
    octets = encode_values("CAM", values, 2)
    assert len(octets) > len(plain)
    assert decode(octets) == decode(plain)


@pytest.mark.parametrize("kind", KINDS)
def test_truncated_and_longer_messages_are_refused(kind: str) -> None:
    octets = encode(random_cam(Random(f"length {kind}"), kind))
    for length in range(len(octets)):
        with pytest.raises(MessageError):
            decode(octets[:length])
    with pytest.raises(MessageError, match="further octets"):
        decode(octets + b"\0")


def test_other_versions_and_messages_are_refused() -> None:
    octets = encode(CAM)
    with pytest.raises(MessageError, match="protocolVersion 1"):
        decode(b"\x01" + octets[1:])
    with pytest.raises(MessageError, match="messageID is 1"):
        decode(b"\x02\x01" + octets[2:])


def test_values_out_of_range_are_refused_by_name() -> None:
    with pytest.raises(MessageError, match="latitude is 900000002"):
        encode(CAM._replace(special=None, position=POSITION._replace(latitude=900_000_002)))
    with pytest.raises(MessageError, match="latitude is 900000002"):
        encode(CAM._replace(position=POSITION._replace(latitude=900_000_002)))
    with pytest.raises(MessageError, match="pathHistory is 41"):
        encode(CAM._replace(special=None, low_frequency=LowFrequency(path=(PathPoint(0, 0),) * 41)))
    with pytest.raises(MessageError, match="cannot be encoded"):
        encode(CAM._replace(special=SpecialVehicle("unknownContainer", {})))
    # The 31 bits of a latitude can express more than its range.
    octets = bytearray(encode(CAM))
    latitude_bit = 8 * 8 + 3 + 1 + 8
    number = int.from_bytes(octets, "big") | (1 << 31) - 1 << len(octets) * 8 - latitude_bit - 31
    with pytest.raises(MessageError, match="latitude"):
        decode(number.to_bytes(len(octets), "big"))


@pytest.mark.parametrize("name", ["gn_digest", "gn_fullcert"])
def test_packets_of_a_production_car_are_decoded(name: str) -> None:
    packet = parse_packet(recorded(name))
    assert packet.basic.secured
    assert (packet.basic.lifetime_ms, packet.basic.remaining_hops) == (1000, 1)
    assert packet.secured is not None
    # Version, signed data, hash, data, version, unsecured data, and the payload's length in one octet.
    payload = packet.secured[7 : 7 + packet.secured[6]]
    shb = parse_unsecured(payload)
    assert (shb.kind, shb.next_header, shb.traffic_class, shb.mobile, shb.max_hops) == (Kind.SHB, 2, 2, True, 1)
    assert shb.sender.address.station_type == 5
    assert shb.sender.accurate
    btp = parse_btp(shb.next_header, shb.payload)
    assert (btp.destination_port, btp.port_info) == (Port.CAM, 0)
    cam = decode(btp.payload)
    assert encode(cam) == btp.payload
    assert cam.station_type == 5
    assert abs(cam.position.latitude - shb.sender.latitude) < 1000
    assert abs(cam.position.longitude - shb.sender.longitude) < 1000
    assert cam.motion is not None
    assert (cam.motion.length, cam.motion.width) == (42, 18)  # 4.28 m and 1.79 m
    assert abs(cam.motion.heading - shb.sender.heading) <= 10
    assert abs((shb.sender.timestamp - cam.generation_delta_time + 32_768) % 65_536 - 32_768) < 2000
