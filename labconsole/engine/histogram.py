"""A sparse log histogram: quantiles of live latencies within 1.1 %, small enough for ten frames a second."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

BINS_PER_OCTAVE = 32
"""A bin spans a factor of 2^(1/32) = 2.2 %; its geometric middle is at most 1.1 % away from any value in it."""


class LogHistogram:
    """Counts of positive values by logarithmic bin. Values below 1 count as 1."""

    def __init__(self, bins: Mapping[int, int] | None = None) -> None:
        self.bins: dict[int, int] = dict(bins or {})

    def add(self, values: NDArray[np.int64]) -> None:
        """Count `values`, an array of any length."""
        if not len(values):
            return
        indices = np.floor(np.log2(np.maximum(values, 1)) * BINS_PER_OCTAVE).astype(np.int64)
        unique, counts = np.unique(indices, return_counts=True)
        bins = self.bins
        for index, count in zip(unique.tolist(), counts.tolist(), strict=True):
            bins[index] = bins.get(index, 0) + count

    @property
    def count(self) -> int:
        """Number of values."""
        return sum(self.bins.values())

    def minus(self, earlier: LogHistogram) -> LogHistogram:
        """What was added since `earlier`, an earlier state of this histogram."""
        difference = {index: count - earlier.bins.get(index, 0) for index, count in self.bins.items()}
        return LogHistogram({index: count for index, count in difference.items() if count > 0})

    def plus(self, *others: LogHistogram) -> LogHistogram:
        """All histograms together."""
        total = dict(self.bins)
        for other in others:
            for index, count in other.bins.items():
                total[index] = total.get(index, 0) + count
        return LogHistogram(total)

    def quantile(self, fraction: float) -> float | None:
        """The value that `fraction` (0-1) of all values do not exceed, or None without values."""
        total = self.count
        if total == 0:
            return None
        remaining = max(1, int(np.ceil(fraction * total)))
        for index in sorted(self.bins):
            remaining -= self.bins[index]
            if remaining <= 0:
                return float(2.0 ** ((index + 0.5) / BINS_PER_OCTAVE))
        raise AssertionError("the counts of the bins add up to the total")
