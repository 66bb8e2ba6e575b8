"""The run queue as records: their columns, and waiting runs moved by drag and drop."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from enum import IntEnum
from operator import attrgetter
from typing import Any

from PySide6.QtCore import QByteArray, QCoreApplication, QMimeData, Qt
from PySide6.QtWidgets import QWidget

from labconsole.engine.queue import QueueItem, QueueState
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.tables.record_table import Field, Index, RecordModel
from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.status_text import (
    STATUS_ICONS,
    console_name,
    duration,
    progress_fraction,
    queue_item_title,
    rate_text,
    status_text,
    utc_time,
)

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


class QueueModel(RecordModel[QueueItem]):
    """The runs of other consoles, then those of `bridge.queue`; waiting rows are moved by dragging."""

    def __init__(self, bridge: QueueBridge, theme: Theme, parent: QWidget) -> None:
        super().__init__(_queue_fields(), theme, parent)
        self._bridge = bridge
        self.set_records(self._current())
        bridge.items_changed.connect(self._refresh)
        bridge.live.connect(self._refresh)

    def row_of(self, run_id: int) -> int | None:
        """The row of a run, if it is in the queue."""
        return next((row for row, item in enumerate(self.records()) if item.run_id == run_id), None)

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Runs that wait can be dragged, and dropped between rows."""
        if not index.isValid():
            return Qt.ItemFlag.ItemIsDropEnabled
        flags = super().flags(index)
        return flags | Qt.ItemFlag.ItemIsDragEnabled if _is_waiting(self.record(index.row())) else flags

    def supportedDropActions(self) -> Qt.DropAction:  # noqa: N802 - Qt's name
        return Qt.DropAction.MoveAction

    def mimeTypes(self) -> list[str]:  # noqa: N802 - Qt's name
        return [MIME_TYPE]

    def mimeData(self, indexes: Sequence[Index]) -> QMimeData:
        """The runs of all rows that `indexes` touch, from top to bottom."""
        rows = sorted({index.row() for index in indexes})
        data = QMimeData()
        data.setData(MIME_TYPE, QByteArray(json.dumps([self.record(row).run_id for row in rows]).encode()))
        return data

    def dropMimeData(  # noqa: N802 - Qt's name
        self, data: QMimeData, action: Qt.DropAction, row: int, column: int, parent: Index
    ) -> bool:
        dragged = set(json.loads(bytes(data.data(MIME_TYPE).data())))
        items = self.records()
        target = row if row >= 0 else parent.row() if parent.isValid() else len(items)
        places = {item.run_id: place for place, item in enumerate(filter(_is_waiting, items))}
        moved = [run_id for run_id in places if run_id in dragged]
        above = sum(item.run_id not in dragged for item in filter(_is_waiting, items[:target]))
        offsets = {run_id: above + number - places[run_id] for number, run_id in enumerate(moved)}
        # Those that go down begin with the lowest, those that go up with the highest: none gets in another's way.
        for run_id in [*(one for one in reversed(moved) if offsets[one] > 0), *(o for o in moved if offsets[o] < 0)]:
            self._bridge.queue.move(run_id, offsets[run_id])
        # The queue has moved the items; Qt must not remove the dragged rows on top of that.
        return False

    def _refresh(self) -> None:
        self.update_records(self._current(), attrgetter("run_id"))

    def _current(self) -> tuple[QueueItem, ...]:
        return (*self._bridge.queue.others, *self._bridge.queue.items)


def _is_waiting(item: QueueItem) -> bool:
    return item.own and item.state is QueueState.WAITING


def _queue_fields() -> list[Field[QueueItem]]:
    """The columns, as `QueueColumn` numbers them."""

    def field(title: str, text: Callable[[QueueItem], str], **more: Any) -> Field[QueueItem]:
        return Field(title, text, tooltip=lambda item: item.reason or text(item), **more)

    def tr(title: str) -> str:
        return QCoreApplication.translate("QueueModel", title)

    return [
        field(tr("Run"), lambda item: str(item.run_id), right=True),
        field(tr("Scenario"), queue_item_title),
        field(tr("Campaign"), _campaign),
        field(
            tr("Status"),
            _status,
            tone=lambda item: STATUS_ICONS[item.shown][1],
            icon=lambda item: STATUS_ICONS[item.shown],
        ),
        field(tr("Progress"), _progress),
        field(tr("Rate"), lambda item: rate_text(item.rate), right=True),
        field(
            tr("Time left"), lambda item: duration(item.eta_s) if item.state is QueueState.RUNNING else "", right=True
        ),
    ]


def _campaign(item: QueueItem) -> str:
    return f"{item.campaign} · {console_name(item.console)}" if item.console else item.campaign


def _status(item: QueueItem) -> str:
    if item.state is QueueState.WAITING and item.starts is not None:
        return QCoreApplication.translate("QueueModel", "Waiting until")
    return status_text(item.shown)


def _progress(item: QueueItem) -> str:
    """The share that is done, or the time that a run waits for."""
    if item.state is QueueState.WAITING and item.starts is not None:
        return utc_time(item.starts)
    share = progress_fraction(item)
    return "" if share is None or item.state is QueueState.WAITING else f"{share:.0%}"
