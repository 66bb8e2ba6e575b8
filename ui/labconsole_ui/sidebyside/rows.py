"""The rows of the comparison as text: sections, parameters and metrics with their values and changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from PySide6.QtCore import QCoreApplication

from labconsole.analysis.comparison import (
    Cell,
    Change,
    Column,
    Comparison,
    Judgement,
    MetricLine,
    ParameterLine,
    RunGroup,
)
from labconsole.analysis.figures import format_difference, format_figure
from labconsole.analysis.intervals import Interval
from labconsole.trial import Direction
from labconsole_ui.runview.records import direction_text

_HOLM = "not significant after Holm's correction"


class Section(StrEnum):
    """The parts of the table."""

    DIFFERING = "differing"
    METRICS = "metrics"
    EQUAL = "equal"


@dataclass(frozen=True)
class CellText:
    """A cell: the value, the change beneath it, a word beside it, the tone of what is judged, and all of it in full."""

    value: str
    change: str = ""
    mark: str = ""
    tone: str = ""
    help: str = ""


@dataclass(frozen=True)
class Row:
    """One row; a row without `cells` is the heading of its section. `about` stands beneath the title."""

    section: Section
    title: str
    help: str = ""
    about: str = ""
    better: str = ""
    remark: str = ""
    metric: str = ""
    cells: tuple[CellText, ...] = ()

    @property
    def heading(self) -> bool:
        """Whether the row is the heading of its section."""
        return not self.cells


def rows_of(comparison: Comparison, *, unfolded: bool) -> list[Row]:
    """All rows of the comparison; the equal parameters only if `unfolded`."""
    differing = [line for line in comparison.parameters if line.differs]
    equal = [line for line in comparison.parameters if not line.differs]
    rows = []
    if differing:
        rows += [Row(Section.DIFFERING, _tr("Parameters that differ"))]
        rows += [_parameter_row(Section.DIFFERING, line) for line in differing]
    rows += [Row(Section.METRICS, _tr("Metrics"))]
    rows += [_metric_row(line, comparison) for line in comparison.metrics]
    if equal:
        rows += [Row(Section.EQUAL, _tr("Equal parameters: {0}").format(len(equal)))]
        rows += [_parameter_row(Section.EQUAL, line) for line in equal] if unfolded else []
    return rows


def change_text(change: Change) -> str:
    """`+12.3 % [+8.1, +16.9]`: the change in % of the baseline, with its interval where it has one."""
    text = format_difference(change.percent)
    return f"{text} {_percentages(change.interval)}" if change.interval is not None else text


def interval_text(interval: Interval, unit: str) -> str:
    """`11.8 to 13.0 ms`: an interval in the unit of its value."""
    low, high = format_figure(interval.low, unit), format_figure(interval.high, unit)
    number, _, shown = low.rpartition(" ")
    return _tr("{0} to {1}").format(number if shown and high.endswith(f" {shown}") else low, high)


def count_text(column: Column) -> str:
    """What stands behind a column: `5 repeats`, `run 7`; nothing behind published figures."""
    if not isinstance(column, RunGroup):
        return ""
    if len(column.runs) == 1:
        return _tr("run {0}").format(column.runs[0].id)
    return _tr("{0} repeats").format(column.repeats)


def heading_text(comparison: Comparison, index: int) -> str:
    """A column's title and what it is, on one line: `Test 1: plain, 5 repeats, baseline`."""
    column = comparison.columns[index]
    count = count_text(column)
    parts = [column.title, "" if column.title.endswith(count) else count]
    parts += [] if isinstance(column, RunGroup) else [_tr("published")]
    parts += [_tr("baseline")] if index == comparison.baseline else []
    return ", ".join(part for part in parts if part)


def tsv(comparison: Comparison, rows: Sequence[Row]) -> str:
    """Rows as tab-separated text with titles: a column for values and one for changes of each scenario."""
    head = ["", _tr("Better")]
    for index in range(len(comparison.columns)):
        head.append(heading_text(comparison, index))
        if index != comparison.baseline:
            head.append(_tr("difference [95 % interval]"))
    lines = [[*head, _tr("Remark")]]
    for row in rows:
        cells = [row.title, row.better]
        for index in range(len(comparison.columns)):
            cell = row.cells[index] if row.cells else CellText("")
            cells.append(cell.value)
            if index != comparison.baseline:
                cells.append(" ".join(part for part in (cell.change, cell.mark) if part))
        lines.append([*cells, row.remark])
    return "\n".join("\t".join(" ".join(cell.split()) for cell in line) for line in lines) + "\n"


def _parameter_row(section: Section, line: ParameterLine) -> Row:
    title = f"{line.title} [{line.unit}]" if line.unit else line.title
    return Row(section, title, line.name, cells=tuple(CellText(text, help=text) for text in line.texts))


def _metric_row(line: MetricLine, comparison: Comparison) -> Row:
    better = direction_text(line.kind.direction)
    remark = _remark(line, comparison.columns)
    cells = tuple(
        _cell_text(line, cell, column, remark) for cell, column in zip(line.cells, comparison.columns, strict=True)
    )
    about = " · ".join(part for part in (better, remark) if part)
    return Row(Section.METRICS, line.kind.title, line.kind.description, about, better[:1], remark, line.name, cells)


def _cell_text(line: MetricLine, cell: Cell, column: Column, remark: str) -> CellText:
    value = format_figure(cell.value, line.kind.unit)
    help_lines = [f"{column.title}: {value}"]
    if cell.interval is not None:
        of = _tr("95 % interval {0}, {1} runs").format(interval_text(cell.interval, line.kind.unit), cell.runs)
        help_lines.append(of)
    mark, tone, changed = "", "", ""
    if cell.change is not None:
        changed = change_text(cell.change)
        mark, tone = _judged(cell.change, line.kind.direction)
        judged = ": ".join(part for part in (str(cell.change.judgement), cell.change.note) if part)
        help_lines.append(_tr("Against the baseline {0}, {1}").format(changed, judged))
    if not isinstance(column, RunGroup) and line.name in column.figures:
        figure = column.figures[line.name]
        help_lines.append(_tr("Published: {0} ({1})").format(figure.printed, figure.reference))
    if cell.holds is not None:
        mark = _tr("✓ within") if cell.holds else _tr("✗ outside")
        help_lines.append(
            _tr("The interval measured for the same scenario holds this point.")
            if cell.holds
            else _tr("The interval measured for the same scenario does not hold this point.")
        )
    return CellText(value, changed, mark, tone, "\n".join([*help_lines, *([remark] if remark else [])]))


def _judged(change: Change, direction: Direction) -> tuple[str, str]:
    """The word and the tone of a judgement: only better and worse have one."""
    if change.judgement is Judgement.BETTER:
        return _tr("better"), "good"
    if change.judgement is Judgement.WORSE:
        return _tr("worse"), "bad"
    return "", ""


def _remark(line: MetricLine, columns: Sequence[Column]) -> str:
    """What a reader of the line must know: its remark, and why cells have no interval or judgement."""
    titles: dict[str, list[str]] = {}
    for cell, column in zip(line.cells, columns, strict=True):
        for note in cell.change.notes if cell.change is not None else ():
            short = _HOLM if note.startswith(_HOLM) else note
            if short not in line.remark and line.kind.direction is not Direction.NEUTRAL:
                titles.setdefault(short, []).append(column.title)
    compared = sum(cell.change is not None for cell in line.cells)
    notes = [note if len(named) == compared else f"{note} ({', '.join(named)})" for note, named in titles.items()]
    return "; ".join(part for part in (line.remark, *notes) if part)


def _percentages(interval: Interval) -> str:
    low, high = (format_difference((end - 1) * 100).removesuffix(" %") for end in (interval.low, interval.high))
    return f"[{low}, {high}]"


def _tr(text: str) -> str:
    return QCoreApplication.translate("SideBySide", text)
