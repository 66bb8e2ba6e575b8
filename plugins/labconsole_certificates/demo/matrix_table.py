"""The State x State matrix as a table of the terminal: wide cells for a few States, a letter each for many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from labconsole.security.x509.handshake import Handshake
from labconsole_certificates.trust.matrix import HOLDS, Cell, CellStatus

LEGEND = (
    "Row trusts column, and connects to it:  ✓ trusted and proven by a handshake  t trusted only  ✗ not trusted  · own"
)

_WIDE = 6
"""So many States have cells with words."""


def matrix_table(
    names: Sequence[str], seen: Mapping[tuple[str, str], Cell], handshakes: Mapping[tuple[str, str], Handshake]
) -> Table:
    """The table; `seen` and `handshakes` go by (row, column)."""
    wide = len(names) <= _WIDE
    table = Table(box=None, pad_edge=False, padding=(0, 2) if wide else (0, 1, 0, 0))
    table.add_column("")
    for name in names:
        table.add_column(name if wide else name.removeprefix("State "), justify="left" if wide else "center")
    for row in names:
        cells = [_cell(seen[row, column], handshakes.get((row, column)), wide=wide) for column in names]
        table.add_row(row, *cells)
    return table


def _cell(cell: Cell, handshake: Handshake | None, *, wide: bool) -> Text:
    holds, proven = cell.status in HOLDS, handshake is not None and handshake.ok
    if cell.status is CellStatus.OWN:
        sign, style, words = "·", "dim", "own root"
    elif holds and proven:
        sign, style, words = "✓", "green", f"{cell.status} until {cell.until:%Y-%m-%d}, {_duration(handshake)}"
    elif holds:
        sign, style, words = "t", "yellow", f"{cell.status} until {cell.until:%Y-%m-%d}, no handshake"
    else:
        sign, style, words = "✗", "red", str(cell.status)
    return Text(f"{sign} {words}" if wide else sign, style=style)


def _duration(handshake: Handshake | None) -> str:
    return "" if handshake is None else f"{handshake.protocol} in {handshake.duration_ns / 1e6:.1f} ms"
