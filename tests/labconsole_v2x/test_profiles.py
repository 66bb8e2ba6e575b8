"""The V2X profiles: the loads and configurations of the source, each with the certificates of its instances."""

from __future__ import annotations

from typing import Any

import pytest

from labconsole.model.plugin import Plugins
from labconsole.profiles.profile import Order, Profile, campaign_of, load_profile
from labconsole_v2x.attacks.attack_parameters import AttackParameters
from labconsole_v2x.attacks.attack_trial import AttackTrial
from labconsole_v2x.benchmark.benchmark_parameters import BenchmarkParameters
from labconsole_v2x.benchmark.benchmark_trial import expected_seconds
from labconsole_v2x.choices import Unchanged
from labconsole_v2x.live.live_parameters import LiveParameters
from labconsole_v2x.live.live_trial import LiveTrial
from labconsole_v2x.simulation.medium import Radio
from labconsole_v2x.simulation.simulation_parameters import SimulationParameters
from labconsole_v2x.use_cases.catalogue import CODES
from labconsole_v2x.use_cases.use_case_parameters import UseCaseParameters

RATES = (1.0, 10.0, 20.0, 100.0)
LIVE = ("v2x-demo", "v2x-low-load", "v2x-medium-load", "v2x-high-load", "v2x-loads", "v2x-1500-per-second")
START_S = 1.5
"""Start and end of a run's processes, about."""
MINUTES = {
    "v2x-demo": 20 / 60,
    "v2x-low-load": 1.5,
    "v2x-medium-load": 3.0,
    "v2x-high-load": 5.0,
    "v2x-loads": 5.0,
    "v2x-1500-per-second": 1.5,
}
"""What the description says, 20 seconds in words where there are seconds."""
WORDS = {1.5: "a minute and a half", 3.0: "three minutes", 5.0: "five minutes", 20 / 60: "20 seconds"}


def profile(name: str) -> Profile:
    return load_profile(name, Plugins.discover())


def scenarios(name: str) -> dict[str, LiveParameters]:
    """Its scenarios by name."""
    return {one.name: LiveParameters.model_validate(dict(one.parameters)) for one in profile(name).scenarios}


def loads(name: str, *more: str) -> list[tuple[Any, ...]]:
    """Senders and rate of each scenario, and these parameters."""
    return [tuple(getattr(one, field) for field in ("senders", "rate", *more)) for one in scenarios(name).values()]


def test_all_of_them_belong_to_the_plugin() -> None:
    (plugin,) = (plugin for plugin in Plugins.discover().found if plugin.name == "v2x")
    simulated = {"v2x-testbed-published", "v2x-attacks-published", "v2x-neighbours"}
    attacks = {"v2x-attacks-live", "v2x-attacks-content", "v2x-attacks-tracking"}
    assert set(plugin.profiles) == {*LIVE, "v2x-benchmark", "v2x-use-cases", *attacks, *simulated}


def test_published_figures_are_simulated_with_one_radio() -> None:
    scenarios = [*profile("v2x-testbed-published").scenarios, *profile("v2x-attacks-published").scenarios]
    radios = {SimulationParameters.model_validate(dict(one.parameters)).radio() for one in scenarios}
    assert radios == {Radio(aifsn=2, cw_min=15, spread_db=6.0)}


def test_live_attacks_are_the_simulated_ones() -> None:
    live, simulated = profile("v2x-attacks-live"), profile("v2x-attacks-published")
    for real, computed in zip(live.scenarios, simulated.scenarios, strict=True):
        parameters = AttackParameters.model_validate(dict(real.parameters))
        attack = {name: getattr(parameters, name) for name in ("attack", "attackers", "attack_rate")}
        assert real.name == computed.name and attack.items() <= dict(computed.parameters).items()
        assert (parameters.senders, parameters.rate, parameters.security.value) == (5, 10.0, "full")
        assert parameters.order.value == "signature-first", "as the source's kit"
    minutes = len(live.scenarios) * (parameters.warm_up + parameters.duration + START_S) / 60
    assert minutes == pytest.approx(3.5, rel=0.1) and "Three minutes and a half" in live.description


def test_implausible_content_is_sent_to_receivers_without_and_with_checks() -> None:
    content = profile("v2x-attacks-content")
    found = [AttackParameters.model_validate(dict(one.parameters)) for one in content.scenarios]
    assert [one.checks_plausibility for one in found] == [False, True, True, True, True]
    assert [one.falsehood.value for one in found] == ["mixed", "mixed", "position", "speed", "duplicate"]
    assert AttackTrial().contrast(found[0], found[1]) == "Plausibility checks against none"
    bounded = [{"detection_rate", "false_alarm_rate"} == set(one.thresholds) for one in content.scenarios]
    assert bounded == [one.checks_plausibility for one in found]
    minutes = sum(one.warm_up + one.duration + START_S for one in found) / 60
    assert minutes == pytest.approx(1.5, rel=0.1) and "A minute and a half" in content.description


def test_use_cases_are_tested_in_software_and_with_a_token_and_none_may_fail() -> None:
    found = profile("v2x-use-cases")
    parameters = [UseCaseParameters.model_validate(dict(one.parameters)) for one in found.scenarios]
    assert [one.backend.value for one in parameters] == ["openssl", "token"] and found.repeats == 1
    assert all(one.selected == CODES for one in parameters)
    assert [one.thresholds for one in campaign_of(found).scenarios] == [{"failed": {"max": 0}}] * 2


def test_tracker_meets_stations_that_leave_each_layer_unchanged_or_none() -> None:
    tracking = profile("v2x-attacks-tracking")
    found = [AttackParameters.model_validate(dict(one.parameters)) for one in tracking.scenarios]
    assert {one.unchanged for one in found} == set(Unchanged) - {Unchanged.SEQUENCE_NUMBERS}
    assert [one.change.value for one in found[:2]] == ["periodic", "together"]
    for one, scenario in zip(found, tracking.scenarios, strict=True):
        bound = {"max": 0} if one.unchanged is Unchanged.NONE else {"min": 95}
        assert scenario.thresholds == {"linked_by_identifiers": bound}
    assert AttackTrial().contrast(found[0], found[2]) == "Ticket left unchanged against none"
    minutes = sum(one.warm_up + one.duration + START_S for one in found) / 60
    assert minutes == pytest.approx(2, rel=0.1) and "Two minutes" in tracking.description


def test_loads_are_the_twelve_of_the_source() -> None:
    """Section 2.2.1: 1, 5 and 15 senders, each at 1, 10, 20 and 100 Hz."""
    assert loads("v2x-loads") == [(senders, rate) for senders in (1, 5, 15) for rate in RATES]
    assert loads("v2x-low-load") == [(1, rate) for rate in RATES]
    assert profile("v2x-loads").order is Order.ROTATED


@pytest.mark.parametrize("name", ("v2x-low-load", "v2x-medium-load", "v2x-high-load", "v2x-loads"))
def test_rates_above_ten_are_instances_of_ten(name: str) -> None:
    """As the source's 100 Hz, ten program instances in a box: no instance breaks EN 302 637-2."""
    for title, parameters in scenarios(name).items():
        assert parameters.instances == max(1, parameters.rate / 10), title
        assert not any("of one instance break" in warning for warning in LiveTrial().warnings(parameters)), title


def test_medium_load_has_both_configurations_of_figure_4_3() -> None:
    assert loads("v2x-medium-load", "security") == [
        (5, rate, security) for security in ("full", "header") for rate in RATES
    ]


def test_high_load_has_the_three_configurations_of_figure_4_4() -> None:
    assert loads("v2x-high-load", "security") == [
        (15, rate, security) for security in ("full", "signed", "none") for rate in RATES
    ]


def test_pairs_of_configurations_under_one_load_are_fair() -> None:
    found = scenarios("v2x-high-load")
    for rate in RATES:
        pair = found[f"No security, {rate:g} Hz"], found[f"Signed and verified, {rate:g} Hz"]
        assert LiveTrial().contrast(*pair) == "Full security against none"
    assert LiveTrial().contrast(found["No security, 1 Hz"], found["Signed and verified, 10 Hz"]) == ""


def test_fifteen_hundred_a_second_come_in_three_ways() -> None:
    assert loads("v2x-1500-per-second", "instances") == [(15, 100.0, 10), (150, 10.0, 1), (300, 5.0, 1)]
    assert {parameters.most_messages for parameters in scenarios("v2x-1500-per-second").values()} == {1500}
    assert {parameters.security.value for parameters in scenarios("v2x-1500-per-second").values()} == {"full"}


def test_demo_is_fifteen_vehicles_for_twenty_seconds() -> None:
    ((title, parameters),) = scenarios("v2x-demo").items()
    assert title == "15 vehicles at 10 Hz" and (parameters.senders, parameters.rate) == (15, 10)
    assert parameters.warm_up + parameters.duration == 20 and "20 seconds" in profile("v2x-demo").description


@pytest.mark.parametrize("name", LIVE)
def test_descriptions_say_how_long_a_profile_takes(name: str) -> None:
    runs = [parameters.warm_up + parameters.duration + START_S for parameters in scenarios(name).values()]
    minutes = sum(runs) * profile(name).repeats / 60
    assert minutes == pytest.approx(MINUTES[name], rel=0.25)
    assert WORDS[MINUTES[name]] in profile(name).description.lower()


def test_benchmark_measures_each_backend() -> None:
    found = [BenchmarkParameters.model_validate(dict(one.parameters)) for one in profile("v2x-benchmark").scenarios]
    assert [one.backend.value for one in found] == ["openssl", "aws-lc", "token"]
    assert all((one.curve.value, one.openssl, one.rounds) == ("p256", True, 5) for one in found)
    assert sum(map(expected_seconds, found)) / 60 == pytest.approx(2.5, rel=0.25)
    assert "two minutes and a half" in profile("v2x-benchmark").description
