"""The live figures as a small table: state, progress, rate, latency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QSizePolicy, QWidget

from labconsole_ui.theme.theme import FontRole, Theme

PAIR_WIDTH = 196
"""Width (px) of a caption with its value."""


@dataclass(frozen=True)
class Figure:
    """One figure of the table: `help` is its definition."""

    caption: str
    value: str
    help: str = ""


class FigureTable(QFrame):
    """Captions with their values, as many per row as fit the width."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._entries: dict[str, tuple[QLabel, QLabel]] = {}
        self._columns = 1
        self.setProperty("card", True)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(10, 6, 10, 6)
        self._grid.setHorizontalSpacing(8)
        self._grid.setVerticalSpacing(2)

    def set_figures(self, figures: Sequence[Figure]) -> None:
        """Show these figures."""
        if [figure.caption for figure in figures] != list(self._entries):
            for labels in self._entries.values():
                for label in labels:
                    self._grid.removeWidget(label)
                    label.hide()
                    label.deleteLater()
            self._entries = {figure.caption: self._labels(figure.caption) for figure in figures}
            self._place()
        for figure in figures:
            caption, value = self._entries[figure.caption]
            if value.text() != figure.value:
                value.setText(figure.value)
                value.setAccessibleName(f"{figure.caption}: {figure.value}")
            caption.setToolTip(figure.help)
            value.setToolTip(figure.help)

    def value(self, caption: str) -> str:
        """The value shown under `caption`, empty if that is not shown."""
        return self._entries[caption][1].text() if caption in self._entries else ""

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Arrange the pairs for the new width."""
        super().resizeEvent(event)
        columns = max(1, event.size().width() // PAIR_WIDTH)
        if columns != self._columns:
            self._columns = columns
            self._place()

    def _labels(self, text: str) -> tuple[QLabel, QLabel]:
        caption, value = QLabel(text, self), QLabel(self)
        caption.setProperty("muted", True)
        caption.setFont(self._theme.font(FontRole.CAPTION))
        value.setFont(self._theme.font(FontRole.STRONG))
        value.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        caption.show()
        value.show()
        return caption, value

    def _place(self) -> None:
        """Lay the pairs out; three grid columns for each: caption, value, gap."""
        for labels in self._entries.values():
            for label in labels:
                self._grid.removeWidget(label)
        for number, (caption, value) in enumerate(self._entries.values()):
            row, place = divmod(number, self._columns)
            self._grid.addWidget(caption, row, place * 3)
            self._grid.addWidget(value, row, place * 3 + 1)
        for column in range(self._grid.columnCount()):
            used = column < self._columns * 3
            gap = column % 3 == 2 and column < self._columns * 3 - 1
            self._grid.setColumnStretch(column, 1 if used and column % 3 == 1 else 0)
            self._grid.setColumnMinimumWidth(column, 14 if gap else 0)
        self.updateGeometry()
