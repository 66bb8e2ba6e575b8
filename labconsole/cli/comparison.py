"""The table of a comparison in the terminal, and what is to be said of it."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from labconsole.analysis.comparison import Cell, Change, Column, Comparison, Judgement, RunGroup
from labconsole.analysis.figures import NO_FIGURE, format_difference, format_number
from labconsole.analysis.findings import findings
from labconsole.store.records import RunStatus
from labconsole.trial import Direction, Trial

_ARROWS = {Direction.HIGHER: "↑", Direction.LOWER: "↓", Direction.NEUTRAL: ""}
_STYLES = {Judgement.BETTER: "green", Judgement.WORSE: "red"}
_METRIC_WIDTH = 36
_HEAD_WIDTH = 32


def print_comparison(console: Console, comparison: Comparison, trial: Trial[Any] | None) -> None:
    """Print a comparison: scenarios as columns, metrics as rows, differences from the baseline with their intervals;
    then findings and notes.

    Columns that do not fit beside each other are printed below each other. A remark on all lines is made once below.
    """
    common = _common_remarks(comparison)
    _print_parts(console, comparison, lambda first, last: _metrics(console, comparison, first, last, common))
    console.print(_legend(comparison))
    if common:
        console.print(f"All lines: {'; '.join(common)}.")
    for finding in findings(comparison, trial):
        console.print(f"- {finding.sentence}", style="" if finding.judged else "dim")
    for note in comparison.notes:
        console.print(note)


def print_parameters(console: Console, comparison: Comparison) -> None:
    """Print the parameters in which the columns differ, if there are any."""
    if any(line.differs for line in comparison.parameters):
        _print_parts(console, comparison, lambda first, last: _parameters(console, comparison, first, last))


def _print_parts(console: Console, comparison: Comparison, table: Callable[[int, int], Table]) -> None:
    """Print `table(first, last)` of as many columns as fit beside each other, then of the next ones below."""
    first, count = 0, len(comparison.columns)
    while first < count:
        last = first + 1
        while last < count and _width(console, table(first, last + 1)) <= console.width:
            last += 1
        console.print(table(first, last))
        console.print()
        first = last


def _width(console: Console, table: Table) -> int:
    """Cells that the table needs so that nothing in it is cut or broken."""
    return table.__rich_measure__(console, console.options.update(width=10_000, max_width=10_000)).maximum


def _common_remarks(comparison: Comparison) -> tuple[str, ...]:
    """The remarks that every line has."""
    lines = comparison.metrics
    return (
        tuple(remark for remark in lines[0].remarks if all(remark in line.remarks for line in lines)) if lines else ()
    )


def _parameters(console: Console, comparison: Comparison, first: int, last: int) -> Table:
    """The parameters that differ, in columns `first` to `last` (not included)."""
    table = Table(box=None, pad_edge=False)
    table.add_column("Differs")
    table.add_column("Unit")
    for column in comparison.columns[first:last]:
        table.add_column(_head(console, column))
    for line in comparison.parameters:
        if line.differs:
            table.add_row(line.title, line.unit, *line.texts[first:last])
    return table


def _metrics(console: Console, comparison: Comparison, first: int, last: int, told: Sequence[str]) -> Table:
    """The metrics of columns `first` to `last` (not included), with the remarks that are not `told` elsewhere.

    These stand under the metrics in a terminal, which is narrow, and in a column of their own in a pipe or file.
    """
    narrow = console.is_terminal
    remarks = ["; ".join(remark for remark in line.remarks if remark not in told) for line in comparison.metrics]
    beside = any(remarks) and not narrow
    table = Table(box=None, pad_edge=False)
    table.add_column("Metric", max_width=_METRIC_WIDTH if narrow else None)
    table.add_column("Unit")
    for column in comparison.columns[first:last]:
        table.add_column(f"{_head(console, column)}{_source(column)}", justify="right")
    if beside:
        table.add_column("Remark")
    for line, remark in zip(comparison.metrics, remarks, strict=True):
        title = Text(f"{line.kind.title} {_ARROWS[line.kind.direction]}".strip())
        if remark and narrow:
            title.append(f"\n{remark}", "dim")
        cells = [_cell(cell) for cell in line.cells[first:last]]
        table.add_row(title, line.kind.unit, *cells, *([remark] if beside else []))
    return table


def _head(console: Console, column: Column) -> str:
    """A column's title, broken where a terminal is narrow."""
    return textwrap.fill(column.title, _HEAD_WIDTH) if console.is_terminal else column.title


def _source(column: Column) -> str:
    """Where a column's figures come from: how many runs, those that did not finish, or a publication."""
    if not isinstance(column, RunGroup):
        return "\npublished"
    runs = [f"{column.repeats} runs, mean"] if column.repeats > 1 else []
    unfinished = dict.fromkeys(str(run.status) for run in column.used if run.status is not RunStatus.FINISHED)
    return "".join(f"\n{said}" for said in (*runs, *unfinished))


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
