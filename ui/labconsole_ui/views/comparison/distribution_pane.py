"""Distribution: ECDF and percentiles of the runs' observations, all columns in one plot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QLabel, QWidget

from labconsole.analysis.caveats import ENOUGH_BEYOND
from labconsole.output.plot_data import PlottedDistribution
from labconsole_ui.plots.axes import LogScale, PercentileScale, Scale
from labconsole_ui.plots.curve_plot import CurvePlot, PlotCurve
from labconsole_ui.plots.plot_grid import PlotGrid
from labconsole_ui.runtime.background import Background
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.comparison.run_samples import RunSamples
from labconsole_ui.views.comparison.samples_pane import OVERLAY_HEIGHT, SampledColumn, SamplesPane


class DistributionPane(SamplesPane):
    """Two plots: the part of observations up to a value, and the value at each percentile up to p99.9."""

    def __init__(self, samples: RunSamples, background: Background, theme: Theme, parent: QWidget) -> None:
        super().__init__(samples, background, theme, parent)
        self._distributions: dict[tuple[str, str], list[tuple[SampledColumn, PlottedDistribution]]] = {}
        self.ecdf: CurvePlot | None = None
        self.percentiles: CurvePlot | None = None
        self._unit = ""
        self.box = QComboBox(self)
        self.box.setAccessibleName(self.tr("What was observed"))
        self.box.currentIndexChanged.connect(self._show_chosen)
        self.box.hide()
        self.grid = PlotGrid(self)
        self._about = QLabel(
            self.tr("A line for each run. Percentiles end where fewer than {0} observations lie beyond.").format(
                ENOUGH_BEYOND
            ),
            self,
        )
        self._about.setProperty("muted", True)
        self._about.setWordWrap(True)
        self._about.hide()
        self.column.addWidget(self.box, 0, Qt.AlignmentFlag.AlignLeft)
        self.column.addWidget(self.grid, 1)
        self.column.addWidget(self._about)

    def all_plots(self) -> list[CurvePlot]:
        """The plots that the legend serves."""
        return [plot for plot in (self.ecdf, self.percentiles) if plot is not None]

    def read_run(self, run_id: int) -> tuple[PlottedDistribution, ...]:
        """The run's distributions. Raises UserError."""
        return self._samples.distributions(run_id)

    def turns(self, columns: Sequence[SampledColumn], parts: Mapping[int, Any]) -> Iterator[Callable[[], None]]:
        """The chosen distribution of all columns."""
        self._distributions = {}
        for column in columns:
            for run_id in column.run_ids:
                for one in parts.get(run_id, ()):
                    self._distributions.setdefault((one.title, one.unit), []).append((column, one))
        yield self._offer
        if self._distributions:
            yield self._show_ecdf
            yield self._show_percentiles

    def _offer(self) -> None:
        chosen = self.box.currentText()
        self.box.blockSignals(True)
        self.box.clear()
        self.box.addItems([title for title, _ in self._distributions])
        self.box.setCurrentText(chosen)
        self.box.blockSignals(False)
        self.box.setVisible(len(self._distributions) > 1)
        self._about.setVisible(bool(self._distributions))
        self.grid.setVisible(bool(self._distributions))
        if not self._distributions:
            self._show_sentence(self.tr("The trial of these runs names nothing whose distribution could be drawn."))

    def _show_chosen(self) -> None:
        self._show_ecdf()
        self._show_percentiles()

    def _chosen(self) -> tuple[str, str, list[tuple[SampledColumn, PlottedDistribution]]]:
        """Title, unit and distributions of the chosen entry."""
        (title, unit), distributions = list(self._distributions.items())[max(0, self.box.currentIndex())]
        return title, unit, distributions

    def _show_ecdf(self) -> None:
        title, unit, distributions = self._chosen()
        if self.ecdf is None or self._unit != unit:
            # The unit is that of its horizontal axis.
            self._unit = unit
            if self.ecdf is not None:
                self.grid.remove("ecdf")
            self.ecdf = self._new_plot("ecdf", "%", LogScale(title, unit))
        self.ecdf.set_title(self.tr("{0}: cumulative (ECDF)").format(title))
        self.ecdf.set_curves(
            [PlotCurve(column.title, one.values, one.parts, column.colour) for column, one in distributions]
        )

    def _show_percentiles(self) -> None:
        title, unit, distributions = self._chosen()
        if self.percentiles is None:
            self.percentiles = self._new_plot("percentiles", unit, PercentileScale())
        # As in the report: the small latencies of one column would be flat below the large ones of another.
        positive = all(one.values[0] > 0 for _, one in distributions)
        self.percentiles.set_unit(unit, logarithmic=positive)
        self.percentiles.set_title(self.tr("{0}: percentiles").format(title))
        self.percentiles.set_curves(
            [PlotCurve(column.title, one.fractions, one.quantiles, column.colour) for column, one in distributions]
        )

    def _new_plot(self, name: str, unit: str, scale: Scale) -> CurvePlot:
        plot = CurvePlot("", unit, scale, self._theme, empty_text=self.tr("No samples"))
        plot.use_shared_legend()
        plot.setMinimumHeight(OVERLAY_HEIGHT)
        for hidden in self._hidden:
            plot.show_entry(hidden, False)
        self.grid.add(name, plot)
        return plot
