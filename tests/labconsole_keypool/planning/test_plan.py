"""A whole plan: what it takes from a forecast."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pytest

from labconsole.errors import UserError
from labconsole_keypool.planning.arrival_log import ArrivalLog
from labconsole_keypool.planning.forecast import WEEK
from labconsole_keypool.planning.formulas import pool_for_day
from labconsole_keypool.planning.plan import make_plan
from labconsole_keypool.planning.planner_parameters import PlannerParameters

PARAMETERS = PlannerParameters(rate=2.0, duration_s=60.0)


def test_with_a_log_the_day_is_the_forecast_s_busiest_from_midnight_on_with_its_margin() -> None:
    """Every Thursday comes most, at one hour; on the last Monday came half as much again as usual."""
    week = np.zeros(WEEK)
    week[[10, 3 * 24 + 15]] = 3000, 9000
    last = week.copy()
    last[10] = 4500
    weeks = np.concatenate([np.tile(week, 4), last])
    thursday = np.zeros(24)
    thursday[15] = 9000 * 1.5
    needed = pool_for_day(thursday, 50, 588 + 121).value
    for hours in (weeks, weeks[:-5]):
        plan = make_plan(PARAMETERS, (), ArrivalLog(datetime(2026, 3, 2), hours, "log"))
        (row,) = (row for row in plan.rows if row.name == "pool")
        assert row.formula.value == pytest.approx(needed, rel=0.01)
        assert plan.forecast is not None and plan.forecast.margin == pytest.approx(0.5, rel=0.01)
        assert plan.generation is not None and plan.pool_keys == plan.generation.pool.value


def test_without_a_log_the_day_is_the_source_s_business_day() -> None:
    plan = make_plan(PlannerParameters(rate=2.0, duration_s=60.0), ())
    assert (plan.forecast, plan.generation) == (None, None)
    assert plan.pool_keys == pool_for_day(np.repeat([0.5, 1.0, 2.0, 0.5], [8, 7, 2, 7]) * 3600, 50, 588 + 121).value


def test_a_log_that_is_too_short_is_refused() -> None:
    with pytest.raises(UserError, match="A forecast needs 3 weeks at least"):
        make_plan(PARAMETERS, (), ArrivalLog(datetime(2026, 3, 2), np.ones(24), "log"))
