"""A whole plan: the planner's table, and from a log of arrivals the forecast with what it asks of the pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labconsole.store.records import RunRow
from labconsole_keypool.planning.arrival_log import ArrivalLog
from labconsole_keypool.planning.forecast import Forecast, fit
from labconsole_keypool.planning.formulas import base_rate
from labconsole_keypool.planning.generation_plan import GenerationPlan, plan_generation
from labconsole_keypool.planning.planner_parameters import PlannerParameters
from labconsole_keypool.planning.planner_table import PlanRow, plan_table


@dataclass(frozen=True)
class Plan:
    """The table; with a log of arrivals, the forecast of the next week and the generation that it needs."""

    rows: tuple[PlanRow, ...]
    forecast: Forecast | None = None
    generation: GenerationPlan | None = None

    @property
    def pool_keys(self) -> int:
        """Key pairs that must lie in the pool: for the forecast week, or for the business day."""
        if self.generation is not None:
            return int(self.generation.pool.value)
        return int(next(row.formula.value for row in self.rows if row.name == "pool"))


def make_plan(parameters: PlannerParameters, runs: Sequence[RunRow], log: ArrivalLog | None = None) -> Plan:
    """Work it all out; a second or two where the peak has some hundred thousand requests.

    Raises:
        UserError: the timing profile is broken, or the log is too short for a forecast.
    """
    if log is None:
        return Plan(plan_table(parameters.service(), runs))
    forecast = fit(log)
    service = parameters.service(_busiest_day(forecast))
    base = base_rate(service.sign_ms, service.threads).value
    return Plan(plan_table(service, runs), forecast, plan_generation(forecast, base, service.each_pooled_ms))


def _busiest_day(forecast: Forecast) -> NDArray[np.float64]:
    """The hours of the forecast's day with most requests, from midnight on, with the forecast's margin."""
    midnight = (24 - forecast.start.hour) % 24
    whole = (len(forecast.expected) - midnight) // 24
    days = forecast.expected[midnight : midnight + whole * 24].reshape(whole, 24)
    return np.asarray(days[days.sum(axis=1).argmax()] * (1 + forecast.margin))
