"""The list of a capture's packets: filtered and sorted as columns, so that 100,000 of them take milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from PySide6.QtCore import QAbstractTableModel, QEvent, QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QFont, QFontMetrics
from PySide6.QtWidgets import QAbstractItemView, QWidget

from labconsole_ui.tables.record_table import DataTable, Field, cell_values_by_role
from labconsole_ui.theme.theme import Theme
from labconsole_v2x.inspection.inspection_report import address_text, time_text, tone_of
from labconsole_v2x.inspection.packet_rows import Indices, PacketTable
from labconsole_v2x.inspection.verdicts import PacketRow, Verdict

Index = QModelIndex | QPersistentModelIndex
_CELL_EDGES = 20
_DATE, _US = 11, 26
"""Characters of a time as RFC 3339 has it: up to its hours, and up to its us."""


class _Column(NamedTuple):
    key: str
    """One of `packet_rows.SORT_KEYS`."""
    field: Field[PacketRow]
    sample: str
    """A text for which it is wide enough."""
    judged: bool = False
    """Whether only an inspection fills it."""


class _PacketModel(QAbstractTableModel):
    def __init__(self, columns: Sequence[_Column], theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._columns = columns
        self._values = [cell_values_by_role(column.field, theme) for column in columns]
        self.table = PacketTable.of(())
        self.order: Indices = np.arange(0)
        self._found = self.order
        self._sorted_by: tuple[str, bool] | None = None
        self._painted: tuple[int, PacketRow] | None = None
        """Place and row of the packet whose cells were read last: Qt reads the cells of a row one after the other."""

    def show_table(self, table: PacketTable, text: str) -> None:
        """Show those packets of a table that a filter finds, in the order chosen before."""
        self.beginResetModel()
        self.table = table
        self._found = table.matching(text)
        self._arrange()
        self.endResetModel()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column; -1 gives the order of the capture."""
        self.beginResetModel()
        descending = order is Qt.SortOrder.DescendingOrder
        self._sorted_by = (self._columns[column].key, descending) if 0 <= column < len(self._columns) else None
        self._arrange()
        self.endResetModel()

    def _arrange(self) -> None:
        self.order, self._painted = self._found, None
        if self._sorted_by is not None:
            key, descending = self._sorted_by
            self.order = self.table.ordered(self._found, key, descending=descending)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        """Number of packets shown."""
        return 0 if parent.isValid() else len(self.order)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        """Number of columns."""
        return 0 if parent.isValid() else len(self._columns)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Titles of the columns."""
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self._columns[section].field.title
        right = self._columns[section].field.right
        side = Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft
        return (side | Qt.AlignmentFlag.AlignVCenter).value if role == Qt.ItemDataRole.TextAlignmentRole else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Text, tooltip, colour and alignment of a cell."""
        value = self._values[index.column()].get(role) if index.isValid() else None
        if value is None:
            return None
        place = index.row()
        if self._painted is None or self._painted[0] != place:
            self._painted = place, self.table.row(int(self.order[place]))
        return value(self._painted[1])


class PacketList(DataTable):
    """`chosen` carries the index in the table of the packet that is selected, or -1."""

    chosen = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(self.tr("Packets"), theme, parent)
        self._days = False
        self._columns = self._all_columns()
        self._packets = _PacketModel(self._columns, theme, self)
        self.setModel(self._packets)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setSortingEnabled(True)
        header = self.horizontalHeader()
        header.setSortIndicatorClearable(True)
        header.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        self._packets.modelAboutToBeReset.connect(self._keep_selection)
        self._packets.modelReset.connect(self._select_again)
        self.selectionModel().currentRowChanged.connect(self._current_changed)
        self._current = -1
        self._fit_widths()

    def changeEvent(self, event: QEvent) -> None:
        """Columns are as wide as a text of another size needs."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange and hasattr(self, "_columns"):
            self._fit_widths()

    def _fit_widths(self) -> None:
        font = QFont(self.font())
        font.setWeight(QFont.Weight.DemiBold)  # that of the titles
        metrics = QFontMetrics(font)
        for column, each in enumerate(self._columns):
            self.setColumnWidth(column, metrics.horizontalAdvance(each.sample) + _CELL_EDGES)

    def show_table(self, table: PacketTable, text: str = "") -> None:
        """Show other packets, the first of them selected."""
        self._days = table.days
        for column, each in enumerate(self._columns):
            self.setColumnHidden(column, each.judged and not table.judged)
        if self._days:
            self.setColumnWidth(1, self.fontMetrics().horizontalAdvance("2000-00-00 00:00:00.000000") + _CELL_EDGES)
        self._packets.modelAboutToBeReset.disconnect(self._keep_selection)
        self._current = 0
        self._packets.show_table(table, text)
        self._packets.modelAboutToBeReset.connect(self._keep_selection)

    def set_filter(self, text: str) -> None:
        """Show only the packets that a filter finds (`PacketTable.matching`)."""
        self._packets.show_table(self._packets.table, text)

    @property
    def table(self) -> PacketTable:
        """All packets, those that the filter hides included."""
        return self._packets.table

    @property
    def shown(self) -> int:
        """Number of packets that the filter leaves."""
        return self._packets.rowCount()

    def row_at(self, row: int) -> PacketRow:
        """The packet shown in a row."""
        return self._packets.table.row(int(self._packets.order[row]))

    def copy_rows(self) -> None:
        """Copy the selected row with the titles; without one, nothing: the CSV file has them all."""
        if self.selectionModel().hasSelection():
            super().copy_rows()

    def _keep_selection(self) -> None:
        row = self.currentIndex().row()
        self._current = int(self._packets.order[row]) if row >= 0 else -1

    def _select_again(self) -> None:
        """Select the packet that was selected, or the first, where the filter hides it."""
        places = np.flatnonzero(self._packets.order == self._current)
        if not self.shown:
            self.chosen.emit(-1)
            return
        place = int(places[0]) if len(places) else 0
        self.selectRow(place)
        self.scrollTo(self._packets.index(place, 0))

    def _current_changed(self, current: QModelIndex, _previous: QModelIndex) -> None:
        if current.isValid():
            self.chosen.emit(int(self._packets.order[current.row()]))

    def _all_columns(self) -> tuple[_Column, ...]:
        verdict = Field[PacketRow](
            self.tr("Verdict"), lambda row: row.verdict.value, tone=lambda row: tone_of(row.verdict)
        )
        time = Field[PacketRow](self.tr("Time (UTC)"), self._time, tooltip=lambda row: time_text(row.time_ns))
        source = Field[PacketRow](self.tr("Source"), lambda row: address_text(row.address), tooltip=_source)
        return (
            _Column("number", Field(self.tr("No."), lambda row: f"{row.number:,}", right=True), "100,000"),
            _Column("time_ns", time, "00:00:00.000000"),
            _Column("source", source, "00:00:00:00:00:00"),
            _Column("message", Field(self.tr("Message"), lambda row: row.message), "Message"),
            _Column("size", Field(self.tr("Size, B"), lambda row: f"{row.size:,}", right=True), "Size, B"),
            _Column("signer", Field(self.tr("Signer"), lambda row: row.signer.hex()), "dddddddddddddddd"),
            _Column("root", Field(self.tr("Chain up to"), lambda row: row.root), "Chain up to", judged=True),
            _Column("verdict", verdict, Verdict.SIGNATURE_INVALID, judged=True),
            _Column("reason", Field(self.tr("Reason"), lambda row: row.reason), "Reason"),
        )

    def _time(self, row: PacketRow) -> str:
        """With its date where the packets are of more than one day."""
        return time_text(row.time_ns)[0 if self._days else _DATE : _US].replace("T", " ")


def _source(row: PacketRow) -> str:
    address = address_text(row.address)
    return address if row.station_id is None else f"{address}\nstationID {row.station_id}"
