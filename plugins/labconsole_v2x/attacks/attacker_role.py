"""The role of attackers: stations of one process that send what a receiver must reject."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import ClassVar

from labconsole.model.role import RoleContext
from labconsole.model.series import LiveChannel
from labconsole_v2x.attacks.attack_senders import (
    MOST_HEARD,
    AttackSender,
    DenmSender,
    HeardCam,
    ImplausibleSender,
    ReplaySender,
    heard_cam,
)
from labconsole_v2x.attacks.tracking import observe
from labconsole_v2x.choices import Attack, Falsehood
from labconsole_v2x.live.series import ATTACKED_CHANNEL
from labconsole_v2x.live.station_role import StationRole
from labconsole_v2x.security.keys import SigningKey
from labconsole_v2x.security.structures import Certificate
from labconsole_v2x.security.verification import its_now
from labconsole_v2x.stations.sending import CamSender, Identity, PacketSender


class AttackerRole(StationRole):
    """Sends what the attack is in place of CAMs. Settings: those of `ProcessSettings`."""

    _sent_channel: ClassVar[LiveChannel] = ATTACKED_CHANNEL

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        self._attack = Attack(self._settings.attack)
        self._heard: deque[HeardCam] = deque(maxlen=MOST_HEARD)
        self._heard_ids: dict[int, int] = {}
        self._heard_from: set[bytes] = set()

    def _sender(
        self, identity: Identity, ticket: Certificate | None, key: SigningKey | None, station_type: int
    ) -> PacketSender:
        shift_us = self._settings.shift_us
        match self._attack:
            case Attack.NO_SIGNATURE:
                return CamSender(identity, ticket=ticket, station_type=station_type)
            case Attack.REPLAY:
                return ReplaySender(identity, ticket, self._heard, shift_us)
            case Attack.INVALID_DENM_SIGNATURE:
                return DenmSender(identity, ticket=ticket, key=self._new_key(), station_type=station_type)
            case Attack.INVALID_SIGNATURE | Attack.OVERLOAD:
                # Signed, but not with the key of the ticket: nothing but its verification shows that.
                return AttackSender(identity, ticket=ticket, key=self._new_key(), station_type=station_type)
            case Attack.IMPLAUSIBLE_CONTENT:
                falsehood, random = Falsehood(self._settings.falsehood), Random(identity.station_id)
                return ImplausibleSender(
                    identity, falsehood, self._heard_ids, random, ticket=ticket, key=key, station_type=station_type
                )
            case _:
                return AttackSender(
                    identity, ticket=ticket, key=key, station_type=station_type, clock=lambda: its_now() - shift_us
                )

    def _frame_read(self, frame: bytes, received_ns: int) -> None:
        super()._frame_read(frame, received_ns)
        source = frame[6:12]
        if self._sources.get(source, 0) == 0:
            return
        if self._attack is Attack.REPLAY:
            heard = heard_cam(frame, received_ns)
            if heard is not None:
                self._heard.append(heard)
        elif self._attack is Attack.IMPLAUSIBLE_CONTENT and source not in self._heard_from:
            seen = observe(frame, received_ns // 1000)
            station_id = seen.station_id if seen is not None else None
            if station_id is not None:
                self._heard_from.add(source)
                self._heard_ids[station_id] = received_ns
