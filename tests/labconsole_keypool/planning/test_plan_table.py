"""The planner's table: formula and simulation agree, measurements are of the nearest run, empty cells have a reason."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from labconsole.model.trial import Direction, Metric, Origin
from labconsole.store.records import RunRow, RunStatus
from labconsole_keypool.choices import SignTime
from labconsole_keypool.planning import plan_simulations
from labconsole_keypool.planning.plan import PlanRow, disagreement, plan_table
from labconsole_keypool.planning.plan_measurements import LIVE_KIND, METRICS
from labconsole_keypool.planning.plan_simulations import MOST_SIMULATED
from labconsole_keypool.planning.planner_parameters import PlannedService, PlannerParameters
from tests.helpers.run_row import finished_run


def service(rate: float = 40.0, duration_s: float = 75.0, threads: int = 1, queue_limit: int = 50) -> PlannedService:
    return PlannerParameters(
        sign=SignTime.STOCKHOLM_BASE_RATE, rate=rate, duration_s=duration_s, threads=threads, queue_limit=queue_limit
    ).service()


def table(planned: PlannedService, *runs: RunRow) -> Mapping[str, PlanRow]:
    return {row.name: row for row in plan_table(planned, runs)}


def run(number: int, *, kind: str = LIVE_KIND, status: RunStatus = RunStatus.FINISHED, **changes: object) -> RunRow:
    """A live run at 40/s for 75 s; `changes` are of its parameters, and of its metrics where they are called so."""
    parameters = {
        "keys": "pool",
        "arrivals": "constant",
        "rate": 40.0,
        "requests": 3000,
        "time_scale": 1.0,
        "queue_limit": 50,
        "threads": 1,
        "timing": "luna-sa-1700",
        "sign": "stockholm-base-rate",
        "key_kind": "rsa-2048",
    }
    values = {"throughput": 26.1, "queue_length": 1010, "latency_peak": 38_500, "dropped": 0}
    values |= {name: value for name, value in changes.items() if name in METRICS}
    metrics = {
        name: Metric(name, float(value), "", Direction.LOWER, 3000, {}, Origin.EMULATED)
        for name, value in values.items()
    }
    parameters |= {name: value for name, value in changes.items() if name not in METRICS}
    return finished_run(number, kind, parameters, metrics, status=status)


@pytest.mark.parametrize(("rate", "threads", "limit"), [(40.0, 1, 50), (100.0, 1, 20), (60.0, 2, 30), (20.0, 1, 50)])
def test_formula_and_simulation_of_a_peak_agree(rate: float, threads: int, limit: int) -> None:
    rows = table(service(rate, 75.0, threads, limit))
    compared = 0
    for row in rows.values():
        if row.simulation.value is not None:
            assert not row.name.startswith("queue") or row.simulation.value <= limit
            slack = 0.02 * row.formula.value + (threads * 700 if row.formula.unit == "ms" else 3)
            assert row.simulation.value == pytest.approx(row.formula.value, abs=slack), row.name
            compared += 1
    assert compared >= 8
    assert disagreement(tuple(rows.values())) == ""
    assert (rows["first_drop"].formula.value == math.inf) == (rows["first_drop"].simulation.value is None)


def test_a_peak_that_outlasts_the_keys_in_the_token_is_simulated_with_its_drops() -> None:
    """20 ms to sign are 50/s, but keys are unwrapped at 1000 / 70 = 14.3/s: beyond 1,000 keys the queue fills."""
    rows = table(replace(service(50.0, 100.0), sign_ms=20.0, keys_in_token=1000))
    assert (rows["queue"].formula.value, rows["dropped"].formula.value) == (0, 0)
    lost = 50 * 100 - 1000 - 100 * 1000 / 70 - 50
    assert rows["dropped"].simulation.value == pytest.approx(lost, rel=0.01)
    assert rows["queue"].simulation.value == 50
    assert rows["latency"].simulation.value == pytest.approx(51 * 70 + 20, rel=0.02)
    text = disagreement(tuple(rows.values()))
    assert text.startswith("The formula drops 0 requests, the simulation 2,5")
    endless = table(replace(service(50.0, 100.0, queue_limit=0), sign_ms=20.0, keys_in_token=1000))
    assert disagreement(tuple(endless.values())).startswith(
        "The formula has 0 requests wait at the end, the simulation 2,5"
    )
    assert "the token's keys last for 28" in text and text.endswith("then requests wait for keys to be unwrapped.")


@pytest.mark.parametrize(("limit", "queue", "dropped"), [(50, 50, 970), (0, 1020, 0), (2000, 1020, 0)])
def test_formulas_count_dropped_requests_and_keep_the_queue_within_its_limit(
    limit: int, queue: int, dropped: int
) -> None:
    """Section 4.5.2 at 40/s and 26.3/s for 75 s: Q = 13.6 * 75 s, 1,026 with the rounded base rate."""
    rows = table(service(queue_limit=limit))
    assert rows["queue"].formula.value == pytest.approx(queue, abs=8)
    assert rows["dropped"].formula.value == pytest.approx(dropped, abs=8)
    assert rows["dropped"].simulation.value == pytest.approx(dropped, abs=20)
    assert rows["latency"].formula.value == pytest.approx(38 * rows["queue"].formula.value)
    assert rows["dropped_without_keys"].formula.value == pytest.approx(
        rows["dropped_without_keys"].simulation.value or 0, abs=20
    )


def test_a_device_that_generates_two_at_a_time_is_simulated_so() -> None:
    planned = replace(service(40.0, 75.0, threads=2), at_a_time=2)
    row = table(planned)["base_rate_without_keys"]
    assert row.simulation.value == pytest.approx(row.formula.value, rel=0.01)
    assert row.formula.value == pytest.approx(2 * 1000 / (planned.generation_ms + planned.sign_ms))


def test_the_longest_key_generation_of_a_profile_may_be_planned_with() -> None:
    assert PlannerParameters().service().generation_ms == 588
    assert PlannerParameters(key_generation="longest").service().generation_ms == 673


def test_key_counts_as_pooled_once_wrapped_and_saved() -> None:
    """Table 2-5: 121 to 141 ms a key, without its generation."""
    shortest, longest = (PlannerParameters(key_generation=end).service() for end in ("shortest", "longest"))
    assert (shortest.each_pooled_ms, longest.each_pooled_ms) == (588 + 121, 673 + 141)
    own = PlannerParameters(timing="", generation_ms=10.0, wrap_ms=5.0, duration_s=75.0).service()
    assert (own.each_generated_ms, own.each_pooled_ms, replace(own, at_a_time=2).each_pooled_ms) == (10, 15, 7.5)
    pool, unstored = (table(own)[name].formula for name in ("pool", "hsms_without_storage"))
    assert any("saved in 15 ms" in step for step in pool.steps)
    assert unstored.value == 1, "who stores no key wraps none"


def test_keys_last_as_long_as_by_the_formula_until_a_request_waits_for_one() -> None:
    rows = table(replace(service(50.0, 100.0), sign_ms=10.0, keys_in_token=1000))
    assert rows["keys_last"].simulation.value == pytest.approx(rows["keys_last"].formula.value, rel=0.01)


def test_the_source_s_case_gives_nine_devices_against_one_and_three_once_loading_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plan_simulations, "MOST_SIMULATED", 1000)  # two seconds less
    rows = table(replace(service(50.0, 7200.0), sign_ms=20.0))
    counts = {name: rows[name].formula.value for name in rows if name.startswith(("hsms", "cost"))}
    assert counts == {
        "hsms_with_pool": 1,
        "hsms_with_loading": 3,
        "hsms_without_pool": 9,
        "hsms_without_storage": 30,
        "cost_ratio": 9,
        "cost_ratio_with_loading": 3,
    }


def test_peak_of_too_many_requests_is_not_simulated_and_the_cell_notes_it() -> None:
    row = table(service(1000.0, MOST_SIMULATED / 1000 + 1))["queue"]
    assert row.simulation.value is None and row.simulation.note.startswith("more than 500,000 requests")
    assert row.formula.value > 0


def test_the_measurement_is_the_nearest_run_s_with_its_origin() -> None:
    rows = table(service(), run(1, rate=45.0, queue_length=7), run(2), run(3, rate=38.0, queue_length=8))
    cell = rows["queue"].measurement
    assert (cell.value, cell.note, cell.origin) == (1010, "run 2: 3,000 requests at 40/s", Origin.EMULATED)
    assert rows["latency"].measurement.value == 38_500
    assert rows["base_rate"].measurement.note.startswith("run 3"), "the newest of those with most requests"
    assert rows["queue_without_keys"].measurement.value is None


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "keypool.simulation"},
        {"status": RunStatus.CANCELLED},
        {"rate": 60.0},
        {"requests": 300},
        {"threads": 2},
        {"timing": ""},
        {"sign": "malmo"},
        {"keys": "generated"},
        {"arrivals": "poisson"},
        {"tail_requests": 10},
        {"queue_limit": 0},
    ],
)
def test_other_service_or_peak_is_not_a_measurement_of_this_one(changes: Mapping[str, object]) -> None:
    cell = table(service(), run(1, **changes))["queue"].measurement  # type: ignore[arg-type]
    assert cell.value is None
    assert cell.note == (
        "no run with a pool near 3,000 requests at 40/s with luna-sa-1700 (stockholm-base-rate), 1 thread, queue "
        "limit 50"
    )


def test_a_plan_of_entered_times_is_measured_by_runs_of_real_tokens() -> None:
    planned = PlannerParameters(timing="", sign_ms=25.0, rate=40.0, duration_s=75.0).service()
    cell = table(planned, run(1, timing="", sign="malmo", key_kind="p-256"))["queue"].measurement
    assert (cell.value, cell.note) == (1010, "run 1: 3,000 requests at 40/s, P-256 keys"), "what the times depend on"
    none = table(planned, run(1))["queue"].measurement
    assert (
        none.note
        == "no run with a pool near 3,000 requests at 40/s with a real token's times, 1 thread, queue limit 50"
    )


def test_the_first_drop_is_that_of_a_run_with_the_same_queue_limit() -> None:
    dropping = run(1, queue_limit=50, dropped=900, first_dropped=149)
    assert table(service(), dropping)["first_drop"].measurement.value == pytest.approx(148 / 40)
    assert table(service(queue_limit=40), dropping)["first_drop"].measurement.value is None
    none = table(service(), run(1, queue_limit=50))["first_drop"].measurement
    assert (none.value, none.note) == (None, "none was dropped in run 1: 3,000 requests at 40/s")


def test_without_a_queue_limit_there_is_no_first_drop_in_any_column() -> None:
    row = table(service(queue_limit=0), run(1, queue_limit=0))["first_drop"]
    assert (row.formula.value, row.simulation.note, row.measurement.note) == (
        math.inf,
        "the queue has no limit",
        "the queue has no limit",
    )
