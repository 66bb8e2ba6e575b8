"""The table of a comparison in the terminal, with answers, findings and notes."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from labconsole.analysis.answers import Answer
from labconsole.analysis.change import Change, Judgement, fitting_titles
from labconsole.analysis.columns import Column, RunGroup, counterpart, has_figures
from labconsole.analysis.comparison import NOT_JUDGED, Cell, Comparison, common_remarks
from labconsole.analysis.comparison_notes import MARK, ours_text
from labconsole.analysis.findings import findings, unjudged
from labconsole.analysis.number_format import NO_FIGURE, Scale
from labconsole.analysis.verdict_lines import VerdictCell, VerdictLine
from labconsole.model.metrics import Direction
from labconsole.model.trial import Trial
from labconsole.store.records import RunStatus

_ARROWS = {Direction.HIGHER: "↑", Direction.LOWER: "↓", Direction.NEUTRAL: ""}
_STYLES = {Judgement.BETTER: "green", Judgement.WORSE: "red"}
_RESULT_STYLES = {"pass": "green", "fail": "red", "warning": "yellow"}
_NARROW, _NARROW_METRIC, _METRIC = 100, 26, 36
"""Below this width of a terminal the titles of metrics are broken earlier."""
_NARROW_HEAD, _HEAD = 16, 24
"""Where titles of columns are broken, below that width and from it on."""
_NUMBER_WIDTH = 12
_BAR = "█"


def print_answers(console: Console, answers: Sequence[Answer]) -> None:
    """Print the answers with which a comparison opens: number, sentence, a bar for each scenario, small print."""
    for answer in answers:
        line = Table.grid(padding=(0, 2))
        line.add_column(min_width=_NUMBER_WIDTH, justify="right", no_wrap=True)
        line.add_column(ratio=1)
        number = Text(answer.number, f"bold {_STYLES.get(answer.judgement, '')}" if answer.judged else "dim")
        sentence = Text(answer.sentence, "bold" if answer.judged else "dim")
        line.add_row(number, sentence)
        line.add_row("", _bars(console, answer))
        line.add_row("", Text(answer.footnote, "dim"))
        console.print(line)
        console.print()


def print_comparison(console: Console, comparison: Comparison, trial: Trial[Any] | None, more: str = "") -> None:
    """Print a comparison: scenarios as columns, metrics as rows, differences from the baseline with their intervals;
    then findings and notes.

    Columns that do not fit next to each other are printed below each other. A remark on all lines is made once below.
    With `more`, the command that shows all of it, what is not judged is in one line.
    """
    common = common_remarks(comparison)
    if comparison.origins:
        console.print(comparison.origins)
        console.print()
    folded = bool(more)
    _print_parts(console, comparison, lambda first, last: _metrics(console, comparison, first, last, common, folded))
    console.print(_legend(comparison))
    _print_verdicts(console, comparison, more)
    if remarks := [remark for remark in common if not (folded and remark.startswith(NOT_JUDGED))]:
        console.print(f"All lines: {'; '.join(remarks)}.")
    found = findings(comparison, trial)
    for finding in found:
        if not (folded and finding.reasons):
            console.print(f"- {finding.sentence}", style="" if finding.judged else "dim")
    if folded and (sentence := unjudged(comparison, found)):
        console.print(f"{sentence} `{more}` shows them.", style="dim")
    for note in comparison.notes:
        console.print(note)


def print_parameters(console: Console, comparison: Comparison) -> None:
    """Print the parameters in which the columns differ, if there are any."""
    if any(line.differs for line in comparison.parameters):
        _print_parts(console, comparison, lambda first, last: _parameters(console, comparison, first, last))


def _bars(console: Console, answer: Answer) -> Table:
    """The scenarios of an answer, each with its value behind a bar from zero on."""
    shown = fitting_titles([bar.title for bar in answer.bars], lambda title: len(title) <= _HEAD)
    titles = [textwrap.shorten(title, _HEAD, placeholder=" …") for title in shown]
    texts = max((len(bar.text) for bar in answer.bars), default=0)
    room = max(4, console.width - _NUMBER_WIDTH - max(map(len, titles), default=0) - texts - 8)
    largest = max((bar.value for bar in answer.bars), default=0.0) or 1.0
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    for title, bar in zip(titles, answer.bars, strict=True):
        length = max(1, round(bar.value / largest * min(room, 40))) if bar.value > 0 else 0
        table.add_row(Text(title, "dim"), Text(f"{_BAR * length} {bar.text}", "" if answer.judged else "dim"))
    return table


def _print_parts(console: Console, comparison: Comparison, table: Callable[[int, int], Table]) -> None:
    """Print `table(first, last)` of as many columns as fit next to each other, then of the next ones below; a published
    column stays with the one measured for its scenario where both fit."""
    first, count = 0, len(comparison.columns)
    while first < count:
        last = first + 1
        while last < count and _width(console, table(first, last + 1)) <= console.width:
            last += 1
        if last < count and last - first > 1 and _is_counterpart(comparison, last):
            last -= 1
        console.print(table(first, last))
        console.print()
        first = last


def _is_counterpart(comparison: Comparison, index: int) -> bool:
    """Whether a column is a published one directly right of the one that was measured for its scenario."""
    return counterpart(comparison.columns, index) == index - 1


def _width(console: Console, table: Table) -> int:
    """Cells that the table needs so that nothing in it is cut or broken."""
    return table.__rich_measure__(console, console.options.update(width=10_000, max_width=10_000)).maximum


def _wrapped_heading(console: Console, text: str) -> str:
    return textwrap.fill(text, _NARROW_HEAD if console.width < _NARROW else _HEAD)


def _parameters(console: Console, comparison: Comparison, first: int, last: int) -> Table:
    """The parameters that differ, in columns `first` to `last` (not included)."""
    table = Table(box=None, pad_edge=False)
    table.add_column("Differs")
    table.add_column("Unit")
    for column in comparison.columns[first:last]:
        table.add_column(_wrapped_heading(console, column.title))
    for line in comparison.parameters:
        if line.differs:
            table.add_row(line.title, line.unit, *(_wrapped_heading(console, text) for text in line.texts[first:last]))
    return table


def _metrics(
    console: Console, comparison: Comparison, first: int, last: int, common: Sequence[str], folded: bool
) -> Table:
    """The metrics of columns `first` to `last` (not included), with the remarks that are not among `common` under their
    titles; a `folded` reason says only that it is not judged."""
    table = Table(box=None, pad_edge=False)
    table.add_column("Metric", max_width=_NARROW_METRIC if console.width < _NARROW else _METRIC)
    table.add_column("Unit")
    shown = [index for index in range(first, last) if has_figures(comparison.columns[index])]
    for column in (comparison.columns[index] for index in shown):
        table.add_column(f"{_wrapped_heading(console, column.title)}{_source(console, column)}", justify="right")
    for line in comparison.metrics:
        title = Text(f"{line.kind.title} {_ARROWS[line.kind.direction]}".strip())
        remarks = [remark for remark in line.remarks if remark not in (*common, line.unjudged)]
        if line.unjudged:
            remarks.append(NOT_JUDGED if folded else line.unjudged)
        remark = "; ".join(remarks)
        if remark:
            title.append(f"\n{remark}", "dim")
        scale = line.scale
        table.add_row(title, scale.unit, *(_cell(line.cells[index], scale) for index in shown))
    return table


def _print_verdicts(console: Console, comparison: Comparison, more: str) -> None:
    """Print the verdicts; those that passed everywhere, and that no source has, are counted where `more` shows them."""
    folded = [line for line in comparison.verdicts if line.passed] if more else []
    lines = [line for line in comparison.verdicts if line not in folded]
    if lines:
        console.print()
        _print_parts(console, comparison, lambda first, last: _verdicts(console, comparison, lines, first, last))
    if any(cell.agrees is not None for line in lines for cell in line.cells):
        console.print("As ours: all runs of the same scenario have the published result.")
    if folded:
        console.print(f"Verdicts passed in all runs: {len(folded)}. `{more}` shows them.", style="dim")


def _verdicts(console: Console, comparison: Comparison, lines: Sequence[VerdictLine], first: int, last: int) -> Table:
    """The verdicts of columns `first` to `last` (not included), with the reason of the first run that did not pass."""
    table = Table(box=None, pad_edge=False)
    table.add_column("Verdict", max_width=_NARROW_METRIC if console.width < _NARROW else _METRIC)
    shown = [index for index in range(first, last) if any(line.cells[index].result for line in comparison.verdicts)]
    for column in (comparison.columns[index] for index in shown):
        table.add_column(f"{_wrapped_heading(console, column.title)}{_source(console, column)}", justify="right")
    for line in lines:
        table.add_row(Text(line.name), *(_verdict(console, line.cells[index]) for index in shown))
    return table


def _verdict(console: Console, cell: VerdictCell) -> Text:
    """The result; beneath it the reason, or whether the runs of a published column's scenario have the same one."""
    text = Text(_wrapped_heading(console, cell.text), _RESULT_STYLES.get(cell.result, ""))
    if cell.result in ("fail", "warning", "unknown") and cell.reason:
        text.append(f"\n{_wrapped_heading(console, cell.reason)}", "dim")
    if cell.agrees is not None:
        text.append("\nas ours" if cell.agrees else "\nnot as ours", "dim")
    return text


def _source(console: Console, column: Column) -> str:
    """Where a column's figures come from: how many runs, those that did not finish, or a publication."""
    if not isinstance(column, RunGroup):
        return "\npublished"
    runs = [f"{column.run_count}, mean"] if column.repeats > 1 else [] if column.measured else [column.run_count]
    unfinished = dict.fromkeys(str(run.status) for run in column.used if run.status is not RunStatus.FINISHED)
    return "".join(f"\n{_wrapped_heading(console, line)}" for line in (*runs, *unfinished))


def _cell(cell: Cell, scale: Scale) -> Text:
    """The value, with a mark where it is of another origin; beneath it the change, or ours against theirs."""
    if cell.value is None:
        return Text(NO_FIGURE)
    text = Text(
        f"{scale.number(cell.value, cell.uncertainty)}{MARK if cell.marked else ''}", "dim" if cell.not_judged else ""
    )
    if cell.change is not None and not math.isnan(cell.change.percent):
        text.append(f"\n{_change(cell.change)}", _STYLES.get(cell.change.judgement, ""))
    if cell.ours is not None:
        text.append(f"\nours {cell.ours.text}")
    if cell.holds is not None:
        text.append("\ninside" if cell.holds else "\noutside")
    return text


def _change(change: Change) -> str:
    """`-2.1 % [-6.0, 3.0]`, and the judgement where it has a colour."""
    return f"{change.text}\n{change.judgement}" if change.judgement in _STYLES else change.text


def _legend(comparison: Comparison) -> str:
    legend = "↑ higher is better, ↓ lower is better"
    if len(comparison.columns) > 1:
        legend += f"; under a value its difference from {comparison.columns[comparison.baseline].title}"
        if any(cell.change and cell.change.interval for line in comparison.metrics for cell in line.cells):
            legend += " with its 95 % interval"
    if any(cell.ours is not None for line in comparison.metrics for cell in line.cells):
        legend += f"; {ours_text(comparison.origin_of_ours())}"
    if any(cell.holds is not None for line in comparison.metrics for cell in line.cells):
        ours = comparison.origin_of_ours()
        legend += f"; inside or outside: where the published figure is relative to the interval {ours}"
    return f"{legend}."
