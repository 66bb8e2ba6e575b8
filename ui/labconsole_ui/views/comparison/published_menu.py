"""The menu of published figures: tables of the sources, those of the runs' own scenarios first."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QMenu, QWidget

from labconsole.analysis.comparison import Column, counterpart
from labconsole.analysis.published_figures import PublishedColumn, PublishedTable


class PublishedMenu(QMenu):
    """`chosen` carries the names of published columns that are to be added."""

    chosen = Signal(list)

    def __init__(self, title: str, parent: QWidget) -> None:
        super().__init__(title, parent)
        self.setToolTipsVisible(True)
        self._below: list[QMenu] = []

    def offer(self, tables: Sequence[PublishedTable], columns: Sequence[Column], present: Collection[str]) -> None:
        """Offer the tables of the trials that are compared; `present` are the names of columns that stand already."""
        self.clear()
        for menu in self._below:
            menu.deleteLater()
        self._below = []
        kinds = {kind for column in columns for kind in column.kinds}
        fitting = [table for table in tables if not kinds or not kinds.isdisjoint(table.kinds)]
        matching = {
            table.name: [column for column in table.columns if counterpart(columns, column) is not None]
            for table in fitting
        }
        same = [table for table in fitting if matching[table.name]]
        others = [table for table in fitting if not matching[table.name]]
        if same:
            self._heading(self.tr("Of the same scenarios"))
        for table in same:
            self._add(table, matching[table.name], present)
        if others:
            self._heading(self.tr("Of other scenarios") if same else self.tr("Published tables"))
        for table in others:
            self._add(table, [], present)
        if not fitting:
            self.addAction(self.tr("There are no published figures of this trial.")).setEnabled(False)

    def _heading(self, text: str) -> None:
        if self.actions():
            self.addSeparator()
        self.addAction(text).setEnabled(False)

    def _add(self, table: PublishedTable, matching: Sequence[PublishedColumn], present: Collection[str]) -> None:
        menu = QMenu(table.title, self)
        menu.setToolTipsVisible(True)
        self._below.append(menu)
        self.addMenu(menu)
        menu.menuAction().setToolTip(table.reference)
        if matching:
            self._choice(menu, self.tr("Those of the same scenarios"), matching, present, table.reference)
        self._choice(menu, self.tr("All columns"), table.columns, present, table.reference)
        menu.addSeparator()
        for column in table.columns:
            self._choice(menu, column.title, (column,), present, column.reference)

    def _choice(
        self, menu: QMenu, text: str, columns: Sequence[PublishedColumn], present: Collection[str], help_text: str
    ) -> None:
        names = [column.name for column in columns if column.name not in present]
        action = menu.addAction(text.replace("&", "&&"))
        action.setToolTip(help_text)
        action.setEnabled(bool(names))
        action.triggered.connect(partial(self.chosen.emit, names))
