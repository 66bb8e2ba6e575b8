"""Simulated runs in the window: called simulated, and their plots have virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from labconsole.model.plugin import Plugins
from labconsole.store.reader import Reader
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.comparison.comparison_view import ComparisonView
from labconsole_ui.views.run.run_view import RunView
from tests.labconsole_v2x.simulation.stored_simulations import store_simulations

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")

SCENARIOS = {
    "A-SIG-01: 2 attackers at 10 Hz": {"attack": "a-sig-01", "attackers": 2},
    "A-SIG-01: 2 attackers at 50 Hz": {"attack": "a-sig-01", "attackers": 2, "attack_rate": 50.0},
}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("simulated") / "runs.db"
    store_simulations(path, 2, SCENARIOS)
    return path


@pytest.fixture
def show(qtbot: QtBot) -> Iterator[Callable[[QWidget], None]]:
    """Shows a view of 1,280 x 800 px, and closes it after the test."""
    views: list[QWidget] = []

    def shown(view: QWidget) -> None:
        views.append(view)
        view.resize(1280, 800)
        view.show()

    yield shown
    for view in views:
        view.close()
        view.deleteLater()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture
def comparison(qtbot: QtBot, theme: Theme, database: Path, show: Callable[[QWidget], None]) -> ComparisonView:
    view = ComparisonView(partial(Reader, database), [1, 2, 3, 4], Plugins.discover(), theme)
    show(view)
    qtbot.waitUntil(lambda: view.stack.currentWidget() is not view.reading)
    return view


def test_heads_intervals_and_published_cells_say_simulated(qtbot: QtBot, comparison: ComparisonView) -> None:
    comparison.add_published(["preserve-table-4-2/a-sig-01-2-50"])
    model = comparison.table.model()
    qtbot.waitUntil(lambda: model.columnCount() == 4)
    heads = [str(model.headerData(column, Qt.Orientation.Horizontal)) for column in range(1, 4)]
    assert [head.endswith(", simulated") for head in heads] == [True, True, False] and heads[2].endswith("published")
    row = next(row for row in comparison.table.rows.records() if row.metric == "latency_mean")
    assert "2 simulated runs" in row.cells[0].help
    assert "Ours, simulated for the same scenario" in row.cells[2].help
    assert "The interval simulated for the same scenario" in row.cells[2].help
    assert not any("easured" in cell.help for row in comparison.table.rows.records() for cell in row.cells)


def test_run_view_has_virtual_time_for_simulated_curves_and_real_time_for_processes(
    qtbot: QtBot, theme: Theme, database: Path, bridge: QueueBridge, show: Callable[[QWidget], None]
) -> None:
    view = RunView(partial(Reader, database), 1, Plugins.discover(), theme, bridge)
    show(view)
    qtbot.waitUntil(lambda: len(view.plots) > 3 and view.progress.isHidden())
    labels = {name: plot.canvas.getAxis("bottom").labelText for name, plot in view.plots.items()}
    assert {labels["Rate"], labels["Latency"]} == {"virtual time since T0"}
    assert labels["Resident memory"] == "time since T0"
    assert view.plots["Rate"].title == "Rate, simulated" and view.plots["Resident memory"].title == "Resident memory"
