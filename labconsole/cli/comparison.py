"""The side-by-side table of runs in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from labconsole.analysis import side_by_side
from labconsole.analysis.figures import format_difference, format_number
from labconsole.plugin import Plugins
from labconsole.store.records import RunRow
from labconsole.trial import Direction

_ARROWS = {Direction.HIGHER: "↑", Direction.LOWER: "↓", Direction.NEUTRAL: ""}


def print_comparison(console: Console, runs: Sequence[RunRow], plugins: Plugins) -> None:
    """Print runs side by side: scenarios as columns, metrics as rows, differences from the first column in %.

    Columns that do not fit beside each other are printed below each other.
    """
    kind = runs[0].kind
    comparison = side_by_side.side_by_side(runs, plugins.trial(kind) if kind in plugins.kinds() else None)
    first, count = 0, len(comparison.columns)
    while first < count:
        last = first + 1
        while last < count and _width(console, _table(comparison, first, last + 1)) <= console.width:
            last += 1
        console.print(_table(comparison, first, last))
        console.print()
        first = last
    console.print("↑ higher is better, ↓ lower is better; plain differences from the first column, without intervals.")
    for note in comparison.notes:
        console.print(note)


def _width(console: Console, table: Table) -> int:
    """Cells that the table needs so that nothing in it is cut or broken."""
    return table.__rich_measure__(console, console.options.update(width=10_000, max_width=10_000)).maximum


def _table(comparison: side_by_side.Table, first: int, last: int) -> Table:
    """The metrics of columns `first` to `last` (not included)."""
    table = Table(box=None, pad_edge=False)
    table.add_column("Metric")
    table.add_column("Unit")
    for column in comparison.columns[first:last]:
        repeats = f"\n{column.repeats} runs, mean" if column.repeats > 1 else ""
        table.add_column(f"{column.title}{repeats}", justify="right")
    for line in comparison.metrics:
        cells = [_text(cell) for cell in line.cells[first:last]]
        table.add_row(f"{line.kind.title} {_ARROWS[line.kind.direction]}".strip(), line.kind.unit, *cells)
    return table


def _text(cell: side_by_side.Cell) -> str:
    if cell.value is None:
        return "–"
    difference = "" if cell.difference is None else f" ({format_difference(cell.difference)})"
    return format_number(cell.value) + difference
