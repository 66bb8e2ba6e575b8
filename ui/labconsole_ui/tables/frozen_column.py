"""The first column of a table, visible while the others are scrolled sideways."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QAbstractItemView, QFrame, QTableView


class FrozenColumn(QTableView):
    """Covers the first column of `table`, with its model, selection, rows and delegate.

    `sync` is to be called when the table's columns, rows or header have changed.
    """

    def __init__(self, table: QTableView) -> None:
        super().__init__(table)
        self._table = table
        self.setObjectName("frozen")
        self.setFocusProxy(table)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setStyleSheet("#frozen { border: none; border-right: 1px solid palette(mid); border-radius: 0; }")
        self.setFont(table.font())
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setAlternatingRowColors(table.alternatingRowColors())
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(table.selectionMode())
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.verticalHeader().hide()
        self.horizontalHeader().setStretchLastSection(True)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)
        self.setAccessibleName(self.tr("Titles of the rows"))
        self.setModel(table.model())
        self.setSelectionModel(table.selectionModel())
        self.verticalHeader().setDefaultSectionSize(table.verticalHeader().defaultSectionSize())
        self.verticalHeader().setMinimumSectionSize(table.verticalHeader().minimumSectionSize())
        table.verticalScrollBar().valueChanged.connect(self.verticalScrollBar().setValue)
        self.verticalScrollBar().valueChanged.connect(table.verticalScrollBar().setValue)
        table.horizontalScrollBar().valueChanged.connect(self._show_when_needed)
        table.viewport().installEventFilter(self)
        self.hide()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Follow the table's size."""
        if event.type() == QEvent.Type.Resize:
            self._place()
        return super().eventFilter(watched, event)

    def sync(self) -> None:
        """Copy the width of the column, and the heights of rows and header."""
        for column in range(self.model().columnCount()):
            self.setColumnHidden(column, column != 0)
        for row in range(self.model().rowCount()):
            self.setRowHeight(row, self._table.rowHeight(row))
        self.horizontalHeader().setFixedHeight(self._table.horizontalHeader().height())
        self._place()
        self._show_when_needed()

    def _place(self) -> None:
        header, view = self._table.horizontalHeader(), self._table.viewport()
        frame = self._table.frameWidth()
        self.setGeometry(frame, frame, self._table.columnWidth(0), view.height() + header.height())

    def _show_when_needed(self) -> None:
        """Only while the table is scrolled sideways: otherwise its own first column is visible."""
        scrolled = self._table.horizontalScrollBar().value() > 0
        self.setVisible(scrolled)
        if scrolled:
            self.verticalScrollBar().setValue(self._table.verticalScrollBar().value())
            self.raise_()
