"""The table of a comparison in the terminal, and what is to be said of it."""

from __future__ import annotations

import math
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from labconsole.analysis.comparison import Cell, Change, Column, Comparison, Judgement, RunGroup
from labconsole.analysis.figures import NO_FIGURE, format_difference, format_number
from labconsole.analysis.findings import findings
from labconsole.trial import Direction, Trial

_ARROWS = {Direction.HIGHER: "↑", Direction.LOWER: "↓", Direction.NEUTRAL: ""}
_STYLES = {Judgement.BETTER: "green", Judgement.WORSE: "red"}
_REMARK_WIDTH = 32


def print_comparison(console: Console, comparison: Comparison, trial: Trial[Any] | None) -> None:
    """Print a comparison: scenarios as columns, metrics as rows, differences from the baseline with their intervals;
    then findings and notes.

    Columns that do not fit beside each other are printed below each other. What is to be remarked of all lines alike is
    said once below.
    """
    remarks = {line.remark for line in comparison.metrics}
    remarked = len(remarks) > 1
    first, count = 0, len(comparison.columns)
    while first < count:
        last = first + 1
        while last < count and _width(console, _table(console, comparison, first, last + 1, remarked)) <= console.width:
            last += 1
        console.print(_table(console, comparison, first, last, remarked))
        console.print()
        first = last
    console.print(_legend(comparison))
    if not remarked and remarks > {""}:
        console.print(f"All lines: {remarks.pop()}.")
    for finding in findings(comparison, trial):
        console.print(f"- {finding.sentence}", style="" if finding.judged else "dim")
    for note in comparison.notes:
        console.print(note)


def print_parameters(console: Console, comparison: Comparison) -> None:
    """Print the parameters in which the columns differ: one line each, with its values in the columns' order."""
    differing = [line for line in comparison.parameters if line.differs]
    if not differing or len(comparison.columns) < 2:
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("Differs")
    table.add_column("Unit")
    for column in comparison.columns:
        table.add_column(column.title)
    for line in differing:
        table.add_row(line.title, line.unit, *line.texts)
    console.print(table)
    console.print()


def _width(console: Console, table: Table) -> int:
    """Cells that the table needs so that nothing in it is cut or broken."""
    return table.__rich_measure__(console, console.options.update(width=10_000, max_width=10_000)).maximum


def _table(console: Console, comparison: Comparison, first: int, last: int, remarked: bool) -> Table:
    """The metrics of columns `first` to `last` (not included), with a column for remarks if there are any."""
    table = Table(box=None, pad_edge=False)
    table.add_column("Metric")
    table.add_column("Unit")
    for column in comparison.columns[first:last]:
        table.add_column(f"{column.title}{_source(column)}", justify="right")
    if remarked:
        table.add_column("Remark", max_width=_REMARK_WIDTH if console.is_terminal else None)
    for line in comparison.metrics:
        title = f"{line.kind.title} {_ARROWS[line.kind.direction]}".strip()
        cells = [_cell(cell) for cell in line.cells[first:last]]
        table.add_row(title, line.kind.unit, *cells, *([line.remark] if remarked else []))
    return table


def _source(column: Column) -> str:
    if not isinstance(column, RunGroup):
        return "\npublished"
    return f"\n{column.repeats} runs, mean" if column.repeats > 1 else ""


def _cell(cell: Cell) -> Text:
    if cell.value is None:
        return Text(NO_FIGURE)
    text = Text(format_number(cell.value))
    if cell.change is not None and not math.isnan(cell.change.percent):
        text.append(f" ({_difference(cell.change)})", _STYLES.get(cell.change.judgement, ""))
    if cell.change is not None and cell.change.judgement in _STYLES:
        text.append(f" {cell.change.judgement}", _STYLES[cell.change.judgement])
    if cell.holds is not None:
        text.append(" inside" if cell.holds else " outside")
    return text


def _difference(change: Change) -> str:
    """The difference in %, and its interval where that has a width: `-2.1 %; -6.0 to +3.0`."""
    difference = format_difference(change.percent)
    if change.interval is None or change.interval.low == change.interval.high:
        return difference
    low, high = (
        format_difference((end - 1) * 100).removesuffix(" %") for end in (change.interval.low, change.interval.high)
    )
    return f"{difference}; {low} to {high}"


def _legend(comparison: Comparison) -> str:
    told = "↑ higher is better, ↓ lower is better"
    if len(comparison.columns) > 1:
        told += f"; in parentheses the difference from {comparison.columns[comparison.baseline].title}"
        if any(cell.change and cell.change.interval for line in comparison.metrics for cell in line.cells):
            told += " and its 95 % interval"
    if any(cell.holds is not None for line in comparison.metrics for cell in line.cells):
        told += "; inside or outside: how a published figure lies to the interval measured for the same scenario"
    return f"{told}."
