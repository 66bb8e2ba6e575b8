"""Figures as tables: of one run, of a comparison with published figures, and in the shape of a source's own table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from labconsole.analysis.caveats import too_few
from labconsole.analysis.change import Change, Judgement
from labconsole.analysis.columns import RunGroup, counterpart, has_figures
from labconsole.analysis.comparison import Cell, Comparison, MetricLine, common_remarks
from labconsole.analysis.comparison_notes import MARK, ours_text
from labconsole.analysis.confidence_intervals import Interval
from labconsole.analysis.number_format import NO_FIGURE, Scale, row_scale
from labconsole.analysis.published_figures import PublishedColumn
from labconsole.analysis.table_shape import FilledTable, ShapeCell
from labconsole.model.metrics import Direction, Metric, MetricKind
from labconsole.model.series import Origin
from labconsole.output.report.document import Align, Head, Table, TextCell, Tone
from labconsole.store.records import RunRow

MOST_COLUMNS = 5
"""Columns of figures next to each other on a page; of a source's table one more, which has no column of units."""

MOST_WIDE_COLUMNS = 9
"""The same on a landscape page, which a comparison with more columns than `MOST_COLUMNS` gets."""

MOST_INLINE = 2
"""Columns of figures up to which a cell has its interval and its change behind the value."""

_LEGEND = (
    "↑ higher is better, ↓ lower is better. ▲ better, ▼ worse: the 95 % interval of the ratio to the baseline excludes "
    "no change, also after Holm's correction. ≈ no significant change. A difference without a mark is not judged."
)
_MEANS = "Means over the number of runs in brackets, with its 95 % interval; p: as published."
_ARROWS = {Direction.HIGHER: "↑", Direction.LOWER: "↓", Direction.NEUTRAL: ""}
_MARKS = {
    Judgement.BETTER: ("▲ {} better", Tone.GOOD),
    Judgement.WORSE: ("▼ {} worse", Tone.BAD),
    Judgement.NO_CHANGE: ("≈ {}", Tone.MUTED),
    Judgement.NOT_JUDGED: ("{}", Tone.MUTED),
}


def run_table(comparison: Comparison, run: RunRow) -> Table:
    """All figures of one run: value, unit, number of samples, origin; with caveats under its name."""
    rows = []
    for line in comparison.metrics:
        if line.name not in run.metrics:
            continue
        metric = run.metrics[line.name]
        scale = row_scale((metric.value,), metric.unit)
        rows.append(
            (
                TextCell(line.kind.title, Tone.STRONG, _details(_own_remark(line.kind, metric))),
                TextCell(
                    scale.number(metric.value, metric.uncertainty), Tone.MUTED if metric.not_judged else Tone.PLAIN
                ),
                TextCell(scale.unit),
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
    """All figures against the baseline, which is first in each table; published ones right of ours. Many columns are
    on landscape pages."""
    wide = sum(map(has_figures, comparison.columns)) > MOST_COLUMNS
    table_parts = list(parts(comparison, MOST_WIDE_COLUMNS if wide else MOST_COLUMNS))
    tables = (_comparison_table(comparison, part, index, len(table_parts)) for index, part in enumerate(table_parts))
    return tuple(replace(table, wide=wide) for table in tables)


def printed_tables(comparison: Comparison) -> tuple[Table, ...]:
    """The published figures as their source prints them, as far as that differs from how the console writes them."""
    published = {column.name: column for column in comparison.columns if isinstance(column, PublishedColumn)}
    columns = list(published.values())
    lines = [line for line in comparison.metrics if any(_printed_differently(line, column) for column in columns)]
    tables = []
    for first in range(0, len(columns), MOST_COLUMNS) if lines else ():
        part = columns[first : first + MOST_COLUMNS]
        rows = tuple(
            (TextCell(line.kind.title, Tone.STRONG), *(TextCell(_printed(column, line.name)) for column in part))
            for line in lines
        )
        heads = (Head("Figure", "", Align.LEFT, 1.3), *(Head(column.title) for column in part))
        tables.append(
            Table("As printed in the source, where that is in another unit or with other digits", heads, rows)
        )
    return tuple(tables)


def parameter_tables(comparison: Comparison) -> tuple[Table, ...]:
    """The parameters that differ between the measured columns; none where there are no differences."""
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
        tables.append(Table("Parameters that differ", heads, rows, inline=True))
    return tuple(tables)


def shape_tables(filled: FilledTable) -> Iterator[Table]:
    """A source's own table, filled: the mean of runs with its interval, the published figure under it. Its columns are
    shared among as many tables as they need, with the notes below the last one."""
    shape, count = filled.shape, len(filled.shape.columns)
    notes = (_MEANS, *filled.notes)
    of = math.ceil(count / (MOST_COLUMNS + 1))
    for index in range(of):
        part = slice(math.ceil(index * count / of), math.ceil((index + 1) * count / of))
        heads = (Head("", "", Align.LEFT, 1.3), *(Head(column.title) for column in shape.columns[part]))
        rows = tuple(
            (TextCell(row.title, Tone.STRONG, _details(cells[0].unit)), *map(_shape_cell, cells[part]))
            for row, cells in zip(shape.rows, filled.cells, strict=True)
        )
        place = f", {index + 1} of {of}" if of > 1 else ""
        yield Table(f"{shape.title} ({shape.reference}{place})", heads, rows, notes if index == of - 1 else ())


def compact_shape_table(filled: FilledTable) -> Table:
    """A source's own table on little room: its columns are rows where there are more of them than rows, and those with
    neither runs nor a published figure are left out. Of its notes it has those on this table."""
    shape = filled.shape
    kept = [
        index
        for index in range(len(shape.columns))
        if any(cells[index].value is not None or cells[index].published is not None for cells in filled.cells)
    ]
    notes = (f"{_MEANS} {_no_origin(filled)}".strip(), *filled.about)
    caption = f"{shape.title} ({shape.reference})"
    if len(kept) <= min(len(shape.rows), MOST_COLUMNS + 1):
        heads = (Head("", "", Align.LEFT, 1.3), *(Head(shape.columns[index].title) for index in kept))
        rows = tuple(
            (TextCell(row.title, Tone.STRONG, _details(cells[0].unit)), *(_shape_cell(cells[index]) for index in kept))
            for row, cells in zip(shape.rows, filled.cells, strict=True)
        )
        return Table(caption, heads, rows, notes, inline=True)
    heads = (
        Head("", "", Align.LEFT, 1.5 if len(shape.rows) < MOST_COLUMNS else 2.0),
        *(Head(row.title, cells[0].unit) for row, cells in zip(shape.rows, filled.cells, strict=True)),
    )
    rows = tuple(
        (TextCell(shape.columns[index].title, Tone.STRONG), *(_shape_cell(cells[index]) for cells in filled.cells))
        for index in kept
    )
    return Table(caption, heads, rows, notes, inline=True)


def _no_origin(filled: FilledTable) -> str:
    """The sentence on columns without the word of an origin, where there are any."""
    metrics = [row.metric for row in filled.shape.rows]
    groups = [group for group in filled.groups if group is not None]
    return "All of it measured." if all(group.origins_of(metrics) <= {Origin.MEASURED} for group in groups) else ""


def parts(comparison: Comparison, most: int = MOST_COLUMNS) -> Iterator[tuple[int, ...]]:
    """Indices of the columns of each table, `most` at most, the baseline before the others; a published column stays
    with the one of its scenario, but for that of the baseline, which is in the first table only."""
    blocks: list[list[int]] = []
    for index in range(len(comparison.columns)):
        if counterpart(comparison.columns, index) is not None:
            blocks[-1].append(index)
        else:
            blocks.append([index])
    first = next(block for block in blocks if comparison.baseline in block)
    part = list(first)
    for block in (block for block in blocks if block is not first):
        if len(part) > 1 and len(part) + len(block) > most:
            yield tuple(part)
            part = [comparison.baseline]
        part += block
    yield tuple(part)


def _comparison_table(comparison: Comparison, part: Sequence[int], index: int, of: int) -> Table:
    common = common_remarks(comparison)
    part = [column for column in part if has_figures(comparison.columns[column])]
    rows = tuple(
        (
            TextCell(
                line.kind.title,
                Tone.STRONG,
                _details("; ".join(remark for remark in line.remarks if remark not in common)),
            ),
            TextCell(f"{line.scale.unit} {_ARROWS[line.kind.direction]}".strip(), Tone.MUTED),
            *(_cell(line.cells[column], line.scale) for column in part),
        )
        for line in comparison.metrics
        if any(line.cells[column].value is not None for column in part)
    )
    heads = (
        Head("Figure", "", Align.LEFT, 1.6),
        Head("Unit", "", Align.LEFT, 0.6),
        *(column_head(comparison, column) for column in part),
    )
    caption = "Figures with 95 % intervals, and their differences from the baseline"
    published = [comparison.columns[column] for column in part]
    stated = (f"{column.title}: {column.reference}." for column in published if isinstance(column, PublishedColumn))
    sources = tuple(dict.fromkeys(stated))
    remarks = (f"All lines: {'; '.join(common)}.",) if common else ()
    ours = f"{ours_text(comparison.origin_of_ours()).capitalize()}."
    notes = (*remarks, _LEGEND, *((ours,) if sources else ()), *sources)
    return Table(
        caption if of == 1 else f"{caption} ({index + 1} of {of})", heads, rows, notes, inline=len(part) <= MOST_INLINE
    )


def column_head(comparison: Comparison, index: int, align: Align = Align.RIGHT) -> Head:
    """A column's title, its repeats or that it is published, and whether it is the baseline."""
    column = comparison.columns[index]
    about = column.run_count if isinstance(column, RunGroup) else "published"
    return Head(column.title, f"baseline, {about}" if index == comparison.baseline else about, align)


def _cell(cell: Cell, scale: Scale) -> TextCell:
    if cell.value is None:
        return TextCell(NO_FIGURE, Tone.MUTED)
    return TextCell(
        f"{scale.number(cell.value, cell.uncertainty)}{MARK if cell.marked else ''}",
        Tone.MUTED if cell.not_judged else Tone.PLAIN,
        (*_interval(cell.interval, scale), *_difference(cell.change), *_ours(cell)),
    )


def _difference(change: Change | None) -> tuple[tuple[str, Tone], ...]:
    """The difference of a cell, with a mark of its judgement; empty where it is equal and not judged."""
    if change is None or (change.percent == 0 and change.judgement is Judgement.NOT_JUDGED):
        return ()
    text, tone = _MARKS[change.judgement]
    shown = change.text.partition(" [")[0]
    return ((text.format(shown.replace("-", "−")), tone),)


def _ours(cell: Cell) -> tuple[tuple[str, Tone], ...]:
    """Of a published figure how ours is against it, and whether our interval holds it."""
    if cell.ours is None:
        return ()
    holds = "" if cell.holds is None else "inside our interval" if cell.holds else "outside our interval"
    return _details(f"ours {cell.ours.text.partition(' [')[0].replace('-', '−')}", holds)


def _printed(column: PublishedColumn, name: str) -> str:
    """A figure of the source with its unit, `7.02 seconds`; `–` where it prints none."""
    return column.figures[name].printed if name in column.figures else NO_FIGURE


def _printed_differently(line: MetricLine, column: PublishedColumn) -> bool:
    """Whether the source prints the line's figure in another unit, or with other digits."""
    figure = column.figures.get(line.name)
    return figure is not None and figure.printed.partition(" ")[0].replace(",", "") != line.scale.number(
        figure.value
    ).replace(",", "")


def _shape_cell(cell: ShapeCell) -> TextCell:
    printed = ((f"p: {cell.published.printed}", Tone.MUTED),) if cell.published is not None else ()
    if cell.value is None:
        return TextCell(NO_FIGURE, Tone.MUTED, printed)
    scale = Scale(1.0, cell.unit)
    value = scale.number(cell.value, cell.uncertainty)
    return TextCell(f"{value} ({cell.runs})", details=(*_interval(cell.interval, scale), *printed))


def _interval(interval: Interval | None, scale: Scale) -> tuple[tuple[str, Tone], ...]:
    """The interval as a detail; one without width says no more than the value."""
    if interval is None or interval.low == interval.high:
        return ()
    return _details(f"{scale.number(interval.low)} – {scale.number(interval.high)}")


def _own_remark(kind: MetricKind, metric: Metric) -> str:
    """Caveats on one figure; those on the whole run are in the summary."""
    few = "" if kind.quantile is None else too_few(metric.samples, kind.quantile)
    reason = metric.not_judged or few
    return f"not judged: {reason}" if reason else ""


def _details(*texts: str) -> tuple[tuple[str, Tone], ...]:
    return tuple((text, Tone.MUTED) for text in texts if text)
