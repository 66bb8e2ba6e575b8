"""Curves that grow while a run is in progress: one of a total, or one of each role. No Qt."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

HIGHEST, MEDIAN, LOWEST = "highest", "median", "lowest"
"""The curves that represent many roles."""


class GrowingCurve:
    """Points over time that are appended while a run is in progress; `t_ns` is the clock's."""

    def __init__(self) -> None:
        self._t = np.empty(256, np.int64)
        self._values = np.empty(256, np.float64)
        self._length = 0

    def append(self, t_ns: int, value: float) -> None:
        """Add a point; NaN makes a gap."""
        if self._length == len(self._t):
            self._t = np.concatenate((self._t, np.empty_like(self._t)))
            self._values = np.concatenate((self._values, np.empty_like(self._values)))
        self._t[self._length], self._values[self._length] = t_ns, value
        self._length += 1

    def points(self, zero_ns: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Seconds since `zero_ns`, and values."""
        return (self._t[: self._length] - zero_ns) / 1e9, self._values[: self._length]


class RoleCurves:
    """Curves of a value by role: one each up to `most` roles, else highest, median and lowest.

    300 lines are neither readable nor drawn in time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._curves: dict[str, GrowingCurve] = {}
        self._many = False

    @property
    def curves(self) -> Mapping[str, GrowingCurve]:
        """The curves by their roles in natural order, or HIGHEST, MEDIAN and LOWEST."""
        if self._many:
            return self._curves
        return {role: self._curves[role] for role in sorted(self._curves, key=natural)}

    @property
    def many(self) -> bool:
        """Whether the curves represent all roles, not one each."""
        return self._many

    def append(self, t_ns: int, values: Mapping[str, float]) -> None:
        """Add a point to each curve; a role that has no value any more gets a gap."""
        if not self._many and len(self._curves.keys() | values.keys()) > self._most:
            self._many, self._curves = True, {name: GrowingCurve() for name in (HIGHEST, MEDIAN, LOWEST)}
        if self._many:
            numbers = np.fromiter(values.values(), np.float64, len(values))
            numbers = numbers[~np.isnan(numbers)]
            points = (numbers.max(), np.median(numbers), numbers.min()) if len(numbers) else (np.nan,) * 3
            for curve, point in zip(self._curves.values(), points, strict=True):
                curve.append(t_ns, float(point))
            return
        for role, value in values.items():
            self._curves.setdefault(role, GrowingCurve()).append(t_ns, value)
        for role in self._curves.keys() - values.keys():
            self._curves[role].append(t_ns, float("nan"))


@lru_cache(maxsize=4096)
def natural(name: str) -> tuple[tuple[int, str], ...]:
    """A key that sorts numbers in names by their value: station-2 comes before station-10."""
    parts = re.split(r"(\d+)", name)
    return tuple((int(part), "") if part.isdecimal() else (-1, part.casefold()) for part in parts if part)
