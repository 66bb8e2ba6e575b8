"""Plots: reduction of curves, mouse and keyboard, axes, bars."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QGuiApplication, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from labconsole_ui.plots.axes import LogScale, PercentileScale, axis_unit
from labconsole_ui.plots.bar_plot import BAR_MIDDLE, Bar, BarPlot
from labconsole_ui.plots.curve_plot import CurvePlot, PlotCurve, TimePlot
from labconsole_ui.plots.downsampling import CurveData
from labconsole_ui.plots.plot_card import MIN_CANVAS_HEIGHT, MIN_HEIGHT
from labconsole_ui.plots.plot_grid import PlotGrid
from labconsole_ui.theme.theme import FontRole, Theme, ThemeMode

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


def test_reduction_keeps_the_extremes_of_every_pixel() -> None:
    random = np.random.default_rng(4)
    x, y = np.linspace(0, 10, 100_000), random.normal(size=100_000)
    y[12_345], y[77_777] = 50.0, -60.0
    drawn_x, drawn_y = CurveData(x, y).reduced(0.0, 10.0, 500)
    assert len(drawn_x) == len(drawn_y) <= 2 * 500
    edges = np.linspace(0, 10, 501)
    for pixel in (0, 61, 388, 499):
        inside = (x >= edges[pixel]) & (x < edges[pixel + 1])
        at = (drawn_x >= edges[pixel]) & (drawn_x < edges[pixel + 1])
        assert (drawn_y[at].min(), drawn_y[at].max()) == (y[inside].min(), y[inside].max())
    assert (drawn_y.max(), drawn_y.min()) == (50.0, -60.0)


def test_reduction_connects_points_across_empty_pixels() -> None:
    """A queue full for a moment and empty for ten minutes is not drawn as slowly emptied."""
    burst = np.linspace(481.0, 499.0, 5_000)
    length = np.where(np.arange(5_000) % 2, 50.0, 0.0)
    length[-1] = 0.0
    x, y = np.concatenate(([0.0], burst, [1_000.0])), np.concatenate(([0.0], length, [0.0]))
    drawn_x, drawn_y = CurveData(x, y).reduced(0.0, 1_000.0, 400)
    assert np.interp([240.0, 479.9, 500.1, 750.0], drawn_x, drawn_y).tolist() == [0.0, 0.0, 0.0, 0.0]
    assert drawn_y.max() == 50.0 and len(drawn_x) <= 2 * 400
    assert (np.diff(drawn_x) >= 0).all()


def test_reduction_draws_every_point_once_zoomed_in() -> None:
    x = np.arange(100_000.0)
    drawn_x, drawn_y = CurveData(x, x * 2).reduced(500.5, 600.5, 400)
    assert drawn_x.tolist() == list(range(500, 602)), "one point beyond each border keeps the line running out"
    assert drawn_y.tolist() == [2 * value for value in drawn_x]


def test_reduction_keeps_gaps_but_not_single_missing_values() -> None:
    y = np.ones(10_000)
    y[2_000:4_000] = np.nan
    y[7_001] = np.nan
    x = np.arange(10_000.0)
    drawn_x, drawn_y = CurveData(x, y).reduced(0, 9_999, 100)
    assert np.isnan(drawn_y[(drawn_x > 2_100) & (drawn_x < 3_800)]).all()
    assert not np.isnan(drawn_y[drawn_x > 4_100]).any()


def test_unequal_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="3 values, y has 2"):
        CurveData(np.arange(3.0), np.arange(2.0))


@pytest.mark.parametrize(
    ("stored", "value", "text"),
    [
        ("ns", 1_234_567.0, "1.235 ms"),
        ("ms", 0.42, "420 µs"),
        ("ms", 1_410_212.0, "1,410 s"),
        ("B", 62_000_000.0, "62 MB"),
        ("msg/s", 60_123.4, "60,123 msg/s"),
        ("%", 12.5, "12.50 %"),
    ],
)
def test_values_are_read_in_a_readable_unit(stored: str, value: float, text: str) -> None:
    unit = axis_unit(stored)
    assert unit.text(value * unit.factor) == text


@pytest.fixture
def plot(qtbot: QtBot, theme: Theme) -> TimePlot:
    plot = TimePlot("Latency", "ms", theme, empty_text="Nothing was sampled.")
    qtbot.addWidget(plot)
    plot.resize(900, 320)
    plot.show()
    t_s = np.linspace(0.0, 100.0, 50_001)
    plot.set_curves([PlotCurve("p50", t_s, np.full(50_001, 2.0)), PlotCurve("p99", t_s, 5.0 + np.sin(t_s))])
    plot.redraw()
    return plot


@pytest.mark.parametrize("width", [200, 420, 900])
def test_where_plots_do_not_fit_they_are_scrolled_rather_than_squeezed(qtbot: QtBot, theme: Theme, width: int) -> None:
    grid = PlotGrid()
    qtbot.addWidget(grid)
    t_s = np.array([0.0, 1.0])
    for name in ("CPU, 100 % = one core", "Resident memory", "Latency (from the 1 ms stamp in the message)"):
        grid.add(name, TimePlot(name, "B", theme, empty_text=""))
        roles = ("broker", "receiver-0", "sender-0", "worker")
        grid.plots[name].set_curves([PlotCurve(role, t_s, np.array([0.0, 105e6])) for role in roles])
    grid.resize(width, 120)
    grid.show()
    qtbot.waitUntil(lambda: grid.verticalScrollBar().maximum() > 0)
    for plot in grid.plots.values():
        plot.redraw()
        plot.canvas.grab()
        assert plot.canvas.height() >= MIN_CANVAS_HEIGHT
        assert plot.rect().contains(plot._area.geometry()), "nothing is cut at its lower edge"
        _, _, texts = plot.canvas.getAxis("left").picture
        places = sorted(rectangle.center().y() for rectangle, _, _ in texts)
        digits = QFontMetricsF(theme.font(FontRole.CAPTION)).capHeight()
        assert len(places) >= 3 and min(np.diff(places)) > digits + 2


def drawn(plot: TimePlot, index: int) -> tuple[np.ndarray, np.ndarray]:
    return plot.canvas._curves[index].getData()


def test_a_click_on_the_legend_hides_a_curve_and_fits_the_rest(plot: TimePlot, qtbot: QtBot) -> None:
    assert plot.canvas.view.viewRange()[1][1] > 6e-3
    qtbot.mouseClick(plot.legend.button("p99"), Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(drawn(plot, 1)[0]) == 0)
    assert plot.canvas.view.viewRange()[1][1] < 3e-3
    plot.legend.button("p99").setFocus()
    qtbot.keyClick(plot.legend.button("p99"), Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: len(drawn(plot, 1)[0]) > 0)


def test_zooming_by_keyboard_shows_more_detail_and_home_everything(plot: TimePlot, qtbot: QtBot) -> None:
    assert plot.canvas.view.viewRange()[0] == [0.0, 100.0]
    for _ in range(20):
        qtbot.keyClick(plot, Qt.Key.Key_Plus)
    qtbot.wait(20)
    low, high = plot.canvas.view.viewRange()[0]
    assert high - low == pytest.approx(100 * 0.8**20)
    x, _ = drawn(plot, 0)
    assert np.diff(x).max() == pytest.approx(0.002), "every point is drawn"
    qtbot.keyClick(plot, Qt.Key.Key_Right)
    assert plot.canvas.view.viewRange()[0][0] > low
    qtbot.keyClick(plot, Qt.Key.Key_Home)
    qtbot.wait(20)
    assert plot.canvas.view.viewRange()[0] == [0.0, 100.0]


def test_new_data_keeps_a_zoomed_view(plot: TimePlot, qtbot: QtBot) -> None:
    qtbot.keyClick(plot, Qt.Key.Key_Plus)
    before = plot.canvas.view.viewRange()[0]
    t_s = np.linspace(0.0, 200.0, 1_000)
    plot.set_curves([PlotCurve("p50", t_s, np.full(1_000, 2.0))])
    qtbot.wait(20)
    assert plot.canvas.view.viewRange()[0] == before


def test_the_crosshair_reads_values_with_units(plot: TimePlot, qtbot: QtBot) -> None:
    assert plot.readings() == []
    qtbot.keyClick(plot, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    readings = dict(plot.readings())
    assert readings["p50"] == "2 ms"
    assert readings["p99"] == f"{5 + np.sin(51.0):.3f} ms"
    qtbot.keyClick(plot, Qt.Key.Key_Escape)
    assert plot.readings() == []


def test_plot_without_points_shows_a_text(plot: TimePlot) -> None:
    assert not plot._empty.isVisible()
    plot.set_curves([])
    assert plot._empty.isVisible()
    assert plot._empty.text() == "Nothing was sampled."


def test_a_hidden_plot_does_no_work_until_it_is_shown(plot: TimePlot, qtbot: QtBot) -> None:
    plot.hide()
    t_s = np.linspace(0.0, 7.0, 10)
    plot.set_curves([PlotCurve("p50", t_s, t_s)])
    qtbot.wait(20)
    assert drawn(plot, 0)[0][-1] == pytest.approx(100.0, abs=0.2)
    plot.show()
    qtbot.waitUntil(lambda: drawn(plot, 0)[0][-1] == pytest.approx(7.0))


def test_a_plot_that_is_scrolled_out_of_view_does_no_work_until_it_comes_into_view(qtbot: QtBot, theme: Theme) -> None:
    grid = PlotGrid()
    qtbot.addWidget(grid)
    plots = [TimePlot(str(number), "B", theme, empty_text="") for number in range(6)]
    for plot in plots:
        grid.add(plot.title, plot)
        plot.set_curves(plot_curves(1.0))
    grid.resize(420, 2 * MIN_HEIGHT + 30)
    grid.show()
    in_view = lambda: [plot._canvas is not None for plot in plots]  # noqa: E731
    qtbot.waitUntil(lambda: in_view()[:2] == [True, True])
    qtbot.wait(20)
    assert not any(in_view()[3:])
    grid.verticalScrollBar().setValue(grid.verticalScrollBar().maximum())
    qtbot.waitUntil(lambda: in_view()[-1])
    assert len(drawn(plots[-1], 0)[0]) == len(plot_curves(1.0)[0].x)
    assert not plots[3].image().isNull(), "its picture can be had at any time"
    assert len(drawn(plots[3], 0)[0]) == len(plot_curves(1.0)[0].x)


def test_the_image_has_the_curves_and_follows_the_theme(
    plot: TimePlot, theme: Theme, tmp_path: Path, qtbot: QtBot
) -> None:
    file = tmp_path / "plot.png"
    assert plot.save_image(file)
    light = QImage(str(file))
    canvas = plot.canvas.viewport().size()
    assert light.width() > 2 * canvas.width() and light.height() > 2 * canvas.height(), "title and legend above it"
    assert has_colour(light, theme.series_colour(0)) and has_colour(light, theme.colour("base"))
    theme.set_mode(ThemeMode.DARK)
    try:
        plot.copy_image()
        dark = QGuiApplication.clipboard().image()
        assert has_colour(dark, theme.series_colour(0)) and has_colour(dark, theme.colour("base"))
        assert not has_colour(dark, QColor("#ffffff"))
    finally:
        theme.set_mode(ThemeMode.LIGHT)
    assert not plot.save_image(tmp_path / "missing" / "plot.png")


def test_the_drawing_as_svg_has_title_legend_and_curves(plot: TimePlot, tmp_path: Path, qtbot: QtBot) -> None:
    qtbot.mouseClick(plot.legend.button("p99"), Qt.MouseButton.LeftButton)
    file = tmp_path / "plot.svg"
    assert plot.save_image(file)
    text = file.read_text(encoding="utf-8")
    assert ">Latency</text>" in text and ">p50</text>" in text
    assert ">p99</text>" not in text, "curves that are switched off are not in the legend"
    renderer = QSvgRenderer(str(file))
    picture = QImage(renderer.viewBox().size() * 3, QImage.Format.Format_RGB32)
    picture.fill(QColor("red"))
    painter = QPainter(picture)
    renderer.render(painter)
    painter.end()
    assert not has_colour(picture, QColor("red")), "it is painted all over"
    assert has_colour(picture, plot._theme.colour("grid"))
    assert not plot.save_image(tmp_path / "missing" / "plot.svg")


def test_repeats_share_entry_and_colour_and_are_read_as_median_and_span(plot: TimePlot, qtbot: QtBot) -> None:
    t_s = np.linspace(0.0, 10.0, 101)
    plot.set_curves([PlotCurve("Plain", t_s, np.full(101, value), 5) for value in (2.0, 3.0, 7.0)])
    plot.redraw()
    assert [title for title, _ in plot.legend.shown()] == ["Plain"]
    assert plot.entry_colour("Plain") == 5
    qtbot.keyClick(plot, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    assert plot.readings() == [("Plain", "3 (2–7) ms")]


def test_a_logarithmic_axis_reads_values_and_names_its_decades(qtbot: QtBot, theme: Theme) -> None:
    scale = LogScale("Latency", "ms")
    plot = CurvePlot("ECDF", "%", scale, theme, empty_text="")
    qtbot.addWidget(plot)
    plot.resize(700, 300)
    plot.show()
    values = np.array([0.5, 1.0, 2.0, 50.0])
    plot.set_curves([PlotCurve("Plain", values, np.array([25.0, 50.0, 75.0, 100.0]))])
    plot.redraw()
    assert plot.canvas.view.viewRange()[0][0] == pytest.approx(np.log10(0.5e-3))
    assert tick_texts(plot, "bottom") == ["500 µs", "1 ms", "2 ms", "5 ms", "10 ms", "20 ms", "50 ms"]
    plot.resize(320, 300)
    assert tick_texts(plot, "bottom") == ["1 ms", "3 ms", "10 ms", "30 ms"], "texts that would touch are left out"
    for _ in range(60):
        qtbot.keyClick(plot, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    assert plot.readings() == [("Plain", "100 %")]


def tick_texts(plot: CurvePlot, side: str) -> list[str]:
    """The visible texts of an axis."""
    axis = plot.canvas.getAxis(side)
    size = plot.canvas.view.width() if side == "bottom" else plot.canvas.view.height()
    [(spacing, ticks)] = axis.tickValues(*axis.range, size)
    return axis.tickStrings(ticks, 1.0, spacing)


def test_small_and_large_values_are_distinguishable_on_a_logarithmic_left_axis(qtbot: QtBot, theme: Theme) -> None:
    plot = CurvePlot("Percentiles", "ms", PercentileScale(), theme, empty_text="")
    qtbot.addWidget(plot)
    plot.resize(700, 300)
    plot.show()
    plot.set_unit("ms", logarithmic=True)
    fractions = np.array([0.0, 0.5, 0.9, 0.99])
    plot.set_curves([*plot_curves(0.5), *plot_curves(500.0)])
    plot.redraw()
    low, high = plot.canvas.view.viewRange()[1]
    assert low < np.log10(0.5e-3) and high > np.log10(1.0)
    assert {"1 ms", "10 ms", "100 ms", "1 s"} <= set(tick_texts(plot, "left"))
    qtbot.keyClick(plot, Qt.Key.Key_Home)
    for _ in range(60):
        qtbot.keyClick(plot, Qt.Key.Key_Left, Qt.KeyboardModifier.ShiftModifier)
    assert plot.readings() == [("0.5 ms", "500 µs"), ("500.0 ms", "500 ms")]
    plot.set_unit("%")
    plot.set_curves([PlotCurve("Plain", fractions, np.array([0.0, 50.0, 90.0, 99.0]))])
    plot.redraw()
    assert plot.canvas.view.viewRange()[1][0] == 0.0, "back on a common axis"


def plot_curves(first: float) -> list[PlotCurve]:
    fractions = np.array([0.0, 0.5, 0.9, 0.99])
    return [PlotCurve(f"{first} ms", fractions, first * np.array([1.0, 1.2, 1.5, 2.0]))]


def test_points_without_a_line_are_dots(plot: TimePlot, theme: Theme) -> None:
    """A run of 0.1 s has one point; a gap at both sides leaves one alone, too."""
    nan = np.nan
    plot.set_curves(
        [
            PlotCurve("Short", np.array([0.05]), np.array([30_000.0]), 0),
            PlotCurve("Long", np.arange(8.0), np.array([5.0, nan, 7.0, 8.0, nan, nan, 9.0, nan]), 1),
            PlotCurve("Brief", np.array([3.0, 3.004]), np.array([2.0, 3.0]), 2),
        ]
    )
    plot.redraw()
    factor = axis_unit("ms").factor
    assert [(dot.x, round(dot.y / factor, 6)) for dot in plot.canvas._dots.dots] == [
        *[(0.05, 30_000.0), (0.0, 5.0), (6.0, 9.0), (3.0, 2.0), (3.004, 3.0)],
    ]
    image = plot.image().toImage()
    assert has_colour(image, theme.series_colour(0)), "the only point of its curve is seen"
    plot.set_curves([PlotCurve(str(colour), np.array([0.05]), np.array([30.0]), colour) for colour in (0, 1)])
    plot.redraw()
    image = plot.image().toImage()
    assert has_colour(image, theme.series_colour(0)) and has_colour(image, theme.series_colour(1)), "both in one place"


def test_curves_beyond_eight_colours_have_other_dashes_in_plot_and_legend(
    plot: TimePlot, theme: Theme, tmp_path: Path
) -> None:
    x = np.array([0.0, 10.0])
    plot.set_curves([PlotCurve(f"Curve {number}", x, x + number) for number in range(18)])
    plot.redraw()
    pens = [curve.opts["pen"] for curve in plot.canvas._curves[:18]]
    looks = {(pen.color().name(), tuple(pen.dashPattern())) for pen in pens}
    assert len(looks) == 18 and len({pen.color().name() for pen in pens}) == 8
    assert [pen.style() is Qt.PenStyle.SolidLine for pen in pens] == [number < 8 for number in range(18)]
    icons = [plot.legend.button(f"Curve {number}").icon().pixmap(12, 12).toImage() for number in (0, 8, 16)]
    assert icons[0] != icons[1] != icons[2] != icons[0]
    assert all(has_colour(icon, theme.series_colour(0)) for icon in icons)
    file = tmp_path / "plot.svg"
    assert plot.save_image(file)
    assert file.read_text(encoding="utf-8").count("stroke-dasharray") >= 2 * 10, "curves and legend"


def test_the_crosshair_reads_nothing_of_a_run_that_has_ended(plot: TimePlot, qtbot: QtBot) -> None:
    plot.set_curves(
        [
            PlotCurve("Short", np.array([0.05]), np.array([3.0])),
            PlotCurve("Long", np.linspace(0, 2.6, 27), np.full(27, 5.0)),
        ]
    )
    plot.show_whole()
    plot.redraw()
    qtbot.keyClick(plot, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    assert plot.readings() == [("Long", "5 ms")]
    for _ in range(50):
        qtbot.keyClick(plot, Qt.Key.Key_Left, Qt.KeyboardModifier.ShiftModifier)
    assert plot.readings() == [("Short", "3 ms"), ("Long", "5 ms")]


def test_percentiles_are_equally_spaced() -> None:
    scale = PercentileScale()
    assert scale.positions(np.array([0.9, 0.99, 0.999])) == pytest.approx([1.0, 2.0, 3.0])
    assert scale.positions(np.array([0.9999])) == pytest.approx([3.0]), "the axis ends with p99.9"
    assert scale.text(3.0) == "p99.9" and scale.text(1.0) == "p90"


def bars() -> list[Bar]:
    return [Bar("Plain", 10.0, (8.0, 12.0), 0, "10 ms"), Bar("WP/16", 30.0, None, 1, "30 ms, published", hollow=True)]


def test_bars_have_labels_and_whiskers_and_are_hidden_by_the_legend(qtbot: QtBot, theme: Theme, tmp_path: Path) -> None:
    plot = BarPlot("Latency", "ms", theme, empty_text="")
    qtbot.addWidget(plot)
    plot.resize(700, 300)
    plot.show()
    plot.set_bars("Latency", "ms", bars())
    plot.redraw()
    assert plot.canvas.view.viewRange()[0][1] == pytest.approx(30e-3 * 1.06)
    assert len(plot._items) == 3, "two bars, one whisker: a published point has none"
    qtbot.mouseClick(plot.legend.button("WP/16"), Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(plot._items) == 2)
    assert plot.canvas.view.viewRange()[0][1] == pytest.approx(12e-3 * 1.06), "room for the whisker"
    qtbot.keyClick(plot, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    assert plot.readings() == [("Plain", "10 ms")]
    assert plot.save_image(tmp_path / "bars.svg")
    assert "10 ms" in (tmp_path / "bars.svg").read_text(encoding="utf-8")


def test_grid_is_drawn_behind_the_bars_in_another_unit_too(qtbot: QtBot, theme: Theme) -> None:
    plot = BarPlot("", "", theme, empty_text="")
    qtbot.addWidget(plot)
    plot.resize(700, 300)
    plot.show()
    plot.set_bars("Latency", "ms", [Bar("Plain", 10.0, None, 0, "10 ms")])
    plot.redraw()
    plot.canvas.grab()
    _, lines, _ = plot.canvas.getAxis("bottom").picture
    image = plot.canvas.grab().toImage()
    places = [plot.canvas.view.mapViewToScene(QPointF(x, BAR_MIDDLE)) for x in np.linspace(0.2e-3, 9.8e-3, 1_000)]
    assert {image.pixelColor(place.toPoint()).name() for place in places} == {theme.series_colour(0).name()}
    assert len(lines) > 3


def test_labels_of_bars_fit_into_a_narrow_plot(qtbot: QtBot, theme: Theme) -> None:
    """The width next to the table of a comparison, in a window of 1280 px."""
    plot = BarPlot("Message throughput", "msg/s", theme, empty_text="")
    qtbot.addWidget(plot)
    plot.resize(342, 300)
    plot.show()
    said = "116,003 msg/s (80,918 to 166,301 msg/s)"
    plot.set_bars("Message throughput", "msg/s", [Bar("Test 2: TLS", 116_003.0, (80_918.0, 166_301.0), 0, said)])
    QApplication.processEvents()
    plot.redraw()
    [label] = plot._labels
    assert said in label.textItem.toPlainText().replace("\xa0", " ")
    assert label.textItem.boundingRect().width() <= plot.canvas.view.width()


def test_bars_stay_by_their_labels_on_a_high_screen(qtbot: QtBot, theme: Theme) -> None:
    plot = BarPlot("Latency", "ms", theme, empty_text="")
    qtbot.addWidget(plot)
    plot.set_bars("Latency", "ms", bars())
    plot.resize(700, 2_000)
    plot.show()
    assert plot.canvas.view.height() / len(bars()) < 100


def has_colour(image: QImage, colour: QColor) -> bool:
    pixels = image.convertToFormat(QImage.Format.Format_RGB32)
    values = np.frombuffer(pixels.constBits(), np.uint32).reshape(pixels.height(), -1) & 0xFFFFFF
    return bool((values == colour.rgb() & 0xFFFFFF).any())
