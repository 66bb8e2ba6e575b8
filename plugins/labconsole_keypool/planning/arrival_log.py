"""Logs of arrivals as requests in each hour: read from a CSV file of time stamps, or of hours and counts."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labconsole.errors import UserError
from labconsole.model.trial import Samples
from labconsole.store.reader import Reader
from labconsole.store.records import RunRow
from labconsole_keypool.planning.plan_measurements import LIVE_KIND
from labconsole_keypool.series import DROPS, FAILURES, LIVE_REQUESTS

HOUR = timedelta(hours=1)
MOST_YEARS = 10
"""A log that reaches over more has a wrong date in it."""


@dataclass(frozen=True)
class ArrivalLog:
    """Requests in each hour, without gaps: shape (hours,), the first from `start` on, in the time of the log's clock.

    `source` names their origin.
    """

    start: datetime
    requests: NDArray[np.float64]
    source: str

    @property
    def end(self) -> datetime:
        """End of the last hour."""
        return self.start + len(self.requests) * HOUR


def read_log(path: Path) -> ArrivalLog:
    """Read a CSV file: a row for each request with its time stamp, or rows `hour,count`; a header is allowed.

    Times are ISO 8601 (`2026-11-20T14:05:09`, `2026-11-20 14:00`); an offset behind them is passed over, so that the
    hours are those of the clock that wrote the log. Hours between the first and the last that the log does not name had
    no requests. Of time stamps the first and the last hour are left out, as they need not be whole.

    Raises:
        UserError: the file cannot be read, is empty, or has a fault; names file and line.
    """
    counts: Counter[datetime] = Counter()
    columns = 0
    for line, row in _rows(path):
        where = f"Arrival log {path}, line {line}"
        columns = columns or len(row)
        if len(row) != columns or columns > 2:
            raise UserError(
                f"{where}: {len(row)} columns; each row is a time stamp, or an hour, a comma, and its count."
            )
        counts[_hour(where, row[0])] += _count(where, row[1]) if columns == 2 else 1
    if not counts:
        raise UserError(f"Arrival log {path}: there is no row in this file; choose another one.")
    log = hourly(counts, path.name)
    if columns == 1:
        if len(log.requests) < 3:
            raise UserError(f"Arrival log {path}: there is no whole hour in it; choose a longer one.")
        return ArrivalLog(log.start + HOUR, log.requests[1:-1], log.source)
    return log


def hourly(counts: Mapping[datetime, int], source: str) -> ArrivalLog:
    """Requests by the beginning of their hour, without gaps. Raises UserError: they reach over too many years."""
    first, last = min(counts), max(counts)
    hours = round((last - first) / HOUR) + 1
    if hours > MOST_YEARS * 366 * 24:
        raise UserError(
            f"{source}: from {first:%Y-%m-%d} to {last:%Y-%m-%d} it is more than {MOST_YEARS} years; one of its dates "
            "is wrong."
        )
    requests = np.zeros(hours)
    for hour, count in counts.items():
        requests[round((hour - first) / HOUR)] = count
    return ArrivalLog(first, requests, source)


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, with the number of the line that ends each; a header is left out."""
    line = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            for row in reader:
                line = reader.line_num
                cells = [cell.strip() for cell in row]
                if any(cells) and not (line == 1 and not any(character.isdigit() for character in cells[0])):
                    yield line, cells
    except OSError as error:
        raise UserError(f"The arrival log {path} cannot be read: {error.strerror}.") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise UserError(f"Arrival log {path}, after line {line}: this is not CSV text ({error}).") from error


def _hour(where: str, text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UserError(
            f"{where}: {_shown(text)} is not a time; write it as 2026-11-20T14:05 or 2026-11-20 14:05:09."
        ) from None
    return time.replace(minute=0, second=0, microsecond=0, tzinfo=None)


def _count(where: str, text: str) -> int:
    try:
        count = int(text)
    except ValueError:
        count = -1
    if count < 0:
        raise UserError(f"{where}: the count must be a whole number from 0 on (it is {_shown(text)}).")
    return count


def _shown(text: str) -> str:
    """The text of a cell, cut off where it is long."""
    return repr(text if len(text) <= 30 else text[:30] + "…")


_HOUR_NS = 3600 * 10**9


def arrivals_of_runs(reader: Reader) -> ArrivalLog:
    """Requests of all live runs, dropped and failed ones too; those of a sped-up emulation came at no real time.

    Raises:
        UserError: there are none.
        StoreError: the database is damaged.
    """
    hours: Counter[datetime] = Counter()
    for run in reader.runs(metrics=()):
        offset_ns = reader.run(run.id).provenance.get("wall_offset_ns") if _in_real_time(run) else None
        if offset_ns is None:
            continue
        for received_ns in _received(reader.samples(run.id)):
            numbers, counts = np.unique((received_ns + int(offset_ns)) // _HOUR_NS, return_counts=True)
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
                hours[datetime.fromtimestamp(number * 3600)] += count
    if not hours:
        raise UserError(
            f"{reader.path.name} has no run of the signing service in real time: run it, or import a log of arrivals."
        )
    return hourly(hours, f"Runs of {reader.path.name}")


def _in_real_time(run: RunRow) -> bool:
    return run.kind == LIVE_KIND and (not run.parameters.get("timing") or run.parameters.get("emulation_speed", 1) == 1)


def _received(samples: Samples) -> Iterator[NDArray[np.int64]]:
    for series in (LIVE_REQUESTS, DROPS, FAILURES):
        for role in samples.roles(series.name):
            yield samples.table(series.name, role)["received"]
