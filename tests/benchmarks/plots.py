"""Prints how long a plot of 10 curves with 100,000 points each takes to redraw."""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
import psutil
import pyqtgraph
import PySide6
from PySide6.QtWidgets import QApplication

from labconsole_ui.plots.curve_plot import PlotCurve, TimePlot
from labconsole_ui.theme.theme import Theme

CURVES, POINTS, REPEATS, TARGET_MS = 10, 100_000, 40, 20.0


def median_ms(work: Callable[[], object]) -> float:
    """Median time of `work` in ms."""
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        work()
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


def main() -> int:
    """Measure new data, panning and painting; exit code 1 when a redraw misses the target."""
    app = QApplication([])
    plot = TimePlot("Benchmark", "ns", Theme(app), empty_text="")
    plot.resize(1280, 400)
    plot.show()
    app.processEvents()
    random = np.random.default_rng(1)
    t_s = np.linspace(0, 100, POINTS)
    curves = [PlotCurve(f"curve {index}", t_s, random.gamma(2.0, 4e5, POINTS) + index * 1e6) for index in range(CURVES)]

    def new_data() -> None:
        plot.set_curves(curves)
        plot.redraw()
        plot.canvas.viewport().grab()

    def pan() -> None:
        low, high = plot.canvas.view.viewRange()[0]
        plot.canvas.view.setXRange(low + 0.01, high + 0.01, padding=0)
        plot._whole_x = False
        plot.redraw()
        plot.canvas.viewport().grab()

    new_data()
    print(f"machine   {platform.processor() or platform.machine()}, {psutil.cpu_count()} cores, {platform.system()}")
    print(
        f"versions  Python {platform.python_version()}, PySide6 {PySide6.__version__}, "
        f"pyqtgraph {pyqtgraph.__version__}, numpy {np.__version__}"
    )
    print(f"figure    {CURVES} curves x {POINTS:,} points, 1280 px wide, median of {REPEATS}")
    print(f"reduce    {median_ms(plot.redraw):6.1f} ms")
    moved, fresh = median_ms(pan), median_ms(new_data)
    print(f"pan       {moved:6.1f} ms (reduce and paint; target {TARGET_MS:.0f} ms)")
    print(f"new data  {fresh:6.1f} ms (take over, reduce and paint; target {TARGET_MS:.0f} ms)")
    return 0 if max(moved, fresh) <= TARGET_MS else 1


if __name__ == "__main__":
    sys.exit(main())
