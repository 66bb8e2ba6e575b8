"""The side-by-side table: values with their differences in one cell, headings of sections over the whole width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QResizeEvent
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from labconsole.analysis.side_by_side import Table
from labconsole_ui.sidebyside.rows import Row, Section, tsv
from labconsole_ui.tables import DataTable, Field, RecordModel
from labconsole_ui.theme import FontRole, Theme

Index = QModelIndex | QPersistentModelIndex
FIRST_VALUE = 2
"""Columns before the first scenario: title and which way is better."""
GAP = 8
PADDING = 10
ROW_HEIGHT = 25


class ComparisonTable(DataTable):
    """Shows a comparison. `fold_toggled` asks for the equal parameters to be shown or folded."""

    fold_toggled = Signal()

    def __init__(self, name: str, theme: Theme, parent: QWidget) -> None:
        super().__init__(name, theme, parent)
        self._theme = theme
        self._comparison: Table | None = None
        self._headings: list[str] = []
        self.rows = ComparisonModel([], theme, self)
        self.setModel(self.rows)
        self._cells = ValueDelegate(theme, self)
        self.verticalHeader().setDefaultSectionSize(ROW_HEIGHT)
        self.verticalHeader().setMinimumSectionSize(ROW_HEIGHT)
        self.horizontalHeader().setStretchLastSection(False)

    def show_comparison(self, table: Table, headings: Sequence[str], rows: Sequence[Row], *, unfolded: bool) -> None:
        """Show these rows; `headings` are those of the scenarios, with a line feed before what is of less weight."""
        self._comparison, self._headings = table, list(headings)
        self.rows.wrapped = ()
        self.clearSpans()
        self._set_fields(self._headings, unfolded)
        self.rows.set_records(rows)
        for place, row in enumerate(rows):
            if row.heading:
                self.setSpan(place, 0, 1, self.rows.columnCount())
        for column in range(len(headings)):
            self.setItemDelegateForColumn(FIRST_VALUE + column, self._cells)
        self._fit()

    def value_column(self, section: int) -> int | None:
        """Which scenario the table's column `section` shows, None if it shows another thing."""
        return section - FIRST_VALUE if FIRST_VALUE <= section < FIRST_VALUE + len(self._headings) else None

    def as_tsv(self) -> str:
        """Selected rows, or all, with values and differences in columns of their own."""
        if self._comparison is None:
            return ""
        places = sorted({index.row() for index in self.selectionModel().selectedRows()})
        chosen = [self.rows.record(place) for place in places] or self.rows.records()
        return tsv(self._comparison, self._headings, chosen)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Share the width."""
        super().resizeEvent(event)
        self._fit()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click on the heading of the equal parameters shows or folds them."""
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
            if row.heading and row.section is Section.EQUAL:
                self.fold_toggled.emit()

    def _set_fields(self, headings: Sequence[str], unfolded: bool) -> None:
        fold = ("chevron-down" if unfolded else "chevron-right", "muted")
        fields: list[Field[Row]] = [
            Field(
                "",
                lambda row: row.title,
                tooltip=lambda row: row.help,
                icon=lambda row: fold if row.heading and row.section is Section.EQUAL else None,
                strong=lambda row: row.heading,
            ),
            Field(self.tr("Better"), lambda row: row.better, tooltip=lambda row: row.better_help),
            *(self._value_field(index, heading) for index, heading in enumerate(headings)),
        ]
        self.rows.set_fields(fields)

    def _value_field(self, index: int, heading: str) -> Field[Row]:
        def text(row: Row) -> str:
            if row.heading:
                return ""
            difference = row.differences[index] if row.differences else ""
            return f"{row.values[index]}  {difference}".strip()

        def about(row: Row) -> str:
            return "\n".join(part for part in (text(row), row.remark) if part)

        return Field(heading, text, right=True, tooltip=about)

    def _fit(self) -> None:
        """Title and arrows as wide as they need, the rest of the width to the scenarios, whose titles are wrapped."""
        rows = [row for row in self.rows.records() if not row.heading]
        if not rows or not self._headings:
            return
        self._cells.measure(rows, len(self._headings))
        plain, strong = QFontMetrics(self.font()), QFontMetrics(self._theme.font(FontRole.STRONG))
        first = max(plain.horizontalAdvance(row.title) for row in rows) + 2 * PADDING
        second = strong.horizontalAdvance(self.tr("Better")) + 2 * PADDING
        least = [self._cells.width(index) for index in range(len(self._headings))]
        room = self.viewport().width() - first - second
        spare = max(0, room - sum(least)) // len(least)
        self.setColumnWidth(0, first)
        self.setColumnWidth(1, second)
        wrapped = []
        for index, heading in enumerate(self._headings):
            width = least[index] + spare
            self.setColumnWidth(FIRST_VALUE + index, width)
            wrapped.append(wrap(heading, width - 2 * PADDING, strong))
        lines = max(text.count("\n") for text in wrapped) + 1
        self.rows.wrapped = wrapped
        self.horizontalHeader().setFixedHeight(lines * strong.height() + 12)
        self.horizontalHeader().viewport().update()


class ComparisonModel(RecordModel[Row]):
    """The rows; titles of scenarios are shown as they are wrapped now."""

    wrapped: Sequence[str] = ()

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Titles of the columns."""
        place = section - FIRST_VALUE
        if role == Qt.ItemDataRole.DisplayRole and 0 <= place < len(self.wrapped):
            return self.wrapped[place]
        return super().headerData(section, orientation, role)


class ValueDelegate(QStyledItemDelegate):
    """Paints a value, and beside it, smaller and muted, its difference from the baseline."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._values: list[int] = []
        self._differences: list[int] = []

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row = self._row(index)
        self.initStyleOption(option, index)
        option.text = ""
        widget = option.widget
        widget.style().drawControl(QStyle.ControlElement.CE_ItemViewItem, option, painter, widget)
        if row.heading:
            return
        column = index.column() - FIRST_VALUE
        area = QRect(option.rect).adjusted(PADDING, 0, -PADDING, 0)
        painter.save()
        if row.differences:
            painter.setFont(self._font(FontRole.CAPTION))
            painter.setPen(QColor(self._theme.colour("muted")))
            painter.drawText(area, _RIGHT, row.differences[column])
            painter.setFont(self._font(FontRole.STRONG))
        else:
            painter.setFont(option.font)
        area.setRight(area.right() - self._differences[column])
        painter.setPen(QColor(self._theme.colour("text")))
        painter.drawText(area, _RIGHT, row.values[column])
        painter.restore()

    def measure(self, rows: Sequence[Row], columns: int) -> None:
        """Make room for the values and differences of `rows`."""
        strong, caption = QFontMetrics(self._font(FontRole.STRONG)), QFontMetrics(self._font(FontRole.CAPTION))
        self._values = [max(strong.horizontalAdvance(row.values[column]) for row in rows) for column in range(columns)]
        self._differences = []
        for column in range(columns):
            texts = [row.differences[column] for row in rows if row.differences]
            widest = max((caption.horizontalAdvance(text) for text in texts), default=0)
            self._differences.append(widest + GAP if widest else 0)

    def width(self, column: int) -> int:
        """How wide the column of the scenario must be, after `measure`."""
        return self._values[column] + self._differences[column] + 2 * PADDING

    def _font(self, role: FontRole) -> QFont:
        """Figures of equal width, as in all tables."""
        font = self._theme.font(role)
        font.setFeature(QFont.Tag("tnum"), 1)
        return font

    def _row(self, index: Index) -> Row:
        model = index.model()
        assert isinstance(model, RecordModel)
        row: Row = model.record(index.row())
        return row


_RIGHT = int((Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter).value)


def wrap(text: str, width: int, metrics: QFontMetrics) -> str:
    """`text` with line feeds between its words, so that no line is wider than `width` px if its words are not."""
    lines = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split(" "):
            longer = f"{line} {word}".strip()
            if line and metrics.horizontalAdvance(longer) > width:
                lines.append(line)
                line = word
            else:
                line = longer
        lines.append(line)
    return "\n".join(lines)
