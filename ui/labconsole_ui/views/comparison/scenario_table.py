"""A table with scenarios as columns: values with details below them, titles that stay visible."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPoint, Qt, Signal
from PySide6.QtGui import QFontMetrics, QResizeEvent
from PySide6.QtWidgets import QWidget

from labconsole.analysis.comparison import Comparison
from labconsole_ui.tables.folding_table import FoldingTable
from labconsole_ui.tables.frozen_column import FrozenColumn
from labconsole_ui.tables.record_table import Field, RecordModel
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.views.comparison.cell_delegates import PADDING, TitleDelegate, ValueDelegate, titled
from labconsole_ui.views.comparison.column_header import ColumnHeader, Density, Heading
from labconsole_ui.views.comparison.comparison_rows import FOLDED, Row, Section, tsv

FIRST_VALUE = 1
"""Columns before the first scenario: the title."""
ROW_HEIGHT = 25
WIDEST_TITLE = 250
WIDEST_VALUE = 260
MIN_TITLE, SCROLLED_TITLE = 140, 220


class ScenarioTable(FoldingTable):
    """Rows of `CellText`s under headings, one for each scenario."""

    def __init__(self, name: str, theme: Theme, parent: QWidget) -> None:
        super().__init__(name, theme, parent)
        self._theme = theme
        self._count = 0
        self._needed = 0
        self._least: dict[Density, list[int]] = {density: [] for density in Density}
        self.header = ColumnHeader(theme, self)
        self.setHorizontalHeader(self.header)
        self.header.setStretchLastSection(False)
        self.rows: RecordModel[Row] = RecordModel([], theme, self)
        self.setModel(self.rows)
        self._titles, self._values = TitleDelegate(theme, self), ValueDelegate(theme, self)
        self.setItemDelegate(self._values)
        self.setItemDelegateForColumn(0, self._titles)
        self.verticalHeader().setDefaultSectionSize(ROW_HEIGHT)
        self.verticalHeader().setMinimumSectionSize(ROW_HEIGHT)
        self.frozen = FrozenColumn(self)
        self.frozen.setItemDelegateForColumn(0, self._titles)

    def show_rows(self, headings: Sequence[Heading], rows: Sequence[Row], unfolded: Collection[Section] = ()) -> None:
        """Show these rows; headings of sections that can be folded have an icon for their state."""
        self._count = len(headings)
        self.clearSpans()
        self._set_fields(headings, unfolded)
        self.rows.set_records(rows)
        for place, row in enumerate(rows):
            if row.heading:
                self.setSpan(place, 0, 1, self.rows.columnCount())
        self.header.set_headings(headings)
        self._measure()
        self._fit()

    def value_column(self, section: int) -> int | None:
        """The index of the scenario in the table's column `section`, None for other columns."""
        return section - FIRST_VALUE if FIRST_VALUE <= section < FIRST_VALUE + self._count else None

    def least_width(self) -> int:
        """The least width (px) for titles and scenarios, with intervals below the changes."""
        return MIN_TITLE + sum(self._least[Density.DENSE])

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Share the new width among the columns."""
        super().resizeEvent(event)
        self._fit()

    def _set_fields(self, headings: Sequence[Heading], unfolded: Collection[Section]) -> None:
        fields: list[Field[Row]] = [
            Field(
                "",
                lambda row: row.accessible_text,
                tooltip=lambda row: "\n".join(part for part in (row.help, row.better, row.remark) if part),
                icon=lambda row: _fold_icon(row, unfolded),
                strong=lambda row: row.heading,
            ),
            *(self._value_field(index, heading) for index, heading in enumerate(headings)),
        ]
        self.rows.set_fields(fields)

    def _value_field(self, index: int, heading: Heading) -> Field[Row]:
        def text(row: Row) -> str:
            if row.heading:
                return ""
            cell = row.cells[index]
            return "  ".join(part for part in (cell.value, cell.change, cell.mark) if part)

        return Field(
            heading.text,
            text,
            right=True,
            tooltip=lambda row: "" if row.heading else row.cells[index].help,
            tone=lambda row: None if row.heading else row.cells[index].tone or None,
            header_tooltip=heading.help,
        )

    def _measure(self) -> None:
        """The wanted widths of titles and scenarios, measured once: each resizing uses them."""
        rows = [row for row in self.rows.records() if not row.heading]
        plain = QFontMetrics(self._theme.font(FontRole.BODY))
        self._needed = max((plain.horizontalAdvance(titled(row)) for row in rows), default=0) + 2 * PADDING + 4
        self._least = {
            density: [
                max(
                    self._values.least_width(rows, index, compact=density is not Density.WIDE),
                    self.header.least_width(index, density),
                )
                for index in range(self._count)
            ]
            for density in Density
        }

    def _fit(self) -> None:
        """Set the widths of titles and scenarios, and the heights of rows by their titles."""
        rows = [row for row in self.rows.records() if not row.heading]
        if not rows or not self._count:
            return
        width = self.viewport().width()
        fitting = (density for density in Density if MIN_TITLE + sum(self._least[density]) <= width)
        self.header.density = next(fitting, Density.DENSE)
        self._values.compact = self.header.density is not Density.WIDE
        needed, least = self._needed, self._least[self.header.density]
        # Titles may be wrapped, values not; where the width is still too small, the table is scrolled sideways.
        room = width - sum(least)
        first = min(needed, WIDEST_TITLE, room if room >= MIN_TITLE else SCROLLED_TITLE)
        spare = max(0, width - first - sum(least)) // len(least)
        self.setColumnWidth(0, first)
        for index, one in enumerate(least):
            self.setColumnWidth(FIRST_VALUE + index, min(one + spare, max(one, WIDEST_VALUE)))
        self.header.fit()
        for place, row in enumerate(self.rows.records()):
            height = max(self._values.height(row), self._titles.height(row, first)) if row.detailed else ROW_HEIGHT
            if self.rowHeight(place) != height:
                self.setRowHeight(place, height)
        self.frozen.sync()


def _fold_icon(row: Row, unfolded: Collection[Section]) -> tuple[str, str] | None:
    if not row.heading or row.section not in FOLDED:
        return None
    return ("chevron-down" if row.section in unfolded else "chevron-right", "muted")


class ComparisonTable(ScenarioTable):
    """Shows a comparison.

    `fold_toggled(section)` asks for the rows of a section to be shown or folded; `column_menu_wanted(column, global
    position)` for the menu of a scenario's column; `metric_chosen` names the metric of the current row.
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
        self.frozen.clicked.connect(self.toggle_at)
        self.selectionModel().currentRowChanged.connect(self._emit_metric)

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

    def toggle_at(self, index: QModelIndex | QPersistentModelIndex) -> bool:
        """Ask for the rows of a section to be shown or folded, at its heading."""
        row = self.rows.record(index.row()) if index.isValid() else None
        if row is None or not row.heading or row.section not in FOLDED:
            return False
        self.fold_toggled.emit(row.section)
        return True

    def _emit_metric(self, index: QModelIndex) -> None:
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
