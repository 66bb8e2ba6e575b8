"""A table as its publication (WP/16, the thesis) prints it, filled with runs: the same rows and columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from labconsole.analysis.change import ENOUGH_REPEATS, origin_words
from labconsole.analysis.columns import RunGroup
from labconsole.analysis.comparison_notes import notes
from labconsole.analysis.confidence_intervals import Interval, centre, interval_of
from labconsole.analysis.parameter_texts import describe_parameters, in_effect
from labconsole.analysis.published_figures import (
    NOT_PRINTED,
    PublishedColumn,
    PublishedFigure,
    PublishedTable,
    defaults,
    published_tables,
    same_scenario,
)
from labconsole.model.parameters import Parameters
from labconsole.model.plugin import Plugins, load_dotted
from labconsole.model.series import Origin
from labconsole.model.trial import Trial

_MOST_NAMED = 3
"""Columns with few repeats that are named where all have as few."""


@dataclass(frozen=True)
class ShapeRow:
    """A row: its title as the source has it, and the metric that fills it, shown in the metric's unit."""

    title: str
    metric: str


@dataclass(frozen=True)
class ShapeColumn:
    """A column: its title as the source has it, and the parameters by which a run belongs there.

    They are those of the published column, and may be more: two columns may compare different runs with the same
    figures. `published` names the published column ("java-2xha") where one run is compared with several, or is
    `NOT_PRINTED` where a published column of more scenarios is not meant for this one.
    """

    title: str
    parameters: Mapping[str, Any]
    published: str = ""

    @property
    def short_title(self) -> str:
        """The title up to its colon: "Test 3"."""
        return self.title.partition(":")[0]


@dataclass(frozen=True)
class TableShape:
    """A table of a source. `parameters` are those that every run of the table has, of whichever of the trials `kinds`:
    one that a trial does not have decides nothing among its runs (the timing profile, of a live one's).
    `published` names the `PublishedTable` with the source's own numbers ("" without)."""

    name: str
    title: str
    kinds: tuple[str, ...]
    reference: str
    parameters: Mapping[str, Any]
    columns: tuple[ShapeColumn, ...]
    rows: tuple[ShapeRow, ...]
    published: str


@dataclass(frozen=True)
class ShapeCell:
    """The mean over `runs` runs (None: no run fits) with its interval, and the published figure (None: not printed)."""

    value: float | None
    unit: str
    runs: int
    interval: Interval | None
    published: PublishedFigure | None
    uncertainty: float = 0.0
    """The largest of its runs' (`Metric.uncertainty`)."""

    @property
    def holds(self) -> bool | None:
        """Whether our interval holds the published figure; None where one of the two is missing."""
        if self.interval is None or self.published is None:
            return None
        return self.interval.holds(self.published.value)


@dataclass(frozen=True)
class FilledTable:
    """`cells[row][column]`; a column of the source is repeated for each trial that has runs of it.

    `about` are sentences on missing runs and on differences from the source's parameters; `notes` are these, the
    caveats on the runs and the source's own notes. `groups` are the runs in each column.
    """

    shape: TableShape
    cells: tuple[tuple[ShapeCell, ...], ...]
    notes: tuple[str, ...]
    groups: tuple[RunGroup | None, ...] = ()
    about: tuple[str, ...] = ()

    @property
    def filled(self) -> bool:
        """Whether any cell has a measured value."""
        return any(cell.value is not None for row in self.cells for cell in row)


def table_shapes(plugins: Plugins, kind: str) -> tuple[TableShape, ...]:
    """The shapes that the plugin of trial `kind` brings; none of a trial that is not installed."""
    if kind not in plugins.kinds():
        return ()
    brought = (load_dotted(dotted) for dotted in plugins.of_kind(kind).table_shapes)
    return tuple(shape for shapes in brought for shape in shapes if kind in shape.kinds)


def fill(shape: TableShape, groups: Sequence[RunGroup], plugins: Plugins) -> FilledTable:
    """Fill a table with groups of repeats; of several for a column, the one with most runs, then the newest.

    Raises UserError for published figures that cannot be read.
    """
    trials = {kind: plugins.trial(kind) for kind in shape.kinds}
    units = {kind.name: kind.unit for trial in trials.values() for kind in trial.metrics}
    table = next((table for table in published_tables(plugins) if table.name == shape.published), None)
    columns = [
        _Column(column, fitting, _printed(shape, column, table), tuple(row.metric for row in shape.rows))
        for column in shape.columns
        for fitting in _by_kind(shape, column, groups, trials)
    ]
    several = len({column.group.kind for column in columns if column.group is not None}) > 1
    columns = [column.with_origin() if several or not column.measured else column for column in columns]
    cells = tuple(
        tuple(column.cell(row.metric, units[row.metric.partition("{")[0]]) for column in columns) for row in shape.rows
    )
    about = (
        *_missing(columns),
        *_choices(columns),
        *_differences(columns, {kind: trial.parameters for kind, trial in trials.items()}),
        *_few(columns),
    )
    sentences = (
        *about,
        *notes([column.group for column in columns if column.group is not None], judged=0),
        *(table.notes if table is not None else ()),
    )
    filled = replace(shape, columns=tuple(column.shape for column in columns))
    return FilledTable(filled, cells, sentences, tuple(column.group for column in columns), about)


@dataclass(frozen=True)
class _Column:
    """A column, the groups that fit it (the chosen one first), what the source prints in it, and the metrics of its
    rows."""

    shape: ShapeColumn
    fitting: Sequence[RunGroup]
    printed: PublishedColumn | None
    metrics: tuple[str, ...]

    @property
    def group(self) -> RunGroup | None:
        return self.fitting[0] if self.fitting else None

    def cell(self, metric: str, unit: str) -> ShapeCell:
        used = self.group.used if self.group is not None else ()
        figures = [run.metrics[metric] for run in used if metric in run.metrics]
        values = [figure.value for figure in figures]
        return ShapeCell(
            centre(values) if values else None,
            unit,
            len(values),
            interval_of(values),
            self.printed.figures.get(metric) if self.printed is not None else None,
            max((figure.uncertainty for figure in figures), default=0.0),
        )

    @property
    def origins(self) -> frozenset[Origin]:
        """The origins of the figures that it shows."""
        return self.group.origins_of(self.metrics) if self.group is not None else frozenset()

    @property
    def measured(self) -> bool:
        """Whether it has no figures of another origin."""
        return self.origins <= {Origin.MEASURED}

    def with_origin(self) -> _Column:
        """The title with the origin of its figures: "Test 3, simulated"."""
        if self.group is None:
            return self
        short, rest = self.shape.short_title, self.shape.title.removeprefix(self.shape.short_title)
        return replace(self, shape=replace(self.shape, title=f"{short}, {origin_words(self.origins)}{rest}"))

    def differences(self, models: Mapping[str, type[Parameters]]) -> Iterator[str]:
        """ "Messages: 4,000 here, 10,000 in the source", for each parameter that differs."""
        if self.group is None or self.printed is None:
            return
        model = models[self.group.kind]
        for name, theirs in self.printed.known.items():
            ours = self.group.parameters.get(name)
            if name in model.model_fields and ours != theirs and in_effect(name, self.group.parameters, model):
                yield _difference(name, ours, theirs, model)


def _by_kind(
    shape: TableShape, column: ShapeColumn, groups: Sequence[RunGroup], trials: Mapping[str, Trial[Any]]
) -> list[list[RunGroup]]:
    """For each trial that has runs of this column, its groups; one empty list where none has."""
    fitting = (fitting_groups({**shape.parameters, **column.parameters}, groups, trial) for trial in trials.values())
    return [groups for groups in fitting if groups] or [[]]


def fitting_groups(parameters: Mapping[str, Any], groups: Sequence[RunGroup], trial: Trial[Any]) -> list[RunGroup]:
    """A trial's groups of this scenario whose runs have ended: most runs first, then the newest."""
    wanted = {name: value for name, value in parameters.items() if name in trial.parameters.model_fields}
    older = defaults(wanted, trial.parameters)
    fitting = [
        group
        for group in groups
        if group.kind == trial.kind
        and same_scenario(wanted, {**older, **group.parameters})
        and all(run.status.final for run in group.used)
    ]
    return sorted(fitting, key=lambda group: (group.repeats, max(run.id for run in group.runs)), reverse=True)


def _printed(shape: TableShape, column: ShapeColumn, table: PublishedTable | None) -> PublishedColumn | None:
    if table is None or column.published == NOT_PRINTED:
        return None
    if column.published:
        return next(printed for printed in table.columns if printed.name == f"{table.name}/{column.published}")
    wanted = {**shape.parameters, **column.parameters}
    return next((printed for printed in table.columns if same_scenario(printed.parameters, wanted)), None)


def _missing(columns: Sequence[_Column]) -> Iterator[str]:
    missing = [column.shape.short_title for column in columns if column.group is None and column.printed is not None]
    if missing:
        yield f"No run of {', '.join(missing)} is among those chosen."


def _choices(columns: Sequence[_Column]) -> Iterator[str]:
    for column in columns:
        if column.group is not None and len(column.fitting) > 1:
            yield (
                f"{column.shape.short_title}: {len(column.fitting)} scenarios fit; shown is {column.group.title}, of "
                f"campaign {column.group.runs[0].campaign}, which has most runs or is the newest."
            )
    chosen = [column.group for column in columns if column.group is not None]
    if len({group.runs[0].campaign_id for group in chosen}) > 1:
        yield "The columns are from several campaigns: their runs were not interleaved."


def _differences(columns: Sequence[_Column], models: Mapping[str, type[Parameters]]) -> Iterator[str]:
    """Where runs have other values than the source used, as far as those are known and matter."""
    found: dict[str, list[str]] = {}
    for column in columns:
        for difference in column.differences(models):
            found.setdefault(difference, []).append(column.shape.short_title)
    compared = [column for column in columns if column.group is not None and column.printed is not None]
    for difference, titles in found.items():
        yield f"{difference}." if len(titles) == len(compared) else f"{difference} ({', '.join(titles)})."


def _difference(name: str, ours: Any, theirs: Any, model: type[Parameters]) -> str:
    (here,) = describe_parameters({name: ours}, model)
    (there,) = describe_parameters({name: theirs}, model)
    unit = f" {here.unit}" if here.unit else ""
    said = f"{here.text}{unit}" if ours is not None else "not stated"
    return f"{here.title}: {said} here, {there.text}{unit} in the source"


def _few(columns: Sequence[_Column]) -> Iterator[str]:
    repeats = [(one.shape.short_title, one.group.repeats) for one in columns if one.group is not None]
    few = dict.fromkeys((title, number) for title, number in repeats if number < ENOUGH_REPEATS)
    numbers = {number for _, number in repeats}
    if len(few) > _MOST_NAMED and len(numbers) == 1:
        yield f"Fewer than {ENOUGH_REPEATS} repeats: all columns ({numbers.pop()})."
    elif few:
        yield f"Fewer than {ENOUGH_REPEATS} repeats: {', '.join(f'{title} ({number})' for title, number in few)}."
