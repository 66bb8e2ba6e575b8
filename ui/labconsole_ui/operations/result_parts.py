"""The texts and tables of an operation's result, in their order; tables can be copied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from operator import itemgetter

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QVBoxLayout, QWidget

from labconsole.model.operation import TextTable, TonedText
from labconsole_ui.tables.record_table import DataTable, Field, RecordModel
from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.labels import plain_label

_MOST_ROWS = 12
"""Longer tables scroll."""
_WIDEST_COLUMN = 600

Row = tuple[str, ...]


class ResultParts(QWidget):
    """Shows the parts of one result at a time; hidden while there are none."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(10)
        self.tables: list[DataTable] = []
        self.hide()

    def show_parts(self, parts: Iterable[str | TextTable]) -> None:
        """Show these parts instead of the ones before."""
        self.tables = []
        while (item := self._column.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        texts: list[str] = []
        for part in parts:
            if isinstance(part, str) and (not texts or _tone(part) == _tone(texts[-1])):
                texts.append(part)
                continue
            self._add_text(texts)
            texts = [part] if isinstance(part, str) else []
            if isinstance(part, TextTable):
                self._add_table(part)
        self._add_text(texts)
        self.setVisible(self._column.count() > 0)

    def _add_text(self, texts: Sequence[str]) -> None:
        text = "\n".join(each.strip("\n") for each in texts).strip("\n")
        if not text:
            return
        label = plain_label(text, self)
        label.setWordWrap(True)
        label.setProperty("tone", _tone(texts[0]))
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._column.addWidget(label)

    def _add_table(self, content: TextTable) -> None:
        table = DataTable(self.tr("Result"), self._theme, self, fit_width=True)
        model: RecordModel[Row] = RecordModel(list(_fields(content.headings)), self._theme, table)
        model.set_records(content.rows)
        table.setModel(model)
        lines = min(len(content.rows), _MOST_ROWS)
        table.setFixedHeight(
            table.horizontalHeader().sizeHint().height()
            + lines * table.verticalHeader().defaultSectionSize()
            + table.horizontalScrollBar().sizeHint().height()
            + 2 * table.frameWidth()
        )
        self._column.addWidget(table)
        self.tables.append(table)
        table.fit_columns(_WIDEST_COLUMN)


def _fields(headings: Sequence[str]) -> Iterable[Field[Row]]:
    for column, heading in enumerate(headings):
        cell = itemgetter(column)
        yield Field(heading, cell, tone=partial(_cell_tone, column))


def _cell_tone(column: int, row: Row) -> str | None:
    return _tone(row[column])


def _tone(text: str) -> str | None:
    return str(text.tone) if isinstance(text, TonedText) else None
