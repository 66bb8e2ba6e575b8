"""Summaries of samples that are added up over blocks, runs and hosts: their memory does not grow with the samples."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from labconsole.engine.protocol import LogHistogram, higher, lower
from labconsole.engine.spool import SampleBlock, SpoolReader
from labconsole.errors import UserError
from labconsole.model.series import SURROUNDINGS, Series
from labconsole.model.trial import Samples

BINS_PER_OCTAVE: Final = 1024
LARGEST_ERROR: Final = 2 ** (0.5 / BINS_PER_OCTAVE) - 1
"""A percentile differs from the sample of its rank by this part of it at most."""
_PARTS = 100
"""Stored parts that are added at once."""

Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, order=True)
class Measure:
    """What a summary is of: a column of a series, or the time from another column of its row to it."""

    series: str
    column: str
    unit: str
    since: str = ""
    """The other column; empty: the values of the column itself."""

    def __str__(self) -> str:
        """Its name, by those of exported tables: `received.verify_ns`, `received.done_ns - received_ns`."""
        return f"{self.series}.{self.column}" + (f" - {self.since}" if self.since else "")

    def is_in(self, columns: Columns) -> bool:
        """Whether rows with these columns have it."""
        return self.column in columns and (not self.since or self.since in columns)


def measures(series: Series) -> Iterator[Measure]:
    """What is summarised of a series: columns of integers with a unit; of several times of a row, each since the first.

    Both times are by one clock, so that the offset between hosts does not matter.
    """
    if series.name in SURROUNDINGS:
        return
    times = [column.name for column in series.columns if column.by_clock]
    for column in series.columns:
        if column.name in times[1:]:
            yield Measure(series.name, column.name, column.unit, times[0])
        elif column.unit and not (column.by_clock or column.since_epoch) and column.numpy_type.kind in "iu":
            yield Measure(series.name, column.name, column.unit)


def _histogram() -> LogHistogram:
    return LogHistogram(per_octave=BINS_PER_OCTAVE)


@dataclass
class Summary:
    """Integers of one measure: all figures but the percentiles are exact."""

    count: int = 0
    total: int = 0
    smallest: int | None = None
    largest: int | None = None
    above: LogHistogram = field(default_factory=_histogram)
    """Of its values above 0."""
    below: LogHistogram = field(default_factory=_histogram)
    """Of its values below 0, without their sign."""

    def add(self, values: NDArray[Any]) -> None:
        """Add an array of integers, which may be empty."""
        if not len(values):
            return
        smallest, largest = int(values.min()), int(values.max())
        fits = max(-smallest, largest) * len(values) < 2**63  # a sum in numpy would wrap
        self._add(len(values), int(values.sum()) if fits else sum(values.tolist()), smallest, largest)
        self.above.add(values[values > 0])
        self.below.add(-values[values < 0].astype(np.float64))

    def merge(self, other: Summary) -> None:
        """Add the values of another summary."""
        self._add(other.count, other.total, other.smallest, other.largest)
        self.above, self.below = self.above.plus(other.above), self.below.plus(other.below)

    def _add(self, count: int, total: int, smallest: int | None, largest: int | None) -> None:
        self.count += count
        self.total += total
        self.smallest, self.largest = lower(self.smallest, smallest), higher(self.largest, largest)

    @property
    def mean(self) -> float:
        """The mean; there is a value at least."""
        return self.total / self.count

    def percentile(self, fraction: float) -> float:
        """The value that `fraction` (0 to 1) of all do not exceed, within `LARGEST_ERROR`; there is one at least."""
        assert self.smallest is not None and self.largest is not None
        rank, below = max(1, math.ceil(fraction * self.count)), self.below.count
        from_zero = rank - (self.count - self.above.count)
        if rank <= below:
            found = -self.below.at_rank(below - rank + 1)
        else:
            found = self.above.at_rank(from_zero) if from_zero > 0 else 0.0
        return min(max(found, self.smallest), self.largest)


class Summaries(dict[Measure, Summary]):
    """Summaries of several measures."""

    def add_rows(self, series: Series, parts: Sequence[Columns]) -> None:
        """Add rows of a series in parts, the more at once the faster; they may lack columns that it has today."""
        for measure in measures(series):
            if values := [_values(measure, part) for part in parts if measure.is_in(part)]:
                self.setdefault(measure, Summary()).add(np.concatenate(values))

    def merge(self, other: Mapping[Measure, Summary]) -> None:
        """Add the values of other summaries."""
        for measure, summary in other.items():
            self.setdefault(measure, Summary()).merge(summary)


def _values(measure: Measure, columns: Columns) -> NDArray[Any]:
    values = columns[measure.column]
    if not measure.since:
        return values
    begun = columns[measure.since]
    there = (values > 0) & (begun > 0)  # 0 and less mean that there is no time
    return np.asarray(values[there] - begun[there])


def summaries_of_spools(folder: Path) -> Summaries:
    """The summaries of all spool files in a folder. Raises OSError, and UserError: a file is damaged."""
    summaries = Summaries()
    for path in sorted(folder.glob("*.spool")):
        reader = SpoolReader(path)
        while blocks := reader.read_new():
            parts: dict[Series, list[Columns]] = {}
            for block in blocks:
                if isinstance(block, SampleBlock):
                    parts.setdefault(block.series, []).append(block.columns)
            for series, of_series in parts.items():
                summaries.add_rows(series, of_series)
        if reader.damage is not None:
            raise UserError(reader.damage)
    return summaries


def summaries_of_stored(samples: Samples, recorded: Iterable[Series], role: str) -> Summaries:
    """The summaries of what a role has stored of these series. Raises StoreError."""
    summaries = Summaries()
    for series in recorded:
        if role in samples.roles(series.name):
            parts = samples.parts(series.name, role)
            while some := list(islice(parts, _PARTS)):
                summaries.add_rows(series, some)
    return summaries
