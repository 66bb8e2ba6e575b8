"""A table with lines that open into others: a click, Enter or space opens or closes one."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QKeyEvent, QMouseEvent

from labconsole_ui.tables.record_table import DataTable


class FoldingTable(DataTable):
    """A `DataTable` whose lines may be folded."""

    def toggle_at(self, index: QModelIndex | QPersistentModelIndex) -> bool:
        """Open or close the line at `index`; False: it is none that opens."""
        return False

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click opens or closes a line."""
        super().mouseReleaseEvent(event)
        if event.button() is Qt.MouseButton.LeftButton:
            self.toggle_at(self.indexAt(event.position().toPoint()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter and space act as a click."""
        keys = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)
        if event.key() not in keys or not self.toggle_at(self.currentIndex()):
            super().keyPressEvent(event)
