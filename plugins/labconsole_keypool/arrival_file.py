"""CSV files of arrivals: rows of `count,delay_ms`, with or without this header."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labconsole.errors import UserError

HEADER = ["count", "delay_ms"]
ARRIVALS_FILE = "arrivals"
"""The key under which a role asks for the CSV file of its scenario."""
MOST_REQUESTS = 2_000_000
"""A business day at 50 per second has 1.7 million; the simulation keeps some hundred bytes of each in memory."""


def read_delays_ms(path: Path) -> NDArray[np.float64]:
    """Read the delay after each request: shape (requests,), ms.

    A row stands for `count` requests with `delay_ms` after each; empty lines are passed over.

    Raises:
        UserError: the file cannot be read, is empty, asks for too many requests, or has a fault; names file and line.
    """
    counts: list[int] = []
    delays: list[float] = []
    total = 0
    for line, row in _rows(path):
        where = f"Arrivals {path}, line {line}"
        count, delay = _count_and_delay(where, row)
        total += count
        if total > MOST_REQUESTS:
            raise UserError(f"{where}: more than {MOST_REQUESTS:,} requests; take a part of the file.")
        counts.append(count)
        delays.append(delay)
    if not counts:
        raise UserError(f"Arrivals {path}, line 1: there is no row `count,delay_ms` in this file; choose another one.")
    return np.repeat(np.array(delays, np.float64), counts)


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, with the number of the line that ends each; the header is left out."""
    line = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            for row in reader:
                line = reader.line_num
                cells = [cell.strip() for cell in row]
                if any(cells) and not (line == 1 and [cell.lower() for cell in cells] == HEADER):
                    yield line, cells
    except OSError as error:
        raise UserError(f"The arrivals {path} cannot be read: {error.strerror}.") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise UserError(f"Arrivals {path}, after line {line}: this is not CSV text ({error}).") from error


def _count_and_delay(where: str, row: list[str]) -> tuple[int, float]:
    if len(row) != len(HEADER):
        raise UserError(f"{where}: {len(row)} columns; each row is a count, a comma, and a delay in ms, as in 100,20.")
    count_text, delay_text = row
    try:
        count = int(count_text)
    except ValueError:
        count = 0
    if count < 1:
        raise UserError(f"{where}: the count must be a whole number from 1 on (it is {_shown(count_text)}).")
    try:
        delay = float(delay_text)
    except ValueError:
        delay = math.nan
    if not 0 <= delay < math.inf:
        raise UserError(f"{where}: the delay must be a number of ms from 0 on (it is {_shown(delay_text)}).")
    return count, delay


def _shown(text: str) -> str:
    """What stands in a cell, cut off where it is long."""
    return repr(text if len(text) <= 30 else text[:30] + "…")
