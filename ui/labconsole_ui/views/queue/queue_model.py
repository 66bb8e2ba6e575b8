"""The run queue as a Qt table model: rows follow the queue's items."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import IntEnum

from PySide6.QtCore import (
    QAbstractTableModel,
    QByteArray,
    QMimeData,
    QModelIndex,
    QPersistentModelIndex,
    Qt,
)
from PySide6.QtGui import QColor, QIcon

from labconsole.engine.queue import QueueItem, QueueState
from labconsole.safe_text import shown_lines
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.labels import plain_tooltip
from labconsole_ui.widgets.status_text import (
    STATUS_ICONS,
    console_name,
    duration,
    fraction,
    queue_item_title,
    rate_text,
    status_text,
)

AnyIndex = QModelIndex | QPersistentModelIndex
ITEM_ROLE = int(Qt.ItemDataRole.UserRole)
FRACTION_ROLE = ITEM_ROLE + 1
MIME_TYPE = "application/x-labconsole-queue-item"


class QueueColumn(IntEnum):
    """Columns of the queue."""

    RUN = 0
    NAME = 1
    CAMPAIGN = 2
    STATUS = 3
    PROGRESS = 4
    RATE = 5
    ETA = 6


class QueueModel(QAbstractTableModel):
    """Shows the runs of other consoles, then those of `bridge.queue`, where a dragged waiting row is moved."""

    def __init__(self, bridge: QueueBridge, theme: Theme) -> None:
        super().__init__(bridge)
        self._bridge = bridge
        self._theme = theme
        self._items = self._current()
        bridge.items_changed.connect(self._refresh)
        bridge.live.connect(self._refresh)
        theme.changed.connect(self._repaint)

    def item(self, row: int) -> QueueItem:
        """The queue item in `row`. Raises IndexError."""
        return self._items[row]

    def row_of(self, run_id: int) -> int | None:
        """The row of a run, if it is in the queue."""
        return next((row for row, item in enumerate(self._items) if item.run_id == run_id), None)

    def rowCount(self, parent: AnyIndex = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        return 0 if parent.isValid() else len(self._items)

    def columnCount(self, parent: AnyIndex = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        return 0 if parent.isValid() else len(QueueColumn)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> str | Qt.AlignmentFlag | None:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return {
                QueueColumn.RUN: self.tr("Run"),
                QueueColumn.NAME: self.tr("Scenario"),
                QueueColumn.CAMPAIGN: self.tr("Campaign"),
                QueueColumn.STATUS: self.tr("Status"),
                QueueColumn.PROGRESS: self.tr("Progress"),
                QueueColumn.RATE: self.tr("Rate"),
                QueueColumn.ETA: self.tr("Time left"),
            }[QueueColumn(section)]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(QueueColumn(section))
        return None

    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        item = self._items[index.row()]
        column = QueueColumn(index.column())
        if role == Qt.ItemDataRole.DisplayRole:
            return shown_lines(self._text(item, column))
        if role == Qt.ItemDataRole.DecorationRole and column is QueueColumn.STATUS:
            return self._icon(item)
        if role == Qt.ItemDataRole.ForegroundRole and column is QueueColumn.STATUS:
            return QColor(self._theme.colour(STATUS_ICONS[item.shown][1]))
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(column)
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tooltip(item.reason or self._text(item, column))
        if role == ITEM_ROLE:
            return item
        if role == FRACTION_ROLE:
            return fraction(item)
        return None

    def flags(self, index: AnyIndex) -> Qt.ItemFlag:
        flags = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        if not index.isValid():
            return Qt.ItemFlag.ItemIsDropEnabled
        item = self._items[index.row()]
        if item.own and item.state is QueueState.WAITING:
            flags |= Qt.ItemFlag.ItemIsDragEnabled
        return flags

    def supportedDropActions(self) -> Qt.DropAction:  # noqa: N802 - Qt's name
        return Qt.DropAction.MoveAction

    def mimeTypes(self) -> list[str]:  # noqa: N802 - Qt's name
        return [MIME_TYPE]

    def mimeData(self, indexes: Sequence[QModelIndex]) -> QMimeData:
        """The runs of all rows that `indexes` touch, from top to bottom."""
        rows = sorted({index.row() for index in indexes})
        data = QMimeData()
        data.setData(MIME_TYPE, QByteArray(json.dumps([self._items[row].run_id for row in rows]).encode()))
        return data

    def dropMimeData(  # noqa: N802 - Qt's name
        self, data: QMimeData, action: Qt.DropAction, row: int, column: int, parent: AnyIndex
    ) -> bool:
        dragged = set(json.loads(bytes(data.data(MIME_TYPE).data())))
        target = row if row >= 0 else parent.row() if parent.isValid() else len(self._items)
        places = {item.run_id: place for place, item in enumerate(self._waiting(self._items))}
        moved = [run_id for run_id in places if run_id in dragged]
        above = sum(item.run_id not in dragged for item in self._waiting(self._items[:target]))
        offsets = {run_id: above + number - places[run_id] for number, run_id in enumerate(moved)}
        # Those that go down begin with the lowest, those that go up with the highest: none gets in another's way.
        for run_id in [*(one for one in reversed(moved) if offsets[one] > 0), *(o for o in moved if offsets[o] < 0)]:
            self._bridge.queue.move(run_id, offsets[run_id])
        # The queue has moved the items; Qt must not remove the dragged rows on top of that.
        return False

    def _waiting(self, items: Sequence[QueueItem]) -> list[QueueItem]:
        return [item for item in items if item.own and item.state is QueueState.WAITING]

    def _text(self, item: QueueItem, column: QueueColumn) -> str:
        match column:
            case QueueColumn.RUN:
                return str(item.run_id)
            case QueueColumn.NAME:
                return queue_item_title(item)
            case QueueColumn.CAMPAIGN:
                return f"{item.campaign} · {console_name(item.console)}" if item.console else item.campaign
            case QueueColumn.STATUS:
                return status_text(item.shown)
            case QueueColumn.PROGRESS:
                share = fraction(item)
                return "" if share is None or item.state is QueueState.WAITING else f"{share:.0%}"
            case QueueColumn.RATE:
                return rate_text(item.rate)
            case QueueColumn.ETA:
                return duration(item.eta_s) if item.state is QueueState.RUNNING else ""

    def _icon(self, item: QueueItem) -> QIcon:
        return self._theme.icon(*STATUS_ICONS[item.shown])

    def _refresh(self) -> None:
        """Follow the queue: a reset only where rows came, went or moved, so that the selection survives progress."""
        items = self._current()
        if [item.run_id for item in items] == [item.run_id for item in self._items]:
            self._items = items
            self._repaint()
            return
        self.beginResetModel()
        self._items = items
        self.endResetModel()

    def _current(self) -> tuple[QueueItem, ...]:
        return (*self._bridge.queue.others, *self._bridge.queue.items)

    def _repaint(self) -> None:
        if self._items:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self._items) - 1, len(QueueColumn) - 1))


def _alignment(column: QueueColumn) -> Qt.AlignmentFlag:
    right = column in (QueueColumn.RUN, QueueColumn.RATE, QueueColumn.ETA)
    side = Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter
