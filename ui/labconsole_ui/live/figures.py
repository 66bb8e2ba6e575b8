"""A strip of large figures with captions: state, progress, rate, latency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QLabel, QVBoxLayout, QWidget

from labconsole_ui.plots.flow import FlowLayout
from labconsole_ui.theme import FontRole, Theme


@dataclass(frozen=True)
class Figure:
    """One figure of the strip: `help` says what exactly it means."""

    caption: str
    value: str
    help: str = ""


class FigureStrip(QWidget):
    """Figures side by side, wrapped where the window is narrow. The same captions again only change the values."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._flow = FlowLayout(self, spacing=6)
        self._tiles: dict[str, _Tile] = {}
        policy = self.sizePolicy()
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def set_figures(self, figures: Sequence[Figure]) -> None:
        """Show these figures."""
        if [figure.caption for figure in figures] != list(self._tiles):
            for tile in self._tiles.values():
                self._flow.removeWidget(tile)
                tile.hide()
                tile.deleteLater()
            self._tiles = {figure.caption: _Tile(figure, self._theme, self) for figure in figures}
            for tile in self._tiles.values():
                self._flow.addWidget(tile)
                tile.show()
            self.updateGeometry()
        for figure in figures:
            self._tiles[figure.caption].set_value(figure)

    def value(self, caption: str) -> str:
        """The value shown under `caption`, empty if that is not shown."""
        return self._tiles[caption].value.text() if caption in self._tiles else ""


class _Tile(QFrame):
    def __init__(self, figure: Figure, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        caption = QLabel(figure.caption, self)
        caption.setProperty("muted", True)
        caption.setFont(theme.font(FontRole.CAPTION))
        self.value = QLabel(self)
        self.value.setFont(theme.font(FontRole.STRONG))
        self.value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.value.setMinimumWidth(self.value.fontMetrics().horizontalAdvance("000,000"))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 4, 8, 4)
        layout.setSpacing(0)
        layout.addWidget(caption)
        layout.addWidget(self.value)
        self.set_value(figure)

    def set_value(self, figure: Figure) -> None:
        if self.value.text() != figure.value:
            self.value.setText(figure.value)
            self.value.setAccessibleName(f"{figure.caption}: {figure.value}")
        self.setToolTip(figure.help)
