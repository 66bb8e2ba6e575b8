"""Plots of large runs: the samples stay out of the window's process, and no process outlives its view."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable
from dataclasses import fields

import numpy as np
import psutil
import pytest
from pytestqt.qtbot import QtBot
from shiboken6 import delete

from labconsole.errors import UserError
from labconsole.model.plugin import Plugins
from labconsole.output.plot_data import CURVE_POINTS
from labconsole.store.reader import Reader
from labconsole_ui.runtime import plot_reader
from labconsole_ui.runtime.plot_reader import PlotReader
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.comparison.comparison_view import ComparisonView
from labconsole_ui.views.run.run_view import RunView
from tests.helpers.signals import frozen
from tests.labconsole_ui.views.conftest import StoredRuns

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support")
LONG_MS = 60_000


@pytest.fixture
def children() -> Callable[[], list[psutil.Process]]:
    """Children of this process since the test's begin; a broker that tests share may have been started before."""
    before = set(psutil.Process().children())
    return lambda: [child for child in psutil.Process().children() if child not in before]


def started(children: list[psutil.Process]) -> list[psutil.Process]:
    """The children that run their own program: one that is suspended before would hold up what starts it."""
    own = psutil.Process().cmdline()
    return [child for child in children if child.cmdline() != own]


def same(one: object, other: object) -> bool:
    """Whether two lines have the same values."""
    names = [field.name for field in fields(one)]  # type: ignore[arg-type]
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


@pytest.fixture
def every_run_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plot_reader, "LARGE_ROWS", 1)


def test_lines_from_the_process_are_those_of_the_samples(
    stored: StoredRuns, readers: Callable[[], Reader], plugins: Plugins, monkeypatch: pytest.MonkeyPatch
) -> None:
    [run_id] = stored.finished(("Test 1", {"test": 1}), messages=3_000, rate=1.0)
    plots = PlotReader(plugins)
    with readers() as reader:
        here = plots.curves(reader, run_id), plots.distributions(reader, run_id)
        monkeypatch.setattr(plot_reader, "LARGE_ROWS", 1)
        there = plots.curves(reader, run_id), plots.distributions(reader, run_id)
    assert here[1] and all(map(same, here[1], there[1]))
    assert [curve.title for curve in here[0]] == [curve.title for curve in there[0]]
    for one, other in zip(here[0], there[0], strict=True):
        if len(one.t_s) <= CURVE_POINTS:
            assert same(one, other)
        else:
            assert len(other.t_s) <= CURVE_POINTS + 2
            assert (other.values.max(), other.values.min()) == (one.values.max(), one.values.min())
    assert max(len(curve.t_s) for curve in here[0]) > CURVE_POINTS, "one of them is cut down"


@pytest.mark.nightly
@pytest.mark.timeout(170)
def test_the_samples_of_a_large_run_are_not_in_the_memory_of_the_window(
    stored: StoredRuns, readers: Callable[[], Reader], plugins: Plugins
) -> None:
    """Nightly: alone finds samples in the memory of the window; that a process reads them is judged in CI by
    `test_lines_from_the_process_are_those_of_the_samples`."""
    [large] = stored.finished(("Large", {"test": 1}), messages=600_000, rate=50_000.0)
    with readers() as reader:
        tracemalloc.start()
        plots = PlotReader(plugins)
        assert plots.curves(reader, large) and plots.distributions(reader, large)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 10e6, "a column of its series alone has 4.8 MB, and there are 18"


@pytest.mark.usefixtures("started_programs")  # a forked one is done before it is closed
def test_a_reader_that_is_closed_ends_its_process(
    stored: StoredRuns,
    readers: Callable[[], Reader],
    plugins: Plugins,
    every_run_is_large: None,
    children: Callable[[], list[psutil.Process]],
) -> None:
    [run_id] = stored.finished(("Test 1", {"test": 1}))
    plots = PlotReader(plugins)
    timer = threading.Timer(0.2, plots.close)
    timer.start()
    with readers() as reader, pytest.raises(UserError):
        plots.curves(reader, run_id)
    timer.join()
    assert children() == []


@pytest.mark.usefixtures("started_programs")
@pytest.mark.parametrize("view", ["run", "comparison"])
def test_no_process_outlives_its_view(
    qtbot: QtBot,
    stored: StoredRuns,
    readers: Callable[[], Reader],
    plugins: Plugins,
    theme: Theme,
    bridge: QueueBridge,
    every_run_is_large: None,
    children: Callable[[], list[psutil.Process]],
    view: str,
) -> None:
    [run_id] = stored.finished(("Test 1", {"test": 1}))
    if view == "run":
        shown: RunView | ComparisonView = RunView(readers, run_id, plugins, theme, bridge)
        shown.show()
    else:
        shown = compared = ComparisonView(readers, [run_id], plugins, theme)
        compared.show()
        qtbot.waitUntil(lambda: compared.table_data is not None)
        compared.tabs.setCurrentWidget(compared.distribution)
    qtbot.waitUntil(lambda: bool(started(children())), timeout=LONG_MS)
    assert shown.isVisible()
    [child] = started(children())
    with frozen(child.pid):  # it does not end by itself
        delete(shown)
        qtbot.waitUntil(lambda: not children())


def test_a_large_run_is_shown_whole(
    qtbot: QtBot,
    stored: StoredRuns,
    readers: Callable[[], Reader],
    plugins: Plugins,
    theme: Theme,
    bridge: QueueBridge,
    every_run_is_large: None,
) -> None:
    [run_id] = stored.finished(("Test 1", {"test": 1}))
    view = RunView(readers, run_id, plugins, theme, bridge)
    view.show()
    qtbot.waitUntil(lambda: bool(view.plots) and view.progress.isHidden(), timeout=LONG_MS)
    assert list(view.plots) == ["Throughput", "Latency", "CPU, 100 % = one core", "Resident memory"]
    delete(view)
