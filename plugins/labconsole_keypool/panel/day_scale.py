"""The horizontal scale of a plot over days: hours since a first midnight, named by their days."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from labconsole_ui.plots.axes import GridAxis, Scale

_DAY_H = 24
_LEAST_PIXELS = 60
"""Room for `Mon 02`."""


class DayScale(Scale):
    """Hours since `midnight`."""

    def __init__(self, midnight: datetime) -> None:
        self._midnight = midnight

    def axis(self) -> GridAxis:
        axis = _DayAxis(self)
        axis.enableAutoSIPrefix(False)
        axis.showLabel(False)
        return axis

    def text(self, position: float) -> str:
        return f"{self._at(position):%a %d %b %H:00}"

    def day(self, position: float) -> str:
        """`Mon 02`."""
        return f"{self._at(position):%a %d}"

    def _at(self, position: float) -> datetime:
        return self._midnight + timedelta(hours=int(position))


class _DayAxis(GridAxis):
    """A tick at each midnight, or at some of them where days are narrow."""

    def __init__(self, scale: DayScale) -> None:
        super().__init__("bottom")
        self._scale = scale

    def tickValues(self, minVal: float, maxVal: float, size: float) -> Any:  # noqa: N802, N803 - pyqtgraph's
        """Midnights, so many days apart that their names do not touch."""
        low, high = sorted((minVal, maxVal))
        days = next(days for days in (1, 2, 7, 14, 28, 10_000) if size * days * _DAY_H >= _LEAST_PIXELS * (high - low))
        step = days * _DAY_H
        first = -int(-low // step)
        return [(float(step), [float(at * step) for at in range(first, int(high // step) + 1)])]

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:  # noqa: N802 - pyqtgraph's
        """The days that begin at `values`."""
        return [self._scale.day(value) for value in values]
