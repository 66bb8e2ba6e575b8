"""The in-vehicle network of a station: frames of sensors with a MAC and a counter, and CAMs from authentic frames only.

Frames are authenticated as AUTOSAR's Secure Onboard Communication does it (SecOC, document 654, 7.1.1): AES-128-CMAC
over data id, payload and complete freshness value, cut to its first octets. None of its profiles is used: these cut
the MAC to 24 or 28 bits and the counter to 8, 4 or 0 (7.10), for CAN frames of 8 octets. CAN FD has room for all of
the counter, and for the 64 bits of MAC from which on NIST SP 800-38B (A.2) needs no further analysis.
"""

from __future__ import annotations

import hmac
import os
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum, StrEnum
from typing import NamedTuple

from cryptography.hazmat.primitives import cmac
from cryptography.hazmat.primitives.ciphers import algorithms

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole_v2x.security.distribution import Distribution
from labconsole_v2x.stations.routes import Movement, metres
from labconsole_v2x.stations.sending import PacketSender, SentCam

MAC_SIZE = 8
OLDEST_NS = 200_000_000
"""Default age of a value from which on no CAM has it: 4 m at 20 m/s, the change after which a CAM is due."""
_KEY_SIZE = 16
_HIGHEST_FRESHNESS = (1 << 32) - 1


class DataId(IntEnum):
    """Data ids (SecOCDataId) of the values that a CAM needs."""

    POSITION = 0x0101
    SPEED = 0x0102
    HEADING = 0x0103


_PAYLOADS = {
    DataId.POSITION: struct.Struct(">ii"),
    DataId.SPEED: struct.Struct(">hh"),
    DataId.HEADING: struct.Struct(">Hh"),
}
"""Latitude, longitude; speed (0.01 m/s), acceleration (0.01 m/s2); heading (0.01 degree), curvature (1e-5/m)."""


class VehicleFrame(NamedTuple):
    """A frame of the in-vehicle network (Secured I-PDU): 16 bits of data id, 32 of freshness counter, 64 of MAC."""

    data_id: int
    freshness: int
    payload: bytes
    mac: bytes


class FrameVerdict(StrEnum):
    """The verdict on a frame: accepted, or the reason for its rejection."""

    ACCEPTED = "accepted"
    UNKNOWN_DATA_ID = "unknown data id"
    MAC_INVALID = "MAC invalid"
    NOT_FRESH = "freshness counter not above the last one"
    MALFORMED = "payload malformed"


class VehicleKey:
    """An AES-128 key that sensors and receiver of a vehicle share; its octets are neither readable nor shown."""

    def __init__(self, octets: bytes | None = None) -> None:
        """A new random key, unless its 16 octets are given."""
        self._cmac = cmac.CMAC(algorithms.AES128(os.urandom(_KEY_SIZE) if octets is None else octets))

    def mac(self, data_id: int, freshness: int, payload: bytes) -> bytes:
        """The MAC of a frame. Raises struct.error: data id or freshness are out of range."""
        calculation = self._cmac.copy()
        calculation.update(struct.pack(">H", data_id) + payload + struct.pack(">I", freshness))
        return calculation.finalize()[:MAC_SIZE]


class SecuredSensor:
    """Sends the values of one data id; no counter value is used twice under a key."""

    def __init__(self, data_id: DataId, key: VehicleKey, last_freshness: int = 0) -> None:
        """`last_freshness`: that of the last frame under the key, which a sensor stores while it is without power."""
        self.data_id = data_id
        self._key = key
        self._freshness = last_freshness

    def measure(self, movement: Movement) -> VehicleFrame:
        """The frame with its value of this movement. Raises UserError: the counter has come to its end."""
        if self._freshness >= _HIGHEST_FRESHNESS:
            raise UserError(
                f"The freshness counter of {self.data_id.name.lower()} has come to its end: create another key."
            )
        self._freshness += 1
        payload = _PAYLOADS[self.data_id].pack(*_measured(self.data_id, movement))
        mac = self._key.mac(self.data_id, self._freshness, payload)
        return VehicleFrame(self.data_id, self._freshness, payload, mac)


def _measured(data_id: DataId, movement: Movement) -> tuple[int, int]:
    if data_id is DataId.POSITION:
        return movement.latitude, movement.longitude
    if data_id is DataId.SPEED:
        return round(movement.speed * 100), round(movement.acceleration * 100)
    return round(movement.heading * 100) % 36_000, round(movement.curvature * 100_000)


class _Value(NamedTuple):
    """The newest value of a data id, as it was received at a time of `labconsole.clock.now_ns`."""

    freshness: int
    numbers: tuple[int, int]
    received_ns: int


class VehicleData:
    """What a station knows from its in-vehicle network: the newest authentic value of each data id. For one thread."""

    def __init__(self, key: VehicleKey, *, oldest_ns: int = OLDEST_NS, clock: Callable[[], int] = now_ns) -> None:
        """`oldest_ns`: the age up to which a value is used; `clock` returns a time in ns that only grows."""
        self._key = key
        self._oldest_ns = oldest_ns
        self._clock = clock
        self._values: dict[DataId, _Value] = {}
        self.verdicts: Counter[FrameVerdict] = Counter()
        """The number of frames by verdict."""

    def receive(self, frame: VehicleFrame) -> FrameVerdict:
        """Store the value of a frame if it is authentic and fresh; never raises, whatever the frame."""
        verdict = self._judged(frame)
        self.verdicts[verdict] += 1
        return verdict

    def movement(self) -> Movement | None:
        """The movement that the values give; None where one is missing or too old."""
        earliest_ns = self._clock() - self._oldest_ns
        values = [self._values.get(data_id) for data_id in DataId]
        fresh = [value.numbers for value in values if value is not None and value.received_ns >= earliest_ns]
        if len(fresh) < len(values):
            return None
        (latitude, longitude), (speed, acceleration), (heading, curvature) = fresh
        return Movement(
            *metres(latitude, longitude),
            latitude,
            longitude,
            speed / 100,
            acceleration / 100,
            heading / 100,
            curvature / 100_000,
        )

    def _judged(self, frame: VehicleFrame) -> FrameVerdict:
        try:
            data_id = DataId(frame.data_id)
        except ValueError:
            return FrameVerdict.UNKNOWN_DATA_ID
        if not 0 <= frame.freshness <= _HIGHEST_FRESHNESS:
            return FrameVerdict.MALFORMED
        if not hmac.compare_digest(self._key.mac(data_id, frame.freshness, frame.payload), frame.mac):
            return FrameVerdict.MAC_INVALID
        newest = self._values.get(data_id)
        if frame.freshness <= (newest.freshness if newest is not None else 0):
            return FrameVerdict.NOT_FRESH
        layout = _PAYLOADS[data_id]
        if len(frame.payload) != layout.size:
            return FrameVerdict.MALFORMED
        first, second = layout.unpack(frame.payload)
        self._values[data_id] = _Value(frame.freshness, (first, second), self._clock())
        return FrameVerdict.ACCEPTED


class VehicleCamSender:
    """Creates CAMs of what the in-vehicle network gives; none while a value is missing, not authentic or too old."""

    def __init__(
        self,
        sender: PacketSender,
        sensors: Sequence[SecuredSensor],
        data: VehicleData,
        network: Callable[[Sequence[VehicleFrame]], Iterable[VehicleFrame]] = tuple,
    ) -> None:
        """`network` gives the frames that arrive of those that are sent: an attacker changes, adds or drops some."""
        self.identity = sender.identity
        self.ticket = sender.ticket
        self.data = data
        self._sender = sender
        self._sensors = sensors
        self._network = network

    @property
    def distribution(self) -> Distribution | None:
        """That of the sender of the CAMs."""
        return self._sender.distribution

    @distribution.setter
    def distribution(self, distribution: Distribution | None) -> None:
        self._sender.distribution = distribution

    def create(self, movement: Movement, channel_ratio: float = 0.0) -> SentCam | None:
        """The CAM of what sensors measure of `movement`; None where the values that arrive give none."""
        for frame in self._network([sensor.measure(movement) for sensor in self._sensors]):
            self.data.receive(frame)
        known = self.data.movement()
        return None if known is None else self._sender.create(known, channel_ratio)
