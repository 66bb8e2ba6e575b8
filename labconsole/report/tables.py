"""Tables as CSV files (RFC 4180, UTF-8, dot decimals) that a spreadsheet opens without running anything in them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from labconsole.output.export_file import complete_file

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
_FORMULA = r"[=+\-@＝＋－＠]"
_FIRST = re.compile(rf"[\t\r\n]|[\s\"']*{_FORMULA}")
_LATER = re.compile(rf"(?<=\S)([;\t\r\n]+)(?=[ \"']*{_FORMULA})")


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    """Write a table at once, so that `path` is the old file or the complete new one, and return `path`.

    The rows may come from an iterator. Raises ExportError.
    """
    with complete_file(path) as partial:
        fill_table(partial, header, rows)
    return path


def fill_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table to a new file, as far as that goes. Raises OSError."""
    with path.open("x", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow([safe_cell(cell) for cell in header])
        table.writerows([safe_cell(cell) for cell in row] for row in rows)


def table_line(cells: Sequence[Any]) -> str:
    """One line of a table, its end included."""
    line = io.StringIO()
    csv.writer(line).writerow([safe_cell(cell) for cell in cells])
    return line.getvalue()


def safe_cell(cell: Any) -> Any:
    """A text that a spreadsheet would run as a formula, marked as text by an apostrophe; numbers stay numbers.

    Marked are the first characters that OWASP lists (`= + - @`, also in full width, tab, CR, LF), behind spaces and
    quotes too, and those behind a `;`, tab or line break, where a spreadsheet set to semicolons begins a new cell.
    """
    if not isinstance(cell, str) or _NUMBER.fullmatch(cell):
        return cell
    marked = _LATER.sub(r"\1'", cell)
    return f"'{marked}" if _FIRST.match(cell) else marked
