"""Drag and drop of runs between views: their ids as JSON, under a media type of the console."""

from __future__ import annotations

import json
from collections.abc import Sequence

from PySide6.QtCore import QMimeData, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDragMoveEvent, QDropEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QWidget

from labconsole_ui.theme.style_sheet import RADIUS
from labconsole_ui.theme.theme import FontRole, Theme

RUNS_TYPE = "application/x-labconsole-runs"


def encode_runs(run_ids: Sequence[int]) -> QMimeData:
    """The drag data of these runs."""
    data = QMimeData()
    data.setData(RUNS_TYPE, json.dumps(list(run_ids)).encode())
    return data


def decode_runs(data: QMimeData) -> list[int]:
    """The ids of the dragged runs; empty if `data` has something else."""
    if not data.hasFormat(RUNS_TYPE):
        return []
    try:
        run_ids = json.loads(bytes(data.data(RUNS_TYPE).data()))
    except ValueError:
        return []
    if not isinstance(run_ids, list):
        return []
    return [run_id for run_id in run_ids if isinstance(run_id, int) and not isinstance(run_id, bool)]


class DropArea(QWidget):
    """An area that accepts dragged runs; `runs_dropped` carries their ids."""

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
        """Show what a drop would do."""
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
        """Accept at any place: other data were refused when they entered."""
        event.accept()

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        """Hide the hint."""
        self.drop_hint.hide()

    def dropEvent(self, event: QDropEvent) -> None:
        """Emit the ids of the dropped runs."""
        self.drop_hint.hide()
        run_ids = decode_runs(event.mimeData())
        if run_ids:
            event.acceptProposedAction()
            self.runs_dropped.emit(run_ids)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Let the hint cover the area."""
        super().resizeEvent(event)
        self.drop_hint.setGeometry(self.rect().adjusted(8, 8, -8, -8))
