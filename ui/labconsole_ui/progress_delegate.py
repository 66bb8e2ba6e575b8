"""Paints the progress of a queue item: a slim bar and its percentage."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, Qt
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from labconsole.engine.queue import QueueItem, QueueState
from labconsole.store.records import RunStatus
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.queue.queue_model import FRACTION_ROLE, ITEM_ROLE

BAR_HEIGHT = 6
TEXT_WIDTH = 44


class ProgressDelegate(QStyledItemDelegate):
    """Reads the item and its fraction from the model; a running item of unknown size gets a half-tone bar."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._theme = theme

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        text = str(index.data(Qt.ItemDataRole.DisplayRole) or "")
        self.initStyleOption(option, index)
        option.text = ""
        widget = option.widget
        widget.style().drawControl(QStyle.ControlElement.CE_ItemViewItem, option, painter, widget)
        item: QueueItem = index.data(ITEM_ROLE)
        share: float | None = index.data(FRACTION_ROLE)
        if item.state is QueueState.WAITING or (share is None and item.state is QueueState.DONE):
            return
        rect = QRectF(option.rect).adjusted(6, 0, -6, 0)
        bar = QRectF(rect.left(), rect.center().y() - BAR_HEIGHT / 2, rect.width() - TEXT_WIDTH, BAR_HEIGHT)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.colour("sunken"))
        painter.drawRoundedRect(bar, 3, 3)
        colour = QColor(self._theme.colour("good" if item.status is RunStatus.FINISHED else "link"))
        if share is None:
            colour.setAlphaF(0.4)
            share = 1.0
        painter.setBrush(colour)
        painter.drawRoundedRect(QRectF(bar.left(), bar.top(), max(bar.width() * share, BAR_HEIGHT), BAR_HEIGHT), 3, 3)
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        painter.setPen(self._theme.colour("on_accent" if selected else "text"))
        right = QRectF(bar.right(), rect.top(), TEXT_WIDTH, rect.height())
        painter.drawText(right, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), text)
        painter.restore()
