"""Horizontal bars of one figure, each with its interval as a whisker; published points are hollow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import pyqtgraph as pg  # type: ignore[import-untyped]
from PySide6.QtCore import Qt
from PySide6.QtGui import QBrush, QColor, QFont, QFontMetrics, QPen
from PySide6.QtWidgets import QWidget

from labconsole.output.ticks import headroom_range
from labconsole_ui.plots.axes import ValueScale, axis_unit
from labconsole_ui.plots.canvas import Canvas
from labconsole_ui.plots.interactive_plot import InteractivePlot
from labconsole_ui.plots.plot_card import MIN_HEIGHT
from labconsole_ui.theme.theme import FontRole, Theme

THICKNESS = 0.34
BAR_MIDDLE = -0.18
LABEL_MIDDLE = 0.24
CAP = 0.09
LABEL_GAP = 20
MIN_TITLE = 44
ROW_HEIGHT, MAX_ROW_HEIGHT = 46, 92
HEIGHT_AROUND_BARS = 90
"""Height (px) of title, legend and axis together."""


@dataclass(frozen=True)
class Bar:
    """`value` in the plot's unit with its text, the interval in that unit, the index of its colour."""

    title: str
    value: float
    interval: tuple[float, float] | None
    colour: int
    text: str
    hollow: bool = False


class BarPlot(InteractivePlot):
    """Bars from top to bottom, labelled with title and value; all begin at 0."""

    legend_beneath = True

    def __init__(self, title: str, unit: str, theme: Theme, *, empty_text: str, parent: QWidget | None = None) -> None:
        self._bars: dict[str, Bar] = {}
        self._items: list[Any] = []
        self._labels: list[Any] = []
        super().__init__(title, unit, ValueScale(unit), theme, empty_text=empty_text, parent=parent)
        self.set_bars(title, unit, ())

    def create_canvas(self) -> Canvas:
        """The canvas without an axis at the left: the bars have their titles on them."""
        canvas = super().create_canvas()
        canvas.hideAxis("left")
        canvas.getPlotItem().layout.setContentsMargins(8, 7, 14, 0)
        return canvas

    def set_bars(self, title: str, unit: str, bars: Sequence[Bar]) -> None:
        """Show these bars instead of the ones before."""
        self.set_title(title)
        if unit != self._unit.stored:
            self._unit, self._scale = axis_unit(unit), ValueScale(unit)
            if self._canvas is not None:
                self._canvas.set_scale(self._scale)
        self._bars = {bar.title: bar for bar in bars}
        self._whole_x = True
        self.legend.set_titles(list(self._bars), self._hidden, {bar.title: bar.colour for bar in bars})
        self.show_legend(bool(bars))
        self.show_empty(not bars)
        self.setMinimumHeight(max(MIN_HEIGHT, HEIGHT_AROUND_BARS + ROW_HEIGHT * len(bars)))
        self.setMaximumHeight(HEIGHT_AROUND_BARS + MAX_ROW_HEIGHT * max(2, len(bars)))
        self.schedule()

    def bars(self) -> tuple[Bar, ...]:
        """The bars that are shown."""
        return tuple(bar for title, bar in self._bars.items() if title not in self._hidden)

    def redraw(self) -> None:
        """Draw the bars that are shown, with labels at the left of what is seen."""
        for item in (*self._items, *self._labels):
            self.canvas.removeItem(item)
        self._items, self._labels = [], []
        shown, factor = self.bars(), self._unit.factor
        view = self.canvas.view
        if self._whole_x:
            ends = [end * factor for bar in shown for end in (bar.value, *(bar.interval or ()))]
            view.setXRange(*headroom_range(ends), padding=0)
        view.setYRange(0.55 - max(1, len(shown)), 0.5, padding=0)
        for row, bar in enumerate(shown):
            self._draw_bar(-row, bar)
        self._update_crosshair()

    def readings(self) -> list[tuple[str, str]]:
        """(title, value with its interval) of every shown bar while the crosshair is there."""
        if self._crosshair_at is None:
            return []
        return [(bar.title, bar.text) for bar in self.bars()]

    def entry_colour(self, title: str) -> int:
        """The index of the bar's colour."""
        return self._bars[title].colour

    def _draw_bar(self, row: int, bar: Bar) -> None:
        factor, y = self._unit.factor, row + BAR_MIDDLE
        colour = self._theme.series_colour(bar.colour)
        ground = QColor(colour)
        ground.setAlpha(40 if bar.hollow else 255)
        body = pg.BarGraphItem(
            x0=[0.0], width=[bar.value * factor], y=[y], height=THICKNESS, brush=QBrush(ground), pen=_pen(colour)
        )
        self._add(body)
        if bar.interval is not None:
            low, high = (end * factor for end in bar.interval)
            x = np.array([low, high, low, low, high, high])
            heights = np.array([y, y, y - CAP, y + CAP, y - CAP, y + CAP])
            self._add(pg.PlotCurveItem(x, heights, connect="pairs", pen=_pen(self._theme.colour("text"))))
        font = self._theme.font(FontRole.CAPTION)
        bold = QFont(font)
        bold.setBold(True)
        room = int(self.canvas.view.width()) - QFontMetrics(bold).horizontalAdvance(bar.text) - LABEL_GAP
        title = QFontMetrics(font).elidedText(bar.title, Qt.TextElideMode.ElideRight, max(room, MIN_TITLE))
        label = pg.TextItem(anchor=(0, 0.5))
        label.setHtml(
            f"<span style='color: {self._theme.colours.muted}'>{escape(title)}</span>&nbsp;&nbsp;"
            f"<b style='color: {self._theme.colours.text}'>{escape(bar.text)}</b>"
        )
        label.textItem.setFont(font)
        label.setPos(self.canvas.view.viewRange()[0][0], row + LABEL_MIDDLE)
        self.canvas.addItem(label, ignoreBounds=True)
        self._labels.append(label)

    def _add(self, item: Any) -> None:
        self.canvas.addItem(item, ignoreBounds=True)
        self._items.append(item)

    def _apply_theme(self) -> None:
        super()._apply_theme()
        self.schedule()


def _pen(colour: QColor) -> QPen:
    pen = QPen(colour, 1)
    pen.setCosmetic(True)
    return pen
