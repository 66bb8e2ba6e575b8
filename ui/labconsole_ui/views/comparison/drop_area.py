"""An area on which runs of the history can be dropped; says so while they hang over it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDragMoveEvent, QDropEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QWidget

from labconsole_ui.runs.drag_and_drop import decode_runs
from labconsole_ui.theme.style_sheet import RADIUS
from labconsole_ui.theme.theme import FontRole, Theme


class DropArea(QWidget):
    """`runs_dropped` carries ids of runs."""

    runs_dropped = Signal(list)

    def __init__(self, theme: Theme, parent: QWidget | None) -> None:
        super().__init__(parent)
        self.setAcceptDrops(True)
        self._theme = theme
        self.drop_hint = QLabel(self)
        self.drop_hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.drop_hint.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.drop_hint.hide()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Say what a drop would do."""
        run_ids = decode_runs(event.mimeData())
        if not run_ids:
            event.ignore()
            return
        event.setDropAction(Qt.DropAction.CopyAction)
        event.accept()
        colours = self._theme.colours
        self.drop_hint.setFont(self._theme.font(FontRole.HEADING))
        self.drop_hint.setStyleSheet(
            f"background: {colours.info_ground}; color: {colours.text}; border: 2px dashed {colours.link};"
            f"border-radius: {RADIUS}px;"
        )
        self.drop_hint.setText(
            self.tr("Add this run to the comparison")
            if len(run_ids) == 1
            else self.tr("Add these {0} runs to the comparison").format(len(run_ids))
        )
        self.drop_hint.show()
        self.drop_hint.raise_()

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        """Anywhere is good: what is no run was refused when it came in."""
        event.accept()

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        """They went away."""
        self.drop_hint.hide()

    def dropEvent(self, event: QDropEvent) -> None:
        """Take them."""
        self.drop_hint.hide()
        run_ids = decode_runs(event.mimeData())
        if run_ids:
            event.acceptProposedAction()
            self.runs_dropped.emit(run_ids)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The hint covers everything."""
        super().resizeEvent(event)
        self.drop_hint.setGeometry(self.rect().adjusted(8, 8, -8, -8))
