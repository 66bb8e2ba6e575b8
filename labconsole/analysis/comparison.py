"""Comparison: columns (repeats of a scenario, or published figures) against a baseline, with intervals.

The run is the unit. A change is coloured only where both sides have at least `ENOUGH_REPEATS` runs of one origin, none
is link-bound, and its interval excludes no change, also after Holm's correction over all judged cells of the table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from labconsole.analysis.caveats import link_bound
from labconsole.analysis.change import (
    ENOUGH_REPEATS,
    FEW_REPEATS,
    Change,
    Judgement,
    Side,
    change,
    corrected,
    origin_words,
)
from labconsole.analysis.column_figures import ColumnFigures, column_figures, short_reasons
from labconsole.analysis.columns import (
    Column,
    RunGroup,
    column_of_run,
    counterpart,
    group_repeats,
    published_next_to_measured,
    share_a_trial,
    single_runs,
)
from labconsole.analysis.comparison_notes import named, notes, origin_note
from labconsole.analysis.confidence_intervals import Interval, centre, interval_of
from labconsole.analysis.contrasts import apart
from labconsole.analysis.number_format import Scale, row_scale
from labconsole.analysis.parameter_lines import ParameterLine, parameter_lines
from labconsole.analysis.verdict_lines import VerdictLine, Verdicts, verdict_lines
from labconsole.errors import UserError
from labconsole.model.metrics import Direction, MetricKind
from labconsole.model.series import Origin
from labconsole.model.trial import Trial
from labconsole.store.records import RunStatus

__all__ = [
    "ENOUGH_REPEATS",
    "Cell",
    "Change",
    "Column",
    "Comparison",
    "Judgement",
    "MetricLine",
    "ParameterLine",
    "RunGroup",
    "column_of_run",
    "compare",
    "counterpart",
    "group_repeats",
    "single_runs",
]


NOT_JUDGED = "not judged"
_FEW = 3
"""Lines on which findings are drawn where the trial names none."""


@dataclass(frozen=True)
class Cell:
    """A metric in one column.

    `value` is the centre of `runs` runs (0: a published point) in the line's unit; `interval` is that of the value
    itself, None for a point or one run. `change` is None at the baseline and where there are no values to compare. A
    published point whose scenario was measured has no `change`, but `ours`: the measured value of the scenario against
    this point; and `holds`, whether the measured interval holds it (None without an interval). `not_judged` is why the
    column's figure is shown and never judged (grey, no arrow), or empty; where only some of its runs may not be judged
    they are left out of `value`, and the line's remarks say so. `marked` says that the figure is of another origin than
    the line's other ones, `origins` are its own. `uncertainty` is the largest of its runs' (`Metric.uncertainty`).
    """

    value: float | None
    runs: int
    interval: Interval | None
    change: Change | None
    holds: bool | None = None
    ours: Change | None = None
    not_judged: str = ""
    marked: bool = False
    origins: frozenset[Origin] = frozenset()
    uncertainty: float = 0.0


@dataclass(frozen=True)
class MetricLine:
    """A metric in all columns.

    `name` is unique in the table, with its labels (`cpu_per_message{role=sender}`). `remarks` are caveats on this line,
    in a few words each: few repeats, figures that must not be judged, different units, unfinished or link-bound runs,
    too few samples behind a percentile.
    """

    name: str
    kind: MetricKind
    cells: tuple[Cell, ...]
    remarks: tuple[str, ...]
    unjudged: str = ""
    """The last one of its remarks, where there are columns in which it is not judged: the reasons, and the columns."""

    @property
    def remark(self) -> str:
        """All remarks in one text; nothing where there is none."""
        return "; ".join(self.remarks)

    @property
    def scale(self) -> Scale:
        """The one readable unit of all its values."""
        return row_scale((cell.value for cell in self.cells), self.kind.unit)


@dataclass(frozen=True)
class Comparison:
    """Columns, the baseline's index among them, lines, and notes on the whole, one sentence each.

    A published column is directly right of ours of its scenario, of each trial that has one. `origins` is the sentence
    on cells that are `marked`, for above the table; nothing where none is.
    """

    columns: tuple[Column, ...]
    baseline: int
    parameters: tuple[ParameterLine, ...]
    metrics: tuple[MetricLine, ...]
    notes: tuple[str, ...]
    origins: str = ""
    key_lines: tuple[MetricLine, ...] = ()
    """The lines on which findings are drawn: of the trial's key metrics, those for which one way is better."""
    verdicts: tuple[VerdictLine, ...] = ()
    """Verdicts in all columns, as far as those of the runs were given to `compare`."""

    def origin_of_ours(self, published: int | None = None) -> str:
        """How our figures of the scenarios of published columns (or of this one) came about: "measured"."""
        indices = range(len(self.columns)) if published is None else (published,)
        ours = {counterpart(self.columns, index) for index in indices} - {None}
        groups = [column for index, column in enumerate(self.columns) if index in ours]
        return origin_words(origin for group in groups if isinstance(group, RunGroup) for origin in group.origins)


def compare(
    columns: Sequence[Column],
    trial: Trial[Any] | None,
    *,
    baseline: int = 0,
    verdicts: Verdicts | None = None,
    further: Mapping[str, Trial[Any]] | None = None,
) -> Comparison:
    """Compare columns; `trial` describes parameters and metrics (None: a trial that is not installed), `verdicts` are
    those of the columns' runs, `further` describes by its kind what columns have that `trial` does not know.

    A column that the trial calls not comparable with the baseline has figures, and no change. Columns of different
    kinds show the metrics they share. Raises ValueError without columns or with a `baseline` that does not exist;
    UserError for a run that is still queued or running.
    """
    if not 0 <= baseline < len(columns):
        raise ValueError(f"column {baseline} cannot be the baseline of {len(columns)} columns")
    _refuse_live(columns)
    columns, baseline = published_next_to_measured(columns, baseline)
    rows = [_Row.of(columns, name, trial) for name in _names(columns, trial)]
    excluded = apart(columns, baseline, trial)
    changes = corrected([one for row in rows for one in _changes(columns, row, baseline, excluded)])
    judged = sum(one is not None and one.p is not None for one in changes)
    following = iter(changes)
    lines = tuple(
        _line(columns, row, tuple(_cell(columns, row, index, next(following)) for index in range(len(columns))))
        for row in rows
    )
    foreign = {
        origin
        for line, row in zip(lines, rows, strict=True)
        for index, cell in enumerate(line.cells)
        if cell.marked
        for origin in row.side(columns, index).origins
    }
    sentences = notes(columns, judged, excluded)
    parameters = parameter_lines(columns, trial, further or {})
    return Comparison(
        tuple(columns),
        baseline,
        parameters,
        lines,
        sentences,
        origin_note(foreign),
        _key_lines(lines, trial),
        verdict_lines(columns, verdicts or {}),
    )


def _key_lines(lines: Sequence[MetricLine], trial: Trial[Any] | None) -> tuple[MetricLine, ...]:
    by_name = {line.name: line for line in lines if line.kind.direction is not Direction.NEUTRAL}
    names = () if trial is None else trial.finding_metrics or [kind.name for kind in trial.key_kinds()]
    return tuple(by_name[name] for name in names if name in by_name) or tuple(by_name.values())[:_FEW]


@dataclass(frozen=True)
class _Row:
    """A metric with its figures in each column."""

    name: str
    kind: MetricKind
    figures: tuple[ColumnFigures, ...]

    @classmethod
    def of(cls, columns: Sequence[Column], name: str, trial: Trial[Any] | None) -> _Row:
        """The row of a metric that at least one of the columns has."""
        kind = _kind(name, columns, trial)
        return cls(name, kind, tuple(column_figures(column, name, kind, columns) for column in columns))

    @property
    def units(self) -> list[str]:
        """The units of its figures: only those of one unit can be compared."""
        return sorted({metric.unit for figures in self.figures for metric in figures.metrics})

    def values(self, index: int) -> list[float]:
        """The figures of one column, one per run, or the one published."""
        return [metric.value for metric in self.figures[index].metrics]

    def side(self, columns: Sequence[Column], index: int) -> Side:
        """One column's figures, as a side of a change."""
        column, figures = columns[index], self.figures[index]
        return Side(
            tuple(self.values(index)),
            frozenset(metric.origin for metric in figures.metrics),
            isinstance(column, RunGroup) and any(map(link_bound, column.used)),
            figures.not_judged,
            figures.offered,
            max((metric.uncertainty for metric in figures.metrics), default=0.0),
        )


def common_remarks(comparison: Comparison) -> tuple[str, ...]:
    """The remarks that every line has: they are made once."""
    lines = comparison.metrics
    return tuple(one for one in lines[0].remarks if all(one in line.remarks for line in lines)) if lines else ()


def _refuse_live(columns: Sequence[Column]) -> None:
    for column in columns:
        for run in column.runs if isinstance(column, RunGroup) else ():
            if not run.status.final:
                raise UserError(
                    f"Run {run.id} is still {run.status.value}: compare it once it has ended, or leave it out."
                )


def _names(columns: Sequence[Column], trial: Trial[Any] | None) -> list[str]:
    """Metrics in the trial's order, those with labels after each other, unknown ones last."""
    present: list[set[str]] = [
        set().union(*(run.metrics for run in column.used)) if isinstance(column, RunGroup) else set(column.figures)
        for column in columns
    ]
    names = set.union(*present)
    if not share_a_trial(columns):
        # A publication of all these trials leaves out metrics that it does not print: the others keep theirs.
        measured = {column.kind for column in columns if isinstance(column, RunGroup)}
        names = set.intersection(
            *(
                there
                for column, there in zip(columns, present, strict=True)
                if isinstance(column, RunGroup) or not measured <= set(column.kinds) or not measured
            )
        )
    order = {kind.name: index for index, kind in enumerate(trial.metrics)} if trial is not None else {}
    return sorted(names, key=lambda name: (order.get(_parts(name)[0], len(order)), name))


def _parts(name: str) -> tuple[str, str]:
    """A metric's name, and its labels in words: `cpu{role=sender,host=a}` is `cpu` and `role sender, host a`."""
    base, _, labels = name.removesuffix("}").partition("{")
    return base, ", ".join(label.replace("=", " ", 1) for label in labels.split(","))


def _kind(name: str, columns: Sequence[Column], trial: Trial[Any] | None) -> MetricKind:
    unit, direction = next(_unit_and_direction(name, columns))
    base, labels = _parts(name)
    known = next((kind for kind in trial.metrics if kind.name == base), None) if trial is not None else None
    title = known.title if known is not None else base.replace("_", " ")
    return MetricKind(
        name=base,
        title=f"{title} ({labels})" if labels else title,
        unit=unit,
        direction=known.direction if known is not None else direction,
        description=known.description if known is not None else "",
        quantile=known.quantile if known is not None else None,
        at_rate=known is not None and known.at_rate,
    )


def _unit_and_direction(name: str, columns: Sequence[Column]) -> Iterator[tuple[str, Direction]]:
    """Those of each figure of this name."""
    for column in columns:
        if isinstance(column, RunGroup):
            found = (run.metrics[name] for run in column.used if name in run.metrics)
            yield from ((metric.unit, Direction(metric.direction)) for metric in found)
        elif name in column.figures:
            yield column.figures[name].unit, Direction.NEUTRAL


def _line(columns: Sequence[Column], row: _Row, cells: tuple[Cell, ...]) -> MetricLine:
    unjudged = _unjudged(columns, row)
    return MetricLine(row.name, row.kind, cells, (*_remarks(columns, row), *filter(None, (unjudged,))), unjudged)


def _changes(columns: Sequence[Column], row: _Row, baseline: int, excluded: Collection[int]) -> list[Change | None]:
    """Each column against the baseline; None for that itself, for those `excluded`, for published columns that have
    their measured one, and where there is nothing to compare."""
    if not row.figures[baseline].metrics or len(row.units) > 1:
        return [None] * len(columns)
    reference = row.side(columns, baseline)
    return [
        None
        if index == baseline
        or index in excluded
        or not row.figures[index].metrics
        or counterpart(columns, index) is not None
        else change(reference, row.side(columns, index), row.kind.direction)
        for index in range(len(columns))
    ]


def _cell(columns: Sequence[Column], row: _Row, index: int, against_baseline: Change | None) -> Cell:
    values = row.values(index)
    if not values:
        return Cell(None, 0, None, None)
    side = row.side(columns, index)
    marked, origins = _marked(columns, row, index), side.origins
    if isinstance(columns[index], RunGroup):
        return Cell(
            centre(values),
            len(values),
            interval_of(values),
            against_baseline,
            not_judged=row.figures[index].not_judged,
            marked=marked,
            origins=origins,
            uncertainty=side.uncertainty,
        )
    measured = counterpart(columns, index)
    if measured is None or not row.figures[measured].metrics or len(row.units) > 1:
        return Cell(values[0], 0, None, against_baseline, marked=marked, origins=origins)
    interval = interval_of(row.values(measured))
    holds = None if interval is None else interval.holds(values[0])
    ours = change(row.side(columns, index), row.side(columns, measured), row.kind.direction)
    return Cell(values[0], 0, None, None, holds, ours, marked=marked, origins=origins)


def _marked(columns: Sequence[Column], row: _Row, index: int) -> bool:
    """Whether figures of a column are of another origin than the first measured ones of the line."""
    sides = [row.side(columns, place) for place, column in enumerate(columns) if isinstance(column, RunGroup)]
    first = next((side.origins for side in sides if side.values), None)
    return first is not None and row.side(columns, index).origins != first


def _remarks(columns: Sequence[Column], row: _Row) -> tuple[str, ...]:
    """Caveats on a line, in a few words each."""
    found = []
    measured = [
        (column, figures)
        for column, figures in zip(columns, row.figures, strict=True)
        if isinstance(column, RunGroup) and figures.metrics
    ]
    if any(len(figures.metrics) < ENOUGH_REPEATS for _, figures in measured):
        found.append(FEW_REPEATS)
    if len(row.units) > 1:
        found.append(f"different units: {', '.join(row.units)}")
    groups = [column for column, _ in measured]
    unfinished = [column for column in groups if any(run.status is not RunStatus.FINISHED for run in column.used)]
    if unfinished:
        found.append(f"not finished: {named(unfinished, groups)}")
    bound = [column for column in groups if any(map(link_bound, column.used))]
    if bound:
        found.append(f"link-bound: {named(bound, groups)}")
    found += [
        f"{figures.left_out} of {figures.left_out + len(figures.metrics)} runs not judged: {column.title}"
        for column, figures in measured
        if figures.left_out
    ]
    return tuple(found)


def _unjudged(columns: Sequence[Column], row: _Row) -> str:
    """Why the line is not judged in some columns, all reasons in one remark; empty where there are none."""
    groups = [
        (column, figures)
        for column, figures in zip(columns, row.figures, strict=True)
        if isinstance(column, RunGroup) and figures.metrics
    ]
    unjudged = [(column, figures) for column, figures in groups if figures.not_judged]
    if not unjudged:
        return ""
    reasons = ", ".join(short_reasons(doubt for _, figures in unjudged for doubt in figures.doubts))
    return f"{NOT_JUDGED}, {reasons}: {named([column for column, _ in unjudged], [column for column, _ in groups])}"
