"""The trial `v2x.attack`: the stations of the live trial, and attackers that send to the same receiver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from labconsole.model.trial import (
    Evaluation,
    Event,
    LiveChannel,
    MetricKind,
    Parameters,
    Question,
    RoleSpec,
    Samples,
    Series,
)
from labconsole_v2x.attacks import attack_evaluation
from labconsole_v2x.attacks.attack_fields import attack_contrast, attack_questions
from labconsole_v2x.attacks.attack_metrics import METRICS
from labconsole_v2x.attacks.attack_parameters import AttackParameters
from labconsole_v2x.attacks.listener_role import OBSERVATIONS
from labconsole_v2x.choices import UNCHANGED, Attack, Unchanged
from labconsole_v2x.live.live_trial import StationTrial, process_settings, role_name
from labconsole_v2x.live.process_settings import ProcessSettings
from labconsole_v2x.live.series import ATTACKED_CHANNEL, LIVE
from labconsole_v2x.security.backends import Backend

_ROLE = "labconsole_v2x.attacks.attacker_role:AttackerRole"
_LISTENER_ROLE = "labconsole_v2x.attacks.listener_role:ListenerRole"


class AttackTrial(StationTrial[AttackParameters]):
    """Lets attackers send what a receiver must reject, and measures what that costs benign stations."""

    kind: ClassVar[str] = "v2x.attack"
    title: ClassVar[str] = "V2X under attack"
    description: ClassVar[str] = (
        "What does an attacker cost benign stations in latency and loss, and is everything rejected that it sends? "
        "Stations, attackers and a receiver that verifies, in processes of their own."
    )
    parameters: ClassVar[type[Parameters]] = AttackParameters
    metrics: ClassVar[tuple[MetricKind, ...]] = METRICS
    key_metrics: ClassVar[tuple[str, ...]] = ("packet_loss", "latency_mean", "benign_share", "rejected_time")
    finding_metrics: ClassVar[tuple[str, ...]] = ("packet_loss", "latency_mean")
    series: ClassVar[tuple[Series, ...]] = (*StationTrial.series, OBSERVATIONS)
    live: ClassVar[tuple[LiveChannel, ...]] = (*LIVE, ATTACKED_CHANNEL)

    def specs(self, parameters: AttackParameters, seed: int) -> list[RoleSpec]:
        specs = super().specs(parameters, seed)
        if parameters.attack is not Attack.TRACKING:
            return [*specs, *_attackers(parameters, seed)]
        changing = [
            replace(spec, settings={**spec.settings, "unchanged": parameters.unchanged.value}) for spec in specs
        ]
        listening = process_settings(parameters, seed, (), records=False)
        return [*changing, RoleSpec("tracker", _LISTENER_ROLE, listening.to_json())]

    def evaluate(self, parameters: AttackParameters, samples: Samples, events: Sequence[Event]) -> Evaluation:
        return attack_evaluation.evaluate(parameters, samples, events)

    def contrast(self, reference: AttackParameters, other: AttackParameters) -> str:
        return (
            attack_contrast(reference, other)
            or _plausibility_contrast(reference, other)
            or _unchanged_contrast(reference, other)
        )

    def questions(self, reference: AttackParameters, other: AttackParameters) -> tuple[Question, ...]:
        if _plausibility_contrast(reference, other):
            return (Question("What do they cost in latency?", "latency_mean", "Plausibility checks"),)
        if label := _unchanged_contrast(reference, other):
            what = label.partition(" against ")[0]
            return (Question("Which changes can be linked by it?", "linked_by_identifiers", what),)
        return attack_questions(reference, other)

    def warnings(self, parameters: AttackParameters) -> tuple[str, ...]:
        return (*super().warnings(parameters), *_warnings(parameters))


def _attackers(parameters: AttackParameters, seed: int) -> Iterator[RoleSpec]:
    if parameters.attack is Attack.NONE:
        return
    for stations in parameters.attacker_groups:
        settings = process_settings(parameters, seed, stations, records=False)
        yield RoleSpec(role_name("attackers", stations), _ROLE, _attacking(parameters, settings).to_json())


def _attacking(parameters: AttackParameters, settings: ProcessSettings) -> ProcessSettings:
    """The settings of stations, changed to those of attackers: they have no token, and follow no rules."""
    return replace(
        settings,
        instances=1,
        rate=parameters.attack_rate,
        rules=False,
        dcc=False,
        hears_channel=parameters.attackers_listen,
        signing=Backend.OPENSSL.value,
        verification=Backend.OPENSSL.value,
        token_configuration=None,
        roots=0,
        tickets=1,
        attack=parameters.attack.value,
        shift_us=parameters.shift_us,
        falsehood=parameters.falsehood.value,
    )


def _warnings(parameters: AttackParameters) -> Iterator[str]:
    match parameters.attack:
        case Attack.NONE:
            yield "No attack: a reference for the same stations under attack."
            return
        case Attack.TRACKING:
            yield "The tracker hears every station all the time: one that misses some links fewer changes by motion."
            return
        case Attack.REPLAY:
            yield (
                "Attackers send again whole packets of others: of a CAM that the receiver has lost, a copy in time is "
                "accepted as if it were the original."
            )
            return
        case Attack.IMPLAUSIBLE_CONTENT if not parameters.plausibility:
            yield "The receiver does not check plausibility: it accepts what attackers send."
        case Attack.IMPLAUSIBLE_CONTENT:
            yield "A receiver compares CAMs with earlier ones: it may accept the first ones of an attacker."
    if parameters.attack is not Attack.NO_SIGNATURE:
        yield "Each packet of an attacker carries its whole ticket, so that it is rejected for what is wrong with it."


def _plausibility_contrast(reference: AttackParameters, other: AttackParameters) -> str:
    """What plausibility checks cost under the same attack; empty where more differs."""
    same = reference.model_dump(exclude={"plausibility"}) == other.model_dump(exclude={"plausibility"})
    added = not reference.checks_plausibility and other.checks_plausibility
    return "Plausibility checks against none" if same and added else ""


def _unchanged_contrast(reference: AttackParameters, other: AttackParameters) -> str:
    """What was left unchanged under the same changes; empty where more differs."""
    same = reference.model_dump(exclude={"unchanged"}) == other.model_dump(exclude={"unchanged"})
    tracked = same and other.attack is Attack.TRACKING
    if not tracked or reference.unchanged is not Unchanged.NONE or other.unchanged is Unchanged.NONE:
        return ""
    return f"{UNCHANGED[other.unchanged.value]} left unchanged against none"
