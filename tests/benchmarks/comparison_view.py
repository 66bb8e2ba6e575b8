"""Prints how long a comparison over 1,000,000 samples takes to open, and the longest stall while it is panned."""

from __future__ import annotations

import gc
import importlib.util
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import psutil
import PySide6
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from labconsole.model.plugin import Plugins
from labconsole.store.reader import Reader
from labconsole_ui.plots.curve_plot import CurvePlot
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.comparison.comparison_view import ComparisonView
from labconsole_ui.views.comparison.samples_pane import SamplesPane

SAMPLES, SCENARIOS, ATTEMPTS = 1_000_000, 4, 5
REPEATS = (1, 5)
"""The samples are in 4 runs, and in 20."""
SHOWN_MS, STALL_MS = 300.0, 50.0
PANS = 40


def neighbour(name: str) -> ModuleType:
    """The benchmark script `name` next to this one."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Took(NamedTuple):
    """A span in ms: by the clock, and of computing."""

    clock: float
    cpu: float


def wait(app: QApplication, done: Callable[[], bool]) -> None:
    """Let the window work until `done`."""
    while not done():
        app.processEvents()
        time.sleep(0.0005)


class Watch:
    """Measures the time since it was created: by the clock, and what this process computed in it."""

    def __init__(self) -> None:
        self._begin = time.perf_counter(), time.process_time()

    def read(self) -> Took:
        """Both, in ms."""
        clock, cpu = self._begin
        return Took((time.perf_counter() - clock) * 1e3, (time.process_time() - cpu) * 1e3)


def until_drawn(app: QApplication, pane: SamplesPane) -> Took:
    """How long it takes until the pane shows all runs."""
    watch = Watch()
    wait(app, lambda: pane.complete and bool(pane.all_plots()) and all(plot.curves() for plot in pane.all_plots()))
    return watch.read()


def is_compared(view: ComparisonView) -> bool:
    """Whether the table is filled."""
    return view.table_data is not None


def has_findings(view: ComparisonView) -> bool:
    """Whether the findings are there."""
    return "against" in view.findings.plain_text()


def pan(app: QApplication, plot: CurvePlot) -> None:
    """Zoom in and go along the plot by keyboard."""
    for key in (Qt.Key.Key_Plus, Qt.Key.Key_Plus, *([Qt.Key.Key_Right] * PANS)):
        QTest.keyClick(plot, key)
        app.processEvents()


def measured(app: QApplication, views: ModuleType, folder: Path, repeats: int) -> tuple[float, float]:
    """Compare runs with all samples together, and print what it took: the longest opening and the longest stall, ms."""
    theme, plugins = Theme(app), Plugins.discover()
    path = folder / f"{repeats}.db"
    stored = views.stored_runs(path)
    names = [(f"Scenario {test}", {"test": test}) for test in range(1, SCENARIOS + 1)]
    # A message is a sample at its sender and one at its receiver.
    messages = SAMPLES // (2 * SCENARIOS * repeats)
    run_ids = stored.finished(*names, repeats=repeats, messages=messages, rate=20_000.0)
    stored.close()
    gc.freeze()  # as `open_window` does
    print(f"figure    {SAMPLES:,} samples in {len(run_ids)} runs; medians of {ATTEMPTS} windows")
    times: dict[str, list[Took]] = {}
    opening: list[float] = []
    panning: list[float] = []
    for _ in range(ATTEMPTS):
        watch = views.StallWatch()
        since = Watch()
        view = ComparisonView(lambda: Reader(path), run_ids, plugins, theme)
        view.resize(1280, 800)
        view.show()
        wait(app, partial(is_compared, view))
        times.setdefault("opened, with table", []).append(since.read())
        wait(app, partial(has_findings, view))
        times.setdefault("opened, with findings", []).append(since.read())
        for name, pane in (("over time, all runs", view.curves), ("distribution, all runs", view.distribution)):
            view.tabs.setCurrentWidget(pane)
            times.setdefault(name, []).append(until_drawn(app, pane))
        opening.append(watch.own_ms)
        for pane in (view.distribution, view.curves):
            view.tabs.setCurrentWidget(pane)
            app.processEvents()
            watch.restart()
            pan(app, pane.all_plots()[0])
            panning.append(watch.own_ms)
        view.close()
        view.deleteLater()
        app.processEvents()
    for name, taken in times.items():
        clock, cpu = (statistics.median(one[part] for one in taken) for part in (0, 1))
        print(f"  {name:<24} {clock:5.0f} ms ({cpu:4.0f} ms of computing), {clock / SHOWN_MS:.2f} of the target")
    for what, stalls in (("opening", opening), ("panning", panning)):
        print(
            f"  longest stall while {what}: {statistics.median(stalls):.0f} ms, at worst {max(stalls):.0f} ms "
            "without waiting for a processor"
        )
    return max(statistics.median(one.clock for one in taken) for taken in times.values()), max(*opening, *panning)


def main() -> int:
    """Measure; exit code 1 when a target is missed."""
    views = neighbour("views")
    app = QApplication([])
    print(f"machine   {platform.processor() or platform.machine()}, {psutil.cpu_count()} cores, {platform.system()}")
    print(f"versions  Python {platform.python_version()}, PySide6 {PySide6.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        found = [measured(app, views, Path(folder), repeats) for repeats in REPEATS]
    print(f"load      {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "")
    print(f"targets   {SHOWN_MS:.0f} ms, no stall over {STALL_MS:.0f} ms")
    return 0 if all(shown <= SHOWN_MS and longest <= STALL_MS for shown, longest in found) else 1


if __name__ == "__main__":
    sys.exit(main())
