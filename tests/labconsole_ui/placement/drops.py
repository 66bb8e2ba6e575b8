"""Drops of roles: the events that Qt sends when the mouse is released over a tree."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QDragEnterEvent, QDragMoveEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QTreeWidgetItem

from labconsole_ui.placement.placement_trees import HostTree, RoleTree


def drop(
    source: RoleTree | HostTree,
    tree: RoleTree | HostTree,
    item: QTreeWidgetItem | None,
    keys: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier,
) -> None:
    """Drag the selected lines of `source` over a line of `tree` (None: its empty part), and drop them."""
    data = source.mimeData(source.selectedItems())
    viewport = tree.viewport()
    if item is not None:
        tree.scrollToItem(item)
    place = QPoint(5, viewport.height() - 5) if item is None else tree.visualItemRect(item).center()
    copy, left = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    QApplication.sendEvent(viewport, QDragEnterEvent(place, copy, data, left, keys))
    moved = QDragMoveEvent(place, copy, data, left, keys)
    QApplication.sendEvent(viewport, moved)
    assert moved.isAccepted(), "roles can be dropped there"
    QApplication.sendEvent(viewport, QDropEvent(QPointF(place), copy, data, left, keys))
