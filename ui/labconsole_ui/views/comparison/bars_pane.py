"""Bars: one metric of all columns, each with its interval; published points are hollow."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QComboBox, QScrollArea, QVBoxLayout, QWidget

from labconsole.analysis.columns import counterpart, title_with_origin
from labconsole.analysis.comparison import Comparison, MetricLine
from labconsole.analysis.published_figures import PublishedColumn
from labconsole_ui.plots.bar_plot import Bar, BarPlot
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.comparison.comparison_rows import interval_text


class BarsPane(QWidget):
    """Bars of one metric, chosen in a box or by the current row of the table."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._comparison: Comparison | None = None
        self.box = QComboBox(self)
        self.box.setAccessibleName(self.tr("Metric of the bars"))
        self.box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.box.setMinimumContentsLength(24)
        self.box.currentIndexChanged.connect(self._show_chosen)
        self.plot: BarPlot | None = None
        self._theme = theme
        self._scroll = QScrollArea(self)
        self._scroll.setAccessibleName(self.tr("Bars of the figures"))
        self._scroll.setWidgetResizable(True)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 8, 0, 0)
        column.setSpacing(6)
        column.addWidget(self.box)
        column.addWidget(self._scroll, 1)

    def set_comparison(self, comparison: Comparison | None) -> None:
        """Show the metric that was chosen before, of this comparison."""
        self._comparison = comparison
        lines = comparison.metrics if comparison is not None else ()
        names = [line.name for line in lines]
        key_names = [line.name for line in comparison.key_lines] if comparison is not None else []
        chosen = next((name for name in (self.box.currentData(), *key_names) if name in names), "")
        self.box.blockSignals(True)
        self.box.clear()
        for line in lines:
            self.box.addItem(line.kind.title, line.name)
        self.box.setCurrentIndex(max(0, self.box.findData(chosen)))
        self.box.blockSignals(False)
        self._show_chosen(self.box.currentIndex())

    def choose(self, metric: str) -> None:
        """Show another metric."""
        index = self.box.findData(metric)
        if index >= 0:
            self.box.setCurrentIndex(index)

    def showEvent(self, event: QShowEvent) -> None:
        """Create the plot when the pane is first shown."""
        super().showEvent(event)
        if self.plot is None:
            self.plot = BarPlot("", "", self._theme, empty_text=self.tr("No figures"))
            self._scroll.setWidget(self.plot)
            self._show_chosen(self.box.currentIndex())

    def _show_chosen(self, index: int) -> None:
        if self.plot is None:
            return
        if self._comparison is None or not 0 <= index < len(self._comparison.metrics):
            self.plot.set_bars("", "", ())
            return
        line = self._comparison.metrics[index]
        self.plot.set_bars(line.kind.title, line.scale.unit, self._bars(self._comparison, line))

    def _bars(self, comparison: Comparison, line: MetricLine) -> list[Bar]:
        """A bar for each column; a published one has the colour of its scenario, and is hollow."""
        bars, scale, columns = [], line.scale, comparison.columns
        for place, (column, cell) in enumerate(zip(columns, line.cells, strict=True)):
            if cell.value is None:
                continue
            text, interval, colour = scale.figure(cell.value, cell.uncertainty), None, place
            if cell.interval is not None:
                interval = (cell.interval.low * scale.factor, cell.interval.high * scale.factor)
                text += f" ({interval_text(cell.interval, scale)})"
            if isinstance(column, PublishedColumn):
                text += f", {self.tr('published')}"
                measured = counterpart(columns, place)
                colour = place if measured is None else measured
            published = isinstance(column, PublishedColumn)
            title = column.title if published else title_with_origin(column)
            bars.append(Bar(title, cell.value * scale.factor, interval, colour, text, published))
        return bars
