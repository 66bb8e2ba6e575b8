"""CAMs, DENMs and position vectors with random contents over the whole range of every field."""

from __future__ import annotations

from random import Random

from labconsole_v2x.messages.cam import Cam, LowFrequency, Motion, ProtectedZone, SpecialVehicle, TollZone
from labconsole_v2x.messages.common_data import PathPoint, Position
from labconsole_v2x.messages.denm import Denm, Location, Situation
from labconsole_v2x.messages.geonetworking import Address, PositionVector

LIGHTS_AND_SIREN = SpecialVehicle("rescueContainer", {"lightBarSirenInUse": (b"\xc0", 2)})


def random_position(random: Random) -> Position:
    latitude = random.randint(-900_000_000, 900_000_001)
    longitude = random.randint(-1_800_000_000, 1_800_000_001)
    ellipse = (random.randint(0, 4095), random.randint(0, 4095), random.randint(0, 3601))
    return Position(latitude, longitude, *ellipse, random.randint(-100_000, 800_001), random.randint(0, 15))


def random_path(random: Random, longest: int) -> tuple[PathPoint, ...]:
    return tuple(
        PathPoint(
            random.randint(-131_071, 131_072),
            random.randint(-131_071, 131_072),
            random.randint(-12_700, 12_800),
            random.choice((None, random.randint(1, 65_535))),
        )
        for _ in range(random.randint(0, longest))
    )


def random_motion(random: Random, *, toll_zone: TollZone | None = None) -> Motion:
    numbers = random.randint
    return Motion(
        heading=numbers(0, 3601),
        heading_confidence=numbers(1, 127),
        speed=numbers(0, 16_383),
        speed_confidence=numbers(1, 127),
        drive_direction=numbers(0, 2),
        length=numbers(1, 1023),
        length_confidence=numbers(0, 4),
        width=numbers(1, 62),
        acceleration=numbers(-160, 161),
        acceleration_confidence=numbers(0, 102),
        curvature=numbers(-1023, 1023),
        curvature_confidence=numbers(0, 7),
        curvature_mode=numbers(0, 2),
        yaw_rate=numbers(-32_766, 32_767),
        yaw_rate_confidence=numbers(0, 8),
        acceleration_control=random.choice((None, numbers(0, 127))),
        lane=random.choice((None, numbers(-1, 14))),
        steering_angle=random.choice((None, (numbers(-511, 512), numbers(1, 127)))),
        lateral_acceleration=random.choice((None, (numbers(-160, 161), numbers(0, 102)))),
        vertical_acceleration=random.choice((None, (numbers(-160, 161), numbers(0, 102)))),
        performance_class=random.choice((None, numbers(0, 7))),
        toll_zone=toll_zone,
    )


def random_cam(random: Random, kind: str = "vehicle") -> Cam:
    """A CAM of a kind: "vehicle", "toll zone", "special vehicle" or "roadside unit"."""
    zones: tuple[ProtectedZone, ...] = ()
    if kind == "roadside unit":
        timed = ProtectedZone(1, -2, 0, random.randint(0, 2**42 - 1), random.randint(1, 255), 2**27 - 1)
        zones = random.choice(((), (ProtectedZone(524_626_014, 107_219_472, kind=1), timed)))
    toll_zone = TollZone(524_626_014, -107_219_472, random.choice((None, 77))) if kind == "toll zone" else None
    low = LowFrequency(random.randint(0, 15), random.randint(0, 255), random_path(random, 40))
    return Cam(
        random.getrandbits(32),
        random.getrandbits(16),
        random.getrandbits(8),
        random_position(random),
        None if kind == "roadside unit" else random_motion(random, toll_zone=toll_zone),
        random.choice((None, low)),
        zones,
        LIGHTS_AND_SIREN if kind == "special vehicle" else None,
    )


def random_denm(random: Random) -> Denm:
    numbers = random.randint
    situation = Situation(
        numbers(0, 128), numbers(0, 255), numbers(0, 7), random.choice((None, (numbers(0, 128), numbers(0, 255))))
    )
    location = Location(
        tuple(random_path(random, 5) for _ in range(numbers(1, 7))),
        random.choice((None, (numbers(0, 16_383), numbers(1, 127)))),
        random.choice((None, (numbers(0, 3601), numbers(1, 127)))),
        random.choice((None, numbers(0, 3))),
    )
    return Denm(
        station_id=random.getrandbits(32),
        originating_station_id=random.getrandbits(32),
        sequence_number=random.getrandbits(16),
        detection_us=random.getrandbits(42) * 1000,
        reference_us=random.getrandbits(42) * 1000,
        station_type=random.getrandbits(8),
        position=random_position(random),
        termination=random.choice((None, 0, 1)),
        relevance_distance=random.choice((None, numbers(0, 7))),
        traffic_direction=random.choice((None, numbers(0, 3))),
        validity_s=numbers(601, 86_400),
        interval_ms=random.choice((None, numbers(1, 10_000))),
        situation=random.choice((None, situation)),
        location=random.choice((None, location)),
    )


def random_vector(random: Random) -> PositionVector:
    address = Address(random.randbytes(6), random.randint(0, 31), random.random() < 0.5)
    place = (random.randint(-900_000_000, 900_000_000), random.randint(-1_800_000_000, 1_800_000_000))
    speed = random.randint(-16_384, 16_383)
    return PositionVector(
        address, random.getrandbits(32), *place, random.random() < 0.5, speed, random.randint(0, 3600)
    )
