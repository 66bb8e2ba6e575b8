"""The parameters of the trial of live attacks: the attack, and the stations that it hits."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor

from pydantic import ValidationInfo, field_validator

from labconsole.model.parameters import parameter
from labconsole_v2x.attacks.attack_fields import GROUP, AttackFields
from labconsole_v2x.choices import (
    CHANGE_JITTER,
    CHANGING,
    FALSEHOODS,
    UNCHANGED,
    Attack,
    ChangeChoice,
    Falsehood,
    Unchanged,
)
from labconsole_v2x.live.live_parameters import LiveParameters
from labconsole_v2x.live.receiver_fields import plausibility, radio_range
from labconsole_v2x.live.security_fields import change_interval
from labconsole_v2x.live.spread import spread
from labconsole_v2x.live.transport_fields import LOOPBACK
from labconsole_v2x.stations.transports import TransportKind

_LONGEST_SHIFT_S = 1500
"""Attackers' tickets are older than that."""
_LISTENING = (Attack.REPLAY, Attack.IMPLAUSIBLE_CONTENT, Attack.TRACKING)
"""Attackers that need what others send."""
FOLLOWED_S = 1.0
"""A change so short before the end does not count: the next path history may not have been sent by then."""
_CONTENT = {"attack": Attack.IMPLAUSIBLE_CONTENT.value}


class _Details(AttackFields):
    """What attackers change. Fields of base classes come first: the form begins with the attack."""

    backdated: float = parameter(
        "Timestamps old by",
        "How old the generation times of attackers are: more than the receiver accepts",
        default=10.0,
        gt=0,
        le=_LONGEST_SHIFT_S,
        unit="s",
        group=GROUP,
        shown_if={"attack": Attack.OLD_TIMESTAMP.value},
    )
    replay_delay: float = parameter(
        "Sent again after",
        "How long attackers wait before they send again what they heard; 0: at once",
        default=0.0,
        ge=0,
        le=_LONGEST_SHIFT_S,
        unit="s",
        group=GROUP,
        shown_if={"attack": Attack.REPLAY.value},
    )
    falsehood: Falsehood = parameter(
        "False content",
        "What is false about the CAMs of attackers, from the first one on",
        default=Falsehood.MIXED,
        group=GROUP,
        labels=FALSEHOODS,
        shown_if=_CONTENT,
    )
    unchanged: Unchanged = parameter(
        "Left unchanged",
        "What stations do not change with their identity, for the tracker to find",
        default=Unchanged.NONE,
        group=GROUP,
        labels=UNCHANGED,
        choices=tuple(UNCHANGED),
        shown_if={"attack": Attack.TRACKING.value},
    )

    @field_validator("unchanged")
    @classmethod
    def _is_sent(cls, unchanged: Unchanged) -> Unchanged:
        if unchanged is Unchanged.SEQUENCE_NUMBERS:
            raise ValueError("stations send CAMs alone here, which have no sequence numbers: choose another layer")
        return unchanged


class AttackParameters(LiveParameters, _Details):
    """One scenario of live stations under attack (`preserve-d3.2.txt`, 2.3.2 and 4.2)."""

    plausibility: bool = plausibility(default=True, shown_if=_CONTENT)
    radio_range: float = radio_range(shown_if={**_CONTENT, "plausibility": True})
    change_interval: float = change_interval(default=4.0)

    @field_validator("instances")
    @classmethod
    def _is_one_place(cls, instances: int, info: ValidationInfo) -> int:
        if info.data.get("attack") is Attack.TRACKING and instances > 1:
            raise ValueError("instances of a station are at one place, and no tracker tells them apart: set it to 1")
        return instances

    @field_validator("change")
    @classmethod
    def _is_heard(cls, change: ChangeChoice, info: ValidationInfo) -> ChangeChoice:
        if info.data.get("attack") is Attack.TRACKING and change not in CHANGING:
            raise ValueError(
                "a tracker links pseudonyms across changes: let stations change periodically, or all at once"
            )
        return change

    @field_validator("duration")
    @classmethod
    def _has_changes(cls, duration: float, info: ValidationInfo) -> float:
        values = info.data
        if (
            values.get("attack") is not Attack.TRACKING
            or not {"change_interval", "tickets", "warm_up"} <= values.keys()
        ):
            return duration
        total_s, interval_s = values["warm_up"] + duration, values["change_interval"]
        if total_s - FOLLOWED_S < interval_s * (1 + CHANGE_JITTER):
            raise ValueError("no station changes its identity in this time: choose a longer one or a shorter interval")
        needed = floor(total_s / (interval_s * (1 - CHANGE_JITTER))) + 1
        if values["tickets"] < needed:
            raise ValueError(
                f"a station changes up to {needed - 1:,} times in this time, and a ticket that comes again links it: "
                f"give each {needed:,} tickets"
            )
        return duration

    @field_validator("cam_past")
    @classmethod
    def _old_is_too_old(cls, cam_past: float, info: ValidationInfo) -> float:
        backdated = info.data.get("backdated")
        if info.data.get("attack") is Attack.OLD_TIMESTAMP and backdated is not None and backdated * 1000 <= cam_past:
            raise ValueError(f"a timestamp that is {backdated:g} s old is in time then: set it lower than that")
        return cam_past

    @field_validator("transport")
    @classmethod
    def _attackers_hear(cls, transport: TransportKind, info: ValidationInfo) -> TransportKind:
        if transport is TransportKind.UNICAST and info.data.get("attack") in _LISTENING:
            raise ValueError("in unicast attackers do not hear the CAMs of others: choose multicast")
        return transport

    @field_validator("device")
    @classmethod
    def _attackers_hear_on_device(cls, device: str, info: ValidationInfo) -> str:
        ethernet = info.data.get("transport") is TransportKind.ETHERNET
        if ethernet and device != LOOPBACK and info.data.get("attack") in _LISTENING:
            raise ValueError("attackers do not hear other stations of this interface: choose lo or UDP multicast")
        return device

    @property
    def checks_plausibility(self) -> bool:
        """Whether receivers check the plausibility of CAMs: against that attack alone."""
        return self.plausibility and self.attack is Attack.IMPLAUSIBLE_CONTENT

    @property
    def attackers_listen(self) -> bool:
        """Whether attackers need what others send."""
        return self.attack in _LISTENING

    @property
    def messages_on_air(self) -> float:
        """Packets a second that a receiver hears at most, those of attackers included."""
        return self.most_messages + self.attack_messages

    @property
    def attacker_groups(self) -> list[Sequence[int]]:
        """The numbers of the attackers in each of their processes: they follow those of the sending stations."""
        groups = spread(self.attackers, 0, self.attack_messages, self.sender_cores)
        return [[self.senders + number for number in group] for group in groups]

    @property
    def shift_us(self) -> int:
        """How old the timestamps of attackers are, or how late they send again what they heard."""
        shifts = {Attack.OLD_TIMESTAMP: self.backdated, Attack.REPLAY: self.replay_delay}
        return round(shifts.get(self.attack, 0.0) * 1_000_000)
