"""Figures and verdicts of live runs from stored samples alone, on samples whose truth is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from labconsole.model.trial import Event, Level, Origin, Series
from labconsole_keypool.choices import KeyOrigin
from labconsole_keypool.results.curves import curves
from labconsole_keypool.results.evaluation import distributions, evaluate
from labconsole_keypool.series import (
    DROPS,
    END_EVENT,
    FAILURES,
    GENERATED,
    LIVE_REQUESTS,
    QUEUE,
    REFILLS,
    STORE_VERIFIED,
)
from labconsole_keypool.service.service_parameters import ServiceParameters
from tests.labconsole_keypool.results.tables import MS, Tables

T0_NS = 5_000_000_000_000
A, C, D = KeyOrigin.TOKEN_RAM, KeyOrigin.POOL, KeyOrigin.GENERATED
LINKED = {"rows": 70, "findings": []}


def live(**rows: Sequence[tuple[int, ...]]) -> Tables:
    """Samples with these rows; times in ms since T0."""
    tables = {}
    for series in (LIVE_REQUESTS, DROPS, FAILURES, QUEUE, REFILLS, GENERATED):
        if rows.get(series.name):
            tables[series.name] = dict(_columns(series, rows[series.name]))
    return Tables(tables)


def _columns(series: Series, rows: Sequence[tuple[int, ...]]) -> Sequence[tuple[str, Any]]:
    columns = zip(series.columns, zip(*rows, strict=True), strict=True)
    return [
        (column.name, np.array(values, np.int64) * MS + T0_NS if column.unit == "ns" else np.array(values))
        for column, values in columns
    ]


def events(**data: Mapping[str, Any]) -> list[Event]:
    """T0, and these."""
    named = {"T0": {"begin_ns": T0_NS}, **{name.replace("_", " "): given for name, given in data.items()}}
    return [Event(T0_NS, "worker", Level.INFO, name, "", given) for name, given in named.items()]


# request, received, started, got key, finished, source, signed, key; in the order of their answers
THREE = live(
    requests=[(2, 10, 20, 22, 30, C, 24, 52), (1, 0, 1, 2, 40, A, 12, 51), (4, 30, 50, 80, 99, D, 82, 0)],
    drops=[(3, 25)],
    queue=[(10, 1), (20, 0)],
    refills=[(-60, -40, 10), (5, 25, 10)],
    generated=[(-100, -98, -95, -90), (50, 54, 55, 60)],
)
ENDED = {"received": 4, "answered": 3, "failed": 0, "dropped": 1, "unfinished": 0}


def metric_values(samples: Tables, recorded_events: Sequence[Event], **settings: Any) -> dict[tuple[str, ...], float]:
    metrics = evaluate(ServiceParameters(**settings), samples, recorded_events).metrics
    return {(metric.name, *metric.labels.values()): metric.value for metric in metrics}


def verdicts(samples: Tables, recorded_events: Sequence[Event]) -> dict[str, tuple[str, str]]:
    return {v.name: (v.result, v.reason) for v in evaluate(ServiceParameters(), samples, recorded_events).verdicts[3:]}


def test_a_live_run_has_the_simulator_s_figures_and_those_of_the_token() -> None:
    figures = metric_values(THREE, events())
    assert (figures["latency_peak",], figures["latency_mean",]) == (69, pytest.approx((40 + 20 + 69) / 3))
    assert (figures["dropped",], figures["first_dropped",], figures["requests",]) == (1, 3, 4)
    assert (figures["wait_peak",], figures["queue_length_peak",], figures["failed",]) == (20, 1, 0)
    assert (figures["sign_mean",], figures["sign_p50",]) == (pytest.approx((2 + 10 + 2) / 3), 2)
    assert (figures["got_key", "token RAM"], figures["got_key", "pool"], figures["got_key", "generated"]) == (1, 1, 1)
    assert (figures["got_key_mean", "token RAM"], figures["got_key_mean", "generated"]) == (1, 30)
    assert (figures["unwrap_mean",], figures["keys_generated",]) == (2, 2)
    assert (figures["key_generation_mean",], figures["wrap_mean",]) == (3, 2)
    assert figures["throughput",] == pytest.approx(3 / 0.099)


def test_figures_are_measured_or_in_the_time_of_an_emulated_device() -> None:
    measured = evaluate(ServiceParameters(emulation_speed=10.0), THREE, events())
    emulated = evaluate(ServiceParameters(timing="luna-sa-1700", emulation_speed=10.0), THREE, events())
    assert {metric.origin for metric in measured.metrics} == {Origin.MEASURED}
    assert {metric.origin for metric in emulated.metrics} == {Origin.EMULATED}
    before_t0 = {"unwrap_mean", "key_generation_mean", "wrap_mean"}
    for one, ten in zip(measured.metrics, emulated.metrics, strict=True):
        factor = {"ms": 10.0, "s": 10.0, "requests/s": 0.1}.get(one.unit, 1.0)
        if one.unit != "%" and one.name not in before_t0:
            assert ten.value == pytest.approx(one.value * factor), one.name
    of_the_device = {metric.name: metric.value for metric in emulated.metrics if metric.name in before_t0}
    assert of_the_device == {"unwrap_mean": 20, "key_generation_mean": 40, "wrap_mean": 10}, "from T0 on"
    latency, _wait, signing = distributions(
        ServiceParameters(timing="luna-sa-1700", emulation_speed=10.0), THREE, events()
    )
    assert latency.values.tolist() == [400, 200, 690]
    assert signing.values.tolist() == [100, 20, 20]


def test_curves_of_a_live_run_begin_with_the_keys_that_were_there() -> None:
    drawn = {curve.title: curve for curve in curves(ServiceParameters(), THREE, events(pool={"new": 20}))}
    assert list(drawn) == ["Latency", "Dropped", "Waiting", "Arrivals", "Keys", "In the key store"]
    assert drawn["Latency"].t_s.tolist() == [0.0, 0.01, 0.03]
    assert drawn["Keys"].values[0] == 10, "loaded before T0"
    assert drawn["Keys"].values[-1] == 10 + 10 - 2
    assert drawn["In the key store"].values[0] == 20 + 1 - 10, "stored and claimed before T0"
    assert drawn["In the key store"].values[-1] == 20 + 2 - 20


def test_verdicts_state_their_evidence() -> None:
    recorded_events = events(**{END_EVENT.replace(" ", "_"): ENDED, STORE_VERIFIED.replace(" ", "_"): LINKED})
    assert verdicts(THREE, recorded_events) == {
        "no key used twice": ("pass", "3 requests were signed with as many keys: 2 stored ones, 1 generated."),
        "every request answered or counted as dropped": (
            "pass",
            "4 requests arrived: 3 were signed, 1 dropped.",
        ),
        "store linked": (
            "pass",
            "All 70 rows of the key store are as they were written, from the first to the last.",
        ),
    }


@pytest.mark.parametrize(
    ("samples", "data", "name", "verdict"),
    [
        (
            live(requests=[(1, 0, 0, 0, 9, C, 5, 51), (2, 0, 0, 0, 9, C, 5, 51)]),
            {},
            "no key used twice",
            ("fail", "2 requests were signed with only 1 different keys of the key store."),
        ),
        (live(), {}, "no key used twice", ("unknown", "No request was signed.")),
        (
            THREE,
            {END_EVENT: {**ENDED, "received": 5}},
            "every request answered or counted as dropped",
            ("fail", "1 of 5 requests have no answer, and 0 have two."),
        ),
        (
            live(requests=[(1, 0, 0, 0, 9, C, 5, 51), (1, 0, 0, 0, 9, C, 5, 52)]),
            {END_EVENT: {**ENDED, "received": 1}},
            "every request answered or counted as dropped",
            ("fail", "0 of 1 requests have no answer, and 1 have two."),
        ),
        (
            THREE,
            {END_EVENT: {**ENDED, "received": 9, "unfinished": 5}},
            "every request answered or counted as dropped",
            ("unknown", "The run was cancelled: 5 of 9 requests had no answer yet."),
        ),
        (
            live(requests=[(1, 0, 0, 0, 9, D, 5, 0)], failures=[(2, 1, 3)]),
            {END_EVENT: {**ENDED, "received": 2, "failed": 1}},
            "every request answered or counted as dropped",
            ("pass", "2 requests arrived: 1 were signed, 1 refused, 0 dropped."),
        ),
        (
            THREE,
            {STORE_VERIFIED: {"rows": 70, "findings": ["Row 7 was changed.", "Row 9 is gone."]}},
            "store linked",
            ("fail", "The key store was changed: Row 7 was changed."),
        ),
        (
            THREE,
            {},
            "store linked",
            ("unknown", "The key store was not checked: the run did not come to its end."),
        ),
    ],
)
def test_wrong_or_unknown_evidence_is_not_a_pass(
    samples: Tables, data: dict[str, Any], name: str, verdict: tuple[str, str]
) -> None:
    recorded_events = events(**{key.replace(" ", "_"): value for key, value in data.items()})
    assert verdicts(samples, recorded_events)[name] == verdict


def test_a_refused_request_is_not_signed_in_time() -> None:
    samples = live(requests=[(1, 0, 0, 0, 9, D, 5, 0)], failures=[(2, 1, 3)])
    level = evaluate(ServiceParameters(), samples, events()).verdicts[1]
    assert (level.result, level.evidence["requests"], level.evidence["within"]) == ("fail", 2, 1)
    assert metric_values(samples, events())["share_within_300",] == 50


def test_a_run_that_never_began_has_no_figures_of_requests() -> None:
    evaluation = evaluate(ServiceParameters(), live(generated=[(0, 1, 2, 3)]), [])
    assert {metric.name for metric in evaluation.metrics} == {"keys_generated", "key_generation_mean", "wrap_mean"}
    assert {verdict.result for verdict in evaluation.verdicts} == {"unknown"}
    assert curves(ServiceParameters(), live(), []) == ()
