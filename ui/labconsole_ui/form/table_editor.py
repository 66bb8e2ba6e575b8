"""A parameter that is a list: a small table, one row per entry, one column per field of the entry."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from labconsole.model.field_spec import FieldKind, FieldSpec
from labconsole_ui.form.editors import Editor

VISIBLE_ROWS = 4


class _Rows(QTableWidget):
    """Shows an explanation while there are no rows."""

    def __init__(self, columns: int, empty: str, parent: QWidget) -> None:
        super().__init__(0, columns, parent)
        self._empty = empty

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._empty and not self.rowCount():
            painter = QPainter(self.viewport())
            painter.setPen(self.palette().placeholderText().color())
            area = self.viewport().rect().adjusted(9, 0, -9, 0)
            painter.drawText(area, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, self._empty)
            painter.end()


class TableEditor(Editor):
    """Cells have text; the model reads numbers and yes/no from it and reports errors."""

    def __init__(self, spec: FieldSpec, parent: QWidget) -> None:
        super().__init__(spec, parent)
        column = QWidget(self)
        self.table = _Rows(len(spec.fields), spec.empty, column)
        titles = [f"{entry.title} ({entry.unit})" if entry.unit else entry.title for entry in spec.fields]
        self.table.setHorizontalHeaderLabels(titles)
        self.table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        self.table.horizontalHeader().setVisible(spec.kind is FieldKind.TABLE)
        self.table.verticalHeader().hide()
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setTabKeyNavigation(False)
        self._fit_height()
        self.table.itemChanged.connect(lambda _item: self.edited.emit())
        self.add_button = QPushButton(self.tr("Add row"), column)
        self.add_button.setAccessibleName(self.tr("Add a row to: {title}").format(title=spec.title))
        self.add_button.clicked.connect(self._add)
        self.remove_button = QPushButton(self.tr("Remove row"), column)
        self.remove_button.setAccessibleName(self.tr("Remove the selected row of: {title}").format(title=spec.title))
        self.remove_button.clicked.connect(self._remove)
        buttons = QHBoxLayout()
        buttons.addWidget(self.add_button)
        buttons.addWidget(self.remove_button)
        buttons.addStretch(1)
        rows = QVBoxLayout(column)
        rows.setContentsMargins(0, 0, 0, 0)
        rows.addWidget(self.table)
        rows.addLayout(buttons)
        self.table.setAccessibleName(spec.title)
        self.table.setAccessibleDescription(spec.description)
        self.inner.addWidget(column, 1)
        self.setFocusProxy(self.table)

    def value(self) -> list[Any]:
        rows = [
            {spec.name: _read(spec, self._text(row, column)) for column, spec in enumerate(self.spec.fields)}
            for row in range(self.table.rowCount())
        ]
        if self.spec.kind is FieldKind.LIST:
            return [row["value"] for row in rows]
        return rows

    def set_value(self, value: Any) -> None:
        rows = [entry if isinstance(entry, dict) else {"value": entry} for entry in value or []]
        self.table.blockSignals(True)
        self.table.setRowCount(0)
        for row in rows:
            self._append(row)
        self.table.blockSignals(False)
        self._fit_height()
        self.edited.emit()

    def _fit_height(self) -> None:
        """A list is as high as its rows, a table with titles always the same."""
        shown = VISIBLE_ROWS + 1
        if self.spec.kind is FieldKind.LIST:
            shown = min(max(1, self.table.rowCount()), VISIBLE_ROWS)
        self.table.setFixedHeight(self.table.verticalHeader().defaultSectionSize() * shown + 2)

    def _text(self, row: int, column: int) -> str:
        item = self.table.item(row, column)
        return item.text().strip() if item is not None else ""

    def _append(self, values: dict[str, Any]) -> None:
        row = self.table.rowCount()
        self.table.insertRow(row)
        for column, spec in enumerate(self.spec.fields):
            value = values.get(spec.name, spec.default)
            item = QTableWidgetItem("" if value is None else str(value))
            if spec.kind in (FieldKind.INTEGER, FieldKind.PORT, FieldKind.NUMBER):
                item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            item.setToolTip(spec.description)
            self.table.setItem(row, column, item)

    def _add(self) -> None:
        self._append({})
        self._fit_height()
        self.table.setCurrentCell(self.table.rowCount() - 1, 0)
        self.table.setFocus()
        self.edited.emit()

    def _remove(self) -> None:
        row = self.table.currentRow()
        if row >= 0:
            self.table.removeRow(row)
            self._fit_height()
            self.edited.emit()


def _read(spec: FieldSpec, text: str) -> Any:
    """The cell's value as plain JSON: None for an empty cell of an optional field, else the text."""
    if not text and spec.optional:
        return None
    if spec.kind in (FieldKind.INTEGER, FieldKind.PORT) and text.lstrip("-").isdecimal():
        return int(text)
    return text
