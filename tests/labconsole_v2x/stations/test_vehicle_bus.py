"""The in-vehicle network: frames that are changed, replayed, foreign or late never reach a CAM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import hypot
from random import Random

import pytest

from labconsole.errors import UserError
from labconsole_v2x.messages import cam
from labconsole_v2x.messages.btp import parse_btp
from labconsole_v2x.messages.geonetworking import carried_payload, parse_packet
from labconsole_v2x.security.scanning import scan_signed_data
from labconsole_v2x.stations.routes import CENTRE, Movement, vehicle_route
from labconsole_v2x.stations.sending import CamSender, SentCam
from labconsole_v2x.stations.vehicle_bus import (
    OLDEST_NS,
    DataId,
    FrameVerdict,
    SecuredSensor,
    VehicleCamSender,
    VehicleData,
    VehicleFrame,
    VehicleKey,
)
from tests.labconsole_v2x.stations.cam_senders import Lab

MOVEMENT = vehicle_route(Random(1)).at(3.0)
FRAMES = list[VehicleFrame]


class Vehicle:
    """Sensors and receiver under one key, with a clock that the test sets."""

    def __init__(self) -> None:
        self.now_ns = 10**12
        self.key = VehicleKey()
        self.sensors = [SecuredSensor(data_id, self.key) for data_id in DataId]
        self.data = VehicleData(self.key, clock=lambda: self.now_ns)

    def measured(self, movement: Movement = MOVEMENT) -> FRAMES:
        return [sensor.measure(movement) for sensor in self.sensors]

    def receive(self, frames: Sequence[VehicleFrame]) -> list[FrameVerdict]:
        return [self.data.receive(frame) for frame in frames]


@pytest.fixture
def vehicle() -> Vehicle:
    return Vehicle()


def test_mac_is_that_of_rfc_4493_over_data_id_payload_and_freshness_cut_to_eight_octets() -> None:
    """Example 3 of RFC 4493, clause 4: a message of 40 octets, here divided as SecOC concatenates its parts."""
    key = VehicleKey(bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c"))
    message = bytes.fromhex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411")
    data_id, freshness = int.from_bytes(message[:2], "big"), int.from_bytes(message[-4:], "big")
    assert key.mac(data_id, freshness, message[2:-4]) == bytes.fromhex("dfa66747de9ae630")


def test_values_of_authentic_frames_give_the_movement(vehicle: Vehicle) -> None:
    assert vehicle.receive(vehicle.measured()) == [FrameVerdict.ACCEPTED] * 3
    known = vehicle.data.movement()
    assert known is not None
    assert (known.latitude, known.longitude) == (MOVEMENT.latitude, MOVEMENT.longitude)
    assert hypot(known.east_m - MOVEMENT.east_m, known.north_m - MOVEMENT.north_m) < 0.02
    assert known[4:] == pytest.approx(MOVEMENT[4:], abs=0.0051)
    assert known.curvature == pytest.approx(MOVEMENT.curvature, abs=5.1e-6)


@pytest.mark.parametrize("missing", DataId)
def test_no_movement_while_a_value_is_missing(vehicle: Vehicle, missing: DataId) -> None:
    vehicle.receive([frame for frame in vehicle.measured() if frame.data_id != missing])
    assert vehicle.data.movement() is None


def test_every_changed_bit_makes_a_frame_fail(vehicle: Vehicle) -> None:
    frame = vehicle.measured()[0]
    changed = [frame._replace(freshness=frame.freshness ^ 1 << bit) for bit in range(32)]
    changed.append(frame._replace(data_id=DataId.SPEED))
    for name in ("payload", "mac"):
        octets = getattr(frame, name)
        for bit in range(len(octets) * 8):
            other = (int.from_bytes(octets, "big") ^ 1 << bit).to_bytes(len(octets), "big")
            changed.append(frame._replace(**{name: other}))
    changed += [frame._replace(mac=frame.mac[:4]), frame._replace(mac=b""), frame._replace(payload=b"")]
    assert set(vehicle.receive(changed)) == {FrameVerdict.MAC_INVALID}
    assert vehicle.receive([frame]) == [FrameVerdict.ACCEPTED]


def replayed(vehicle: Vehicle) -> VehicleFrame:
    frame = vehicle.measured()[1]
    vehicle.receive([frame])
    return frame


def overtaken(vehicle: Vehicle) -> VehicleFrame:
    early, late = vehicle.measured()[1], vehicle.measured()[1]
    vehicle.receive([late])
    return early


def of_another_key(vehicle: Vehicle) -> VehicleFrame:
    return SecuredSensor(DataId.SPEED, VehicleKey(), 1000).measure(MOVEMENT)


def of_another_length(vehicle: Vehicle) -> VehicleFrame:
    return VehicleFrame(DataId.SPEED, 7, b"\0" * 5, vehicle.key.mac(DataId.SPEED, 7, b"\0" * 5))


def of_another_id(vehicle: Vehicle) -> VehicleFrame:
    return VehicleFrame(0x0200, 7, b"\0" * 4, vehicle.key.mac(0x0200, 7, b"\0" * 4))


def never_sent(vehicle: Vehicle) -> VehicleFrame:
    return VehicleFrame(DataId.SPEED, 0, b"\0" * 4, vehicle.key.mac(DataId.SPEED, 0, b"\0" * 4))


def out_of_range(vehicle: Vehicle) -> VehicleFrame:
    return VehicleFrame(DataId.SPEED, 1 << 32, b"\0" * 4, bytes(8))


@pytest.mark.parametrize(
    ("attack", "verdict"),
    [
        (replayed, FrameVerdict.NOT_FRESH),
        (overtaken, FrameVerdict.NOT_FRESH),
        (never_sent, FrameVerdict.NOT_FRESH),
        (of_another_key, FrameVerdict.MAC_INVALID),
        (of_another_length, FrameVerdict.MALFORMED),
        (out_of_range, FrameVerdict.MALFORMED),
        (of_another_id, FrameVerdict.UNKNOWN_DATA_ID),
    ],
)
def test_attacks_are_refused_by_reason(
    vehicle: Vehicle, attack: Callable[[Vehicle], VehicleFrame], verdict: FrameVerdict
) -> None:
    frame = attack(vehicle)
    before = vehicle.data.movement(), vehicle.data.verdicts[verdict]
    assert vehicle.data.receive(frame) is verdict
    assert (vehicle.data.movement(), vehicle.data.verdicts[verdict]) == (before[0], before[1] + 1)


def test_refused_frames_do_not_make_a_value_younger(vehicle: Vehicle) -> None:
    frames = vehicle.measured()
    vehicle.receive(frames)
    vehicle.now_ns += OLDEST_NS
    vehicle.receive(frames)
    assert vehicle.data.movement() is not None
    vehicle.now_ns += 1
    vehicle.receive(frames)
    assert vehicle.data.movement() is None
    vehicle.receive(vehicle.measured())
    assert vehicle.data.movement() is not None


def test_state_is_bounded_by_the_known_data_ids(vehicle: Vehicle) -> None:
    vehicle.receive([VehicleFrame(number, 1, b"", bytes(8)) for number in range(10_000)])
    assert sum(vehicle.data.verdicts.values()) == 10_000
    assert len(vehicle.data.verdicts) <= len(FrameVerdict)
    assert vehicle.data._values == {}


def test_sensor_uses_no_counter_twice_and_ends_with_its_last(vehicle: Vehicle) -> None:
    sensor = SecuredSensor(DataId.POSITION, vehicle.key, (1 << 32) - 2)
    assert sensor.measure(MOVEMENT).freshness == (1 << 32) - 1
    with pytest.raises(UserError, match="create another key"):
        sensor.measure(MOVEMENT)


def test_key_is_not_in_any_text_about_it() -> None:
    octets = bytes(range(16))
    key = VehicleKey(octets)
    for text in (repr(key), str(vars(key)), repr(vars(SecuredSensor(DataId.SPEED, key)))):
        assert octets.hex() not in text and repr(octets) not in text
    assert VehicleKey().mac(1, 1, b"") != VehicleKey().mac(1, 1, b"")


@pytest.fixture(scope="module")
def cam_sender() -> CamSender:
    return Lab().sender()


def decoded(sent: SentCam) -> cam.Cam:
    secured = parse_packet(sent.frame[14:]).secured
    assert secured is not None
    payload = scan_signed_data(secured).payload
    assert payload is not None
    return cam.decode(parse_btp(*carried_payload(payload)).payload)


def test_cam_has_the_values_of_the_vehicle(vehicle: Vehicle, cam_sender: CamSender) -> None:
    sender = VehicleCamSender(cam_sender, vehicle.sensors, vehicle.data)
    sent = sender.create(MOVEMENT)
    assert sent is not None
    message, direct = decoded(sent), decoded(cam_sender.create(MOVEMENT))
    assert message.position == direct.position
    assert message.motion == direct.motion
    assert (sender.identity, sender.ticket) == (cam_sender.identity, cam_sender.ticket)
    sender.distribution = None
    assert cam_sender.distribution is None


def test_attacker_in_the_vehicle_can_prevent_a_cam_but_not_change_one(vehicle: Vehicle, cam_sender: CamSender) -> None:
    """Frames of a false position in place of the right ones: no CAM once the last authentic value is too old."""
    attacker = SecuredSensor(DataId.POSITION, VehicleKey(), 1000)
    false = MOVEMENT._replace(latitude=CENTRE[0] + 100_000)
    attacked = False

    def network(frames: Sequence[VehicleFrame]) -> FRAMES:
        others = [frame for frame in frames if not (attacked and frame.data_id == DataId.POSITION)]
        return [*others, attacker.measure(false)]

    sender = VehicleCamSender(cam_sender, vehicle.sensors, vehicle.data, network)
    positions = []
    for attacked in (False, True, True, True, False):  # noqa: B007 - `network` reads it
        sent = sender.create(MOVEMENT)
        positions.append(decoded(sent).position.latitude if sent else None)
        vehicle.now_ns += 150_000_000
    assert positions == [MOVEMENT.latitude, MOVEMENT.latitude, None, None, MOVEMENT.latitude]
    assert vehicle.data.verdicts[FrameVerdict.MAC_INVALID] == 5
