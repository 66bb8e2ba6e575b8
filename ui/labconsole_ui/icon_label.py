"""A label that shows an icon in a colour by meaning, and follows the theme."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel

from labconsole_ui.theme.theme import Theme


class IconLabel(QLabel):
    """Shows the icon `name`, `size` logical pixels wide."""

    def __init__(self, theme: Theme, name: str, size: int, meaning: str) -> None:
        super().__init__()
        self._theme = theme
        self._icon = (name, size, meaning)
        theme.changed.connect(self._paint)
        self._paint()

    def show_icon(self, name: str, meaning: str) -> None:
        """Show another icon."""
        self._icon = (name, self._icon[1], meaning)
        self._paint()

    def _paint(self) -> None:
        self.setPixmap(self._theme.pixmap(*self._icon))
