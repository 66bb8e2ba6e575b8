"""The menu of the history's header: which columns are shown."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QMenu

from labconsole_ui.tables.record_table import DataTable


def open_column_menu(table: DataTable, titles: Sequence[str], name: str, position: QPoint) -> None:
    """Open it at `position` of the header, with an entry for each column that shows or hides it."""
    header = table.horizontalHeader()
    menu = QMenu(table)
    menu.setAccessibleName(name)
    for column, title in enumerate(titles):
        action = menu.addAction(title)
        action.setCheckable(True)
        action.setChecked(not header.isSectionHidden(column))
        action.toggled.connect(partial(_show_column, table, column))
    menu.aboutToHide.connect(menu.deleteLater)
    menu.popup(header.mapToGlobal(position))


def _show_column(table: DataTable, column: int, shown: bool) -> None:
    table.setColumnHidden(column, not shown)
