"""Facts of a live scenario before it is run: its load, and whether this computer carries it by its newest benchmark."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from labconsole.model.trial import Evaluation, Metric
from labconsole.processes import this_process
from labconsole.store.records import NewCampaign, NewScenario, RunStatus
from labconsole.store.run_store import Store
from labconsole_v2x.choices import CurveChoice
from labconsole_v2x.live.live_parameters import LiveParameters
from labconsole_v2x.panel.live_facts import Speed, core_share, live_facts, verifications
from labconsole_v2x.panel.live_monitor import newest_speeds
from labconsole_v2x.security.backends import Backend

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
CORES = os.cpu_count() or 1
BENCHMARK = "v2x.benchmark"


def facts(speed: Speed = Speed(), **settings: Any) -> dict[str, str]:  # noqa: B008 - it is frozen
    return {fact.name: fact.value for fact in live_facts(LiveParameters(**settings), speed)}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {"senders": 15, "rate": 100.0, "processes": 2},
            {"Messages": "1,500 msg/s", "Processes": "2 × 7–8 stations + receiver"},
        ),
        ({"senders": 5, "processes": 1}, {"Messages": "50 msg/s", "Processes": "1 × 5 stations + receiver"}),
        (
            {"senders": 20, "receivers": "all", "processes": 2},
            {"Signatures": "200 /s", "Verifications": "3,800 /s", "Processes": "2 × 10 stations"},
        ),
        (
            {"senders": 5, "generation": "rules"},
            {"Messages": "≤ 50 msg/s", "Signatures": "≤ 50 /s", "Verifications": "≤ 50 /s"},
        ),
        ({"senders": 5, "dcc": True}, {"Messages": "≤ 50 msg/s"}),
    ],
)
def test_load_is_counted_before_the_run(settings: dict[str, Any], expected: Mapping[str, str]) -> None:
    found = facts(**settings)
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("security", "shown"),
    [
        ("full", {"Signatures", "Verifications"}),
        ("signed", {"Signatures"}),
        ("header", set()),
        ("none", set()),
    ],
)
def test_facts_of_signatures_are_those_of_the_configuration(security: str, shown: set[str]) -> None:
    assert facts(security=security).keys() & {"Signatures", "Verifications"} == shown


@pytest.mark.parametrize(
    ("settings", "verified"),
    [
        ({}, 50),
        ({"receivers": "all"}, 200),
        ({"receivers": "all", "senders": 1}, 0),
        ({"security": "signed"}, 0),
        ({"generation": "rules", "instances": 3}, 150),
    ],
)
def test_each_receiver_verifies_what_all_others_send(settings: dict[str, Any], verified: float) -> None:
    assert verifications(LiveParameters(**settings)) == verified


FAST = Speed(verify=10_000, raw_verify=12_500, sign=20_000)
"""20 us to read and decode a packet: 60 us to handle it, 110 to send it signed, 160 to receive and verify it."""


@pytest.mark.parametrize(
    ("settings", "speed", "judged"),
    [
        ({"senders": 15, "rate": 100.0}, Speed(), "not measured yet"),
        ({"senders": 15, "rate": 100.0}, replace(FAST, sign=None), "not measured yet"),
        ({"senders": 15, "rate": 100.0, "security": "none"}, Speed(), "not measured yet"),
        ({"senders": 15, "rate": 100.0}, FAST, "carries it (24%)"),
        ({"senders": 15, "rate": 100.0}, replace(FAST, verify=4000.0, raw_verify=5000.0), "carries it (60%)"),
        ({"senders": 15, "rate": 100.0}, replace(FAST, verify=2500.0, raw_verify=3000.0), "too much (90%)"),
        ({"senders": 15, "rate": 100.0}, replace(FAST, sign=1000.0), "too much (159%)"),
        ({"senders": 15, "rate": 100.0, "security": "none"}, FAST, "carries it (9%)"),
        ({"senders": 300, "rate": 1000.0, "security": "none"}, FAST, "too much (1800%)"),
        ({"senders": 300, "rate": 100.0, "security": "signed"}, FAST, "too much (330%)"),
    ],
)
def test_newest_benchmark_says_whether_this_computer_carries_the_load(
    settings: dict[str, Any], speed: Speed, judged: str
) -> None:
    """The busiest process has one core; a fifth of it is kept free."""
    if CORES != 2 and settings["senders"] == 300:
        pytest.skip("how stations are spread depends on the number of cores")
    assert facts(speed, **settings)["This computer"] == judged


def test_every_station_that_receives_is_a_load_of_the_process_that_holds_it() -> None:
    """40 stations at 10 Hz: 15,600 packets a second are received, and 400 are sent."""
    parameters = LiveParameters(senders=40, receivers="all")
    whole_s = 15_600 * 160e-6 + 400 * 110e-6
    assert core_share(parameters, 40, FAST) == pytest.approx(whole_s)
    assert core_share(parameters, 20, FAST) == pytest.approx(max(whole_s / 2, whole_s / CORES))
    assert facts(FAST, senders=40, receivers="all")["Processes"].startswith(f"{min(CORES, 6)} × ")


def test_fact_names_the_rate_on_which_it_rests() -> None:
    speed = replace(FAST, verify=8123.4)
    (fact,) = (fact for fact in live_facts(LiveParameters(), speed) if fact.name == "This computer")
    assert "one core verifies and decodes 8,123 packets a second" in fact.meaning


Stored = tuple[str, RunStatus, dict[str, str], dict[str, float]]
"""Kind, status, parameters and figures of a run."""


def stored(database: Path, *runs: Stored) -> None:
    """Store these runs, oldest first."""
    store = Store.open(database)
    try:
        for kind, status, parameters, figures in runs:
            campaign = NewCampaign("p", "Campaign", "", 1, (NewScenario("one", kind, parameters),), ((0, 1),))
            [run_id] = store.add_campaign(campaign, this_process(), NOW)
            store.run_started(run_id, this_process(), {}, [], NOW)
            metrics = tuple(Metric(name, value, "msg/s") for name, value in figures.items())
            store.replace_evaluation(run_id, Evaluation(metrics))
            store.run_ended(run_id, status, "", NOW)
    finally:
        store.close()


RATES = {"verify_decoded_rate": 5000.0, "raw_verify_rate": 9000.0, "sign_rate": 15_000.0}


def test_speeds_are_those_of_the_newest_finished_benchmark_of_each_backend_and_curve(tmp_path: Path) -> None:
    """A profile measures several backends in turn: the last one says nothing about the others."""
    finished = RunStatus.FINISHED
    stored(
        tmp_path / "runs.db",
        (BENCHMARK, finished, {"backend": "openssl"}, RATES),
        (BENCHMARK, finished, {"backend": "openssl"}, {**RATES, "verify_decoded_rate": 7000.0, "verify_rate": 1.0}),
        (BENCHMARK, finished, {"backend": "openssl", "curve": "p384"}, {**RATES, "sign_rate": 1500.0}),
        (BENCHMARK, finished, {"backend": "token"}, RATES),
        (BENCHMARK, RunStatus.CANCELLED, {"backend": "openssl"}, {**RATES, "sign_rate": 9.0}),
        (BENCHMARK, finished, {"backend": "openssl"}, {"verify_rate": 8.0}),
        *[("v2x.live", finished, {}, RATES)] * 10,
    )
    assert newest_speeds(tmp_path / "runs.db") == {
        (Backend.OPENSSL, CurveChoice.P256): Speed(7000, 9000, 15_000),
        (Backend.OPENSSL, CurveChoice.P384): Speed(5000, 9000, 1500),
        (Backend.TOKEN, CurveChoice.P256): Speed(5000, 9000, 15_000),
    }


def test_database_without_finished_benchmark_has_no_speed(tmp_path: Path) -> None:
    stored(tmp_path / "runs.db", (BENCHMARK, RunStatus.FAILED, {}, RATES))
    assert newest_speeds(tmp_path / "runs.db") == {}
