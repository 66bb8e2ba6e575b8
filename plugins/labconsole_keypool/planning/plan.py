"""A whole plan: the planner's table, and from a log of arrivals the forecast with what it asks of the pool."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labconsole.analysis.number_format import format_duration, format_number
from labconsole.store.records import RunRow
from labconsole_keypool.choices import KeySource
from labconsole_keypool.planning import formulas
from labconsole_keypool.planning.arrival_log import ArrivalLog
from labconsole_keypool.planning.forecast import Forecast, fit
from labconsole_keypool.planning.formulas import Derivation, base_rate
from labconsole_keypool.planning.generation_plan import GenerationPlan, Window, plan_generation
from labconsole_keypool.planning.plan_measurements import PlanMeasurements
from labconsole_keypool.planning.plan_simulations import PlanSimulations
from labconsole_keypool.planning.planner_parameters import Cell, PlannedService, PlannerParameters

_FEW, _SLACK = 10, 0.02
"""Requests, and the part of the formula's, by which a simulation may differ from it: rates are not whole numbers."""

_NOT_SIMULATED, _NOT_MEASURED = Cell(None, "counted, not simulated"), Cell(None, "counted, not measured")


@dataclass(frozen=True)
class PlanRow:
    """One figure, found in three ways, all in the formula's unit. `name` is what exports and tests know it by."""

    name: str
    title: str
    formula: Derivation
    simulation: Cell = _NOT_SIMULATED
    measurement: Cell = _NOT_MEASURED


def plan_table(service: PlannedService, runs: Sequence[RunRow]) -> tuple[PlanRow, ...]:
    """All rows; `runs` are those of the database, with the metrics of `plan_measurements.METRICS`.

    Raises:
        UserError: the peak takes more than a year.
    """
    simulated, measured = PlanSimulations(service), PlanMeasurements(service, runs)
    return (
        *_with_keys(service, simulated, measured),
        *_without_keys(service, simulated, measured),
        *_pool(service, simulated),
        *_devices(service),
    )


def disagreement(rows: Sequence[PlanRow]) -> str:
    """One sentence where the simulation of the key pool drops more requests than the formula, or has more of them
    wait; "" where it does not.

    The formula counts every key as ready in the token; the simulation waits for those that are unwrapped at peak.
    """
    by_name = {row.name: row for row in rows}
    for name, effect in (("dropped", "drops {} requests"), ("queue", "has {} requests wait at the end")):
        row = by_name[name]
        formula, simulated = row.formula.value, row.simulation.value
        if simulated is not None and simulated > formula + max(_FEW, _SLACK * formula):
            return (
                f"The formula {effect.format(f'{round(formula):,}')}, the simulation {round(simulated):,}: the formula "
                f"counts every key as ready in the token. Simulated: {row.simulation.note}."
            )
    return ""


def _with_keys(service: PlannedService, simulated: PlanSimulations, measured: PlanMeasurements) -> Iterator[PlanRow]:
    keys = KeySource.POOL
    base = formulas.base_rate(service.sign_ms, service.threads)
    queue = formulas.queue_length(service.rate, base.value, service.duration_s, service.queue_limit)
    latency = formulas.latency(0, service.sign_ms, queue.value, service.threads)
    drop = formulas.time_to_first_drop(service.rate, base.value, service.queue_limit)
    dropped = formulas.dropped(service.rate, base.value, service.duration_s, service.queue_limit)
    rates = simulated.rate(keys, base.value), measured.rate(keys, base.value)
    yield PlanRow("base_rate", "Base rate (BR), with keys", base, *rates)
    yield PlanRow("queue", "Queue (Q) with keys", queue, simulated.queue(keys), measured.at_peak(keys, "queue_length"))
    yield PlanRow(
        "latency", "Latency (L) with keys", latency, simulated.latency(keys), measured.at_peak(keys, "latency_peak")
    )
    yield PlanRow("dropped", "Dropped with keys", dropped, simulated.dropped(keys), measured.at_peak(keys, "dropped"))
    yield PlanRow("first_drop", "Time to the first drop", drop, simulated.first_drop(), measured.first_drop())


def _without_keys(service: PlannedService, simulated: PlanSimulations, measured: PlanMeasurements) -> Iterator[PlanRow]:
    keys = KeySource.GENERATED
    base = formulas.rate_without_keys(service.sign_ms, service.generation_ms, service.threads, service.at_a_time)
    queue = formulas.queue_length(service.rate, base.value, service.duration_s, service.queue_limit)
    # Threads that wait for one another's keys take 1 / BR each, of which Si is only a part.
    latency = formulas.latency(1000 / base.value - service.sign_ms, service.sign_ms, queue.value)
    rates = simulated.rate(keys, base.value), measured.rate(keys, base.value)
    yield PlanRow("base_rate_without_keys", "Base rate without keys", base, *rates)
    yield PlanRow(
        "queue_without_keys",
        "Queue (Q) without keys",
        queue,
        simulated.queue(keys),
        measured.at_peak(keys, "queue_length"),
    )
    yield PlanRow(
        "latency_without_keys",
        "Latency (L) without keys",
        latency,
        simulated.latency(keys),
        measured.at_peak(keys, "latency_peak"),
    )
    yield PlanRow(
        "dropped_without_keys",
        "Dropped without keys",
        formulas.dropped(service.rate, base.value, service.duration_s, service.queue_limit),
        simulated.dropped(keys),
        measured.at_peak(keys, "dropped"),
    )


def _pool(service: PlannedService, simulated: PlanSimulations) -> Iterator[PlanRow]:
    base = formulas.base_rate(service.sign_ms, service.threads).value
    yield PlanRow(
        "keys_last",
        "Keys in the token last for",
        formulas.time_to_empty(service.keys_in_token, service.rate, base, service.unwrap_ms),
        simulated.keys_last(),
        Cell(None, "not a metric of a run"),
    )
    yield PlanRow(
        "pool",
        "Pool for the day",
        formulas.pool_for_day(service.day, base, service.each_pooled_ms),
        Cell(None, "makes no keys when idle"),
        Cell(None, "no run lasts for a day"),
    )


def _devices(service: PlannedService) -> Iterator[PlanRow]:
    base = formulas.base_rate(service.sign_ms, service.threads).value
    rate, duration_s, keys, each_ms = (
        service.rate,
        service.duration_s,
        service.keys_in_token,
        service.each_generated_ms,
    )
    pooled = formulas.hsms_with_pool(rate, base)
    stored = formulas.hsms_without_pool(rate, base, duration_s, keys, each_ms)
    loading = formulas.hsms_with_loading(rate, base, duration_s, keys, service.unwrap_ms)
    yield PlanRow("hsms_with_pool", "HSMs with a pool, every key in the token", pooled)
    yield PlanRow("hsms_with_loading", "HSMs with a pool, loading counted", loading)
    yield PlanRow("hsms_without_pool", "HSMs with their own storage alone", stored)
    yield PlanRow("hsms_without_storage", "HSMs without any storage", formulas.hsms_without_storage(rate, each_ms))
    yield PlanRow("cost_ratio", "Cost without a pool against with one", formulas.cost_ratio(stored, pooled))
    yield PlanRow("cost_ratio_with_loading", "The same, loading counted", formulas.cost_ratio(stored, loading))


@dataclass(frozen=True)
class Plan:
    """The table; with a log of arrivals, the forecast of the next week and the generation that it needs."""

    rows: tuple[PlanRow, ...]
    forecast: Forecast | None = None
    generation: GenerationPlan | None = None

    @property
    def pool_keys(self) -> int:
        """Key pairs that the pool must hold for the forecast week, or for the business day."""
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


_LONG_S = 60
_COUNTED = ("requests", "keys", "HSMs")
_PER_SECOND = {"s": 1.0, "ms": 1000.0}


def figure_text(value: float, unit: str) -> str:
    """`39,025 ms`, `1.645 requests/s`, `210,000 ms (3 min 30 s)`, `never`."""
    if math.isinf(value):
        return "never"
    rounded = round(value) if abs(value) >= 10_000 else value
    counted = unit.removesuffix("s") if value == 1 and unit in _COUNTED else unit
    text = f"{format_number(rounded)} {counted}".rstrip()
    per_second = _PER_SECOND.get(unit)
    if per_second and value / per_second >= _LONG_S:
        text += f" ({format_duration(value / per_second)})"
    return text


def cell_text(cell: Cell, unit: str) -> str:
    """A cell's figure, with the origin where a run found it; or why there is none."""
    if cell.value is None:
        return f"– {cell.note}"
    origin = f", {cell.origin}" if cell.origin is not None else ""
    return f"{figure_text(cell.value, unit)}{origin}"


def window_texts(window: Window) -> tuple[str, str, str, str]:
    """The text of a window: begin, end, keys to be made of its capacity, and the pool at its end."""
    return (
        f"{window.begin:%a %d %b %H:%M}",
        f"{window.end:%a %d %b %H:%M}",
        f"{window.keys:,} of {window.capacity:,}",
        f"{window.pool:,}",
    )
