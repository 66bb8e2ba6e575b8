"""Figures as tables: of one run, of a comparison, beside published ones, and in the shape of a source's own table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from labconsole.analysis.caveats import too_few
from labconsole.analysis.comparison import Cell, Change, Comparison, Judgement, MetricLine, RunGroup, counterpart
from labconsole.analysis.figures import NO_FIGURE, format_difference, format_number
from labconsole.analysis.intervals import Interval
from labconsole.analysis.published import PublishedColumn
from labconsole.analysis.table_shape import FilledTable, ShapeCell
from labconsole.report.document import Align, Head, Table, TextCell, Tone
from labconsole.store.records import RunRow
from labconsole.trial import Direction, Metric, MetricKind

MOST_COLUMNS = 5
"""Columns of figures that stand beside each other on a page; more are told in several tables."""

_LEGEND = (
    "▲ better, ▼ worse: the 95 % interval of the ratio to the baseline excludes no change, also after Holm's "
    "correction. ≈ no significant change. A difference without a mark is not judged."
)
_DIRECTIONS = {Direction.HIGHER: "higher is better", Direction.LOWER: "lower is better", Direction.NEUTRAL: ""}
_MARKS = {
    Judgement.BETTER: ("▲ {} better", Tone.GOOD),
    Judgement.WORSE: ("▼ {} worse", Tone.BAD),
    Judgement.NO_CHANGE: ("≈ {}", Tone.MUTED),
    Judgement.NOT_JUDGED: ("{}", Tone.MUTED),
}


def run_table(comparison: Comparison, run: RunRow) -> Table:
    """All figures of one run: value, unit, number of samples, origin; what must be known of it under its name."""
    rows = []
    for line in comparison.metrics:
        if line.name not in run.metrics:
            continue
        metric = run.metrics[line.name]
        rows.append(
            (
                TextCell(line.kind.title, Tone.STRONG, _details(_own_remark(line.kind, metric))),
                TextCell(format_number(metric.value)),
                TextCell(metric.unit),
                TextCell(f"{metric.samples:,}" if metric.samples else NO_FIGURE, Tone.MUTED),
                TextCell(metric.origin.value, Tone.MUTED),
            )
        )
    heads = (
        Head("Figure", "", Align.LEFT, 2.4),
        Head("Value"),
        Head("Unit", "", Align.LEFT, 0.7),
        Head("Samples"),
        Head("Origin", "", Align.LEFT),
    )
    return Table(f"Figures of run {run.id}", heads, tuple(rows))


def comparison_tables(comparison: Comparison) -> tuple[Table, ...]:
    """All figures of the measured columns against the baseline, the baseline first in each table."""
    told = list(parts(comparison))
    return tuple(_comparison_table(comparison, part, index, len(told)) for index, part in enumerate(told))


def parameter_tables(comparison: Comparison) -> tuple[Table, ...]:
    """The parameters that differ between the measured columns; none where there is nothing to tell apart."""
    lines = [line for line in comparison.parameters if line.differs]
    tables = []
    for part in parts(comparison) if lines else ():
        rows = tuple(
            (TextCell(line.title, Tone.STRONG, _details(line.unit)), *(TextCell(line.texts[index]) for index in part))
            for line in lines
        )
        heads = (
            Head("Parameter", "", Align.LEFT, 1.3),
            *(column_head(comparison, index, Align.LEFT) for index in part),
        )
        tables.append(Table("Parameters that differ", heads, rows))
    return tuple(tables)


def published_tables(comparison: Comparison) -> tuple[Table, ...]:
    """One table for each published column: measured with its interval, published as printed, and whether it holds."""
    return tuple(
        _published_table(comparison, index, column)
        for index, column in enumerate(comparison.columns)
        if isinstance(column, PublishedColumn)
    )


def shape_table(filled: FilledTable) -> Table:
    """A source's own table, filled: the mean of runs with its interval, the published figure under it."""
    shape = filled.shape
    heads = (Head("", "", Align.LEFT, 1.3), *(Head(column.title) for column in shape.columns))
    rows = tuple(
        (TextCell(row.title, Tone.STRONG, _details(cells[0].unit)), *map(_shape_cell, cells))
        for row, cells in zip(shape.rows, filled.cells, strict=True)
    )
    notes = ("Means over the number of runs in brackets, with its 95 % interval; p: as published.", *filled.notes)
    return Table(f"{shape.title} ({shape.reference})", heads, rows, notes)


def parts(comparison: Comparison) -> Iterator[tuple[int, ...]]:
    """Indices of the measured columns that stand in each table, the baseline before the others."""
    others = [
        index
        for index, column in enumerate(comparison.columns)
        if isinstance(column, RunGroup) and index != comparison.baseline
    ]
    beside = MOST_COLUMNS - 1
    for first in range(0, max(len(others), 1), beside):
        yield (comparison.baseline, *others[first : first + beside])


def _comparison_table(comparison: Comparison, part: Sequence[int], index: int, of: int) -> Table:
    rows = tuple(
        (
            TextCell(
                line.kind.title,
                Tone.STRONG,
                _details(", ".join(filter(None, (line.kind.unit, _DIRECTIONS[line.kind.direction]))), line.remark),
            ),
            *(_cell(line.cells[column]) for column in part),
        )
        for line in comparison.metrics
        if any(line.cells[column].value is not None for column in part)
    )
    heads = (Head("Figure", "unit, direction", Align.LEFT, 1.25), *(column_head(comparison, column) for column in part))
    caption = "Figures with 95 % intervals, and their differences from the baseline"
    return Table(caption if of == 1 else f"{caption} ({index + 1} of {of})", heads, rows, (_LEGEND,))


def column_head(comparison: Comparison, index: int, align: Align = Align.RIGHT) -> Head:
    """A column's title, its repeats or that it is published, and whether it is the baseline."""
    column = comparison.columns[index]
    about = "published"
    if isinstance(column, RunGroup):
        about = f"{column.repeats} {'run' if column.repeats == 1 else 'runs'}"
    return Head(column.title, f"baseline, {about}" if index == comparison.baseline else about, align)


def _cell(cell: Cell) -> TextCell:
    if cell.value is None:
        return TextCell(NO_FIGURE, Tone.MUTED)
    return TextCell(format_number(cell.value), details=(*_interval(cell.interval), *_difference(cell.change)))


def _difference(change: Change | None) -> tuple[tuple[str, Tone], ...]:
    """How a cell differs, with a mark of what that amounts to; nothing where it is the same and nothing is judged."""
    if change is None or (change.percent == 0 and change.judgement is Judgement.NOT_JUDGED):
        return ()
    text, tone = _MARKS[change.judgement]
    return ((text.format(format_difference(change.percent).replace("-", "−")), tone),)


def _published_table(comparison: Comparison, index: int, column: PublishedColumn) -> Table:
    measured = counterpart(comparison.columns, column)
    beside = None if measured is None else comparison.columns.index(measured)
    rows = tuple(
        _published_row(line, None if beside is None else line.cells[beside], line.cells[index], column)
        for line in comparison.metrics
        if line.name in column.figures
    )
    name = "not measured here" if measured is None else f"measured: {measured.title}"
    heads = (
        Head("Figure", "", Align.LEFT, 1.5),
        Head("Measured", "with 95 % interval"),
        Head("Published", "as printed"),
        Head("Inside the interval?", "", Align.LEFT),
    )
    return Table(f"{column.title} ({column.reference}); {name}", heads, rows)


def _published_row(
    line: MetricLine, measured: Cell | None, point: Cell, column: PublishedColumn
) -> tuple[TextCell, ...]:
    if measured is None or measured.value is None:
        mine, verdict = TextCell(NO_FIGURE, Tone.MUTED), TextCell("not measured", Tone.MUTED)
    else:
        mine = TextCell(format_number(measured.value), details=_interval(measured.interval))
        verdict = _holds(point.holds)
    name = TextCell(line.kind.title, Tone.STRONG, _details(line.kind.unit))
    return name, mine, TextCell(column.figures[line.name].printed), verdict


def _holds(holds: bool | None) -> TextCell:
    if holds is None:
        return TextCell("no interval", Tone.MUTED)
    return TextCell("yes", Tone.STRONG) if holds else TextCell("no, outside")


def _shape_cell(cell: ShapeCell) -> TextCell:
    printed = ((f"p: {cell.published.printed}", Tone.MUTED),) if cell.published is not None else ()
    if cell.value is None:
        return TextCell(NO_FIGURE, Tone.MUTED, printed)
    return TextCell(f"{format_number(cell.value)} ({cell.runs})", details=(*_interval(cell.interval), *printed))


def _interval(interval: Interval | None) -> tuple[tuple[str, Tone], ...]:
    """The interval as a detail; one without width says no more than the value."""
    if interval is None or interval.low == interval.high:
        return ()
    return _details(f"{format_number(interval.low)} – {format_number(interval.high)}")


def _own_remark(kind: MetricKind, metric: Metric) -> str:
    """What must be known of one figure; what holds for the run as a whole stands in the summary."""
    few = "" if kind.quantile is None else too_few(metric.samples, kind.quantile)
    reason = metric.not_judged or few
    return f"not judged: {reason}" if reason else ""


def _details(*texts: str) -> tuple[tuple[str, Tone], ...]:
    return tuple((text, Tone.MUTED) for text in texts if text)
