"""`labconsole hsm plan`: the planner at the terminal."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import ValidationError
from rich.console import Console
from rich.table import Table

from labconsole.cli.exit_codes import FINISHED
from labconsole.cli.opening import open_database
from labconsole.cli.terminal import output
from labconsole.errors import UserError
from labconsole.locations import database_path
from labconsole.profile_file import fault_sentence
from labconsole.report.tables import write_table
from labconsole.store.records import RunRow
from labconsole_keypool.planning.arrival_log import HOUR, read_log
from labconsole_keypool.planning.forecast import Forecast
from labconsole_keypool.planning.generation_plan import GenerationPlan
from labconsole_keypool.planning.plan import Plan, make_plan
from labconsole_keypool.planning.plan_measurements import METRICS
from labconsole_keypool.planning.plan_text import cell_text, figure_text, window_texts
from labconsole_keypool.planning.planner_parameters import OWN_TIMES, PlannerParameters
from labconsole_keypool.planning.planner_table import PlanRow, disagreement
from labconsole_keypool.planning.recorded_arrivals import arrivals_of_runs

COLUMNS = (
    *("figure", "title", "unit", "formula", "simulation", "measurement", "origin"),
    *("simulation note", "measurement note"),
)
_OWN = ("sign_ms", "generation_ms", "wrap_ms", "unwrap_ms", "keys_in_token")
_PROFILED = ("timing", "sign", "key_generation")


def plan(arguments: argparse.Namespace) -> int:
    """Print the plan. Raises UserError: a value is faulty, or the log cannot be read or is too short."""
    parameters = _parameters(arguments)
    log = read_log(arguments.arrivals) if arguments.arrivals is not None else None
    runs: Sequence[RunRow] = ()
    if arguments.db is not None or arguments.from_runs or database_path().exists():
        with open_database(arguments) as reader:
            runs = reader.runs(metrics=METRICS)
            log = arrivals_of_runs(reader) if arguments.from_runs else log
    made = make_plan(parameters, runs, log)
    console = output()
    _print_rows(console, made.rows)
    if said := disagreement(made.rows):
        console.print(f"\n{said}", soft_wrap=True)
    if arguments.steps:
        _print_steps(console, made.rows)
    if made.forecast is not None and made.generation is not None:
        _print_forecast(console, made.forecast, made.generation)
    if arguments.csv is not None:
        console.print(f"The plan is in {write_table(arguments.csv, COLUMNS, _csv_rows(made))}", soft_wrap=True)
    return FINISHED


def _parameters(arguments: argparse.Namespace) -> PlannerParameters:
    fields = PlannerParameters.model_fields
    given = {name: getattr(arguments, name) for name in fields if getattr(arguments, name) is not None}
    own, profiled = ([name for name in names if given.get(name)] for names in (_OWN, _PROFILED))
    if own and profiled:
        one, other = (f"--{name.replace('_', '-')}" for name in (own[0], profiled[0]))
        raise UserError(f"No plan was made: {one} is of own times, {other} of a timing profile; leave one out.")
    if own:
        given["timing"] = OWN_TIMES
    try:
        return PlannerParameters.model_validate(given)
    except ValidationError as error:
        raise UserError(f"No plan was made: {fault_sentence(error, PlannerParameters)}") from error


def _print_rows(console: Console, rows: Sequence[PlanRow]) -> None:
    table = Table("Figure", "Formula", "Simulation", "Measurement", box=None, pad_edge=False)
    for row in rows:
        unit = row.formula.unit
        formula = figure_text(row.formula.value, unit)
        table.add_row(row.title, formula, cell_text(row.simulation, unit), cell_text(row.measurement, unit))
    console.print(table)


def _print_steps(console: Console, rows: Sequence[PlanRow]) -> None:
    for row in rows:
        console.print(f"\n{row.title}", style="bold")
        for step in row.formula.steps:
            console.print(f"  {step}", soft_wrap=True)


def _print_forecast(console: Console, forecast: Forecast, generation: GenerationPlan) -> None:
    console.print(f"\nForecast from {forecast.log.source}", style="bold")
    for sentence in (forecast.sentence, generation.sentence):
        console.print(sentence, soft_wrap=True)
    console.print(f"Pool: {figure_text(generation.pool.value, generation.pool.unit)}", style="bold")
    for step in generation.pool.steps:
        console.print(f"  {step}", soft_wrap=True)
    table = Table("Idle from", "to", "Keys to generate", "Then in the pool", box=None, pad_edge=False)
    for window in generation.windows:
        table.add_row(*window_texts(window))
    if generation.windows:
        console.print(table)
    else:
        console.print("In no hour more keys can be generated than are taken.", soft_wrap=True)


def _csv_rows(made: Plan) -> Iterator[Sequence[Any]]:
    """The table, and behind it a row for each hour of the forecast."""
    for row in made.rows:
        simulation, measurement = row.simulation, row.measurement
        yield (
            *(row.name, row.title, row.formula.unit, row.formula.value, _or_empty(simulation.value)),
            *(_or_empty(measurement.value), measurement.origin or "", simulation.note, measurement.note),
        )
    if made.forecast is not None:
        for number, expected in enumerate(made.forecast.expected.tolist()):
            hour = made.forecast.start + number * HOUR
            yield (f"forecast {hour:%Y-%m-%dT%H:%M}", "Requests in this hour", "requests", expected, *[""] * 5)


def _or_empty(value: float | None) -> float | str:
    return "" if value is None else value
