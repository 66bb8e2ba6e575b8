"""Charts as SVG: positions, lines that differ without colour, and text that is always escaped."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from labconsole.analysis.confidence_intervals import Interval
from labconsole.analysis.run_curves import thinned
from labconsole.output.charts import Bar, Line, bar_charts, line_chart, percentile_chart
from labconsole.output.svg import Axis
from labconsole.output.ticks import log_range, round_range, tick_text

SVG = "{http://www.w3.org/2000/svg}"


def drawn(svg: str, name: str) -> list[ElementTree.Element]:
    return ElementTree.fromstring(svg).findall(f".//{SVG}{name}")


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in drawn(svg, "text")]


def number(element: ElementTree.Element, name: str) -> float:
    return float(element.attrib[name])


def test_bars_are_as_long_as_their_values_and_carry_them() -> None:
    [svg] = bar_charts("Rate", "msg/s", [Bar("open", 1_000.0), Bar("sealed", 250.0)])
    long, short = drawn(svg, "rect")
    assert number(long, "width") / number(short, "width") == pytest.approx(4.0, rel=0.01)
    assert {"Rate, msg/s", "open", "sealed", "1,000", "250"} <= set(texts(svg))


def test_whiskers_reach_from_low_to_high_and_the_axis_holds_them() -> None:
    [svg] = bar_charts("Rate", "", [Bar("open", 100.0, Interval(50.0, 400.0))])
    [bar] = drawn(svg, "rect")
    per_unit = number(bar, "width") / 100.0
    level = [line for line in drawn(svg, "line") if line.attrib["y1"] == line.attrib["y2"]]
    whisker = level[-1]
    assert number(whisker, "x2") - number(whisker, "x1") == pytest.approx(350 * per_unit, rel=0.01)
    assert number(whisker, "x1") - number(bar, "x") == pytest.approx(50 * per_unit, rel=0.01)
    assert "400" in texts(svg)


def test_baseline_and_published_points_differ_in_grey() -> None:
    [svg] = bar_charts("Rate", "", [Bar("a", 1.0, baseline=True), Bar("b", 2.0), Bar("c", 3.0, published=True)])
    baseline, other, published = drawn(svg, "rect")
    assert len({bar.attrib["fill"] for bar in (baseline, other, published)}) == 3
    assert "stroke-dasharray" in published.attrib and "stroke-dasharray" not in other.attrib


def test_values_below_zero_hang_on_the_other_side_of_it() -> None:
    up, down = drawn(bar_charts("Change", "%", [Bar("a", 2.0), Bar("b", -2.0)])[0], "rect")
    assert number(down, "x") + number(down, "width") == pytest.approx(number(up, "x"), abs=0.1)


def test_bars_that_do_not_fit_on_a_page_are_in_several_charts_of_one_axis() -> None:
    charts = bar_charts("Rate", "", [Bar(f"bar {place}", float(place)) for place in range(1, 29)])
    first, second = (drawn(svg, "rect") for svg in charts)
    assert (len(first), len(second)) == (14, 14)
    assert number(second[-1], "width") / number(first[0], "width") == pytest.approx(28, rel=0.05)
    assert all(number(drawn(svg, "text")[-1], "y") < 650 for svg in charts), "points of a page"


def test_lines_differ_in_dash_and_marker_and_keep_their_style_in_every_chart() -> None:
    t = np.linspace(0, 10, 50)
    both = line_chart("Rate", "s", "msg/s", [Line(0, "open", t, t), Line(1, "sealed", t, 2 * t)])
    alone = line_chart("Rate", "s", "msg/s", [Line(1, "sealed", t, 2 * t)])
    strokes = {line.attrib["stroke"]: line.attrib["stroke-dasharray"] for line in drawn(both, "polyline")}
    assert len(set(strokes.values())) == 2
    [(colour, dash)] = {
        line.attrib["stroke"]: line.attrib["stroke-dasharray"] for line in drawn(alone, "polyline")
    }.items()
    assert strokes[colour] == dash
    assert drawn(both, "circle") and not drawn(alone, "circle"), "the first line alone has round markers"


def test_a_long_line_is_drawn_with_few_points_and_keeps_its_peaks() -> None:
    x = np.arange(100_000.0)
    y = np.zeros(100_000)
    y[54_321], y[12_345] = 9.0, -9.0
    few_x, few_y = thinned(x, y, 300)
    assert len(few_x) <= 302
    assert (few_y.max(), few_y.min()) == (9.0, -9.0)
    assert (few_x[0], few_x[-1]) == (0.0, 99_999.0) and (np.diff(few_x) > 0).all()
    svg = line_chart("Rate", "s", "", [Line(0, "a", x, y)])
    assert len(svg) < 20_000


def test_percentiles_are_drawn_at_their_values_and_equally_spaced() -> None:
    svg = percentile_chart("Latency", "ms", [(0, "a", np.arange(1.0, 100_001.0))])
    places = {element.text: number(element, "x") for element in drawn(svg, "text")}
    assert places["p99"] - places["p90"] == pytest.approx(places["p99.9"] - places["p99"], abs=0.05)
    line = max(drawn(svg, "polyline"), key=lambda element: len(element.attrib["points"]))
    last_x, last_y = map(float, line.attrib["points"].split()[-1].split(","))
    assert last_x == pytest.approx(places["p99.9"], abs=0.1)
    tick = next(element for element in drawn(svg, "text") if element.text == "100,000")
    assert last_y == pytest.approx(number(tick, "y") - 2.6, abs=0.5), "p99.9 of 1 to 100,000 is close to the top"


def test_any_text_is_text_and_nothing_else() -> None:
    hostile = "</text><script>&\"'<!--"
    [svg] = bar_charts(hostile, hostile, [Bar(hostile, 1.0)])
    assert f"{hostile}, {hostile}" in texts(svg) and not drawn(svg, "script")
    t = np.arange(3.0)
    assert hostile in texts(line_chart(hostile, hostile, "", [Line(0, hostile, t, t)]))


@pytest.mark.parametrize("values", [np.zeros(3), np.full(3, 7.0), np.array([1.0]), np.array([-1e9, 0.0, 1e-9])])
def test_charts_of_hardly_anything_are_charts(values: np.ndarray) -> None:
    svg = line_chart("Rate", "s", "", [Line(0, "a", np.arange(len(values), dtype=float), values)])
    assert "nan" not in svg and drawn(svg, "polyline")
    assert "nan" not in bar_charts("Rate", "", [Bar("a", float(values[0]))])[0]


def test_axes_end_and_are_marked_at_round_values() -> None:
    assert round_range(3.0, 47.0) == (0.0, 50.0)
    assert round_range(-12.0, 5.0) == (-15.0, 5.0)
    assert log_range(0.3, 340.0) == (0.2, 500.0)
    assert Axis(0.0, 50.0, 0.0, 100.0).ticks() == [0, 10, 20, 30, 40, 50]
    assert Axis(1.0, 1000.0, 0.0, 90.0, logarithmic=True).ticks() == [1, 10, 100, 1000]
    assert Axis(1.0, 1000.0, 0.0, 90.0, logarithmic=True).place(10) == pytest.approx(30)
    assert [tick_text(value) for value in (0.30000000000000004, 20000.0, -0.5, 2.5)] == ["0.3", "20,000", "−0.5", "2.5"]
