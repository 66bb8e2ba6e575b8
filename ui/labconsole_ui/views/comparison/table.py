"""The table of the comparison: folding of equal parameters, menus of its columns, copying."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from PySide6.QtCore import QModelIndex, QPoint, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QWidget

from labconsole.analysis.comparison import Comparison
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.comparison.comparison_rows import FOLDED, Row, Section, tsv
from labconsole_ui.views.comparison.headings import Heading
from labconsole_ui.views.comparison.scenario_table import FIRST_VALUE, ScenarioTable


class ComparisonTable(ScenarioTable):
    """Shows a comparison.

    `fold_toggled(section)` asks for the rows of a section to be shown or folded; `column_menu_wanted(column, global
    position)` for what can be done with a scenario's column; `metric_chosen` names the metric of the current row.
    """

    fold_toggled = Signal(Section)
    column_menu_wanted = Signal(int, QPoint)
    metric_chosen = Signal(str)

    def __init__(self, name: str, theme: Theme, parent: QWidget) -> None:
        super().__init__(name, theme, parent)
        self._comparison: Comparison | None = None
        self.header.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.header.customContextMenuRequested.connect(self._header_menu)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._cell_menu)
        self.frozen.clicked.connect(self._toggle_at)
        self.selectionModel().currentRowChanged.connect(self._tell_metric)

    def show_comparison(
        self,
        comparison: Comparison,
        headings: Sequence[Heading],
        rows: Sequence[Row],
        *,
        unfolded: Collection[Section],
    ) -> None:
        """Show these rows under these headings, one for each scenario."""
        self._comparison = comparison
        self.show_rows(headings, rows, unfolded)

    def as_tsv(self) -> str:
        """Selected rows, or all, with values and changes in columns of their own."""
        if self._comparison is None:
            return ""
        places = sorted({index.row() for index in self.selectionModel().selectedRows()})
        chosen = [self.rows.record(place) for place in places] or self.rows.records()
        titles = [field.title for field in self.rows.fields[FIRST_VALUE:]]
        return tsv(titles, self._comparison.baseline, chosen)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click on the heading of a folded section shows or folds them."""
        super().mouseReleaseEvent(event)
        if event.button() is Qt.MouseButton.LeftButton:
            self._toggle_at(self.indexAt(event.position().toPoint()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter and space do what a click does."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self._toggle_at(self.currentIndex())
            return
        super().keyPressEvent(event)

    def _toggle_at(self, index: QModelIndex) -> None:
        if index.isValid():
            row = self.rows.record(index.row())
            if row.heading and row.section in FOLDED:
                self.fold_toggled.emit(row.section)

    def _tell_metric(self, index: QModelIndex) -> None:
        if index.isValid() and self.rows.record(index.row()).metric:
            self.metric_chosen.emit(self.rows.record(index.row()).metric)

    def _header_menu(self, position: QPoint) -> None:
        column = self.value_column(self.header.logicalIndexAt(position))
        if column is not None:
            self.column_menu_wanted.emit(column, self.header.mapToGlobal(position))

    def _cell_menu(self, position: QPoint) -> None:
        """By menu key: of the current column; by mouse: of the one that was clicked."""
        column = self.value_column(self.indexAt(position).column())
        self.column_menu_wanted.emit(-1 if column is None else column, self.viewport().mapToGlobal(position))
