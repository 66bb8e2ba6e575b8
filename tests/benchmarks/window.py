"""Measure the window: the CPU time of the longest turns when each page opens first, and memory with 40 pages of runs.

Run it with `python tests/benchmarks/window.py`; it works in a temporary directory and leaves nothing behind. A turn is
what the window's thread computes between two rounds of its event loop; none should be over 50 ms.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import psutil
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from labconsole.engine.provenance import provenance
from labconsole_ui.main_window import MainWindow
from labconsole_ui.navigation import HELP, targets_of
from labconsole_ui.start import import_ahead, make_services
from tests.benchmarks.views import StallWatch, stored_runs

RUNS, SAMPLES, SETTLED_MS = 40, 1_000_000, 1_500


def main() -> None:
    """Print the figures."""
    said = provenance(0, 0)
    print(f"{said['cpu']}, {said['cores']} cores, {said['os']}, Python {said['python']}")
    with tempfile.TemporaryDirectory() as home:
        os.environ["LABCONSOLE_HOME"] = home
        database = Path(home) / "runs.db"
        stored = stored_runs(database)
        runs = stored.finished(("Test 1", {"test": 1}), repeats=RUNS, messages=SAMPLES // RUNS)
        stored.close()
        measure(database, runs)


def measure(database: Path, runs: list[int]) -> None:
    """Open each page of a new window, then every run."""
    app = QApplication([])
    services = make_services(app, database, "light")
    window = MainWindow(services)
    window.resize(1280, 800)
    window.show()
    import_ahead(services.plugins)
    QTest.qWait(SETTLED_MS)
    watch = StallWatch()
    for target in [*(target for plugin in services.plugins.found for target in targets_of(plugin)), HELP]:
        watch.restart()
        begun = time.thread_time()
        window.show_page(target)
        QTest.qWait(SETTLED_MS)
        whole_ms = (time.thread_time() - begun) * 1e3
        print(f"{target:36} longest turn {watch.most_cpu_ms:5.0f} ms of CPU, in all {whole_ms:5.0f} ms")
    before = _memory_mb()
    for run in runs:
        window.runs.open_run(run)
        QTest.qWait(SETTLED_MS // 2)
    print(f"memory: {before:.0f} MB with all pages, {_memory_mb():.0f} MB with {RUNS} runs of {SAMPLES:,} samples open")
    window.close()


def _memory_mb() -> float:
    return float(psutil.Process().memory_info().rss) / 1e6


if __name__ == "__main__":
    main()
