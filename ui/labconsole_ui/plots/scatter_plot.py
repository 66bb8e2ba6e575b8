"""A scatter plot: one point for each observation, tens of thousands of them, over a horizontal scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyqtgraph as pg  # type: ignore[import-untyped]
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen
from PySide6.QtWidgets import QWidget

from labconsole.output.ticks import headroom_range
from labconsole_ui.plots.axes import Scale
from labconsole_ui.plots.canvas import Canvas
from labconsole_ui.plots.interactive_plot import InteractivePlot
from labconsole_ui.theme.theme import Theme

DOT = 4.5
"""Diameter of a point (px)."""
CROSS = 3.0
"""Half the width of a cross (px)."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PlotPoints:
    """Points of one kind: `x` and `values` of equal length, in any order; values in the plot's unit.

    `colour` is the index of their colour. Marked ones are crosses without a value, which the crosshair does not read.
    """

    title: str
    x: Floats
    values: Floats
    colour: int
    marked: bool = False


class ScatterPlot(InteractivePlot):
    """Points keep colour and visibility by title when they are set again."""

    def __init__(
        self, title: str, unit: str, scale: Scale, theme: Theme, *, empty_text: str, parent: QWidget | None = None
    ) -> None:
        self._points: dict[str, PlotPoints] = {}
        self._cloud = _Cloud()
        super().__init__(title, unit, scale, theme, empty_text=empty_text, parent=parent)
        self.set_points(())

    def create_canvas(self) -> Canvas:
        """The canvas with the points on it."""
        canvas = super().create_canvas()
        canvas.addItem(self._cloud, ignoreBounds=True)
        return canvas

    def set_points(self, points: Sequence[PlotPoints]) -> None:
        """Show these points instead of the ones before."""
        self._points = {
            kind.title: PlotPoints(
                kind.title,
                self._scale.positions(kind.x),
                kind.values * self._unit.factor,
                kind.colour,
                kind.marked,
            )
            for kind in points
        }
        self.legend.set_titles(
            list(self._points), self._hidden, {title: kind.colour for title, kind in self._points.items()}
        )
        self.show_legend(bool(self._points))
        self.show_empty(not any(len(kind.x) for kind in self._points.values()))
        self.schedule()

    def points(self) -> tuple[PlotPoints, ...]:
        """The points shown or hidden, in the order of the legend, as they are drawn: positions and base units."""
        return tuple(self._points.values())

    def redraw(self) -> None:
        """Draw the points that are shown."""
        view = self.canvas.view
        shown = [kind for kind in self._points.values() if kind.title not in self._hidden and len(kind.x)]
        if self._whole_x:
            high = max((float(kind.x.max()) for kind in shown), default=1.0) or 1.0
            view.setXRange(0.0, high * (1 + self._scale.right_margin), padding=0)
        if self._whole_y:
            view.setYRange(
                *headroom_range(float(end) for kind in shown for end in (kind.values.min(), kind.values.max())),
                padding=0,
            )
        self._cloud.show_points([(kind, self._theme.series_colour(kind.colour)) for kind in shown])
        self._update_crosshair()

    def readings(self) -> list[tuple[str, str]]:
        """(title, value with unit) of the nearest point of each kind that is shown; empty without a crosshair."""
        if self._crosshair_at is None:
            return []
        readings = []
        for title, kind in self._points.items():
            if len(kind.x) and not kind.marked and title not in self._hidden:
                nearest = int(np.abs(kind.x - self._crosshair_at).argmin())
                readings.append((title, self._unit.text(float(kind.values[nearest]))))
        return readings

    def entry_colour(self, title: str) -> int:
        """The index of the points' colour."""
        return self._points[title].colour

    def _apply_theme(self) -> None:
        super()._apply_theme()
        self.schedule()


class _Cloud(pg.GraphicsObject):  # type: ignore[misc]
    """Points on a canvas; of those in one place (half a pixel) one is drawn."""

    def __init__(self) -> None:
        super().__init__()
        self._kinds: list[tuple[PlotPoints, QColor]] = []

    def show_points(self, kinds: Sequence[tuple[PlotPoints, QColor]]) -> None:
        """Replace the points."""
        self._kinds = list(kinds)
        self.update()

    def boundingRect(self) -> QRectF:  # noqa: N802 - Qt's name
        """The visible range."""
        rectangle = self.viewRect()
        return QRectF() if rectangle is None else QRectF(rectangle)

    def viewRangeChanged(self) -> None:  # noqa: N802 - pyqtgraph's
        """Update the bounds: another range is visible."""
        self.prepareGeometryChange()

    def paint(self, p: QPainter, opt: Any, widget: Any) -> None:
        """Draw the points with one size, independent of the axes' scales."""
        places = p.worldTransform()
        p.resetTransform()
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        for kind, colour in self._kinds:
            x = kind.x * places.m11() + places.m31()
            y = kind.values * places.m22() + places.m32()
            corners = np.unique(np.round(np.column_stack((x, y)) * 2), axis=0) / 2
            if kind.marked:
                p.setPen(QPen(colour, 1.5))
                p.drawLines([line for at in corners.tolist() for line in _cross(*at)])
            else:
                p.setPen(QPen(colour, DOT, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
                p.drawPoints([QPointF(*at) for at in corners.tolist()])
        p.setWorldTransform(places)


def _cross(x: float, y: float) -> tuple[QLineF, QLineF]:
    return (
        QLineF(x - CROSS, y - CROSS, x + CROSS, y + CROSS),
        QLineF(x - CROSS, y + CROSS, x + CROSS, y - CROSS),
    )
