"""Plots below one another, or in two columns where there is room; scrolls when there are more than fit."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QScrollArea, QWidget

from labconsole_ui.plots.timeplot import TimePlot

COLUMN_WIDTH = 480


class PlotGrid(QScrollArea):
    """Holds plots by name, in the order in which they came."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.plots: dict[str, TimePlot] = {}
        self._columns = 1
        self._page = QWidget(self)
        self._page.setProperty("page", True)
        self._grid = QGridLayout(self._page)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(8)
        self.setWidgetResizable(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidget(self._page)

    def add(self, name: str, plot: TimePlot) -> None:
        """Show `plot` after the others."""
        self.plots[name] = plot
        self._place()

    def remove(self, name: str) -> None:
        """Show the plot `name` no more. Raises KeyError."""
        plot = self.plots.pop(name)
        self._grid.removeWidget(plot)
        plot.hide()
        plot.deleteLater()
        self._place()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Use the width."""
        super().resizeEvent(event)
        columns = 2 if event.size().width() >= 2 * COLUMN_WIDTH else 1
        if columns != self._columns:
            self._columns = columns
            self._place()

    def _place(self) -> None:
        for plot in self.plots.values():
            self._grid.removeWidget(plot)
        for position, plot in enumerate(self.plots.values()):
            self._grid.addWidget(plot, *divmod(position, self._columns))
        for row in range(self._grid.rowCount()):
            used = row * self._columns < len(self.plots)
            self._grid.setRowStretch(row, 1 if used else 0)
        self._grid.setColumnStretch(0, 1)
        self._grid.setColumnStretch(1, 1 if self._columns == 2 else 0)
