"""The forecast against the same hour of the week before, on weeks whose truth is known; and what is planned from it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest

from labconsole.errors import UserError
from labconsole_keypool.planning.arrival_log import HOUR, ArrivalLog
from labconsole_keypool.planning.forecast import WEEK, Forecast, fit
from labconsole_keypool.planning.formulas import keys_needed, made_when_idle
from labconsole_keypool.planning.generation_plan import plan_generation
from tests.labconsole_keypool.synthetic_weeks import START, synthetic_weeks

SEEDS = range(12)


def ratios(**kind: Any) -> list[float]:
    """The model's mean error in the held-out week over the benchmark's, for each seed."""
    forecasts = [fit(synthetic_weeks(seed=seed, **kind)) for seed in SEEDS]
    return [one.errors.mae / one.naive_errors.mae for one in forecasts]


@pytest.mark.parametrize(
    ("kind", "at_most"),
    [
        ({"weeks": 3}, 0.9),
        ({"weeks": 4}, 0.9),
        ({"weeks": 8}, 0.8),
        ({"weeks": 3, "noise": 0.4}, 0.84),
        ({"weeks": 3, "noise": 0.6}, 0.83),
        ({"weeks": 8, "trend": 0.05}, 0.8),
        ({"weeks": 8, "trend": -0.05}, 0.8),
        ({"weeks": 8, "noise": 0.02, "trend": 0.05}, 0.65),
        ({"weeks": 8, "holidays": 4}, 0.85),
        ({"weeks": 8, "scale": 0.05}, 0.85),
    ],
)
def test_it_beats_the_same_hour_of_the_week_before_on_every_seed(kind: dict[str, Any], at_most: float) -> None:
    found = ratios(**kind)
    assert max(found) < 1
    assert np.mean(found) < at_most


@pytest.mark.parametrize("kind", [{"noise": 0.4}, {"scale": 0.05}, {"noise": 0.4, "holidays": 2}])
def test_sum_of_a_forecast_is_neither_too_low_nor_too_high(kind: dict[str, Any]) -> None:
    """A pool is taken from by all requests of a week: hours that are usually right but too low in sum empty it."""
    usual = {**kind, "holidays": 0}
    came = np.mean([synthetic_weeks(weeks=5, seed=seed, **usual).requests.sum() / 5 for seed in SEEDS])
    forecasts = [fit(synthetic_weeks(weeks=5, seed=seed, **kind)).expected.sum() for seed in SEEDS]
    assert np.mean(forecasts) == pytest.approx(came, rel=0.04)


def test_random_weeks_are_forecast_better_mostly_and_a_worse_forecast_is_reported() -> None:
    """Three holidays in four weeks: two or three weeks do not show the usual level."""
    forecasts = [fit(synthetic_weeks(weeks=4, seed=seed, holidays=3)) for seed in range(30)]
    better = [one.beats_naive for one in forecasts]
    assert 15 < sum(better) < 30
    for one in forecasts:
        assert one.beats_naive == (one.errors.mae < one.naive_errors.mae)
        assert (", better than the same hour" in one.sentence) == one.beats_naive
        assert (", not better than the same hour" in one.sentence) == (not one.beats_naive)


def test_where_last_weeks_same_hour_is_nearer_it_sizes_the_pool() -> None:
    """A new level from the third week on: the model still believes in the two before it, the benchmark does not."""
    random = np.random.default_rng(3)
    usual = synthetic_weeks(weeks=1, seed=1).requests
    levels = [1.0, 1.0, 1.0, 1.0, 3.0, 3.0]
    weeks = np.concatenate([level * usual * random.uniform(0.99, 1.01, WEEK) for level in levels])
    forecast = fit(ArrivalLog(START, weeks, "log"))
    assert not forecast.beats_naive
    assert forecast.sentence.endswith("The pool is sized by last week's same hour.")
    assert forecast.expected.tolist() == weeks[-WEEK:].tolist()
    assert forecast.margin < 0.01, "of the forecast that is used, not of the model's"
    plan = plan_generation(forecast, 50.0, 20.0)
    assert plan.requests == pytest.approx(weeks[-WEEK:].sum(), rel=0.01)
    better = fit(synthetic_weeks(weeks=8, seed=1))
    assert better.beats_naive and better.sentence.endswith("The pool is sized by the model.")


def test_nothing_of_the_held_out_week_is_known_to_the_model() -> None:
    log = synthetic_weeks(weeks=5, seed=1)
    changed = log.requests.copy()
    changed[-WEEK:] = 7
    one, other = fit(log), fit(ArrivalLog(log.start, changed, log.source))
    assert one.predicted.tolist() == other.predicted.tolist()
    assert one.naive.tolist() == log.requests[-2 * WEEK : -WEEK].tolist()
    assert one.expected.tolist() != other.expected.tolist()


def test_exact_repetition_is_forecast_exactly_and_errors_follow_their_definition() -> None:
    week = np.arange(WEEK, dtype=np.float64) % 50
    forecast = fit(ArrivalLog(START, np.tile(week, 4), "log"))
    assert forecast.expected == pytest.approx(week, abs=1e-6)
    assert (forecast.start, forecast.held_out_start) == (START + 4 * WEEK * HOUR, START + 3 * WEEK * HOUR)
    last = np.concatenate([np.tile(week, 3), week + 2.0])
    off = fit(ArrivalLog(START, last, "log"))
    assert off.naive_errors.mae == pytest.approx(2)
    assert off.naive_errors.mape == pytest.approx(float((2 / (week + 2)).mean() * 100))


def test_a_log_that_is_not_whole_weeks_is_counted_from_its_end() -> None:
    log = synthetic_weeks(weeks=4, seed=1)
    longer = ArrivalLog(log.start - 30 * HOUR, np.concatenate([np.full(30, 1e6), log.requests]), log.source)
    assert fit(longer).expected.tolist() == fit(log).expected.tolist()


@pytest.mark.parametrize("hours", [1, 2 * WEEK, 3 * WEEK - 1])
def test_less_than_three_weeks_are_refused(hours: int) -> None:
    log = synthetic_weeks(weeks=3, seed=1)
    with pytest.raises(UserError, match=r"^Synthetic weeks: .* days of arrivals. A forecast needs 3 weeks at least"):
        fit(ArrivalLog(log.start, log.requests[:hours], log.source))


def test_weeks_in_which_nothing_came_are_refused() -> None:
    with pytest.raises(UserError, match="nothing to learn from"):
        fit(ArrivalLog(START, np.zeros(3 * WEEK), "Silence"))


def week_of(hours: list[float]) -> Forecast:
    """A forecast of these hours every day, without any error."""
    return fit(ArrivalLog(datetime(2026, 3, 2), np.tile(np.array(hours), 28), "log"))


def test_keys_are_made_in_idle_hours_by_when_they_are_needed() -> None:
    """3,600 keys an hour can be made; from 9 to 11 o'clock 7,200 requests come each hour, all that can be signed."""
    plan = plan_generation(week_of([0.0] * 9 + [7200.0] * 2 + [0.0] * 13), base=2.0, pooled_ms=1000.0)
    assert plan.pool.value == pytest.approx(14_400, abs=2)
    assert plan.keeps_up and plan.requests == pytest.approx(7 * 14_400, abs=10)
    first, second, *_, last = plan.windows
    assert (first.begin, first.end) == (datetime(2026, 3, 30), datetime(2026, 3, 30, 9))
    assert (first.keys, first.pool) == (pytest.approx(14_400, abs=2), pytest.approx(14_400, abs=2))
    assert first.capacity == pytest.approx(9 * 3600, abs=2)
    assert (second.begin, second.end) == (datetime(2026, 3, 30, 11), datetime(2026, 3, 31, 9))
    assert last.end == datetime(2026, 4, 6)
    assert plan.pool.steps[-1].startswith("most keys are needed on Monday 2026-03-30 09:00: 14,40")


def test_windows_generate_the_keys_of_the_week_within_their_idle_time() -> None:
    for seed in range(5):
        forecast = fit(synthetic_weeks(weeks=5, seed=seed, scale=80))
        plan = plan_generation(forecast, base=2.0, pooled_ms=1000.0)
        assert plan.keeps_up and plan.pool.value > 0
        level, hour = float(plan.at_start), forecast.start
        requests = forecast.expected * (1 + forecast.margin)
        made = made_when_idle(requests, 2.0, 1000.0)
        windows = {window.begin: window for window in plan.windows}
        while hour < forecast.start + timedelta(days=7):
            place = round((hour - forecast.start) / HOUR)
            if hour in windows:
                window = windows[hour]
                assert window.keys <= window.capacity
                hours = round((window.end - window.begin) / HOUR)
                level += window.keys - float(requests[place : place + hours].sum())
                hour = window.end
                assert level == pytest.approx(window.pool, abs=2 * len(windows))
            else:
                level += float(made[place] - requests[place])
                hour += HOUR
            assert level > -2 * len(windows)


def test_plan_for_a_too_slow_device_states_how_many_are_needed() -> None:
    busy = week_of([3600.0] * 24)
    plan = plan_generation(busy, base=4.0, pooled_ms=2000.0)
    assert not plan.keeps_up
    assert plan.requests == pytest.approx(168 * 3600, rel=1e-3)
    assert plan.made == pytest.approx(168 * 3600 * 0.75 / 2, rel=1e-3)
    assert "let 3 such devices generate" in plan.sentence
    assert plan.pool.value == pytest.approx(plan.requests - plan.made, abs=2), "the week can only be begun with them"
    assert "no idle time is left" in plan_generation(busy, base=1.0, pooled_ms=2000.0).sentence


def test_the_margin_is_that_of_the_held_out_week_s_worst_day() -> None:
    week = np.full(WEEK, 100.0)
    last = week.copy()
    last[24:48] = 130.0
    forecast = fit(ArrivalLog(START, np.concatenate([week, week, week, last]), "log"))
    assert forecast.margin == pytest.approx(0.3, abs=1e-6)
    assert keys_needed(week, np.zeros(WEEK))[0] == 100 * WEEK
