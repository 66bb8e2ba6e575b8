"""The splitter between table and tabs of the comparison: side by side where it is wide enough."""

from __future__ import annotations

import re

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QSplitter, QTabWidget, QWidget

from labconsole_ui.runtime.settings import WindowState

TABLE_SHARE, NARROW_TABLE_SHARE = 0.56, 0.67
"""The table's part of the width, and of pages that are narrower than `NARROW` (px)."""
NARROW = 1400
SHARE_KEY = "compare/table-share"
SHARE = re.compile(r"0\.\d{3}")
MIN_TABLE = 360
MARGINS = 60
"""Margins, handle and scroll bars (px) of the page and the table."""
SIDE_BY_SIDE_FROM = 760
"""Below this width (px) the tabs are below the table."""


class TableAndTabsSplitter(QSplitter):
    """Keeps the ratio that the operator has chosen."""

    def __init__(self, state: WindowState | None, parent: QWidget) -> None:
        """`state` stores the last ratio."""
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._state = state
        self._page = QSize()
        self._needed = 0
        self._chosen: float | None = None
        self.setChildrenCollapsible(False)
        self.setHandleWidth(12)
        self.splitterMoved.connect(self._keep)

    def add_widgets(self, table: QWidget, tabs: QTabWidget) -> None:
        """Add table and tabs; all tab titles stay visible."""
        table.setMinimumWidth(MIN_TABLE)
        tabs.setUsesScrollButtons(False)
        self.setStretchFactor(self.indexOf(table), 3)
        self.setStretchFactor(self.indexOf(tabs), 2)
        self._share_out()

    def set_needed_width(self, width: int) -> None:
        """Set the width (px) of the table without scrolling; in a narrower page the tabs are below."""
        self._needed = width
        self.resize_to(self._page)

    def resize_to(self, page: QSize) -> None:
        """Arrange table and tabs for a page of this size."""
        self._page = page
        side_by_side = page.width() >= SIDE_BY_SIDE_FROM and self._needed <= page.width() * self._share() - MARGINS
        self.setOrientation(Qt.Orientation.Horizontal if side_by_side else Qt.Orientation.Vertical)
        self._share_out()

    def _share_out(self) -> None:
        side_by_side = self.orientation() is Qt.Orientation.Horizontal
        whole, share = (self._page.width() if side_by_side else self._page.height()), self._share()
        self.setSizes([int(whole * share), int(whole * (1 - share))])

    def _share(self) -> float:
        """The table's part of the size, as last chosen."""
        kept = self._state.text(SHARE_KEY) if self._state is not None else ""
        if SHARE.fullmatch(kept):
            return float(kept)
        common = NARROW_TABLE_SHARE if self._page.width() < NARROW else TABLE_SHARE
        return common if self._chosen is None else self._chosen

    def _keep(self) -> None:
        table, tabs = self.sizes()
        self._chosen = table / max(1, table + tabs)
        if self._state is not None:
            self._state.set(SHARE_KEY, f"{self._chosen:.3f}")
