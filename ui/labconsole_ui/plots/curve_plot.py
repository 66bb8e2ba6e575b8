"""Curves of one unit over a horizontal scale; several curves of one title are repeats."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtWidgets import QWidget

from labconsole.output.ticks import headroom_range
from labconsole_ui.plots.axes import Scale, TimeScale, axis_unit
from labconsole_ui.plots.canvas import Canvas, DrawnCurve
from labconsole_ui.plots.downsampling import CurveData, isolated_points
from labconsole_ui.plots.interactive_plot import InteractivePlot
from labconsole_ui.theme.theme import Theme

LOG_ROOM, MIN_LOG_ROOM = 0.04, 0.1
"""Free room above and below on a logarithmic axis: part of its length, and decades."""
MIN_LINE = 3.0
"""Shorter lines (px) are dots."""
CROSSHAIR_REACH = 0.02
"""Distance beyond the ends of a curve (part of the width) at which the crosshair still reads it."""
NO_POINTS = np.empty(0)


@dataclass(frozen=True)
class PlotCurve:
    """A curve: `x` never falls (over time: s since T0), `values` in the plot's unit, NaN for gaps.

    `colour` is the index of its colour, by default its title's place in the legend. `virtual` says that `x` is the time
    of a virtual clock.
    """

    title: str
    x: NDArray[np.float64]
    values: NDArray[np.float64]
    colour: int | None = None
    virtual: bool = False


class CurvePlot(InteractivePlot):
    """Curves keep colour and visibility by title when they are set again."""

    def __init__(
        self, title: str, unit: str, scale: Scale, theme: Theme, *, empty_text: str, parent: QWidget | None = None
    ) -> None:
        self._data: dict[str, list[CurveData]] = {}
        self._colours: dict[str, int] = {}
        self._logarithmic = False
        super().__init__(title, unit, scale, theme, empty_text=empty_text, parent=parent)
        self.set_curves(())

    def set_curves(self, curves: Sequence[PlotCurve]) -> None:
        """Replace the curves; those of one title share entry and colour of the legend.

        Raises ValueError for unequal lengths.
        """
        self._data = {}
        self._colours = {}
        for curve in curves:
            values = curve.values * self._unit.factor
            data = CurveData(self._scale.positions(curve.x), np.log10(values) if self._logarithmic else values)
            self._data.setdefault(curve.title, []).append(data)
            place = len(self._colours)
            self._colours.setdefault(curve.title, place if curve.colour is None else curve.colour)
        self.legend.set_titles(list(self._data), self._hidden, self._colours)
        self.show_legend(bool(self._data))
        self.show_empty(not any(len(data) for parts in self._data.values() for data in parts))
        self.schedule()

    def curves(self) -> tuple[PlotCurve, ...]:
        """The curves shown or hidden, in the order of the legend, as they are drawn: positions and base units."""
        return tuple(
            PlotCurve(title, data.x, data.y, self._colours[title])
            for title, parts in self._data.items()
            for data in parts
        )

    def set_unit(self, unit: str, *, logarithmic: bool = False) -> None:
        """Set the unit of later curves, and whether their values, all above 0, have a logarithmic axis."""
        if (unit, logarithmic) != (self._unit.stored, self._logarithmic):
            self._unit, self._logarithmic = axis_unit(unit), logarithmic
            self._whole_y = True
            if self._canvas is not None:
                (self._canvas.set_logarithmic if logarithmic else self._canvas.set_unit)(self._unit)

    def create_canvas(self) -> Canvas:
        """The canvas, with a logarithmic axis where the curves have one."""
        canvas = super().create_canvas()
        if self._logarithmic:
            canvas.set_logarithmic(self._unit)
        return canvas

    def redraw(self) -> None:
        """Reduce the curves to the visible range and width, and draw them."""
        view = self.canvas.view
        if self._whole_x:
            low, high = self._range()
            view.setXRange(low, high, padding=0)
        else:
            low, high = view.viewRange()[0]
        bins = max(1, int(view.width()))
        least = (high - low) / bins * MIN_LINE
        drawn = []
        ends: list[float] = []
        for title, parts in self._data.items():
            for data in parts:
                x, y = (NO_POINTS, NO_POINTS) if title in self._hidden else data.reduced(low, high, bins)
                drawn.append(DrawnCurve(x, y, data.gaps, self._colours[title], isolated_points(x, y, least)))
                if len(y) and not (data.gaps and np.isnan(y).all()):
                    ends += [float(np.nanmin(y)), float(np.nanmax(y))]
        if self._whole_y:
            view.setYRange(*self._room_for(ends), padding=0)
        self.canvas.draw(drawn)
        self._update_crosshair()

    def readings(self) -> list[tuple[str, str]]:
        """(title, value with unit) of shown curves at the crosshair; of repeats median, minimum, maximum."""
        if self._crosshair_at is None:
            return []
        low, high = self.canvas.view.viewRange()[0]
        reach = (high - low) * CROSSHAIR_REACH if self._scale.ends else np.inf
        readings = []
        for title, parts in self._data.items():
            at = [data.value_at(self._crosshair_at, reach) for data in parts] if title not in self._hidden else []
            values = [value for value in at if value is not None]
            if values:
                readings.append((title, self._reading(values)))
        return readings

    def entry_colour(self, title: str) -> int:
        """The index of the curve's colour."""
        return self._colours[title]

    def _room_for(self, ends: Sequence[float]) -> tuple[float, float]:
        """The range of the left axis for curves with these smallest and largest values."""
        if self._logarithmic:
            low, high = min(ends, default=0.0), max(ends, default=1.0)
            around = max((high - low) * LOG_ROOM, MIN_LOG_ROOM)
            return low - around, high + around
        return headroom_range(ends)

    def _reading(self, values: list[float]) -> str:
        if self._logarithmic:
            values = [10.0**value for value in values]
        if len(values) == 1:
            return self._unit.text(values[0])
        return self._unit.spread_text(statistics.median(values), min(values), max(values))

    def _range(self) -> tuple[float, float]:
        shown = [
            data.x for title, parts in self._data.items() for data in parts if len(data) and title not in self._hidden
        ]
        low = min((float(x[0]) for x in shown), default=0.0)
        high = max((float(x[-1]) for x in shown), default=1.0)
        if self._scale.from_zero:
            low = min(0.0, low)
        high = high if high > low else low + 1.0
        return low, high + (high - low) * self._scale.right_margin


class TimePlot(CurvePlot):
    """Curves of one unit over time, which is virtual where all of them are of simulated runs."""

    def __init__(self, title: str, unit: str, theme: Theme, *, empty_text: str, parent: QWidget | None = None) -> None:
        super().__init__(title, unit, TimeScale(), theme, empty_text=empty_text, parent=parent)

    def set_curves(self, curves: Sequence[PlotCurve]) -> None:
        """Replace the curves, and name the time of the axis."""
        scale = TimeScale(bool(curves) and all(curve.virtual for curve in curves))
        if scale != self._scale:
            self._scale = scale
            if self._canvas is not None:
                self._canvas.set_scale(scale)
        super().set_curves(curves)
