"""A page whose content scrolls: one centred column, never wider than is good to read, never squeezed."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget


class ScrollPage(QScrollArea):
    """Put content into `column`. Keyboard focus scrolls the page along."""

    def __init__(self, max_width: int, margin: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.page = QWidget(self.viewport())
        self.page.setProperty("page", True)
        self.page.setMaximumWidth(max_width)
        self.column = QVBoxLayout(self.page)
        self.column.setContentsMargins(margin, margin, margin, margin)
        self.setWidget(self.page)
        self.page.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt names it
        if watched is self.page and event.type() == QEvent.Type.LayoutRequest:
            self._fit()
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Give the column the height that its wrapped texts need at this width."""
        width = min(self.viewport().width(), self.page.maximumWidth())
        needed = max(self.column.totalHeightForWidth(width), self.column.totalMinimumSize().height())
        if self.page.minimumHeight() != needed:
            self.page.setMinimumHeight(needed)
