"""Plots below one another, or side by side where there is room; scrolls when there are more than fit."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QScrollArea, QWidget

from labconsole_ui.plots.curve_plot import CurvePlot
from labconsole_ui.plots.plot_card import MIN_HEIGHT

COLUMN_WIDTH = 480
MAX_COLUMNS = 4


class PlotGrid(QScrollArea):
    """Plots by name, in the order in which they were added.

    A plot gets `COLUMN_WIDTH` px, but only `low_width` in a grid that is too low for two rows.
    """

    def __init__(self, parent: QWidget | None = None, *, low_width: int = 270) -> None:
        super().__init__(parent)
        self.plots: dict[str, CurvePlot] = {}
        self._columns = 1
        self._low_width = low_width
        self._page = QWidget(self)
        self._page.setProperty("page", True)
        self._grid = QGridLayout(self._page)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(8)
        self.setWidgetResizable(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidget(self._page)

    def add(self, name: str, plot: CurvePlot) -> None:
        """Show `plot` after the others."""
        self.plots[name] = plot
        self._place()

    def remove(self, name: str) -> None:
        """Remove the plot `name`. Raises KeyError."""
        plot = self.plots.pop(name)
        self._grid.removeWidget(plot)
        plot.hide()
        plot.deleteLater()
        self._place()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Arrange the plots for the new width."""
        super().resizeEvent(event)
        columns = self._columns_for(event.size())
        if columns != self._columns:
            self._columns = columns
            self._place()

    def _columns_for(self, size: QSize) -> int:
        low = size.height() < 2 * MIN_HEIGHT + self._grid.spacing()
        fitting = size.width() // (self._low_width if low else COLUMN_WIDTH)
        return max(1, min(MAX_COLUMNS, fitting))

    def _place(self) -> None:
        for plot in self.plots.values():
            self._grid.removeWidget(plot)
        for position, plot in enumerate(self.plots.values()):
            self._grid.addWidget(plot, *divmod(position, self._columns))
        for row in range(self._grid.rowCount()):
            self._grid.setRowStretch(row, 1 if row * self._columns < len(self.plots) else 0)
        for column in range(self._grid.columnCount()):
            self._grid.setColumnStretch(column, 1 if column < min(self._columns, len(self.plots)) else 0)
