"""Scatter plots: a point for each observation, crosshair, legend, and speed with many points."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import shiboken6
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage, QPainter
from pytestqt.qtbot import QtBot

from labconsole_ui.plots.axes import TimeScale
from labconsole_ui.plots.scatter_plot import PlotPoints, ScatterPlot
from labconsole_ui.theme.theme import Theme


@pytest.fixture
def plot(qtbot: QtBot, theme: Theme) -> Iterator[ScatterPlot]:
    made = ScatterPlot("Latency", "ms", TimeScale(), theme, empty_text="Nothing yet")
    made.resize(800, 300)
    made.show()
    yield made
    shiboken6.delete(made)


def coloured(plot: ScatterPlot, index: int) -> int:
    """Pixels that have the colour of this index."""
    wanted = plot._theme.series_colour(index).rgb()
    image = plot.canvas.grab().toImage()
    return sum(image.pixel(x, y) == wanted for x in range(image.width()) for y in range(image.height()))


def test_points_are_drawn_in_their_colours_and_hidden_by_the_legend(qtbot: QtBot, plot: ScatterPlot) -> None:
    x = np.linspace(0.0, 10.0, 50)
    plot.set_points([PlotPoints("A", x, np.full(50, 20.0), 0), PlotPoints("Dropped", x, np.full(50, -5.0), 3, True)])
    qtbot.waitUntil(lambda: coloured(plot, 0) > 200 and coloured(plot, 3) > 50)
    low, high = plot.canvas.view.viewRange()[1]
    assert low < -0.005 and high > 0.02, "in seconds, with room for those below zero"
    qtbot.mouseClick(plot.legend.button("A"), Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: coloured(plot, 0) == 0)


def test_the_crosshair_reads_the_nearest_point_and_none_of_marked_ones(qtbot: QtBot, plot: ScatterPlot) -> None:
    x = np.array([3.0, 1.0, 2.0])
    plot.set_points([PlotPoints("A", x, np.array([30.0, 10.0, 20.0]), 0), PlotPoints("Dropped", x, x * -1, 3, True)])
    plot._crosshair_at = 1.9
    assert plot.readings() == [("A", "20 ms")]


def test_scatter_plot_without_points_shows_a_text(plot: ScatterPlot) -> None:
    assert plot._empty.isVisible() and plot._empty.text() == "Nothing yet"
    plot.set_points([PlotPoints("A", np.array([1.0]), np.array([1.0]), 0)])
    assert not plot._empty.isVisible()


class CountingPainter(QPainter):
    """Counts the points that it draws."""

    drawn = 0

    def drawPoints(self, points: Any) -> None:  # noqa: N802 - Qt's name
        self.drawn += len(points)
        super().drawPoints(points)


def test_points_in_the_same_place_are_drawn_once(plot: ScatterPlot) -> None:
    places = np.random.default_rng(1).integers(0, 40, (30_000, 2)).astype(float)
    plot.set_points([PlotPoints("A", places[:, 0], places[:, 1], 0)])
    plot.redraw()
    image = QImage(400, 400, QImage.Format.Format_RGB32)
    painter = CountingPainter(image)
    painter.scale(10, 10_000)  # values are drawn in seconds
    plot._cloud.paint(painter, None, None)
    painter.end()
    assert painter.drawn == 1_600
