"""The panes of the comparison: findings, curves over time, distributions, bars, published tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from labconsole.analysis.caveats import ENOUGH_BEYOND
from labconsole.model.plugin import Plugins
from labconsole.output.plot_data import plotted_distribution
from labconsole.store.reader import Reader
from labconsole_ui.plots.curve_plot import CurvePlot
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.comparison.comparison_view import ComparisonView
from labconsole_ui.views.comparison.samples_pane import SamplesPane
from tests.labconsole_ui.views.conftest import StoredRuns

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")

RUNS, MESSAGES = 5, 400


@pytest.fixture
def view(
    stored: StoredRuns, qtbot: QtBot, plugins: Plugins, theme: Theme, readers: Callable[[], Reader]
) -> Iterator[ComparisonView]:
    """Two scenarios of the source's small table with five repeats each; the second one is half as fast."""
    scenarios = [("Plain", {"test": 1, "payload": "fpl-tac"}), ("TLS", {"test": 2, "payload": "fpl-tac"})]
    view = ComparisonView(readers, stored.finished(*scenarios, repeats=RUNS, messages=MESSAGES), plugins, theme)
    view.resize(1280, 800)
    view.show()
    qtbot.waitUntil(lambda: view.table_data is not None)
    yield view
    view.close()
    view.deleteLater()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def shown(view: ComparisonView, pane: SamplesPane, qtbot: QtBot) -> None:
    view.tabs.setCurrentWidget(pane)
    qtbot.waitUntil(lambda: pane.complete)


def colours(plot: CurvePlot) -> list[int | None]:
    return [curve.colour for curve in plot.curves()]


def test_findings_are_sentences_with_their_figures_and_are_copied(view: ComparisonView, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: "TLS" in view.findings.plain_text())
    text = view.findings.text.toPlainText()
    assert "TLS against plain: message throughput is lower by" in text and "5 runs each" in text
    assert "latency includes queueing" in text, "remarks are shown, too"
    view.findings.copy_button.setFocus()
    qtbot.keyClick(view.findings.copy_button, Qt.Key.Key_Space)
    assert QGuiApplication.clipboard().text() == view.findings.plain_text()


def test_samples_are_not_read_for_a_hidden_pane(view: ComparisonView, qtbot: QtBot) -> None:
    assert not view.curves.complete and not view.curves.plots
    shown(view, view.curves, qtbot)
    assert list(view.curves.plots) == ["Throughput", "Latency", "CPU, 100 % = one core", "Resident memory"]


def test_curves_of_all_columns_are_overlaid_in_one_colour_each(view: ComparisonView, qtbot: QtBot) -> None:
    shown(view, view.curves, qtbot)
    plot = view.curves.plots["Throughput"]
    assert [curve.title for curve in plot.curves()] == ["Plain"] * RUNS + ["TLS"] * RUNS
    assert colours(plot) == [0] * RUNS + [1] * RUNS
    medians = [float(np.median(curve.values)) for curve in plot.curves()]
    assert medians[0] == pytest.approx(2 * medians[-1], rel=0.1)
    box = plot.box  # type: ignore[attr-defined]
    assert [box.itemText(index) for index in range(box.count())] == ["Sent", "Received"]
    qtbot.keyClick(box, Qt.Key.Key_Down)
    assert box.currentText() == "Received" and len(plot.curves()) == 2 * RUNS
    plot.redraw()
    for _ in range(10):
        qtbot.keyClick(plot, Qt.Key.Key_Left, Qt.KeyboardModifier.ShiftModifier)
    [(title, value), *_] = plot.readings()
    assert title == "Plain" and "–" in value and value.endswith("msg/s"), "the median of the repeats, and their span"


def test_curves_have_the_colour_of_their_column_at_any_position(view: ComparisonView, qtbot: QtBot) -> None:
    shown(view, view.curves, qtbot)
    view.add_published(["swim-within-malaysia-medium/test-1"])
    qtbot.waitUntil(lambda: len(view._page.columns) == 3)
    plot = view.curves.plots["Throughput"]
    qtbot.waitUntil(lambda: colours(plot) == [0] * RUNS + [2] * RUNS)
    assert view.curves.legend.shown() == plot.legend.shown()


def test_one_legend_serves_all_plots_of_a_pane_and_pictures_keep_it(
    view: ComparisonView, qtbot: QtBot, tmp_path: Path
) -> None:
    shown(view, view.curves, qtbot)
    qtbot.mouseClick(view.curves.legend.button("TLS"), Qt.MouseButton.LeftButton)
    for plot in view.curves.all_plots():
        plot.redraw()
        assert not plot.legend.isVisible()
        assert [title for title, _ in plot.legend.shown()] == ["Plain"]
    file = tmp_path / "throughput.svg"
    assert view.curves.plots["Throughput"].save_image(file)
    text = file.read_text(encoding="utf-8")
    assert ">Plain</text>" in text and ">TLS</text>" not in text


def test_distributions_are_drawn_up_to_the_percentile_that_the_samples_support(
    view: ComparisonView, qtbot: QtBot
) -> None:
    shown(view, view.distribution, qtbot)
    ecdf, percentiles = view.distribution.ecdf, view.distribution.percentiles
    assert ecdf is not None and percentiles is not None
    assert len(ecdf.curves()) == len(percentiles.curves()) == 2 * RUNS
    assert ecdf.curves()[0].values[-1] == 100.0
    last = 1 - 10 ** -float(percentiles.curves()[0].x[-1])
    assert last == pytest.approx(1 - ENOUGH_BEYOND / MESSAGES), "ten observations lie beyond"


def test_the_percentiles_that_are_drawn_are_those_of_the_samples() -> None:
    values = np.random.default_rng(3).gamma(4.0, 0.5, 50_000)
    one = plotted_distribution("Latency", "ms", values)
    assert one.fractions[-1] == pytest.approx(0.999)
    assert np.array_equal(one.quantiles[1:], np.quantile(values, one.fractions[1:], method="inverted_cdf"))
    assert one.values[0] == values.min() and one.values[-1] == values.max()
    middle = float(np.interp(np.median(values), one.values, one.parts))
    assert middle == pytest.approx(50.0, abs=0.05)
    assert len(one.values) < 15_000, "no more than a screen shows"


def test_bars_show_the_metric_of_the_current_row_with_interval(view: ComparisonView, qtbot: QtBot) -> None:
    view.tabs.setCurrentWidget(view.bars)
    plot = view.bars.plot
    assert plot is not None and plot.title == "Message throughput", "a key figure first"
    row = next(place for place, one in enumerate(view.table.rows.records()) if one.metric == "latency_p50")
    view.table.setCurrentIndex(view.table.model().index(row, 1))
    assert plot.title == "Latency p50"
    plain, tls = plot.bars()
    assert plain.interval is not None and plain.interval[0] < plain.value < plain.interval[1]
    assert tls.value == pytest.approx(2 * plain.value, rel=0.1)
    view.add_published(["swim-within-malaysia-medium/test-1"])
    view.bars.choose("throughput")
    qtbot.waitUntil(lambda: len(plot.bars()) == 3)
    ours, theirs, _ = plot.bars()
    assert [bar.hollow for bar in plot.bars()] == [False, True, False], "measured and published by test"
    assert theirs.colour == ours.colour
    assert theirs.interval is None and theirs.text.endswith("published")


def test_the_sources_own_table_is_filled(view: ComparisonView, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: view.tabs.isTabVisible(view.tabs.indexOf(view.shapes)) and view.shapes.box.count() > 0)
    view.tabs.setCurrentWidget(view.shapes)
    assert view.shapes.box.currentText() == "Within Malaysia: Medium Payload"
    model = view.shapes.table.model()
    heads = [model.headerData(column, Qt.Orientation.Horizontal) for column in range(1, model.columnCount())]
    assert [head.partition(":")[0] for head in heads] == ["Test 1", "Test 2", "Test 3", "Test 4"]
    [throughput] = [row for row in view.shapes.table.rows.records() if row.metric == "throughput"]
    measured, _, missing, _ = throughput.cells
    assert measured.value.endswith("msg/s") and "published: " in measured.change
    assert measured.mark in ("✓ within", "✗ outside")
    assert missing.value == "–" and missing.mark == ""
    assert "WP/16" in view.shapes.about.toPlainText()


def test_other_columns_are_read_when_they_come(stored: StoredRuns, view: ComparisonView, qtbot: QtBot) -> None:
    shown(view, view.curves, qtbot)
    view.add_runs(stored.finished(("Signed", {"test": 3}), messages=300))
    qtbot.waitUntil(lambda: "Signed" in {curve.title for curve in view.curves.plots["Throughput"].curves()})
    assert colours(view.curves.plots["Throughput"])[-1] == 2
