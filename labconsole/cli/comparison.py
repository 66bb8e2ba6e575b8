"""The side-by-side table of runs in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from labconsole.analysis.figures import format_number
from labconsole.analysis.side_by_side import side_by_side
from labconsole.plugin import Plugins
from labconsole.store.records import RunRow
from labconsole.trial import Direction

_ARROWS = {Direction.HIGHER: "↑", Direction.LOWER: "↓", Direction.NEUTRAL: ""}


def print_comparison(console: Console, runs: Sequence[RunRow], plugins: Plugins) -> None:
    """Print runs side by side: scenarios as columns, metrics as rows, differences from the first column in %."""
    kind = runs[0].kind
    comparison = side_by_side(runs, plugins.trial(kind) if kind in plugins.kinds() else None)
    table = Table(box=None, pad_edge=False)
    table.add_column("Metric")
    table.add_column("Unit")
    for column in comparison.columns:
        repeats = f"\n{column.repeats} runs, mean" if column.repeats > 1 else ""
        table.add_column(f"{column.title}{repeats}", justify="right")
    for line in comparison.metrics:
        cells = []
        for cell in line.cells:
            text = "–" if cell.value is None else format_number(cell.value)
            cells.append(text if cell.difference is None else f"{text} ({cell.difference:+.0f} %)")
        table.add_row(f"{line.kind.title} {_ARROWS[line.kind.direction]}".strip(), line.kind.unit, *cells)
    console.print(table)
    console.print("↑ higher is better, ↓ lower is better; plain differences from the first column, without intervals.")
    for note in comparison.notes:
        console.print(note, markup=False)
