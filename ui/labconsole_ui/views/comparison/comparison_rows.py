"""The rows of the comparison as text: sections, parameters and metrics with their values and changes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from PySide6.QtCore import QCoreApplication

from labconsole.analysis.change import FEW_REPEATS, ONE_RUN, OTHER_ORIGIN, count, short_titles
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
from labconsole.analysis.comparison_notes import MARK
from labconsole.analysis.confidence_intervals import Interval
from labconsole.analysis.number_format import Scale
from labconsole.analysis.verdict_lines import VerdictCell, VerdictLine
from labconsole.model.trial import Direction
from labconsole_ui.views.run.result_tables import direction_text

_HOLM = "not significant after Holm's correction"


class Section(StrEnum):
    """The parts of the table."""

    DIFFERING = "differing"
    METRICS = "metrics"
    VERDICTS = "verdicts"
    PASSED = "passed"
    FOREIGN = "foreign"
    EQUAL = "equal"


FOLDED = (Section.PASSED, Section.FOREIGN, Section.EQUAL)
"""Sections that are folded until their heading is clicked."""


@dataclass(frozen=True)
class CellText:
    """A cell: value, change below it, a word next to it, tone of its judgement, and the full text.

    One that is `grey` must not be judged."""

    value: str
    change: str = ""
    mark: str = ""
    tone: str = ""
    help: str = ""
    grey: bool = False


@dataclass(frozen=True)
class Row:
    """One row; a row without `cells` is the heading of its section.

    `better` is the better direction, as an arrow with words; `about` is the shortened remark below the title.
    """

    section: Section
    title: str
    help: str = ""
    better: str = ""
    about: str = ""
    remark: str = ""
    metric: str = ""
    cells: tuple[CellText, ...] = ()

    @property
    def heading(self) -> bool:
        """Whether the row is the heading of its section."""
        return not self.cells

    @property
    def detailed(self) -> bool:
        """Whether its cells have lines below their values."""
        return self.section in (Section.METRICS, Section.VERDICTS, Section.PASSED) and not self.heading

    @property
    def arrow(self) -> str:
        """The arrow to better values, next to the title; empty where neither direction is better."""
        return self.better[:1]

    @property
    def accessible_text(self) -> str:
        """The title with direction and remark, for screen readers."""
        return ", ".join(part for part in (self.title, self.better[2:], self.remark) if part)


def rows_of(comparison: Comparison, *, unfolded: Collection[Section] = ()) -> list[Row]:
    """All rows of the comparison; those of `FOLDED` sections only if they are among the `unfolded` ones."""
    differing = [line for line in comparison.parameters if line.differs and not line.foreign]
    rows = []
    if differing:
        rows += [Row(Section.DIFFERING, _tr("Parameters that differ"))]
        rows += [_parameter_row(Section.DIFFERING, line) for line in differing]
    rows += [Row(Section.METRICS, _tr("Metrics"))]
    rows += [_metric_row(line, comparison) for line in comparison.metrics]
    passed = [line for line in comparison.verdicts if line.passed]
    verdicts = [line for line in comparison.verdicts if not line.passed]
    if verdicts:
        rows += [Row(Section.VERDICTS, _tr("Verdicts"))]
        rows += [_verdict_row(Section.VERDICTS, line, comparison.columns) for line in verdicts]
    if passed:
        rows += [Row(Section.PASSED, _tr("Verdicts passed in all runs: {0}").format(len(passed)))]
        shown = passed if Section.PASSED in unfolded else []
        rows += [_verdict_row(Section.PASSED, line, comparison.columns) for line in shown]
    foreign = [line for line in comparison.parameters if line.foreign]
    equal = [line for line in comparison.parameters if not line.differs and not line.foreign]
    for section, title, lines in (
        (Section.FOREIGN, _tr("Parameters that not all trials have: {0}"), foreign),
        (Section.EQUAL, _tr("Equal parameters: {0}"), equal),
    ):
        if lines:
            rows += [Row(section, title.format(len(lines)))]
            rows += [_parameter_row(section, line) for line in lines] if section in unfolded else []
    return rows


def interval_text(interval: Interval, scale: Scale) -> str:
    """`11.8 to 13.0 ms`: an interval in the unit of its row."""
    return _tr("{0} to {1}").format(scale.number(interval.low), scale.figure(interval.high))


def tsv(titles: Sequence[str], baseline: int, rows: Sequence[Row]) -> str:
    """Rows as tab-separated text: under each scenario of `titles` a column for values and one for changes."""
    head = ["", _tr("Better")]
    for index, title in enumerate(titles):
        head.append(title)
        if index != baseline:
            head.append(_tr("difference [95 % interval]"))
    lines = [[*head, _tr("Remark")]]
    for row in rows:
        cells = [row.title, row.arrow]
        for index in range(len(titles)):
            cell = row.cells[index] if row.cells else CellText("")
            cells.append(cell.value)
            if index != baseline:
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
        _cell_text(line, cell, column, remark, comparison.origin_of_ours(index))
        for index, (cell, column) in enumerate(zip(line.cells, comparison.columns, strict=True))
    )
    about = _remark(line, comparison.columns, short=True)
    return Row(Section.METRICS, line.kind.title, line.kind.description, better, about, remark, line.name, cells)


def _verdict_row(section: Section, line: VerdictLine, columns: Sequence[Column]) -> Row:
    cells = tuple(_verdict_text(cell, column) for cell, column in zip(line.cells, columns, strict=True))
    return Row(section, line.name, cells=cells)


def _verdict_text(cell: VerdictCell, column: Column) -> CellText:
    if not cell.result:
        return CellText(cell.text)
    help_lines = [f"{column.title}: {cell.text}"]
    if cell.reason:
        help_lines.append(cell.reason)
    if cell.reference:
        help_lines.append(_tr("Published: {0} ({1})").format(cell.text, cell.reference))
    mark = ""
    if cell.agrees is not None:
        mark = _tr("✓ as ours") if cell.agrees else _tr("✗ not as ours")
        help_lines.append(
            _tr("All runs of the same scenario have this result.")
            if cell.agrees
            else _tr("Not all runs of the same scenario have this result.")
        )
    value = cell.result if cell.runs else cell.text
    counts = cell.text.replace(", ", "\n") if ", " in cell.text else ""  # a column has room for one of them
    return CellText(value, counts, mark, "bad" if cell.result == "fail" else "", "\n".join(help_lines))


def _cell_text(line: MetricLine, cell: Cell, column: Column, remark: str, ours: str) -> CellText:
    """The cell; `ours` is the origin of our figures of a published column's scenario."""
    scale = line.scale
    value = f"{scale.figure(cell.value, cell.uncertainty)}{MARK if cell.marked else ''}"
    help_lines = [f"{column.title}: {value}"]
    if cell.interval is not None:
        runs = count(cell.runs, cell.origins)
        of = _tr("95 % interval {0}, {1}").format(interval_text(cell.interval, scale), runs)
        help_lines.append(of)
    if cell.not_judged:
        help_lines.append(_tr("Not judged: {0}").format(cell.not_judged))
    mark, tone, changed = "", "", ""
    if cell.change is not None:
        changed = cell.change.text
        mark, tone = _judged(cell.change)
        judged = ": ".join(part for part in (str(cell.change.judgement), cell.change.note) if part)
        help_lines.append(_tr("Against the baseline {0}, {1}").format(changed, judged))
    if not isinstance(column, RunGroup) and line.name in column.figures:
        figure = column.figures[line.name]
        help_lines.append(_tr("Published: {0} ({1})").format(figure.printed, figure.reference))
    if cell.ours is not None:
        changed = _tr("ours {0}").format(cell.ours.text.partition(" [")[0])
        full = _tr("Ours, {0} for the same scenario, against this point: {1}").format(ours, cell.ours.text)
        help_lines.append(full)
    if cell.holds is not None:
        mark = _tr("✓ within") if cell.holds else _tr("✗ outside")
        help_lines.append(
            _tr("The interval {0} for the same scenario contains this point.").format(ours)
            if cell.holds
            else _tr("The interval {0} for the same scenario does not contain this point.").format(ours)
        )
    in_full = "\n".join([*help_lines, *([remark] if remark else [])])
    return CellText(value, changed, mark, tone, in_full, bool(cell.not_judged))


def _judged(change: Change) -> tuple[str, str]:
    """The word and the tone of a judgement: only better and worse have one."""
    if change.judgement is Judgement.BETTER:
        return _tr("better"), "good"
    if change.judgement is Judgement.WORSE:
        return _tr("worse"), "bad"
    return "", ""


def _remark(line: MetricLine, columns: Sequence[Column], *, short: bool = False) -> str:
    """Remarks of the row, and reasons why cells have no interval or judgement.

    In `short`, columns are named by the first part of their titles, and remarks that follow from others are left out.
    """
    names = short_titles([column.title for column in columns]) if short else [column.title for column in columns]
    noted: dict[str, list[str]] = {}
    withheld = [cell.not_judged for cell in line.cells if cell.not_judged]
    for cell, name in zip(line.cells, names, strict=True):
        for note in cell.change.notes if cell.change is not None else ():
            remarked = note in (OTHER_ORIGIN, *withheld) or any(remark.startswith(note) for remark in line.remarks)
            if not remarked and line.kind.direction is not Direction.NEUTRAL:
                holm = _tr("not significant (Holm)") if short else _HOLM
                noted.setdefault(holm if note.startswith(_HOLM) else note, []).append(name)
    compared = sum(cell.change is not None for cell in line.cells)
    alone = short and compared > 0 and len(noted.get(ONE_RUN, ())) == compared
    remarks = [remark for remark in line.remarks if not (alone and remark == FEW_REPEATS)]
    notes = [note if len(named) == compared else f"{note}: {', '.join(named)}" for note, named in noted.items()]
    return "; ".join([*remarks, *notes])


def _tr(text: str) -> str:
    return QCoreApplication.translate("SideBySide", text)
