"""Facts of a live scenario before it is run: its load, and whether this computer carries it by its newest benchmark."""

from __future__ import annotations

import os
from collections.abc import Mapping
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
from labconsole_v2x.panel.live_facts import live_facts, verifications
from labconsole_v2x.panel.live_monitor import newest_verify_rates
from labconsole_v2x.security.backends import Backend

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
CORES = os.cpu_count() or 1
BENCHMARK = "v2x.benchmark"


def facts(benchmark: float | None = None, **settings: Any) -> dict[str, str]:
    return {fact.name: fact.value for fact in live_facts(LiveParameters(**settings), benchmark)}


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


@pytest.mark.parametrize(
    ("settings", "benchmark", "judged"),
    [
        ({"senders": 15, "rate": 100.0}, None, "not measured yet"),
        ({"senders": 15, "rate": 100.0}, 6000.0, "carries it (25%)"),
        ({"senders": 15, "rate": 100.0}, 1875.0, "carries it (80%)"),
        ({"senders": 15, "rate": 100.0}, 1800.0, "too much (83%)"),
        ({"senders": 15, "rate": 100.0, "threads": 4}, 1000.0, "too much (150%)"),
        ({"senders": 11, "receivers": "all"}, 5000.0 / CORES, "carries it (22%)"),
        ({"senders": 11, "receivers": "all"}, 1000.0 / CORES, "too much (110%)"),
        ({"senders": 300, "rate": 100.0, "security": "none"}, 1.0, "carries it (0%)"),
    ],
)
def test_newest_benchmark_says_whether_this_computer_carries_the_load(
    settings: dict[str, Any], benchmark: float | None, judged: str
) -> None:
    """One receiver has the rate of one core, several have those of all cores; a fifth of it is kept free."""
    assert facts(benchmark, **settings)["This computer"] == judged


def test_fact_names_the_rate_on_which_it_rests() -> None:
    (fact,) = (fact for fact in live_facts(LiveParameters(), 8123.4) if fact.name == "This computer")
    assert "8,123 packets a second verified and decoded by one core" in fact.meaning


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


def test_rates_are_those_of_the_newest_finished_benchmark_of_each_backend_and_curve(tmp_path: Path) -> None:
    """A profile measures several backends in turn: the last one says nothing about the others."""
    finished, rate = RunStatus.FINISHED, "verify_decoded_rate"
    stored(
        tmp_path / "runs.db",
        (BENCHMARK, finished, {"backend": "openssl"}, {rate: 5000.0}),
        (BENCHMARK, finished, {"backend": "openssl"}, {rate: 7000.0, "verify_rate": 1.0}),
        (BENCHMARK, finished, {"backend": "openssl", "curve": "p384"}, {rate: 1500.0}),
        (BENCHMARK, finished, {"backend": "token"}, {rate: 3000.0}),
        (BENCHMARK, RunStatus.CANCELLED, {"backend": "openssl"}, {rate: 9.0}),
        (BENCHMARK, finished, {"backend": "openssl"}, {"verify_rate": 8.0}),
        ("v2x.live", finished, {}, {rate: 10.0}),
    )
    assert newest_verify_rates(tmp_path / "runs.db") == {
        (Backend.OPENSSL, CurveChoice.P256): 7000,
        (Backend.OPENSSL, CurveChoice.P384): 1500,
        (Backend.TOKEN, CurveChoice.P256): 3000,
    }


def test_database_without_finished_benchmark_has_no_rate(tmp_path: Path) -> None:
    stored(tmp_path / "runs.db", (BENCHMARK, RunStatus.FAILED, {}, {"verify_decoded_rate": 9.0}))
    assert newest_verify_rates(tmp_path / "runs.db") == {}
