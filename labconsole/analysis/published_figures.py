"""Published figures and verdicts of the trials' sources, as data in TOML files, shown next to runs.

A file holds the tables of one source. A plugin's manifest names it in `published`: `"swim-wp16"` is
`resources/published/swim-wp16.toml` of the console, `"their_package:source"` is `source.toml` in the folder of the
plugin's own package. Every figure is written as the source prints it; `"-"` is a figure that the source does not print.
No figure is read off a curve. A table has figures, verdicts or both.

    format = 1
    title = "Key pool thesis"               # the source: what references begin with
    kinds = ["keypool.signing-service"]     # the trials whose metrics and parameters are meant: a live one and its
                                            # simulation, say, whose runs have the same published figures

    [units]                                 # units as printed -> the metric's unit, and what one of them is in it
    "msg / sec" = { unit = "msg/s" }
    "seconds" = { unit = "ms", factor = 1000 }

    [columns.pool-100]                      # scenarios that tables of this file have as columns
    title = "Pool of 100 keys"              # as the source has it
    parameters = { pool = 100 }             # what makes a run one of the same scenario

    [[tables]]
    name = "thesis-load"                    # unique; `labconsole compare ... --published thesis-load`
    title = "Thesis, peak load"
    reference = "Table 5.2"                 # its place in the source
    parameters = { algorithm = "rsa-2048" } # as those of a column, for all columns of this table
    known = { requests = 10000 }            # other values of the source: a run that differs is still the same
                                            # scenario, with a note on the difference
    columns = ["pool-100"]
    notes = ["The source does not say how many times it measured."]

    [tables.figures]                        # metric -> one text for each column
    throughput = ["12.5 msg / sec"]
    latency_mean = ["1.2 seconds"]
    "cpu{role=sender}" = ["0.5 seconds"]    # labels as `Reader.comparable` writes them

    [tables.verdicts]                       # verdict, as the trial's runs name it -> one result for each column:
    "F-SIG-01" = ["passed"]                 # "passed", "failed", "not tested", or "-" for one that is not printed
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from labconsole.errors import UserError
from labconsole.model.parameters import Parameters
from labconsole.model.plugin import Plugins
from labconsole.model.trial import Trial
from labconsole.model.validation_faults import fault_sentence, nearest
from labconsole.paths import resource

FORMAT = 1
NOT_PRINTED = "-"
_CACHED_FILES = 64
"""Each page of a comparison reads all files for each of its tables: 30 ms a time."""
NOT_TESTED = "not tested"
"""Result of a published verdict that the source did not test."""
_RESULTS = {"passed": "pass", "failed": "fail", NOT_TESTED: NOT_TESTED}
"""A verdict as a file has it -> its result, as runs have it where they can."""
_PRINTED = re.compile(r"(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?) (\S.*)")


@dataclass(frozen=True)
class PublishedFigure:
    """A number as the source prints it, without an interval. `value` is in `unit`, which is the unit of the trial's
    metric; `printed` is the number with its unit as in the source ("7.02 seconds")."""

    value: float
    unit: str
    printed: str
    reference: str


@dataclass(frozen=True)
class PublishedVerdict:
    """A verdict of the source: `result` is that of a run's `Verdict` (`"pass"`, `"fail"`) or `NOT_TESTED`; `printed` is
    the word in the file."""

    result: str
    printed: str
    reference: str


@dataclass(frozen=True)
class PublishedColumn:
    """One scenario of a published table. `parameters` are those of the trial that the source used: a run that has them
    all is of the same scenario (`fits`). `known` are others that the source used: a run may differ in them."""

    name: str
    """`swim-within-malaysia-small/test-3`"""
    title: str
    kinds: tuple[str, ...]
    parameters: Mapping[str, Any]
    figures: Mapping[str, PublishedFigure]
    reference: str
    known: Mapping[str, Any] = field(default_factory=dict)
    table_title: str = ""
    """The end of `title`, after the title of the scenario."""
    verdicts: Mapping[str, PublishedVerdict] = field(default_factory=dict)
    """By the name that the trial's runs give them."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Those of `parameters`: a run that is older than one of them is as if it had its default."""

    @property
    def kind(self) -> str:
        """The trial that describes its metrics; the others of `kinds` have them too."""
        return self.kinds[0]

    def fits(self, parameters: Mapping[str, Any]) -> bool:
        """Whether a run with `parameters` (as stored) is of this scenario."""
        return same_scenario(self.parameters, {**self.defaults, **parameters})


@dataclass(frozen=True)
class PublishedTable:
    """A table of a source, `swim-within-malaysia-small`; `reference` is its place there."""

    name: str
    title: str
    kinds: tuple[str, ...]
    reference: str
    columns: tuple[PublishedColumn, ...]
    notes: tuple[str, ...] = ()


def same_scenario(wanted: Mapping[str, Any], parameters: Mapping[str, Any]) -> bool:
    """Whether a run with `parameters` (as stored) has all that are `wanted`."""
    return all(name in parameters and parameters[name] == value for name, value in wanted.items())


def defaults(names: Iterable[str], model: type[Parameters]) -> dict[str, Any]:
    """The defaults of those of the parameters that have one."""
    fields = {name: model.model_fields[name] for name in names if name in model.model_fields}
    return {name: field.default for name, field in fields.items() if not field.is_required()}


def published_tables(plugins: Plugins) -> tuple[PublishedTable, ...]:
    """All tables of all plugins. Raises UserError, with one sentence, for a malformed file."""
    tables: dict[str, PublishedTable] = {}
    for file in (file for plugin in plugins.found for file in plugin.published):
        for table in _tables(file, plugins):
            if table.name in tables:
                raise UserError(f"Published figures {file}.toml: there is another table {table.name}; rename one.")
            tables[table.name] = table
    return tuple(tables.values())


def published_columns(plugins: Plugins, name: str) -> tuple[PublishedColumn, ...]:
    """The columns of `name`: a table (`swim-within-malaysia-small`), or one of its columns (`.../test-3`).

    Raises UserError, naming those that exist, for any other name.
    """
    tables = published_tables(plugins)
    known = {table.name: table.columns for table in tables}
    known |= {column.name: (column,) for table in tables for column in table.columns}
    if name in known:
        return known[name]
    table, _, column = name.partition("/")
    if table in known:
        there = ", ".join(other.name for other in known[table])
        raise UserError(f"The published table {table} has no column {column}; there are: {there}.")
    raise UserError(f"There are no published figures {name}{nearest(name, (table.name for table in tables))}")


def published_column(plugins: Plugins, name: str) -> PublishedColumn:
    """The one column of `name`. Raises UserError for any other name, and for a table of several columns."""
    columns = published_columns(plugins, name)
    if len(columns) > 1:
        there = ", ".join(column.name for column in columns)
        raise UserError(f"The published table {name} has several columns; name one of them: {there}.")
    return columns[0]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class _Unit(_Strict):
    """The metric's unit of a printed one: one of the printed is `factor` of the metric's."""

    unit: str
    factor: float = 1.0


class _Column(_Strict):
    title: str
    parameters: dict[str, Any] = {}


class _Table(_Strict):
    name: str
    title: str
    reference: str
    columns: list[str]
    figures: dict[str, list[str]] = {}
    verdicts: dict[str, list[str]] = {}
    parameters: dict[str, Any] = {}
    known: dict[str, Any] = {}
    notes: list[str] = []


class _File(_Strict):
    format: int
    title: str
    kinds: list[str] = Field(min_length=1)
    units: dict[str, _Unit] = {}
    columns: dict[str, _Column]
    tables: list[_Table]


def _tables(file: str, plugins: Plugins) -> tuple[PublishedTable, ...]:
    """The tables of one file, named as in a manifest."""
    place = f"Published figures {file}.toml"
    text = _text(file, place)
    trials = tuple(type(_trial(kind, plugins, place)) for kind in _content(text, place).kinds)
    return _tables_of(text, place, trials)


@lru_cache(_CACHED_FILES)
def _tables_of(text: str, place: str, kinds: tuple[type[Trial[Any]], ...]) -> tuple[PublishedTable, ...]:
    """The tables of a file with this text, for trials of these classes."""
    content, trials = _content(text, place), tuple(kind() for kind in kinds)
    return tuple(_Reading(f"{place}, table {table.name}", content, trials).table(table) for table in content.tables)


def _trial(kind: str, plugins: Plugins, place: str) -> Trial[Any]:
    try:
        return plugins.trial(kind)
    except KeyError as error:
        raise UserError(f"{place}: there is no trial {kind}{nearest(kind, plugins.kinds())}") from error


def _path(file: str) -> Path:
    """Where a file is. Raises FileNotFoundError."""
    package, _, name = file.rpartition(":")
    if not package:
        return resource("published", f"{name}.toml")
    try:
        found = find_spec(package)
    except (ImportError, ValueError):
        found = None
    if found is None or not found.submodule_search_locations:
        raise FileNotFoundError(f"there is no package {package}")
    path = Path(found.submodule_search_locations[0], f"{name}.toml")
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing")
    return path


def _text(file: str, place: str) -> str:
    try:
        return _path(file).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise UserError(f"{place}: {error}.") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{place} is not valid TOML: {error}.") from error


@lru_cache(_CACHED_FILES)
def _content(text: str, place: str) -> _File:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{place} is not valid TOML: {error}.") from error
    if data.get("format") != FORMAT:
        raise UserError(f"{place} has format {data.get('format', 'none')}; this console reads `format = {FORMAT}`.")
    try:
        return _File.model_validate(data)
    except ValidationError as error:
        raise UserError(f"{place}: {fault_sentence(error, _File)}") from error


@dataclass(frozen=True)
class _Reading:
    """Reads one table; `place` begins the sentence on a fault in it."""

    place: str
    file: _File
    trials: tuple[Trial[Any], ...]

    def table(self, table: _Table) -> PublishedTable:
        units = {metric: self._unit(metric) for metric in table.figures}
        reference = f"{self.file.title}, {table.reference}"
        if not table.figures and not table.verdicts:
            raise UserError(
                f"{self.place} has neither figures nor verdicts; add [tables.figures] or [tables.verdicts]."
            )
        for noun, rows in (("figures", table.figures), ("verdicts", table.verdicts)):
            for row, texts in rows.items():
                if len(texts) != len(table.columns):
                    raise UserError(
                        f"{self.place}: {row} has {len(texts)} {noun} for {len(table.columns)} columns; write "
                        f'"{NOT_PRINTED}" for one that is not printed.'
                    )
        columns = []
        for index, name in enumerate(table.columns):
            if name not in self.file.columns:
                raise UserError(f"{self.place}: there is no column {name}{nearest(name, self.file.columns)}")
            figures = {
                metric: self._figure(texts[index], metric, units[metric], reference)
                for metric, texts in table.figures.items()
                if texts[index] != NOT_PRINTED
            }
            verdicts = {
                verdict: self._verdict(texts[index], verdict, reference)
                for verdict, texts in table.verdicts.items()
                if texts[index] != NOT_PRINTED
            }
            if figures or verdicts:
                columns.append(self._column(table, name, figures, verdicts, reference))
        kinds = tuple(self.file.kinds)
        return PublishedTable(table.name, table.title, kinds, reference, tuple(columns), tuple(table.notes))

    def _unit(self, metric: str) -> str:
        """The unit in which every trial reports `metric`; labels behind its name do not matter."""
        name = metric.partition("{")[0]
        found = []
        for trial in self.trials:
            units = {kind.name: kind.unit for kind in trial.metrics}
            if name not in units:
                raise UserError(f"{self.place}: {trial.kind} has no metric {name}{nearest(name, units)}")
            found.append(units[name])
        if len(set(found)) > 1:
            raise UserError(f"{self.place}: {name} is in {' and '.join(found)}; give each trial a file of its own.")
        return found[0]

    def _column(
        self,
        table: _Table,
        name: str,
        figures: Mapping[str, PublishedFigure],
        verdicts: Mapping[str, PublishedVerdict],
        reference: str,
    ) -> PublishedColumn:
        column = self.file.columns[name]
        deciding = {**table.parameters, **column.parameters}
        values: dict[str, Any] = {}
        older: dict[str, Any] = {}
        for trial in self.trials:
            model = trial.parameters
            older |= defaults(deciding, model)
            # A further value of the source need not be a parameter of each trial: one of them is enough.
            elsewhere = {key for other in self.trials for key in other.parameters.model_fields} - {*model.model_fields}
            given = {**{key: value for key, value in table.known.items() if key not in elsewhere}, **deciding}
            try:
                values |= model.of_stored(given).model_dump(mode="json")
            except ValidationError as error:
                raise UserError(f"{self.place}, column {name}: {fault_sentence(error, model)}") from error
        return PublishedColumn(
            f"{table.name}/{name}",
            f"{column.title} · {table.title}",
            tuple(self.file.kinds),
            {key: values[key] for key in deciding},
            figures,
            reference,
            {key: values[key] for key in table.known},
            table.title,
            verdicts,
            older,
        )

    def _verdict(self, text: str, verdict: str, reference: str) -> PublishedVerdict:
        if text not in _RESULTS:
            known = ", ".join(f'"{result}"' for result in _RESULTS)
            raise UserError(f'{self.place}: {verdict} is "{text}"; write one of {known} or "{NOT_PRINTED}".')
        return PublishedVerdict(_RESULTS[text], text, reference)

    def _figure(self, text: str, metric: str, wanted: str, reference: str) -> PublishedFigure:
        printed = _PRINTED.fullmatch(text)
        if printed is None:
            raise UserError(f'{self.place}: {metric} is "{text}"; write a number and its unit, as in "7.02 seconds".')
        number, spelled = printed.groups()
        if spelled not in self.file.units:
            raise UserError(f'{self.place}: {metric} is "{text}", and [units] does not say what "{spelled}" is.')
        unit = self.file.units[spelled]
        if unit.unit != wanted:
            raise UserError(f"{self.place}: {metric} is in {wanted}, and by [units] {spelled} are {unit.unit}.")
        return PublishedFigure(float(number.replace(",", "")) * unit.factor, unit.unit, text, reference)
