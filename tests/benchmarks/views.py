"""Prints how long the history of 2,000 runs and a run of 1,000,000 samples take to show, and the longest stall."""

from __future__ import annotations

import gc
import importlib.util
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import psutil
import PySide6
from PySide6.QtCore import Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from labconsole.engine.queue import RunQueue
from labconsole.model.plugin import Plugins
from labconsole.store.reader import Reader
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.history.history_view import HistoryView
from labconsole_ui.views.run.run_view import RunView

RUNS, SAMPLES, SHOWN_MS, STALL_MS = 2_000, 1_000_000, 200.0, 50.0
SCHEDULER = Path("/proc/thread-self/schedstat")
FIXTURES = Path(__file__).parents[1] / "labconsole_ui" / "views" / "conftest.py"


def stored_runs(path: Path) -> Any:
    """The tests' writer of runs on a new database."""
    spec = importlib.util.spec_from_file_location("views_fixtures", FIXTURES)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.StoredRuns(path)


class StallWatch:
    """The longest time for which the event loop did not come round, the same without the time for which the thread
    waited for a processor (Linux only), and the most CPU time that one turn took.

    The last two say what the window itself costs, however busy the machine is with other things.
    """

    def __init__(self) -> None:
        self.restart()
        self._timer = QTimer()
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._tick)
        self._timer.start(0)

    def restart(self) -> None:
        """Forget what was before."""
        self.longest_ms = self.own_ms = self.most_cpu_ms = 0.0
        self._last, self._last_cpu, self._last_waited = time.perf_counter(), time.thread_time(), self._waited_s()

    def _tick(self) -> None:
        now, cpu, waited = time.perf_counter(), time.thread_time(), self._waited_s()
        took_ms = (now - self._last) * 1e3
        self.longest_ms = max(self.longest_ms, took_ms)
        self.own_ms = max(self.own_ms, took_ms - (waited - self._last_waited) * 1e3)
        self.most_cpu_ms = max(self.most_cpu_ms, (cpu - self._last_cpu) * 1e3)
        self._last, self._last_cpu, self._last_waited = now, cpu, waited

    @staticmethod
    def _waited_s() -> float:
        return int(SCHEDULER.read_text().split()[1]) / 1e9 if SCHEDULER.exists() else 0.0

    def __str__(self) -> str:
        return (
            f"longest stall {self.longest_ms:.0f} ms, {self.own_ms:.0f} ms without waiting for a processor, "
            f"{self.most_cpu_ms:.0f} ms CPU of the window's thread"
        )


def shown(app: QApplication, make: Callable[[], QWidget], done: Callable[[Any], bool]) -> tuple[Any, float, StallWatch]:
    """Make and show a view; returns it, the ms until `done`, and how the loop came round."""
    watch = StallWatch()
    begin = time.perf_counter()
    view = make()
    view.resize(1280, 800)
    view.show()
    watch.restart()
    while not done(view):
        app.processEvents()
        time.sleep(0.0005)
    took_ms = (time.perf_counter() - begin) * 1e3
    until = time.perf_counter() + 1.0
    while time.perf_counter() < until:
        app.processEvents()
        time.sleep(0.0005)
    return view, took_ms, watch


def main() -> int:
    """Measure both; exit code 1 when a target is missed."""
    app = QApplication([])
    theme, plugins = Theme(app), Plugins.discover()
    print(f"machine   {platform.processor() or platform.machine()}, {psutil.cpu_count()} cores, {platform.system()}")
    print(f"versions  Python {platform.python_version()}, PySide6 {PySide6.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.db"
        stored = stored_runs(path)
        stored.many(RUNS)
        [big] = stored.finished(("Big", {"test": 1, "count": SAMPLES}), messages=SAMPLES, rate=50_000.0)
        stored.close()
        bridge = QueueBridge(lambda wake: RunQueue(path, wake=wake))
        gc.freeze()  # as `open_window` does
        readers = lambda: Reader(path)  # noqa: E731
        for attempt in ("first", "again"):
            history, took, stall = shown(
                app,
                lambda: HistoryView(readers, path, bridge, theme, plugins),
                lambda view: view.model.rowCount() >= RUNS,
            )
            print(f"history   {RUNS:,} runs shown in {took:.0f} ms, {stall} ({attempt})")
            watch = StallWatch()
            for letter in "test 3":
                QTest.keyClick(history.filters.search, letter)
                app.processEvents()
            history.table.sortByColumn(6, Qt.SortOrder.DescendingOrder)
            app.processEvents()
            print(f"          filtered and sorted, {watch}")
            history.deleteLater()
        run_view, run_took, run_stall = shown(
            app,
            lambda: RunView(readers, big, plugins, theme, bridge),
            lambda view: len(view.plots) >= 4,
        )
        print(f"run view  {SAMPLES:,} messages, all plots in {run_took:.0f} ms, {run_stall}")
        run_view.deleteLater()
        app.processEvents()
        bridge.close()
    print(f"load      {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "")
    print(f"targets   history in {SHOWN_MS:.0f} ms, no stall over {STALL_MS:.0f} ms but for waiting for a processor")
    return 0 if took <= SHOWN_MS and max(stall.own_ms, run_stall.own_ms) <= STALL_MS else 1


if __name__ == "__main__":
    sys.exit(main())
