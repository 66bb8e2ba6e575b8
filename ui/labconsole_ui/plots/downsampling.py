"""Curves reduced to the smallest and largest value of every pixel, for fast drawing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
FEW = 3
"""Up to this number of points in one place are drawn as dots; more of them make a vertical line."""


class CurveData:
    """A curve whose x never falls, prepared for reduction; y may have NaN for gaps.

    Raises ValueError when x and y differ in length.
    """

    def __init__(self, x: Array, y: Array) -> None:
        if len(x) != len(y):
            raise ValueError(f"x has {len(x)} values, y has {len(y)}")
        self.x = np.ascontiguousarray(x, dtype=np.float64)
        self.y = np.ascontiguousarray(y, dtype=np.float64)
        self.gaps = bool(np.isnan(self.y).any())

    def __len__(self) -> int:
        return len(self.x)

    def reduced(self, low: float, high: float, bins: int) -> tuple[Array, Array]:
        """The points to draw between x `low` and `high` on `bins` pixels: at most about two points a pixel.

        One point beyond each border is kept, so that lines leave the picture instead of ending in it. Across pixels
        without points, the line connects the last point before them to the first one after.
        """
        first = max(0, int(np.searchsorted(self.x, low, "left")) - 1)
        last = min(len(self.x), int(np.searchsorted(self.x, high, "right")) + 1)
        x, y = self.x[first:last], self.y[first:last]
        if len(x) <= 2 * bins or bins < 1:
            return x, y
        edges = np.searchsorted(x, np.linspace(low, high, bins + 1)[1:-1], "left")
        bounds = np.concatenate(([0], edges, [len(x)]))
        filled = np.flatnonzero(np.diff(bounds))
        starts, lasts = bounds[filled], bounds[filled + 1] - 1
        lower, upper = (np.fmin, np.fmax) if self.gaps else (np.minimum, np.maximum)
        drawn = np.empty(2 * len(starts))
        drawn[0::2] = lower.reduceat(y, starts)
        drawn[1::2] = upper.reduceat(y, starts)
        jumps = np.flatnonzero(np.diff(filled) > 1)
        ends = np.column_stack((lasts[jumps], starts[jumps + 1])).ravel()
        places = np.repeat(2 * (jumps + 1), 2)
        return np.insert(np.repeat(x[starts], 2), places, x[ends]), np.insert(drawn, places, y[ends])

    def value_at(self, x: float, reach: float) -> float | None:
        """The value of the point nearest to `x`; None in a gap, and further than `reach` beyond the ends."""
        if not len(self.x) or not self.x[0] - reach <= x <= self.x[-1] + reach:
            return None
        right = int(np.searchsorted(self.x, x))
        near = [index for index in (right - 1, right) if 0 <= index < len(self.x)]
        value = float(self.y[min(near, key=lambda index: abs(self.x[index] - x))])
        return None if np.isnan(value) else value


def isolated_points(x: Array, y: Array, least: float) -> NDArray[np.intp]:
    """Indices of points without a visible line: alone between gaps, or a few within `least` of x."""
    there = np.concatenate(([False], ~np.isnan(y), [False]))
    begins, ends = np.flatnonzero(there[1:] & ~there[:-1]), np.flatnonzero(there[:-1] & ~there[1:])
    unseen = ends - begins <= FEW
    unseen[unseen] = x[ends[unseen] - 1] - x[begins[unseen]] < least
    return np.concatenate(
        [np.arange(begin, end) for begin, end in zip(begins[unseen], ends[unseen], strict=True)] or [np.empty(0, int)]
    )
