"""The drawing area of a time plot: axes with readable numbers, panning along time, curves of at most screen width."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyqtgraph as pg  # type: ignore[import-untyped]
from PySide6.QtCore import QEvent, QRectF, Qt, Signal
from PySide6.QtGui import QPainter, QPen, QResizeEvent

from labconsole_ui.plots.units import AxisUnit
from labconsole_ui.theme import FontRole, Theme

NOTHING = (np.empty(0), np.empty(0), False)
SPARSE_POINTS = 3_000
"""Up to so many points of all curves together, lines are drawn well: smoothed on common screens, two pixels wide on
fine ones. Both at once would take 50 to 500 ms, and dense curves get neither."""
FINE_SCREEN = 1.5
TEXT_MARGIN = 15
CLOCK_FROM_S = 600
"""Times beyond are written `min:s`."""


class GridAxis(pg.AxisItem):  # type: ignore[misc]
    """An axis with opaque grid lines, drawn directly: pyqtgraph's translucent lines and QPicture cost 15 ms a frame."""

    def tickValues(self, minVal: float, maxVal: float, size: float) -> Any:  # noqa: N802, N803 - pyqtgraph's
        """The coarsest level of ticks, and the next one where that leaves fewer than three."""
        levels = super().tickValues(minVal, maxVal, size)
        return levels[:1] if levels and len(levels[0][1]) >= 3 else levels[:2]

    def labelString(self) -> str:  # noqa: N802 - pyqtgraph's
        """The label with the unit as the figures have it: `ms`, `time since T0, s`."""
        unit = f"{self.labelUnitPrefix}{self.labelUnits}"
        text = ", ".join(part for part in (self.labelText, unit) if part)
        return f"<span style='color: {self.labelStyle.get('color', '')}'>{text}</span>"

    def boundingRect(self) -> QRectF:  # noqa: N802 - Qt's name
        """Room for texts at both ends of the axis: pyqtgraph drops those that stick out."""
        rectangle: QRectF = super().boundingRect()
        return rectangle.adjusted(-TEXT_MARGIN, -TEXT_MARGIN, TEXT_MARGIN, TEXT_MARGIN)

    def paint(self, p: QPainter, opt: Any, widget: Any) -> None:
        """Draw axis line, grid and texts."""
        if self.picture is None:  # pyqtgraph's sign that the axis has changed
            self.picture: Any = self.generateDrawSpecs(p)
        if self.picture is None:
            return
        _, ticks, texts = self.picture
        p.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        p.setPen(self.pen())
        for _, begin, end in ticks:
            p.drawLine(begin, end)
        p.setFont(self.style["tickFont"])
        p.setPen(self.textPen())
        for rectangle, flags, text in texts:
            p.drawText(rectangle, int(flags), text)


class TimeAxis(GridAxis):
    """Time since T0: seconds, and `min:s` or `h:min:s` from ten minutes on."""

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:  # noqa: N802 - pyqtgraph's
        """The texts at `values` (s)."""
        if not values or max(abs(value) for value in values) < CLOCK_FROM_S or spacing < 1:
            return super().tickStrings(values, scale, spacing)  # type: ignore[no-any-return]
        return [clock_text(round(value)) for value in values]

    def setRange(self, mn: float, mx: float) -> None:  # noqa: N802 - pyqtgraph's
        """The span of time that is seen; the label follows it."""
        super().setRange(mn, mx)
        unit = "s" if max(abs(mn), abs(mx)) < CLOCK_FROM_S else "min:s" if max(abs(mn), abs(mx)) < 3600 else "h:min:s"
        if unit != self.labelUnits:
            self.setLabel(self.labelText, units=unit)


class ValueAxis(GridAxis):
    """Values with thousands separators."""

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:  # noqa: N802 - pyqtgraph's
        """The texts at `values`."""
        if spacing * scale >= 1:
            return [f"{value * scale:,.0f}" for value in values]
        return super().tickStrings(values, scale, spacing)  # type: ignore[no-any-return]


class TimeViewBox(pg.ViewBox):  # type: ignore[misc]
    """Wheel and drag move along time; over the value axis they move along values. `moved(axis)` tells (0 x, 1 y)."""

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

    def __init__(self, unit: AxisUnit, theme: Theme) -> None:
        self.view = TimeViewBox(enableMenu=False)
        axes = {"bottom": TimeAxis("bottom"), "left": ValueAxis("left")}
        super().__init__(viewBox=self.view, axisItems=axes, enableMenu=False)
        self._theme = theme
        self._curves: list[Any] = []
        self._sparse = True
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setFrameShape(self.Shape.NoFrame)
        self.hideButtons()
        # Half a line of text stands out above the topmost number, and beyond the last one at the right.
        self.getPlotItem().layout.setContentsMargins(0, 7, 10, 0)
        self.view.disableAutoRange()
        self.view.setDefaultPadding(0)
        bottom, left = self.getAxis("bottom"), self.getAxis("left")
        bottom.enableAutoSIPrefix(False)
        left.setStyle(autoExpandTextSpace=True)
        self.set_unit(unit)
        bottom.setLabel(self.tr("time since T0"), units="s")
        for axis in (bottom, left):
            axis.setZValue(-1)
        self.showGrid(x=True, y=True, alpha=1)
        self.crosshair = pg.InfiniteLine(angle=90, movable=False)
        self.crosshair.hide()
        self.addItem(self.crosshair, ignoreBounds=True)
        theme.changed.connect(self.apply_theme)
        self.apply_theme()

    def set_unit(self, unit: AxisUnit) -> None:
        """Label the values with `unit`."""
        left = self.getAxis("left")
        left.enableAutoSIPrefix(unit.prefixed)
        left.setLabel(units=unit.unit)
        left.showLabel(bool(unit.unit))

    def draw(self, curves: list[tuple[Any, Any, bool]]) -> None:
        """Draw (x, y, has gaps) of every curve; an empty one takes its place and colour without being seen."""
        while len(self._curves) < len(curves):
            curve = pg.PlotCurveItem(skipFiniteCheck=True)
            self._curves.append(curve)
            self.addItem(curve, ignoreBounds=True)
            self._paint_curve(len(self._curves) - 1)
        sparse = sum(len(x) for x, _, _ in curves) <= SPARSE_POINTS
        if sparse != self._sparse:
            self._sparse = sparse
            for index in range(len(self._curves)):
                self._paint_curve(index)
        for index, curve in enumerate(self._curves):
            x, y, gaps = curves[index] if index < len(curves) else NOTHING
            curve.setData(x, y, connect="finite" if gaps else "all", skipFiniteCheck=True)

    def apply_theme(self) -> None:
        """Take the theme's colours and fonts."""
        self.setBackground(self._theme.colour("base"))
        font = self._theme.font(FontRole.CAPTION)
        for name in ("bottom", "left"):
            axis = self.getAxis(name)
            axis.setPen(self._theme.colour("grid"))
            axis.setTextPen(self._theme.colour("muted"))
            axis.setTickFont(font)
            axis.label.setFont(font)
        self.crosshair.setPen(pg.mkPen(self._theme.colour("muted"), width=1))
        for index in range(len(self._curves)):
            self._paint_curve(index)

    def resizeEvent(self, ev: QResizeEvent | None) -> None:
        """Tell what stands on the canvas."""
        super().resizeEvent(ev)
        self.resized.emit()

    def leaveEvent(self, event: QEvent) -> None:
        """The pointer went away."""
        super().leaveEvent(event)
        self.pointer_left.emit()

    def _paint_curve(self, index: int) -> None:
        wide = self._sparse and self.devicePixelRatioF() >= FINE_SCREEN
        curve = self._curves[index]
        curve.opts["antialias"] = self._sparse and not wide
        curve.setSegmentedLineMode("on" if wide else "off")
        pen = QPen(self._theme.series_colour(index), 2 if wide else 1)
        pen.setCosmetic(True)
        curve.setPen(pen)


def clock_text(seconds: int) -> str:
    """`12:05` or `1:02:05` for a number of seconds."""
    sign = "-" if seconds < 0 else ""
    minutes, rest = divmod(abs(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours}:{minutes:02d}:{rest:02d}" if hours else f"{sign}{minutes}:{rest:02d}"
