"""The planner's table: each figure by formula, by simulation, and as the nearest run of the database measured it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from labconsole.store.records import RunRow
from labconsole_keypool.choices import KeySource
from labconsole_keypool.planning import formulas
from labconsole_keypool.planning.formulas import Derivation
from labconsole_keypool.planning.plan_cell import Cell
from labconsole_keypool.planning.plan_measurements import PlanMeasurements
from labconsole_keypool.planning.plan_simulations import PlanSimulations
from labconsole_keypool.planning.planned_service import PlannedService

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
        UserError: the peak goes on for more than a year.
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
    for name, said in (("dropped", "drops {} requests"), ("queue", "has {} requests wait at the end")):
        row = by_name[name]
        formula, simulated = row.formula.value, row.simulation.value
        if simulated is not None and simulated > formula + max(_FEW, _SLACK * formula):
            return (
                f"The formula {said.format(f'{round(formula):,}')}, the simulation {round(simulated):,}: the formula "
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
        Cell(None, "no metric of a run tells it"),
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
