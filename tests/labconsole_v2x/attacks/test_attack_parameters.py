"""Parameters of an attack: what is refused, with its field; the load of attackers; fair pairs."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from labconsole.model.validation_faults import fault_sentence
from labconsole_v2x.attacks.attack_parameters import AttackParameters
from labconsole_v2x.attacks.attack_trial import AttackTrial
from labconsole_v2x.live.live_parameters import LiveParameters
from labconsole_v2x.simulation.simulation_parameters import SimulationParameters

TRIAL = AttackTrial()


def parameters(**values: Any) -> AttackParameters:
    return AttackParameters.model_validate({"attack": "a-sig-01", **values})


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"attackers": 0}, "attackers: input should be greater than or equal to 1 (it is 0)."),
        ({"attack_rate": -10}, "attack_rate: input should be greater than or equal to 1 (it is -10)."),
        ({"senders": 0}, "senders: input should be greater than or equal to 1 (it is 0)."),
        ({"rate": -1}, "rate: input should be greater than or equal to 1 (it is -1)."),
        (
            {"attack": "a-sig-04", "attack_rate": 10},
            "attack_rate: an overload is more than the 10 packets a second that a station may send: raise the rate, or "
            "choose A-SIG-01.",
        ),
        (
            {"security": "signed"},
            "security: receivers that do not verify accept what attackers send: choose full security.",
        ),
        (
            {"attack": "a-sig-06", "backdated": 2},
            "cam_past: a timestamp that is 2 s old is in time then: set it lower than that.",
        ),
        (
            {"attack": "a-sig-05", "transport": "udp-unicast"},
            "transport: in unicast attackers do not hear the CAMs of others: choose multicast.",
        ),
        (
            {"attack": "a-con-01", "transport": "udp-unicast"},
            "transport: in unicast attackers do not hear the CAMs of others: choose multicast.",
        ),
        (
            {"attack": "a-con-01", "radio_range": 10},
            "radio_range: input should be greater than or equal to 100 (it is 10).",
        ),
        (
            {"attack": "a-sig-05", "transport": "ethernet", "device": "veth0"},
            "device: attackers do not hear other stations of this interface: choose lo or UDP multicast.",
        ),
    ],
)
def test_scenario_that_makes_no_sense_is_refused_with_its_field(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        parameters(**values)
    assert fault_sentence(caught.value, AttackParameters) == sentence


TRACKED = {"attack": "a-psn-01", "change": "periodic", "tickets": 8, "warm_up": 2.0, "duration": 13.0}


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            {"change": "none"},
            "change: a tracker links pseudonyms across changes: let stations change periodically, or all at once.",
        ),
        (
            {"change": "start"},
            "change: a tracker links pseudonyms across changes: let stations change periodically, or all at once.",
        ),
        (
            {"unchanged": "sequence-numbers"},
            "unchanged: stations send CAMs alone here, which have no sequence numbers: choose another layer.",
        ),
        (
            {"security": "none"},
            "security: stations without security have no tickets to change: choose another configuration.",
        ),
        (
            {"instances": 2},
            "instances: instances of a station are at one place, and no tracker tells them apart: set it to 1.",
        ),
        (
            {"transport": "udp-unicast"},
            "transport: in unicast attackers do not hear the CAMs of others: choose multicast.",
        ),
        (
            {"change_interval": 60},
            "duration: no station changes its identity in this time: choose a longer one or a shorter interval.",
        ),
        (
            {"tickets": 4},
            "duration: a station changes up to 4 times in this time, and a ticket that comes again links it: give each "
            "5 tickets.",
        ),
    ],
)
def test_tracking_that_would_prove_nothing_is_refused_with_its_field(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        parameters(**{**TRACKED, **values})
    assert fault_sentence(caught.value, AttackParameters) == sentence


def test_tracker_sends_nothing_and_needs_no_receiver_that_verifies() -> None:
    tracked = parameters(**TRACKED)
    assert (tracked.attacking, tracked.attack_messages, tracked.messages_on_air) == (0, 0, 50)
    assert parameters(**TRACKED, security="signed").attack.value == "a-psn-01"
    for name in ("attackers", "attack_rate"):
        extra = AttackParameters.model_fields[name].json_schema_extra
        assert isinstance(extra, dict) and "a-psn-01" not in extra["shown_if"]["attack"]
    names = [spec.name for spec in TRIAL.specs(parameters(**TRACKED, unchanged="ticket"), 1)]
    assert names[-1] == "tracker" and not any("attackers" in name for name in names)


def test_simulation_refuses_a_tracker() -> None:
    with pytest.raises(ValidationError) as caught:
        SimulationParameters.model_validate({"attack": "a-psn-01"})
    assert fault_sentence(caught.value, SimulationParameters) == (
        "attack: a tracker reads what is in packets, and simulated ones have no content: run v2x.attack."
    )


def test_what_was_left_unchanged_is_compared_with_a_change_of_all_layers() -> None:
    everything, left = parameters(**TRACKED), parameters(**TRACKED, unchanged="station-id")
    assert TRIAL.contrast(everything, left) == "Station ID left unchanged against none"
    assert not TRIAL.contrast(left, everything) and not TRIAL.contrast(parameters(attack="none"), everything)
    assert TRIAL.questions(everything, left)[0].metric == "linked_by_identifiers"


def test_parameters_of_an_attack_are_those_of_the_simulation() -> None:
    for name in ("attack", "attackers", "attack_rate"):
        assert repr(AttackParameters.model_fields[name]) == repr(SimulationParameters.model_fields[name])
    assert next(iter(AttackParameters.model_fields)) == "attack", "the form begins with it"


def test_load_of_attackers_comes_on_top() -> None:
    four = parameters(attackers=4, attack_rate=100.0)
    assert (four.most_messages, four.attack_messages, four.messages_on_air) == (50, 400, 450)
    assert [number for group in four.attacker_groups for number in group] == [6, 7, 8, 9]
    assert parameters(attack="none").messages_on_air == 50
    assert parameters(attack="a-sig-05", replay_delay=1.5).shift_us == 1_500_000
    assert (parameters(attack="a-sig-06").shift_us, parameters().shift_us) == (10_000_000, 0)


def test_attack_is_compared_with_the_same_stations_without_it() -> None:
    plain, attacked = parameters(attack="none"), parameters(attack_rate=100.0)
    assert TRIAL.contrast(plain, attacked) == "A-SIG-01: invalid signature against no attack"
    assert not TRIAL.contrast(attacked, plain) and not TRIAL.contrast(plain, parameters(senders=6))
    (question,) = TRIAL.questions(plain, attacked)
    assert question.metric == "packet_loss"


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        ("none", "No attack"),
        ("a-sig-01", "whole ticket"),
        ("a-sig-05", "a copy in time"),
        ("a-sig-03", "Loopback"),
        ("a-con-01", "may accept the first ones"),
        ("a-psn-01", "hears every station"),
    ],
)
def test_caveats_say_how_attackers_send(attack: str, words: str) -> None:
    values = TRACKED if attack == "a-psn-01" else {"attack": attack}
    given = parameters(**values)
    assert words in " ".join((*TRIAL.warnings(given), *TRIAL.local_warnings(given)))


def test_plausibility_is_checked_against_that_attack_alone() -> None:
    checked, unchecked = parameters(attack="a-con-01"), parameters(attack="a-con-01", plausibility=False)
    assert checked.checks_plausibility and not unchecked.checks_plausibility
    assert not parameters(attack="a-sig-01").checks_plausibility, "the field is hidden then"
    assert not LiveParameters().checks_plausibility and LiveParameters(plausibility=True).checks_plausibility
    assert not LiveParameters(plausibility=True, security="signed").checks_plausibility
    assert TRIAL.contrast(unchecked, checked) == "Plausibility checks against none"
    assert TRIAL.contrast(parameters(attack="none"), checked) == "A-CON-01: implausible content against no attack"
    assert not TRIAL.contrast(checked, unchecked)
    assert TRIAL.questions(unchecked, checked)[0].subject == "Plausibility checks"
    assert any("accepts what attackers send" in warning for warning in TRIAL.warnings(unchecked))
