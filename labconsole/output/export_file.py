"""Files that appear only when complete: written under a temporary name, renamed at the end."""

from __future__ import annotations

import csv
import errno
import glob
import io
import os
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from labconsole.errors import UserError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_ABANDONED_S = 3600.0
"""Seconds without a write after which a temporary file is taken for that of a killed process."""


class ExportError(UserError):
    """A file that cannot be written; no partial file is left under its name."""


def must_be_new_files(*paths: Path) -> None:
    """Check files that are to be written before their contents are created.

    Raises ExportError: one exists, its directory does not or may not be written, or two are the same.
    """
    for number, path in enumerate(paths):
        if os.path.lexists(path):
            raise ExportError(f"The file {path} is there already and stays as it is: choose another name.")
        if not os.path.isdir(path.parent):  # noqa: PTH112 - Path.is_dir raises OSError for a name that is too long
            raise ExportError(f"The directory {path.parent} does not exist: create it, or choose another.")
        if not os.access(path.parent, os.W_OK):
            raise ExportError(f"The directory {path.parent} cannot be written: choose another.")
        if path.absolute() in (other.absolute() for other in paths[:number]):
            raise ExportError(f"The file {path} is named for two outputs: give each a file of its own.")


@contextmanager
def complete_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to `path` (whose directory is created if needed); it is renamed after the block.

    Until then `path` is the old file, or none; if the block raises, it stays so, and the temporary file and directories
    made for it are gone, as are those that killed processes left for this file. A link is followed. On one
    `contextlib.ExitStack` several files become complete together.
    Raises ExportError for errors of the operating system, and for a device, a pipe or a directory: a file replaces
    files only.
    """
    path = Path(os.path.realpath(path))
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    made: list[Path] = []
    try:
        if path.exists() and not path.is_file():
            raise ExportError(f"{path} is not a file and cannot be replaced by one: name another.")
        made = [folder for folder in path.parents if not folder.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        with partial.open("r+b") as file:
            os.fsync(file.fileno())  # a disk may find out only now that it is full
        partial.replace(path)
        _remove_abandoned(path)
    except BaseException as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
            for folder in made:
                folder.rmdir()
        if isinstance(error, OSError):
            raise _explained(path, error) from error
        raise


def _remove_abandoned(path: Path) -> None:
    """Remove the temporary files that killed processes left for `path`."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 8}.partial"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _ABANDONED_S:
                left.unlink()


def _explained(path: Path, error: OSError) -> ExportError:
    if error.errno in _FULL:
        return ExportError(f"{path} cannot be written, the disk is full: free some space or choose another one.")
    return ExportError(f"{path} cannot be written ({error.strerror or error}): choose another directory.")


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
