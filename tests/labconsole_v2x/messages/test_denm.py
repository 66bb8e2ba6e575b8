"""DENMs: encoded and decoded, judged by pycrate and by the modules of Release 2."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from pycrate_asn1dir.ITS_DENM_3 import DENM_PDU_Descriptions

from labconsole_v2x.messages.asn1_modules import MessageError, decode_values, encode_values
from labconsole_v2x.messages.common_data import PathPoint, Position
from labconsole_v2x.messages.denm import Denm, Location, Situation, decode, encode
from tests.labconsole_v2x.messages.random_messages import random_denm

PYCRATE_DENM = DENM_PDU_Descriptions.DENM
DENM = Denm(
    station_id=7,
    originating_station_id=4_294_967_295,
    sequence_number=65_535,
    detection_us=690_000_000_123_000,
    reference_us=690_000_000_456_000,
    station_type=15,
    position=Position(-1, -2, altitude=300, altitude_confidence=0),
    termination=1,
    relevance_distance=4,
    traffic_direction=2,
    validity_s=60,
    interval_ms=500,
    situation=Situation(cause=94, sub_cause=2, quality=7, linked_cause=(9, 4)),
    location=Location(((PathPoint(10, -20, 30, 40),), ()), speed=(1000, 5), heading=(1800, 20), road_type=3),
)

# The same message in the names of EN 302 637-3 and TS 102 894-2.
VALUES: dict[str, Any] = {
    "header": {"protocolVersion": 2, "messageID": 1, "stationID": 7},
    "denm": {
        "management": {
            "actionID": {"originatingStationID": 4_294_967_295, "sequenceNumber": 65_535},
            "detectionTime": 690_000_000_123,
            "referenceTime": 690_000_000_456,
            "termination": "isNegation",
            "eventPosition": {
                "latitude": -1,
                "longitude": -2,
                "positionConfidenceEllipse": {
                    "semiMajorConfidence": 4095,
                    "semiMinorConfidence": 4095,
                    "semiMajorOrientation": 3601,
                },
                "altitude": {"altitudeValue": 300, "altitudeConfidence": "alt-000-01"},
            },
            "relevanceDistance": "lessThan1000m",
            "relevanceTrafficDirection": "downstreamTraffic",
            "validityDuration": 60,
            "transmissionInterval": 500,
            "stationType": 15,
        },
        "situation": {
            "informationQuality": 7,
            "eventType": {"causeCode": 94, "subCauseCode": 2},
            "linkedCause": {"causeCode": 9, "subCauseCode": 4},
        },
        "location": {
            "eventSpeed": {"speedValue": 1000, "speedConfidence": 5},
            "eventPositionHeading": {"headingValue": 1800, "headingConfidence": 20},
            "traces": [
                [
                    {
                        "pathPosition": {"deltaLatitude": 10, "deltaLongitude": -20, "deltaAltitude": 30},
                        "pathDeltaTime": 40,
                    }
                ],
                [],
            ],
            "roadType": "nonUrban-WithStructuralSeparationToOppositeLanes",
        },
    },
}


def test_every_component_is_where_the_standard_has_it() -> None:
    octets = encode(DENM)
    PYCRATE_DENM.from_uper(octets)
    assert PYCRATE_DENM.get_val() == VALUES
    assert decode(octets) == DENM


def test_pycrate_and_the_modules_of_both_releases_read_the_same_contents() -> None:
    random = Random("denm")
    for _ in range(100):
        denm = random_denm(random)
        octets = encode(denm)
        assert decode(octets) == denm
        PYCRATE_DENM.from_uper(octets)
        assert bytes(PYCRATE_DENM.to_uper()) == octets
        management = PYCRATE_DENM.get_val()["denm"]["management"]
        assert management["detectionTime"] * 1000 == denm.detection_us
        assert management["validityDuration"] == denm.validity_s
        for release in (1, 2):
            assert encode_values("DENM", decode_values("DENM", octets, release), release) == octets


def test_the_default_validity_is_not_encoded() -> None:
    octets = encode(replace(DENM, validity_s=600))
    PYCRATE_DENM.from_uper(octets)
    assert bytes(PYCRATE_DENM.to_uper()) == octets
    assert len(octets) < len(encode(DENM))
    assert decode(octets).validity_s == 600


def test_containers_that_are_not_kept_do_not_disturb_the_others() -> None:
    values = decode_values("DENM", encode(DENM))
    values["denm"]["alacarte"] = {"lanePosition": 2, "externalTemperature": -7}
    history = {"deltaLatitude": 1, "deltaLongitude": 2, "deltaAltitude": 3}
    values["denm"]["situation"]["eventHistory"] = [{"eventPosition": history, "informationQuality": 1}]
    assert decode(encode_values("DENM", values)) == DENM


def test_microseconds_are_cut_to_whole_milliseconds() -> None:
    assert decode(encode(replace(DENM, detection_us=690_000_000_123_999))) == DENM


def test_truncated_longer_and_other_messages_are_refused() -> None:
    octets = encode(DENM)
    for length in range(len(octets)):
        with pytest.raises(MessageError):
            decode(octets[:length])
    with pytest.raises(MessageError, match="further octets"):
        decode(octets + b"\0")
    with pytest.raises(MessageError, match="protocolVersion 1"):
        decode(b"\x01" + octets[1:])
    with pytest.raises(MessageError, match="messageID is 2"):
        decode(b"\x02\x02" + octets[2:])


def test_values_out_of_range_are_refused_by_name() -> None:
    with pytest.raises(MessageError, match="sequenceNumber is 65536"):
        encode(replace(DENM, sequence_number=65_536))
    with pytest.raises(MessageError, match="causeCode is 256"):
        encode(replace(DENM, situation=Situation(256)))
    with pytest.raises(MessageError, match="detectionTime is -1"):
        encode(replace(DENM, detection_us=-1))
    with pytest.raises(MessageError):
        encode(replace(DENM, location=Location(())))
