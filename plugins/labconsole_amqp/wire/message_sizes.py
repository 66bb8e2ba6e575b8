"""Message sizes from a distribution: the sizes that stand for it, and which of them each message has."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

QUANTILES: Final = 32
"""A distribution is represented by so many sizes of the same share: its quantiles at 1/64, 3/64 ... 63/64."""
_FRACTIONS: Final = tuple((2 * part + 1) / (2 * QUANTILES) for part in range(QUANTILES))
_BITS: Final = 64
_MASK: Final = (1 << _BITS) - 1


def uniform_sizes(smallest: int, largest: int) -> dict[int, float]:
    """Sizes between two, all alike likely, with their shares."""
    return _shares(round(smallest + (largest - smallest) * fraction) for fraction in _FRACTIONS)


def log_normal_sizes(median: int, spread: float, smallest: int, largest: int) -> dict[int, float]:
    """Sizes whose logarithm is normally distributed, with their shares: `spread` is the factor of one standard
    deviation. Those outside of `smallest` and `largest` become these."""
    normal = NormalDist()
    sizes = (round(median * spread ** normal.inv_cdf(fraction)) for fraction in _FRACTIONS)
    return _shares(min(max(size, smallest), largest) for size in sizes)


def _shares(sizes: Iterable[int]) -> dict[int, float]:
    return {size: count / QUANTILES for size, count in Counter(sizes).items()}


class DrawnOrder:
    """Which of several sizes each message has, by their shares.

    It follows from the seed and the message's number alone (SplitMix64), so that both ends know it, on any computer
    and from any message on.
    """

    def __init__(self, shares: Sequence[float], seed: int) -> None:
        total, *sums = sum(shares), *accumulate(shares)
        self._edges = [min(int(part / total * _MASK), _MASK) for part in sums[:-1]]
        self._seed = seed

    def place(self, number: int) -> int:
        """The place among the shares of the message with this number."""
        return bisect_right(self._edges, _mixed(number, self._seed)) if self._edges else 0

    def places(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """`place` of each of several messages."""
        mixed = _mixed(numbers.astype(np.uint64), self._seed)
        return np.asarray(np.searchsorted(np.array(self._edges, np.uint64), mixed, side="right"), np.int64)


def _mixed(numbers: Any, seed: int) -> Any:
    """64 random bits for a number, or for each of an array (uint64)."""
    bits = numbers * 0x9E3779B97F4A7C15 + (seed * 0xD1342543DE82EF95 & _MASK) & _MASK
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & _MASK
    return bits ^ bits >> 31
