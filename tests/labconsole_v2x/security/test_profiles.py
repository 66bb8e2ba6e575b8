"""Security profiles of TS 103 097 and service specific permissions of CAM and DENM."""

from dataclasses import replace
from typing import Any

import pytest

from labconsole_v2x.messages.cam import Cam, Motion, ProtectedZone, SpecialVehicle, TollZone
from labconsole_v2x.messages.common_data import Position
from labconsole_v2x.messages.denm import Denm, Situation
from labconsole_v2x.security.profiles import profile_faults, ssp_faults
from labconsole_v2x.security.structures import (
    CAM_PSID,
    DENM_PSID,
    Curve,
    Header,
    Permission,
    Point,
    PointForm,
    PublicKey,
    Signature,
    SignedData,
)

KEY = PublicKey(Curve.P256, Point(PointForm.COMPRESSED_Y0, bytes(32)))
SIGNATURE = Signature(Curve.P256, Point(PointForm.X_ONLY, bytes(32)), bytes(32))
PLACE = (470_700_000, 154_400_000, 4096)
CAM = SignedData("sha256", b"", b"payload", Header(CAM_PSID, 1), b"digest--", (), SIGNATURE)
DENM = SignedData("sha256", b"", b"payload", Header(DENM_PSID, 1, location=PLACE), None, (b"certificate",), SIGNATURE)
SPATEM = SignedData("sha256", b"", b"payload", Header(137, 1), b"digest--", (), SIGNATURE)


@pytest.mark.parametrize(
    "data",
    [
        CAM,
        replace(CAM, digest=None, certificates=(b"certificate",)),
        replace(CAM, header=Header(CAM_PSID, 1, inline_p2pcd_request=(b"abc",), requested_certificate=b"aa")),
        DENM,
        SPATEM,
        replace(SPATEM, header=Header(137, 1, expiry_time=2, location=PLACE, encryption_key=KEY)),
    ],
)
def test_profile_is_kept(data: SignedData) -> None:
    assert profile_faults(data) == ()


@pytest.mark.parametrize(
    ("data", "changes", "fault"),
    [
        (CAM, {"generation_time": None}, "generationTime is missing"),
        (CAM, {"expiry_time": 2}, "expiryTime is present"),
        (CAM, {"location": PLACE}, "generationLocation is present"),
        (CAM, {"encryption_key": KEY}, "encryptionKey is present"),
        (CAM, {"p2pcd_learning_request": b"abcdefgh"}, "p2pcdLearningRequest is present"),
        (CAM, {"missing_crl": b"abcde"}, "missingCrlIdentifier is present"),
        (DENM, {"location": None}, "generationLocation is missing"),
        (DENM, {"expiry_time": 2}, "expiryTime is present"),
        (DENM, {"inline_p2pcd_request": (b"abc",)}, "inlineP2pcdRequest is present"),
        (DENM, {"requested_certificate": b"aa"}, "requestedCertificate is present"),
        (SPATEM, {"generation_time": None}, "generationTime is missing"),
        (SPATEM, {"p2pcd_learning_request": b"abcdefgh"}, "p2pcdLearningRequest is present"),
    ],
)
def test_header_field_breaks_profile(data: SignedData, changes: dict[str, Any], fault: str) -> None:
    assert profile_faults(replace(data, header=replace(data.header, **changes))) == (fault,)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (replace(DENM, digest=b"digest--", certificates=()), "the signer is a digest"),
        (replace(CAM, digest=None), "the signer is neither a digest nor one certificate"),
        (replace(CAM, digest=None, certificates=(b"a", b"b")), "the signer is neither a digest nor one certificate"),
        (replace(CAM, payload=None), "the payload is not unsecured data"),
    ],
)
def test_signer_or_payload_breaks_profile(data: SignedData, fault: str) -> None:
    assert profile_faults(data) == (fault,)


POSITION = Position(470_700_000, 154_400_000)
CAR = Cam(1, 0, 5, POSITION, Motion(0, 1, 0, 1))


def special(kind: str, **components: Any) -> Cam:
    return CAR._replace(special=SpecialVehicle(kind, components))


def denm(cause: int) -> Denm:
    return Denm(1, 1, 1, 0, 0, 5, POSITION, situation=Situation(cause))


@pytest.mark.parametrize(
    ("message", "ssp", "missing"),
    [
        (CAR, "010000", ()),
        (CAR._replace(motion=Motion(0, 1, 0, 1, toll_zone=TollZone(0, 0))), "018000", ("cenDsrcTollingZone",)),
        (Cam(1, 0, 15, POSITION, None, zones=(ProtectedZone(0, 0),)), "018000", ("cenDsrcTollingZone",)),
        (special("publicTransportContainer"), "014000", ("publicTransportContainer",)),
        (special("specialTransportContainer"), "012000", ("specialTransportContainer",)),
        (special("dangerousGoodsContainer"), "011000", ("dangerousGoodsContainer",)),
        (special("roadWorksContainerBasic"), "010800", ("roadWorksContainerBasic",)),
        (special("roadWorksContainerBasic", closedLanes={}), "010880", ("roadWorksContainerBasic", "closedLanes")),
        (special("rescueContainer"), "010400", ("rescueContainer",)),
        (special("emergencyContainer"), "010200", ("emergencyContainer",)),
        (
            special("emergencyContainer", emergencyPriority=(b"\xc0", 2)),
            "010260",
            ("emergencyContainer", "requestForRightOfWay", "requestForFreeCrossingAtATrafficLight"),
        ),
        (special("safetyCarContainer"), "010100", ("safetyCarContainer",)),
        (
            special("safetyCarContainer", trafficRule="noPassing", speedLimit=80),
            "010114",
            ("safetyCarContainer", "noPassing", "speedLimit"),
        ),
        (special("safetyCarContainer", trafficRule="passToLeft"), "010100", ("safetyCarContainer",)),
        (denm(1), "01800000", ("cause code 1",)),
        (denm(12), "01010000", ("cause code 12",)),
        (denm(14), "01008000", ("cause code 14",)),
        (denm(91), "01000100", ("cause code 91",)),
        (denm(94), "01000020", ("cause code 94",)),
        (denm(99), "01000001", ("cause code 99",)),
        (denm(7), "0200000040", ("cause code 7",)),
        (replace(denm(1), situation=None, termination=0), "01000000", ()),
    ],
)
def test_content_needs_its_bit_of_the_ssp(message: Cam | Denm, ssp: str, missing: tuple[str, ...]) -> None:
    psid = CAM_PSID if isinstance(message, Cam) else DENM_PSID
    octets = bytes.fromhex(ssp)
    assert ssp_faults(Permission(psid, octets), message) == ()
    inverted = octets[:1] + bytes(octet ^ 0xFF for octet in octets[1:])
    assert ssp_faults(Permission(psid, inverted), message) == missing
    assert ssp_faults(Permission(psid, octets[:1]), message) == missing
    assert ssp_faults(Permission(psid, None), message) == missing


def test_ssp_of_unknown_version_permits_nothing() -> None:
    assert ssp_faults(Permission(CAM_PSID, b"\x09\xff\xff"), CAR) == ("SSP of unknown version 9",)


def test_cause_code_without_a_bit_is_not_permitted() -> None:
    assert ssp_faults(Permission(DENM_PSID, b"\x02\xff\xff\xff\xff"), denm(42)) == ("cause code 42",)
