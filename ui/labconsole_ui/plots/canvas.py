"""The drawing area of a plot: axes, panning and zooming, curves, dots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyqtgraph as pg  # type: ignore[import-untyped]
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QResizeEvent

from labconsole_ui.plots.axes import AxisUnit, GridAxis, LogScale, Scale, ValueAxis
from labconsole_ui.theme.theme import FontRole, Theme


class Dot(NamedTuple):
    """A point in the plot's own numbers, its diameter (px) and its colour."""

    x: float
    y: float
    size: float
    colour: QColor


class Dots(pg.GraphicsObject):  # type: ignore[misc]
    """Shows dots, later ones over those before."""

    def __init__(self) -> None:
        super().__init__()
        self.dots: tuple[Dot, ...] = ()
        self.hide()

    def set_dots(self, dots: Sequence[Dot]) -> None:
        """Replace the dots."""
        self.dots = tuple(dots)
        self.setVisible(bool(dots))
        self.update()

    def boundingRect(self) -> QRectF:  # noqa: N802 - Qt's name
        """The visible range."""
        rectangle = self.viewRect()
        return QRectF() if rectangle is None else QRectF(rectangle)

    def viewRangeChanged(self) -> None:  # noqa: N802 - pyqtgraph's
        """Update the bounds: another range is visible."""
        self.prepareGeometryChange()

    def paint(self, p: QPainter, opt: Any, widget: Any) -> None:
        """Draw the dots as circles, independent of the axes' scales."""
        places = p.worldTransform()
        p.resetTransform()
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        p.setPen(Qt.PenStyle.NoPen)
        for dot in self.dots:
            p.setBrush(dot.colour)
            p.drawEllipse(places.map(QPointF(dot.x, dot.y)), dot.size / 2, dot.size / 2)
        p.setWorldTransform(places)


SPARSE_POINTS = 3_000
"""Up to this number of points of all curves, lines are drawn in quality: smoothed on common screens, two pixels wide on
fine ones. Both at once would take 50 to 500 ms, and dense curves get neither."""
FINE_SCREEN = 1.5


DOT = 5
"""Size (px) of a point that no line makes visible."""
RING = 4
"""Difference in size (px) between dots in the same place."""


class DrawnCurve(NamedTuple):
    """A curve to draw: points, whether NaN interrupts them, index of its colour, and which are dots."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    gaps: bool
    colour: int
    dots: NDArray[np.intp]


class PlotViewBox(pg.ViewBox):  # type: ignore[misc]
    """Wheel and drag move sideways, or along the left axis over it. `moved` carries the axis (0 x, 1 y)."""

    moved = Signal(int)
    whole_wanted = Signal()

    def wheelEvent(self, ev: Any, axis: int | None = None) -> None:
        """Zoom around the pointer."""
        axis = 0 if axis is None else axis
        super().wheelEvent(ev, axis=axis)
        self.moved.emit(axis)

    def mouseDragEvent(self, ev: Any, axis: int | None = None) -> None:
        """Pan with the left button, zoom with the right one."""
        axis = 0 if axis is None else axis
        super().mouseDragEvent(ev, axis=axis)
        self.moved.emit(axis)

    def mouseDoubleClickEvent(self, ev: Any) -> None:
        """Show everything again."""
        self.whole_wanted.emit()
        ev.accept()


class Canvas(pg.PlotWidget):  # type: ignore[misc]
    """Axes, grid and curves in the theme's colours."""

    pointer_left = Signal()
    resized = Signal()

    def __init__(self, unit: AxisUnit, scale: Scale, theme: Theme) -> None:
        self.view = PlotViewBox(enableMenu=False)
        axes = {"bottom": scale.axis(), "left": ValueAxis("left")}
        super().__init__(viewBox=self.view, axisItems=axes, enableMenu=False)
        self._theme = theme
        self._curves: list[Any] = []
        self._colours: list[int] = []
        self._sparse = True
        self._dots = Dots()
        self._dotted: list[tuple[float, float, int]] = []
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setFrameShape(self.Shape.NoFrame)
        self.hideButtons()
        # Half a line of text reaches above the topmost number, and beyond the last one at the right.
        self.getPlotItem().layout.setContentsMargins(0, 7, 10, 0)
        self.view.disableAutoRange()
        self.view.setDefaultPadding(0)
        self.set_unit(unit)
        for name in ("bottom", "left"):
            self.getAxis(name).setZValue(-1)
        self.showGrid(x=True, y=True, alpha=1)
        self.addItem(self._dots, ignoreBounds=True)
        self.crosshair = pg.InfiniteLine(angle=90, movable=False)
        self.crosshair.hide()
        self.addItem(self.crosshair, ignoreBounds=True)
        theme.changed.connect(self.apply_theme)
        self.apply_theme()

    def set_unit(self, unit: AxisUnit) -> None:
        """Values in `unit` along the left axis."""
        if not isinstance(self.getAxis("left"), ValueAxis):
            self._set_axis("left", ValueAxis("left"))
        left = self.getAxis("left")
        left.setStyle(autoExpandTextSpace=True)
        left.enableAutoSIPrefix(unit.prefixed)
        left.setLabel(units=unit.unit, siPrefixEnableRanges=unit.prefix_ranges)
        left.showLabel(bool(unit.unit))

    def set_logarithmic(self, unit: AxisUnit) -> None:
        """Decimal logarithms of values in `unit` along the left axis."""
        self._set_axis("left", LogScale("", unit.stored).axis("left"))

    def set_scale(self, scale: Scale) -> None:
        """Show another horizontal axis."""
        self._set_axis("bottom", scale.axis())

    def draw(self, curves: Sequence[DrawnCurve]) -> None:
        """Draw these curves."""
        while len(self._curves) < len(curves):
            curve = pg.PlotCurveItem(skipFiniteCheck=True)
            self._curves.append(curve)
            self.addItem(curve, ignoreBounds=True)
        sparse = sum(len(drawn.x) for drawn in curves) <= SPARSE_POINTS
        colours = [drawn.colour for drawn in curves]
        if sparse != self._sparse or colours != self._colours:
            self._sparse, self._colours = sparse, colours
            self._paint_curves()
        for curve, drawn in zip(self._curves, curves, strict=False):
            curve.setData(drawn.x, drawn.y, connect="finite" if drawn.gaps else "all", skipFiniteCheck=True)
        for curve in self._curves[len(curves) :]:
            curve.setData(np.empty(0), np.empty(0))
        dotted = [(drawn.x[index], drawn.y[index], drawn.colour) for drawn in curves for index in drawn.dots.tolist()]
        if dotted != self._dotted:
            self._dotted = dotted
            self._paint_dots()

    def apply_theme(self) -> None:
        """Apply the theme's colours and fonts."""
        self.setBackground(self._theme.colour("base"))
        font = self._theme.font(FontRole.CAPTION)
        for name in ("bottom", "left"):
            axis = self.getAxis(name)
            axis.setPen(self._theme.colour("grid"))
            axis.setTextPen(self._theme.colour("muted"))
            axis.setTickFont(font)
            axis.label.setFont(font)
        self.crosshair.setPen(pg.mkPen(self._theme.colour("muted"), width=1))
        self._paint_curves()
        self._paint_dots()

    def resizeEvent(self, ev: QResizeEvent | None) -> None:
        """Notify what is drawn over the canvas."""
        super().resizeEvent(ev)
        self.resized.emit()

    def leaveEvent(self, event: QEvent) -> None:
        """Hide the crosshair: the pointer left."""
        super().leaveEvent(event)
        self.pointer_left.emit()

    def _set_axis(self, side: str, axis: GridAxis) -> None:
        self.setAxisItems({side: axis})
        axis.setZValue(-1)  # as the axes before: `setAxisItems` has put the new one over the curves
        self.getPlotItem().updateGrid()
        self.apply_theme()

    def _paint_curves(self) -> None:
        wide = self._sparse and self.devicePixelRatioF() >= FINE_SCREEN
        for curve, colour in zip(self._curves, self._colours, strict=False):
            pen = self._theme.series_pen(colour, 2 if wide else 1)
            pen.setCosmetic(True)
            segmented = wide and pen.style() is Qt.PenStyle.SolidLine  # dashes would begin again in each segment
            curve.opts["antialias"] = self._sparse and not segmented
            curve.setSegmentedLineMode("on" if segmented else "off")
            curve.setPen(pen)

    def _paint_dots(self) -> None:
        """Dots of several colours in one place are drawn as rings."""
        at_place: dict[tuple[float, float], dict[int, None]] = {}
        for x, y, colour in self._dotted:
            at_place.setdefault((x, y), {})[colour] = None
        self._dots.set_dots(
            [
                Dot(x, y, DOT + RING * (len(colours) - 1 - rank), self._theme.series_colour(colour))
                for (x, y), colours in at_place.items()
                for rank, colour in enumerate(colours)
            ]
        )
