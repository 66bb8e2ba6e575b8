"""The legend of a plot: one button a curve, which shows and hides it, by mouse and keyboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QSizePolicy, QToolButton, QWidget

from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import plain_tooltip
from labconsole_ui.widgets.layouts import FlowLayout

SWATCH = QSize(12, 12)
LONGEST = 52
"""Longer titles (in letters) are cut on their buttons; tooltip, readings and pictures have them in full."""


class Legend(QWidget):
    """Buttons in the order and colours of the curves; `toggled(title, shown)` is emitted on a click."""

    toggled = Signal(str, bool)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._layout = FlowLayout(self, spacing=2)
        self._buttons: dict[str, QToolButton] = {}
        self._colours: dict[str, int] = {}
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme.changed.connect(self._paint)

    def set_titles(self, titles: Sequence[str], hidden: set[str], colours: Mapping[str, int]) -> None:
        """Show these curves in the colours of these indices; those in `hidden` are switched off."""
        wanted = [(title, title not in hidden) for title in titles]
        if self._colours == colours and [(title, each.isChecked()) for title, each in self._buttons.items()] == wanted:
            return  # as each time that a live plot gets newer values
        self._colours = dict(colours)
        if list(self._buttons) != list(titles):
            for button in self._buttons.values():
                self._layout.removeWidget(button)
                button.deleteLater()
            self._buttons = {title: self._button(title) for title in titles}
        for title, button in self._buttons.items():
            button.setChecked(title not in hidden)
        self._paint()

    def button(self, title: str) -> QToolButton:
        """The button of curve `title`. Raises KeyError."""
        return self._buttons[title]

    def check(self, title: str, shown: bool) -> None:
        """Switch a curve on or off, as a click does; an unknown title is ignored."""
        if title in self._buttons:
            self._buttons[title].setChecked(shown)

    def shown(self) -> list[tuple[str, int]]:
        """Titles of the curves that are switched on, and indices of their colours."""
        return [(title, self._colours[title]) for title, button in self._buttons.items() if button.isChecked()]

    def _button(self, title: str) -> QToolButton:
        button = QToolButton(self)
        button.setCheckable(True)
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        button.setIconSize(SWATCH)
        button.setText(title if len(title) <= LONGEST else f"{title[: LONGEST - 1]}…")
        button.setFont(self._theme.font(FontRole.CAPTION))
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        button.setAccessibleName(self.tr("Show curve {0}").format(title))
        button.setToolTip(plain_tooltip(self.tr("Show or hide {0}").format(title)))
        button.clicked.connect(lambda checked, title=title: self.toggled.emit(title, checked))
        button.toggled.connect(self._paint)
        self._layout.addWidget(button)
        return button

    def _paint(self) -> None:
        colours = self._theme.colours
        for title, button in self._buttons.items():
            shown = button.isChecked()
            button.setIcon(QIcon(self._swatch(self._colours[title], shown)))
            sheet = f"""QToolButton {{ color: {colours.text if shown else colours.disabled}; padding: 0 2px; }}
                QToolButton:checked {{ background: transparent; border-color: transparent; }}
                QToolButton:hover {{ background: {colours.sunken}; }}
                QToolButton:focus {{ border-color: {colours.link}; }}"""
            if button.styleSheet() != sheet:
                button.setStyleSheet(sheet)

    def _swatch(self, colour: int, shown: bool) -> QPixmap:
        scale = self.devicePixelRatioF()
        pixmap = QPixmap(SWATCH * scale)
        pixmap.setDevicePixelRatio(scale)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        line = QRectF(1, SWATCH.height() / 2 - 2, SWATCH.width() - 2, 4)
        if shown:
            self._theme.paint_swatch(painter, line, colour)
        else:
            painter.setPen(self._theme.colour("disabled"))
            painter.drawRoundedRect(line.adjusted(0, 0, -1, 0), 2, 2)
        painter.end()
        return pixmap
