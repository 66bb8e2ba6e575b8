"""Curves of one unit over a horizontal scale; several curves of one title are the repeats of one thing."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtWidgets import QWidget

from labconsole_ui.plots.axes import Scale
from labconsole_ui.plots.canvas import Drawn
from labconsole_ui.plots.reduce import CurveData
from labconsole_ui.plots.units import axis_unit
from labconsole_ui.plots.xplot import XPlot
from labconsole_ui.theme import Theme

HEADROOM = 1.06
NOTHING = np.empty(0)


@dataclass(frozen=True)
class PlotCurve:
    """A curve: `x` never falls (seconds since T0 on a plot over time), `values` in the plot's unit, NaN for gaps.

    `colour` is the index of its colour, by default its title's place in the legend.
    """

    title: str
    x: NDArray[np.float64]
    values: NDArray[np.float64]
    colour: int | None = None


class CurvePlot(XPlot):
    """Curves keep colour and visibility by title when they are set again."""

    def __init__(
        self, title: str, unit: str, scale: Scale, theme: Theme, *, empty_text: str, parent: QWidget | None = None
    ) -> None:
        self._data: dict[str, list[CurveData]] = {}
        self._colours: dict[str, int] = {}
        super().__init__(title, unit, scale, theme, empty_text=empty_text, parent=parent)
        self.set_curves(())

    def set_curves(self, curves: Sequence[PlotCurve]) -> None:
        """Show these curves instead of the ones before; those of one title share entry and colour of the legend.

        Raises ValueError for unequal lengths.
        """
        self._data = {}
        self._colours = {}
        for curve in curves:
            data = CurveData(self._scale.positions(curve.x), curve.values * self._unit.factor)
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

    def set_unit(self, unit: str) -> None:
        """The unit of the curves that are set from now on."""
        if unit != self._unit.stored:
            self._unit = axis_unit(unit)
            self.canvas.set_unit(self._unit)

    def redraw(self) -> None:
        """Reduce the curves to the part and width that is seen, and draw them."""
        view = self.canvas.view
        if self._whole_x:
            low, high = self._range()
            view.setXRange(low, high, padding=0)
        else:
            low, high = view.viewRange()[0]
        bins = max(1, int(view.width()))
        drawn = []
        top, bottom = 0.0, 0.0
        for title, parts in self._data.items():
            for data in parts:
                x, y = (NOTHING, NOTHING) if title in self._hidden else data.reduced(low, high, bins)
                drawn.append(Drawn(x, y, data.gaps, self._colours[title]))
                if len(y) and not (data.gaps and np.isnan(y).all()):
                    top, bottom = max(top, float(np.nanmax(y))), min(bottom, float(np.nanmin(y)))
        if self._whole_y:
            view.setYRange(bottom * HEADROOM, top * HEADROOM if top > bottom else bottom + 1.0, padding=0)
        self.canvas.draw(drawn)
        self._update_crosshair()

    def readings(self) -> list[tuple[str, str]]:
        """(title, value with unit) of every shown curve at the crosshair; of repeats the median, and from to."""
        if self._crosshair_at is None:
            return []
        readings = []
        for title, parts in self._data.items():
            at = [data.value_at(self._crosshair_at) for data in parts] if title not in self._hidden else []
            values = [value for value in at if value is not None]
            if values:
                readings.append((title, self._reading(values)))
        return readings

    def entry_colour(self, title: str) -> int:
        """The index of the curve's colour."""
        return self._colours[title]

    def _reading(self, values: list[float]) -> str:
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
        return low, high + (high - low) * self._scale.room
