"""The simulated testbed as a trial: its run, its refusals, curves and its origin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from labconsole.errors import UserError
from labconsole.model.trial import Origin
from labconsole.model.validation_faults import fault_sentence
from labconsole_v2x.simulation.simulation_parameters import SimulationParameters
from labconsole_v2x.simulation.simulation_trial import SimulationTrial
from labconsole_v2x.simulation.stack_timing import STACK_TIMINGS
from tests.helpers import trial_lab
from tests.helpers.role_threads import RoleThreads
from tests.labconsole_v2x.simulation.simulated_testbed import figures

TRIAL = SimulationTrial()
SHORT = {"duration": 5.0, "warm_up": 1.0}


class SimulationLab(trial_lab.TrialLab[SimulationParameters, trial_lab.Outcome[SimulationParameters]]):
    """One run."""

    trial = TRIAL
    outcome = trial_lab.Outcome[SimulationParameters]
    roles = RoleThreads


def parameters(**values: Any) -> SimulationParameters:
    return SimulationParameters.model_validate({**SHORT, **values})


def run(folder: Path, wanted: SimulationParameters) -> trial_lab.Outcome[SimulationParameters]:
    return SimulationLab(folder / "run").run(**wanted.model_dump())


def test_run_records_each_packet_and_says_that_it_is_simulated(tmp_path: Path) -> None:
    wanted = parameters(attack="a-sig-01", attackers=2, attack_rate=50.0)
    outcome = run(tmp_path, wanted)
    assert outcome.failure is None
    assert outcome.figures["offered_rate"] == 50
    assert outcome.figures == {name: value for name, value in figures(wanted, 1).items() if name in outcome.figures}
    assert {metric.origin for metric in outcome.evaluation.metrics} == {Origin.SIMULATED}
    table = outcome.samples.table("packets", "simulator")
    assert len(table["fate"]) == pytest.approx(150 * 6, rel=0.05)
    (timing,) = outcome.events_named("timing")
    assert timing.data["receiver"]["room"] == 7 and "Table 4.2" in timing.message
    (medium,) = outcome.events_named("medium")
    assert medium.data == {"aifsn": 6, "cw_min": 15, "spread_db": 0}
    simulated, fitted = TRIAL.warnings(wanted)
    assert simulated.startswith("Simulated") and "a-sig-01-2-10, a-sig-01-2-50, a-sig-01-4-100" in fitted
    titles = [curve.title for curve in TRIAL.curves(wanted, outcome.samples, outcome.samples.events)]
    assert titles == ["Sent", "Accepted", "Attackers, sent", "p50", "p99", "Loss"]
    (latency,) = TRIAL.distributions(wanted, outcome.samples, outcome.samples.events)
    assert latency.values.mean() == pytest.approx(outcome.figures["latency_mean"])


def test_places_of_loss_add_up() -> None:
    found = figures(parameters(senders=15, rate=100.0), 1)
    places = [value for name, value in found.items() if name.startswith("lost ")]
    assert sum(places) == found["lost"] > 0 and len(places) == 3
    assert found["lost collision"] > 0 < found["lost receiver queue"]
    ideal = figures(parameters(senders=15, rate=100.0, medium="ideal"), 1)
    assert ideal["lost collision"] == 0 < ideal["lost receiver queue"]
    assert ideal["packet_delivery_ratio"] == 100


def test_goodput_and_busy_channel_are_counted_from_packets() -> None:
    found = figures(parameters(), 1)
    assert found["goodput"] == pytest.approx(found["accept_rate"] * 89 * 8 / 1000)
    airtime_us = 0.9 * 336 + 0.1 * 696  # 180 octets with the digest, 450 with the certificate each second
    assert found["airtime"] == pytest.approx(50 * airtime_us / 1e4, rel=0.03)
    assert found["channel_busy_ratio"] == pytest.approx(found["airtime"], rel=0.01)
    full = figures(parameters(senders=15, rate=100.0, size_digest=450), 1)
    assert full["airtime"] > 100 > full["channel_busy_ratio"] > 75, "those that collide are on air at once"
    assert found["benign_share"] == 100 and found["rejected_time"] == 0


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"senders": 0}, "senders: input should be greater than or equal to 1 (it is 0)."),
        ({"rate": -1}, "rate: input should be greater than or equal to 1 (it is -1)."),
        (
            {"attack": "a-sig-01", "attackers": 0},
            "attackers: input should be greater than or equal to 1 (it is 0).",
        ),
        (
            {"senders": 300, "rate": 1000.0, "duration": 10.0},
            "duration: these are 3,300,000 packets, and 2,000,000 can be simulated: shorten the duration.",
        ),
        (
            {"size_unsecured": 180},
            "size_unsecured: a packet without security is smaller than one with it: change one of the sizes.",
        ),
        (
            {"attack": "a-sig-01", "security": "none"},
            "security: receivers that do not verify accept what attackers send: choose full security.",
        ),
    ],
)
def test_scenario_that_makes_no_sense_is_refused_with_its_field(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        parameters(**values)
    assert fault_sentence(caught.value, SimulationParameters) == sentence


def test_attack_on_receivers_that_do_not_verify_is_refused() -> None:
    with pytest.raises(ValidationError) as caught:
        parameters(attack="a-sig-01", security="none")
    (fault,) = caught.value.errors()
    assert fault["loc"] == ("security",) and "accept what attackers send: choose full security" in fault["msg"]


@pytest.mark.parametrize(
    ("values", "text", "sentence"),
    [
        ({"security": "header"}, "", "nexcom-vtc6201-table42 has no receiver.service_ms.header: choose another"),
        (
            {"timing": "nexcom-table42"},
            "",
            "No timing profile is called nexcom-table42; did you mean nexcom-vtc6201-table42?",
        ),
        ({"timing": "own"}, 'title = "x"', "Timing profile own: the key reference is missing"),
    ],
)
def test_timing_profile_that_lacks_something_is_refused_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: dict[str, Any], text: str, sentence: str
) -> None:
    monkeypatch.setenv("LABCONSOLE_HOME", str(tmp_path))
    (tmp_path / "profiles" / "v2x-timing").mkdir(parents=True)
    (tmp_path / "profiles" / "v2x-timing" / "own.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ValidationError) as caught:
        parameters(**values)
    assert sentence in caught.value.errors()[0]["msg"] and caught.value.errors()[0]["loc"] == ("timing",)
    stored = SimulationParameters.of_stored({**SHORT, **values})  # a run that was queued before the profile was changed
    with pytest.raises(UserError) as refused:
        stored.stack_timing()
    assert sentence in str(refused.value)


def test_busy_time_is_never_more_than_all() -> None:
    """Half a second in which more is generated than served: what is served after the end does not count."""
    found = figures(parameters(senders=50, rate=100.0, duration=0.5, warm_up=0.1), 1)
    assert 99 < found["receiver_load"] <= 100 and found["channel_busy_ratio"] <= 100


def test_timing_profile_that_extends_another_has_its_values_and_not_its_origin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LABCONSOLE_HOME", str(tmp_path))
    folder = tmp_path / "profiles" / "v2x-timing"
    folder.mkdir(parents=True)
    own = 'extends = "nexcom-vtc6201-table42"\njitter_ms = 5\n'
    (folder / "own.toml").write_text(own, encoding="utf-8")
    with pytest.raises(UserError, match="the key title is missing: the stations"):
        STACK_TIMINGS.load("own")
    (folder / "own.toml").write_text(f'{own}title = "Ours"\nreference = "measured"\n', encoding="utf-8")
    shipped, timing = STACK_TIMINGS.load("nexcom-vtc6201-table42"), STACK_TIMINGS.load("own")
    assert (timing.jitter_ms, timing.receiver, timing.fitted_to) == (5, shipped.receiver, ())
    assert len(TRIAL.warnings(parameters(timing="own"))) == 1 and len(shipped.fitted_to) == 6


def test_implausible_content_costs_a_receiver_as_much_as_a_good_cam() -> None:
    """It is verified and decoded, and then rejected."""
    attacked = parameters(senders=1, rate=10.0, attack="a-con-01", attackers=1, attack_rate=10.0)
    found, alone = figures(attacked, 1), figures(parameters(senders=1, rate=10.0), 1)
    assert found["rejected_time"] == pytest.approx(alone["receiver_load"], rel=0.1)
    assert found["benign_share"] == pytest.approx(50, abs=2)
    assert found["accept_rate"] == pytest.approx(10, rel=0.1)
    assert any("no content is simulated" in warning for warning in TRIAL.warnings(attacked))
    assert attacked.stack_timing().attack_ms(attacked.security, attacked.attack) == 8.0


def test_attack_is_contrasted_with_the_same_stations_without_it() -> None:
    plain, attacked = parameters(), parameters(attack="a-sig-03", attackers=4)
    assert TRIAL.contrast(plain, attacked) == "A-SIG-03: no signature against no attack"
    assert not TRIAL.contrast(attacked, plain) and not TRIAL.contrast(plain, parameters(attack="a-sig-03", senders=6))
    (question,) = TRIAL.questions(plain, attacked)
    assert question.metric == "packet_loss"
