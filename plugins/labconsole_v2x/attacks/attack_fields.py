"""The parameters of an attack, live or simulated: what attackers send, how many they are, and at which rate."""

from __future__ import annotations

from pydantic import ValidationInfo, field_validator

from labconsole.model.parameters import Parameters, parameter
from labconsole.model.trial import Question
from labconsole_v2x.choices import ATTACKS, Attack
from labconsole_v2x.stations.sending import SecurityMode

GROUP = "Attack"
HIGHEST_ALLOWED_RATE = 10.0
"""CAMs a second that EN 302 637-2 allows a station: more of them are an overload."""
_SILENT = (Attack.NONE, Attack.TRACKING)
"""No attacker sends."""
_ATTACKED = {"attack": [attack.value for attack in Attack if attack not in _SILENT]}
_DIFFERENT = {"attack", "attackers", "attack_rate", "backdated", "replay_delay", "falsehood", "plausibility"}


class AttackFields(Parameters):
    """What attackers do (`preserve-d3.2.txt`, Table 4.1); a model that has them has `security`, too."""

    attack: Attack = parameter(
        "Attack",
        "What attackers send, which a receiver must reject; in A-PSN-01 they send nothing, and listen",
        default=Attack.NONE,
        group=GROUP,
        labels=ATTACKS,
    )
    attackers: int = parameter(
        "Attackers",
        "Stations that attack, further to those that send; 2 and 4 in the source",
        default=2,
        ge=1,
        le=300,
        group=GROUP,
        shown_if=_ATTACKED,
    )
    attack_rate: float = parameter(
        "Rate of an attacker",
        "Packets a second of each attacker; above 10 for an overload, A-SIG-04",
        default=10.0,
        ge=1,
        le=1000,
        unit="Hz",
        group=GROUP,
        shown_if=_ATTACKED,
    )

    @field_validator("attack_rate")
    @classmethod
    def _is_an_overload(cls, rate: float, info: ValidationInfo) -> float:
        if info.data.get("attack") is Attack.OVERLOAD and rate <= HIGHEST_ALLOWED_RATE:
            raise ValueError(
                f"an overload is more than the {HIGHEST_ALLOWED_RATE:g} packets a second that a station may send: "
                "raise the rate, or choose A-SIG-01"
            )
        return rate

    @field_validator("security", check_fields=False)
    @classmethod
    def _is_verified(cls, security: SecurityMode, info: ValidationInfo) -> SecurityMode:
        attack = info.data.get("attack", Attack.NONE)
        if attack is Attack.TRACKING and security is SecurityMode.NONE:
            raise ValueError("stations without security have no tickets to change: choose another configuration")
        if security is not SecurityMode.FULL and attack not in _SILENT:
            raise ValueError("receivers that do not verify accept what attackers send: choose full security")
        return security

    @property
    def attacking(self) -> int:
        """How many stations send as attackers."""
        return 0 if self.attack in _SILENT else self.attackers

    @property
    def attack_messages(self) -> float:
        """Packets a second of all attackers."""
        return self.attacking * self.attack_rate


def attack_contrast(reference: AttackFields, other: AttackFields) -> str:
    """What an attack adds to the same benign stations; empty where more differs, or attackers send nothing."""
    same = reference.model_dump(exclude=_DIFFERENT) == other.model_dump(exclude=_DIFFERENT)
    if not same or reference.attack is not Attack.NONE or other.attack in _SILENT:
        return ""
    return f"{ATTACKS[other.attack.value]} against no attack"


def attack_questions(reference: AttackFields, other: AttackFields) -> tuple[Question, ...]:
    """What a fair pair answers: the cost of the attack in loss."""
    label = attack_contrast(reference, other)
    return (Question("What does it cost in loss?", "packet_loss", label.partition(" against ")[0]),) if label else ()
