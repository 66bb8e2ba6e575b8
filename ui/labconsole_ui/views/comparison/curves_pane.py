"""Over time: the curves of all columns, a plot for each group of curves, all repeats in one colour."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from PySide6.QtWidgets import QComboBox, QWidget

from labconsole.model.trial import Curve
from labconsole_ui.plots.curve_plot import CurvePlot, PlotCurve, TimePlot
from labconsole_ui.plots.plot_grid import PlotGrid
from labconsole_ui.runtime.background import Background
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.comparison.run_samples import RunSamples
from labconsole_ui.views.comparison.samples_pane import OVERLAY_HEIGHT, SampledColumn, SamplesPane


class OverlayPlot(TimePlot):
    """The curves of one group; where it has several (sent, received), a box chooses which one is compared."""

    def __init__(self, group: str, unit: str, theme: Theme) -> None:
        super().__init__(group, unit, theme, empty_text="")
        self.set_empty_text(self.tr("No samples"))
        self._curves: dict[str, list[PlotCurve]] = {}
        self.box = QComboBox(self)
        self.box.setAccessibleName(self.tr("Curve of {0}").format(group))
        self.box.currentTextChanged.connect(self._show_chosen)
        self.add_to_header(self.box)
        self.use_shared_legend()
        self.setMinimumHeight(OVERLAY_HEIGHT)

    def set_choices(self, curves: dict[str, list[PlotCurve]]) -> None:
        """The curves of all columns under the title that they have in their runs."""
        self._curves = curves
        chosen = self.box.currentText()
        self.box.blockSignals(True)
        self.box.clear()
        self.box.addItems(list(curves))
        self.box.setCurrentText(chosen)
        self.box.blockSignals(False)
        self.box.setVisible(len(curves) > 1)
        self._show_chosen(self.box.currentText())

    def _show_chosen(self, title: str) -> None:
        self.set_curves(self._curves.get(title, []))


class CurvesPane(SamplesPane):
    """Plots of throughput, latency, CPU, memory: the curves over time of the runs' trial."""

    def __init__(self, samples: RunSamples, background: Background, theme: Theme, parent: QWidget) -> None:
        super().__init__(samples, background, theme, parent)
        self.grid = PlotGrid(self)
        self.column.addWidget(self.grid, 1)

    @property
    def plots(self) -> dict[str, CurvePlot]:
        """The plots by the name of their group."""
        return self.grid.plots

    def all_plots(self) -> list[CurvePlot]:
        """The plots that the legend serves."""
        return list(self.plots.values())

    def read_run(self, run_id: int) -> tuple[Curve, ...]:
        """The run's curves. Raises UserError."""
        return self._samples.curves(run_id)

    def turns(self, columns: Sequence[SampledColumn], parts: Mapping[int, Any]) -> Iterator[Callable[[], None]]:
        """A plot for each group of curves."""
        groups: dict[str, tuple[str, dict[str, list[PlotCurve]]]] = {}
        for column in columns:
            for run_id in column.run_ids:
                for curve in parts.get(run_id, ()):
                    _, titles = groups.setdefault(curve.group, (curve.unit, {}))
                    drawn = PlotCurve(column.title, curve.t_s, curve.values, column.colour, curve.virtual)
                    titles.setdefault(curve.title, []).append(drawn)
        for name in self.plots.keys() - groups.keys():
            yield partial(self.grid.remove, name)
        for name, (unit, titles) in groups.items():
            yield partial(self._show_plot, name, unit, titles)
        if not groups:
            yield partial(self._show_sentence, self.tr("These columns have no samples."))

    def _show_plot(self, name: str, unit: str, titles: dict[str, list[PlotCurve]]) -> None:
        plot = self.plots.get(name)
        if not isinstance(plot, OverlayPlot):
            plot = OverlayPlot(name, unit, self._theme)
            for hidden in self._hidden:
                plot.show_entry(hidden, False)
            self.grid.add(name, plot)
        plot.set_unit(unit)
        plot.set_choices(titles)
