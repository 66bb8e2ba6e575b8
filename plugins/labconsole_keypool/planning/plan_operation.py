"""Plans a key pool for a peak, as the planner of the window does: `labconsole hsm plan`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Optional, Self

from pydantic import ValidationError, create_model, model_validator
from pydantic.fields import FieldInfo

from labconsole.cli.database import RunDatabase, open_database
from labconsole.errors import UserError
from labconsole.model.operation import HomePath, Operation, OperationContext, Result, TextTable
from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole.model.validation_faults import fault_sentence
from labconsole.output.export_file import write_table
from labconsole.paths import database_path
from labconsole.store.records import RunRow
from labconsole_keypool.planning.arrival_log import HOUR, arrivals_of_runs, read_log
from labconsole_keypool.planning.forecast import Forecast
from labconsole_keypool.planning.generation_plan import GenerationPlan
from labconsole_keypool.planning.plan import (
    Plan,
    PlanRow,
    cell_text,
    disagreement,
    figure_text,
    make_plan,
    window_texts,
)
from labconsole_keypool.planning.plan_measurements import METRICS
from labconsole_keypool.planning.planner_parameters import OWN_TIMES, PlannerParameters

COLUMNS = (
    *("figure", "title", "unit", "formula", "simulation", "measurement", "origin"),
    *("simulation note", "measurement note"),
)
_OWN = ("sign_ms", "generation_ms", "wrap_ms", "unwrap_ms", "keys_in_token")
_PROFILED = ("timing", "sign", "key_generation")
_OTHERWISE: Mapping[str, dict[str, Any]] = {
    "duration_s": {"option": "--duration", "metavar": "S"},
    "timing": {"kind": "choice", "labels": {OWN_TIMES: "Own times"}, "metavar": "NAME"},
    "sign": {"metavar": "TIME"},
    "key_generation": {"metavar": "END"},
}
"""Options of fields that differ from those of the planner's form."""


class _Forecast(Parameters):
    """The inputs of a plan other than the peak and the device, and its output."""

    arrivals: HomePath | None = parameter(
        "Arrival log", "Forecast from this log: CSV of time stamps, or of hour,count", default=None
    )
    from_runs: bool = parameter(
        "From runs", "Forecast from the arrivals of past runs, in place of a log", default=False
    )
    steps: bool = parameter("Steps", "Print how each figure is derived", default=False)
    csv: HomePath | None = parameter("CSV", "Write the table, and forecast hours, to this file as CSV", default=None)
    db: RunDatabase = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.arrivals is not None and self.from_runs:
            raise ValueError("a forecast is made from a log or from runs, not from both: leave one out")
        return self


def _not_given(name: str, info: FieldInfo) -> Any:
    """The planner's field `name` as one that need not be given: own times and a timing profile exclude each other."""
    said: dict[str, Any] = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    extra = {key: value for key, value in said.items() if key != "shown_if"}
    extra |= _OTHERWISE.get(name, {})
    kind = Annotated[(info.annotation, *info.metadata)] if info.metadata else info.annotation
    default = f"{info.default:g}" if isinstance(info.default, float) else getattr(info.default, "value", info.default)
    about = f"{info.description}; not given: {default}"
    return Optional[kind], parameter(info.title or name, about, default=None, **extra)  # noqa: UP045


_FIELDS = {name: _not_given(name, info) for name, info in PlannerParameters.model_fields.items()}
PlanParameters = create_model(
    "PlanParameters", __base__=_Forecast, __doc__="The planner's parameters, none of which must be given.", **_FIELDS
)


class PlanPeak(Operation[_Forecast]):
    """Plans a key pool."""

    name: ClassVar[str] = "keypool.plan"
    title: ClassVar[str] = "Plan a key pool"
    description: ClassVar[str] = (
        "Says what a peak needs before anything is bought: base rate, queue, latency, size of the pool and number of "
        "HSMs, by formula, simulation and measurement, with a forecast from a log of arrivals or from runs."
    )
    parameters: ClassVar[type[Parameters]] = PlanParameters

    def run(self, parameters: _Forecast, context: OperationContext) -> Result:
        planned = _planned(parameters)
        log = read_log(parameters.arrivals) if parameters.arrivals is not None else None
        runs: Sequence[RunRow] = ()
        if parameters.db is not None or parameters.from_runs or database_path().exists():
            with open_database(parameters.db) as reader:
                runs = reader.runs(metrics=METRICS)
                log = arrivals_of_runs(reader) if parameters.from_runs else log
        made = make_plan(planned, runs, log)
        parts: list[str | TextTable] = [_table(made.rows)]
        if sentence := disagreement(made.rows):
            parts.append(f"\n{sentence}")
        if parameters.steps:
            parts += [_steps(row) for row in made.rows]
        if made.forecast is not None and made.generation is not None:
            parts += _forecast_parts(made.forecast, made.generation)
        rows = [dict(zip(COLUMNS, map(_finite, row), strict=True)) for row in _csv_rows(made)]
        if parameters.csv is not None:
            parts.append(f"The plan is in {write_table(parameters.csv, COLUMNS, _csv_rows(made))}")
        return Result(tuple(parts), {"plan": rows})


def _planned(parameters: _Forecast) -> PlannerParameters:
    """The planner's parameters. Raises UserError: one is faulty, or own times and a timing profile were given."""
    given = {name: value for name in _FIELDS if (value := getattr(parameters, name)) is not None}
    own, profiled = ([name for name in names if given.get(name)] for names in (_OWN, _PROFILED))
    if own and profiled:
        one, other = (f"--{name.replace('_', '-')}" for name in (own[0], profiled[0]))
        raise UserError(f"No plan was computed: {one} is of own times, {other} of a timing profile; leave one out.")
    if own:
        given["timing"] = OWN_TIMES
    try:
        return PlannerParameters.model_validate(given)
    except ValidationError as error:
        raise UserError(f"No plan was computed: {fault_sentence(error, PlannerParameters)}") from error


def _table(rows: Sequence[PlanRow]) -> TextTable:
    cells = []
    for row in rows:
        unit = row.formula.unit
        formula = figure_text(row.formula.value, unit)
        cells.append((row.title, formula, cell_text(row.simulation, unit), cell_text(row.measurement, unit)))
    return TextTable(("Figure", "Formula", "Simulation", "Measurement"), tuple(cells))


def _steps(row: PlanRow) -> str:
    return "\n".join(("", row.title, *(f"  {step}" for step in row.formula.steps)))


def _forecast_parts(forecast: Forecast, generation: GenerationPlan) -> list[str | TextTable]:
    pool = generation.pool
    lines = (
        f"\nForecast from {forecast.log.source}",
        forecast.sentence,
        generation.sentence,
        f"Pool: {figure_text(pool.value, pool.unit)}",
        *(f"  {step}" for step in pool.steps),
    )
    if not generation.windows:
        return [*lines, "In no hour more keys can be generated than are taken."]
    windows = tuple(tuple(window_texts(window)) for window in generation.windows)
    return [*lines, TextTable(("Idle from", "to", "Keys to generate", "Then in the pool"), windows)]


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


def _finite(value: Any) -> Any:
    """As JSON can hold it: never, or empty, is None."""
    return None if value == "" or (isinstance(value, float) and not math.isfinite(value)) else value
