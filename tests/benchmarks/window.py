"""Measure the window: the CPU time of the longest turn when a page opens first, and memory with 40 pages of runs.

Run it with `python tests/benchmarks/window.py`; it works in temporary directories and leaves nothing behind. A turn is
what the window's thread computes between two rounds of its event loop; none should be over 50 ms but for the one in
which the window itself is built. Each page is opened in a process of its own, `window.py PAGE`, since what the first
one draws and reads serves the others.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import psutil
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from labconsole.engine.provenance import provenance
from labconsole.model.plugin import Plugins
from labconsole.paths import pki_dir
from labconsole_certificates.panel.page import CertificatesPage
from labconsole_certificates.panel.trust.trust_view import TrustView
from labconsole_ui.runtime.page_targets import GUIDE, HELP, targets_of
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.shell.menus import bring_forward
from labconsole_ui.shell.startup import create_services, import_pages_ahead
from tests.benchmarks.views import StallWatch, stored_runs
from tests.helpers.many_states import certify_each_other, trust_a_third

RUNS, SAMPLES, SETTLED_MS, TIMES = 40, 1_000_000, 1_500, 3
CERTIFICATES = "page:certificates:certificates"
START, HISTORY, RUN, COMPARISON = "the window with its start page", "history", "run view", "comparison"
DEMO, MEMORY = "start of the demo", "memory"
MATRIX, MANY = (
    "trust matrix of 40 States, walked through",
    "1,640 certificates of 40 States, opened and searched",
)


def main() -> None:
    """Print the figures."""
    said = provenance(0, 0)
    print(f"{said['cpu']}, {said['cores']} cores, {said['os']}, Python {said['python']}, load {os.getloadavg()[0]:.1f}")
    targets = [target for plugin in Plugins.discover().found for target in targets_of(plugin)]
    for page in [START, *targets, HELP, GUIDE, HISTORY, RUN, COMPARISON, DEMO, MATRIX, MANY]:
        figures = [_measured(page).split() for _ in range(TIMES)]
        longest = sorted(float(longest) for longest, _whole in figures)
        whole = median(float(whole) for _longest, whole in figures)
        print(
            f"{page:55} longest turn {median(longest):4.0f} ms of CPU (worst of {TIMES}: {longest[-1]:.0f}), "
            f"in all {whole:4.0f} ms"
        )
    print(_measured(MEMORY), end="")


def _measured(page: str) -> str:
    return subprocess.run([sys.executable, __file__, page], check=True, capture_output=True, text=True).stdout


def measure(page: str) -> None:
    """Print the longest turn and the whole, ms of CPU of the window's thread, while this page opens first."""
    with tempfile.TemporaryDirectory() as home:
        os.environ["LABCONSOLE_HOME"] = home
        if page == MATRIX:
            trust_a_third(pki_dir())
        elif page == MANY:
            certify_each_other(pki_dir())
        stored = stored_runs(Path(home) / "runs.db")
        few = page not in (RUN, MEMORY)
        runs = stored.finished(("Test 1", {"test": 1}), repeats=RUNS, messages=1_000 if few else SAMPLES // RUNS)
        stored.close()
        app = QApplication([])
        services = create_services(app, Path(home) / "runs.db", "light")
        if page == START:
            watch, begun = StallWatch(), time.thread_time()
        window = MainWindow(services)
        window.resize(1280, 800)
        window.show()
        importing = import_pages_ahead(services.plugins)
        while importing.is_alive():
            QTest.qWait(20)
        QTest.qWait(SETTLED_MS)
        gc.freeze()  # as `run_window` does
        if page == MEMORY:
            _print_memory(window, runs)
        else:
            if page != START:
                watch, begun = StallWatch(), time.thread_time()
                _work(window, page, runs, watch)()
            QTest.qWait(SETTLED_MS)
            print(watch.most_cpu_ms, (time.thread_time() - begun) * 1e3)
        window.close()


def _work(window: MainWindow, page: str, runs: list[int], watch: StallWatch) -> Callable[[], object]:
    """What is measured."""
    work: dict[str, Callable[[], object]] = {
        HISTORY: lambda: bring_forward(window.history_dock),
        RUN: lambda: window.runs.open_run(runs[0]),
        COMPARISON: lambda: window.runs.compare_runs(runs[:5]),
        DEMO: window.run_demo,
        MATRIX: lambda: _walk(window, watch),
        MANY: lambda: _search(window),
    }
    return work.get(page, lambda: window.show_page(page))


def _walk(window: MainWindow, watch: StallWatch) -> None:
    page = window.plugin_pages.open(CERTIFICATES)
    assert isinstance(page, CertificatesPage)
    window.resize(2400, 2000)
    _until(lambda: page.building.complete)
    view = page.show_tab("trust")
    assert isinstance(view, TrustView)
    QTest.qWait(SETTLED_MS)
    view.grid.setFocus()
    watch.restart()
    for _step in range(40):
        QTest.keyClick(view.grid, Qt.Key.Key_Right)
        QTest.keyClick(view.grid, Qt.Key.Key_Down)
        QTest.qWait(5)


def _search(window: MainWindow) -> None:
    page = window.plugin_pages.open(CERTIFICATES)
    assert isinstance(page, CertificatesPage)
    _until(lambda: page.building.complete)
    view = page.show_tab("certificates")
    _until(lambda: view.browser.count.text() == "1640 certificates")
    QTest.keyClicks(view.browser.search, "state 07 root", delay=5)
    _until(lambda: view.browser.count.text() == "41 found")
    view.browser.search.clear()
    _until(lambda: view.browser.count.text() == "1640 certificates")
    view.tree.expandAll()
    view.tree.selectAll()
    for key in ("requests", "exchange", "trust", "rotation", "revocation", "audit"):
        page.tabs.setCurrentIndex([page.tabs.widget(index).objectName() for index in range(7)].index(key))
        QTest.qWait(SETTLED_MS // 3)


def _until(condition: Callable[[], bool]) -> None:
    while not condition():
        QTest.qWait(5)


def _print_memory(window: MainWindow, runs: list[int]) -> None:
    for plugin in window.services.plugins.found:
        for target in targets_of(plugin):
            window.show_page(target)
            QTest.qWait(SETTLED_MS)
    before = _memory_mb()
    for run in runs:
        window.runs.open_run(run)
        QTest.qWait(SETTLED_MS // 2)
    print(f"memory: {before:.0f} MB with all pages, {_memory_mb():.0f} MB with {RUNS} runs of {SAMPLES:,} samples open")


def _memory_mb() -> float:
    return float(psutil.Process().memory_info().rss) / 1e6


if __name__ == "__main__":
    measure(sys.argv[1]) if len(sys.argv) > 1 else main()
