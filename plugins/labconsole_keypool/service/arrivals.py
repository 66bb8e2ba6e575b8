"""When signing requests arrive: Table 4-1, constant, Poisson, a business day, or a CSV file of counts and delays.

Each pattern is a list of delays: a request arrives, then its delay passes, then the next one arrives.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labconsole.errors import UserError
from labconsole_keypool.choices import ArrivalPattern

HEADER = ["count", "delay_ms"]
ARRIVALS_FILE = "arrivals"
"""The key under which a role asks for the CSV file of its scenario."""
MOST_REQUESTS = 2_000_000
"""A business day at 50 per second has 1.7 million; the simulation keeps some hundred bytes of each in memory."""


def read_delays_ms(path: Path) -> NDArray[np.float64]:
    """Read the delay after each request: shape (requests,), ms.

    A row is `count` requests with `delay_ms` after each; empty lines are ignored.

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
    """The text of a cell, cut off where it is long."""
    return repr(text if len(text) <= 30 else text[:30] + "…")


TABLE_4_1_DELAYS_MS = (
    *(1000, 800, 700, 600, 500, 400, 300, 200, 100, 90, 80, 70, 50, 20, 10),
    *(20, 50, 70, 80, 90, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000),
)
"""The 30 steps of Table 4-1."""

TABLE_4_1_REQUESTS = 100
"""Requests in each step of Table 4-1."""

BUSINESS_DAY = ((8, 0.25), (7, 0.5), (2, 1.0), (7, 0.25))
"""Hours of each part of a day from midnight on, and its share of the peak rate (section 1.3)."""

_LONGEST_S = 366 * 86_400


def arrivals_ns(
    pattern: ArrivalPattern,
    *,
    requests: int,
    rate: float,
    seed: int,
    time_scale: float = 1.0,
    csv: Path | None = None,
    tail_requests: int = 0,
    tail_rate: float = 1.0,
) -> NDArray[np.int64]:
    """When each request arrives: ns since T0, ascending, the first at 0; shape (requests + tail_requests,).

    Args:
        pattern: `TABLE_4_1` has its own number of requests, `CSV` that of its file.
        requests: Requests of the other patterns, at least 1.
        rate: Requests per second; of a business day, that of its peak.
        seed: Of the Poisson process, the only one that is random.
        time_scale: Divides all delays, those of the tail too.
        csv: The file of `CSV` (`labconsole_keypool.service.arrivals`).
        tail_requests: Requests at `tail_rate` per second after those of the pattern, as in Fig. 4-2.
        tail_rate: Requests per second of the tail.

    Raises:
        UserError: the file is missing or has a fault, or the arrivals take more than a year.
    """
    delays_s = np.concatenate([_delays_s(pattern, requests, rate, seed, csv), np.full(tail_requests, 1 / tail_rate)])
    times_s = np.concatenate([[0.0], np.cumsum(delays_s)[:-1]]) / time_scale
    if times_s[-1] > _LONGEST_S:
        raise UserError(
            f"The last of {len(times_s):,} requests would arrive after {times_s[-1] / 86_400:,.0f} days; "
            "take a higher rate or a larger time scale, so that it is a year at most."
        )
    return np.rint(times_s * 1e9).astype(np.int64)


def _delays_s(pattern: ArrivalPattern, requests: int, rate: float, seed: int, csv: Path | None) -> NDArray[np.float64]:
    match pattern:
        case ArrivalPattern.TABLE_4_1:
            return np.repeat(np.array(TABLE_4_1_DELAYS_MS), TABLE_4_1_REQUESTS) / 1e3
        case ArrivalPattern.CONSTANT:
            return np.full(requests, 1 / rate)
        case ArrivalPattern.POISSON:
            return np.random.default_rng(seed).exponential(1 / rate, requests)
        case ArrivalPattern.BUSINESS_DAY:
            return business_day_delays_s(requests, rate)
        case ArrivalPattern.CSV:
            if csv is None:
                raise UserError("Arrivals from a CSV file need its path; choose the file.")
            return read_delays_ms(csv) / 1e3


def business_day_delays_s(requests: int, peak_rate: float) -> NDArray[np.float64]:
    """Delays of a day's requests, at even distances within each part of the day; shape (requests,), s.

    Section 1.3: the peak rate "for the two busiest hours of the day, half this rate for the remaining business hours,
    and a quarter of this rate for the remaining hours". It does not say how many business hours there are, and when
    the peak is. Assumed are the hours from 8 to 17, and that the peak is the last two of them (it speaks of the final
    hours before a deadline); the day begins at midnight.

    All parts of the day are shortened or stretched alike, so that they hold `requests` at these rates: 1,665,000 with
    a peak of 50 per second make 24 hours. Seven such days are 11.7 million; the section says "over 6 million".
    """
    hours, shares = np.array(BUSINESS_DAY).T
    ends = np.concatenate([[0.0], np.cumsum(hours * shares)])
    place = np.linspace(0.0, ends[-1], requests + 1)
    times = np.interp(place, ends, np.concatenate([[0.0], np.cumsum(hours)]))
    delays_s: NDArray[np.float64] = np.diff(times) * (requests / (peak_rate * ends[-1]))
    return delays_s
