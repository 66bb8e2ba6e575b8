"""The theme of the window (light, dark, system): palette, fonts, icons and colours by meaning."""

from __future__ import annotations

import sys
import weakref
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from PySide6.QtCore import QByteArray, QObject, QPointF, QRectF, Qt, QTemporaryDir, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontDatabase,
    QFontMetrics,
    QGuiApplication,
    QIcon,
    QPainter,
    QPalette,
    QPen,
    QPixmap,
)
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import isValid

from labconsole import paths
from labconsole_ui.theme.colours import DARK, LIGHT, Colours
from labconsole_ui.theme.style_sheet import style_sheet

FONT_FILES = ("Inter-Regular.otf", "Inter-Medium.otf", "Inter-SemiBold.otf", "Inter-Bold.otf")
ICON_SIZES = (16, 24, 32, 64)
_DASHES: tuple[tuple[float, ...], ...] = ((), (7.0, 3.0), (2.0, 3.0), (8.0, 3.0, 2.0, 3.0))
"""Dashes and gaps of curves, px: of the first eight, which are solid, of the second eight, and so on."""
_SWATCH_STRETCH = 0.5
"""A swatch is short: so that more than one dash is seen."""
ROW_EDGES = 8
"""Space above and below the text of an item in a drop-down list, px."""


class ThemeMode(StrEnum):
    """The themes of the View menu."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


class FontRole(StrEnum):
    """The roles of texts; sizes follow from the application's font."""

    DISPLAY = "display"
    TITLE = "title"
    LEAD = "lead"
    HEADING = "heading"
    BODY = "body"
    STRONG = "strong"
    CAPTION = "caption"
    TABLE = "table"


_FONT_SCALE: dict[FontRole, tuple[float, QFont.Weight]] = {
    FontRole.DISPLAY: (2.0, QFont.Weight.DemiBold),
    FontRole.TITLE: (1.5, QFont.Weight.DemiBold),
    FontRole.LEAD: (1.1, QFont.Weight.Normal),
    FontRole.HEADING: (1.15, QFont.Weight.DemiBold),
    FontRole.BODY: (1.0, QFont.Weight.Normal),
    FontRole.STRONG: (1.0, QFont.Weight.DemiBold),
    FontRole.CAPTION: (0.9, QFont.Weight.Normal),
    FontRole.TABLE: (1.0, QFont.Weight.Normal),
}
BODY_POINTS = 10.0
"""Size of the body's text where the system has its usual size, and text at 100 %."""
USUAL_POINTS = {"win32": 9.0, "darwin": 13.0}
"""The system's own size of text where its user has not chosen another one; 10 elsewhere."""
TEXT_SIZES = (80, 90, 100, 110, 125, 150, 175, 200)
"""Sizes of text in percent, as the View menu offers them."""


class Theme(QObject):
    """The window's theme. Views read `colours` when they paint and repaint on `changed`.

    `text_size` is a percentage of the size that the system's own texts have.
    """

    changed = Signal()

    def __init__(self, app: QApplication, mode: ThemeMode = ThemeMode.SYSTEM, text_size: int = 100) -> None:
        super().__init__(app)
        self._app = app
        self._mode = mode
        self._system_points = _system_points()
        self._text_size = text_size if text_size in TEXT_SIZES else 100
        self._icons: dict[tuple[str, str], QIcon] = {}
        self._bound: weakref.WeakKeyDictionary[Any, tuple[str, str]] = weakref.WeakKeyDictionary()
        self._icon_files = QTemporaryDir()
        app.setStyle("Fusion")
        app.setFont(_application_font(self._points))
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._system_changed)
        self._apply()

    @property
    def mode(self) -> ThemeMode:
        """What the operator chose."""
        return self._mode

    @property
    def dark(self) -> bool:
        """Whether the dark colours are shown now."""
        if self._mode is ThemeMode.SYSTEM:
            return QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark
        return self._mode is ThemeMode.DARK

    @property
    def colours(self) -> Colours:
        """The colours shown now."""
        return DARK if self.dark else LIGHT

    def set_mode(self, mode: ThemeMode) -> None:
        """Show the light or dark colours, or those of the system."""
        if mode is not self._mode:
            self._mode = mode
            self._apply()

    @property
    def text_size(self) -> int:
        """The size of all text, in percent of the system's."""
        return self._text_size

    def set_text_size(self, percent: int) -> None:
        """Show all text in this size, one of `TEXT_SIZES`, also in open pages."""
        before, self._text_size = self._points, percent
        ratio = self._points / before
        own = [
            widget
            for widget in QApplication.allWidgets()
            if widget.testAttribute(Qt.WidgetAttribute.WA_SetFont) and widget.font().pointSizeF() > 0
        ]
        sizes = [widget.font().pointSizeF() * ratio for widget in own]
        font = self._app.font()
        font.setPointSizeF(self._points)
        self._app.setFont(font)
        self._apply()
        for widget, points in zip(own, sizes, strict=True):  # after the style sheet, which would reset them
            _set_points(widget, points)

    def step_text_size(self, by: int) -> None:
        """Show text in the next size up (1) or down (-1), if there is one."""
        place = min(max(TEXT_SIZES.index(self._text_size) + by, 0), len(TEXT_SIZES) - 1)
        self.set_text_size(TEXT_SIZES[place])

    @property
    def _points(self) -> float:
        return self._system_points * self._text_size / 100

    def series_colour(self, index: int) -> QColor:
        """The colour of the measured series `index`, counted from 0; repeats after eight."""
        series = self.colours.series
        return QColor(series[index % len(series)])

    def series_pen(self, index: int, width: float, stretch: float = 1.0) -> QPen:
        """The pen of the curve of a series: each eight have all colours, and further ones other dashes.

        `stretch` is that of the dashes, `_DASHES` at 1.
        """
        pen = QPen(self.series_colour(index), width)
        if dashes := _DASHES[index // len(self.colours.series) % len(_DASHES)]:
            pen.setDashPattern([length * stretch / width for length in dashes])
            pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        return pen

    def paint_swatch(self, painter: QPainter, area: QRectF, index: int) -> None:
        """Paint a piece of a series' curve, as in legends, as thick as `area` is high."""
        pen = self.series_pen(index, area.height(), _SWATCH_STRETCH)
        painter.save()
        if pen.style() is Qt.PenStyle.SolidLine:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(pen.color())
            painter.drawRoundedRect(area, 2, 2)
        else:
            painter.setPen(pen)
            middle = area.center().y()
            painter.drawLine(QPointF(area.left(), middle), QPointF(area.right(), middle))
        painter.restore()

    def colour(self, meaning: str) -> QColor:
        """The colour named `meaning`, a field of `Colours` such as `"good"`. Raises AttributeError."""
        return QColor(getattr(self.colours, meaning))

    def font(self, role: FontRole) -> QFont:
        """The font for texts of this role; tables get figures of equal width."""
        scale, weight = _FONT_SCALE[role]
        font = QFont(self._app.font())
        font.setPointSizeF(self._points * scale)
        font.setWeight(weight)
        if role in (FontRole.TABLE, FontRole.DISPLAY):
            font.setFeature(QFont.Tag("tnum"), 1)
        return font

    def icon(self, name: str, meaning: str = "text") -> QIcon:
        """The icon `resources/icons/<name>.svg` in the colour of `meaning`. Raises FileNotFoundError.

        It keeps its colours when the theme changes: use `bind_icon` for an icon that stays visible.
        """
        key = (name, meaning)
        if key not in self._icons:
            self._icons[key] = self._draw_icon(name, meaning)
        return self._icons[key]

    def has_icon(self, name: str) -> bool:
        """Whether there is an icon of this name."""
        return (paths.resource("icons") / f"{name}.svg").is_file()

    def pixmap(self, name: str, size: int, meaning: str = "text") -> QPixmap:
        """The icon as a pixmap of `size` logical pixels, sharp on the screen's scale."""
        return self.icon(name, meaning).pixmap(size, size)

    def bind_icon(self, target: Any, name: str, meaning: str = "text") -> None:
        """Set the icon of `target` (anything with `setIcon`) now and on every change of the theme."""
        target.setIcon(self.icon(name, meaning))
        self._bound[target] = (name, meaning)

    def _write_icon(self, name: str, colour: str) -> str:
        """Path of the icon as a file in `colour`, for the style sheet, which needs a file."""
        path = Path(self._icon_files.filePath(f"{name}-{colour.removeprefix('#')}.svg"))
        if not path.exists():
            path.write_text(_icon_source(name).replace("currentColor", colour), encoding="utf-8")
        return path.as_posix()

    def _draw_icon(self, name: str, meaning: str) -> QIcon:
        icon = QIcon()
        source = _icon_source(name)
        for modes, colour in (
            ((QIcon.Mode.Normal, QIcon.Mode.Selected), getattr(self.colours, meaning)),
            ((QIcon.Mode.Disabled,), self.colours.disabled),
        ):
            renderer = QSvgRenderer(QByteArray(source.replace("currentColor", colour).encode()))
            for size in ICON_SIZES:
                pixmap = QPixmap(size, size)
                pixmap.fill(Qt.GlobalColor.transparent)
                painter = QPainter(pixmap)
                renderer.render(painter, QRectF(0, 0, size, size))
                painter.end()
                for mode in modes:
                    icon.addPixmap(pixmap, mode)
        return icon

    def _system_changed(self) -> None:
        if self._mode is ThemeMode.SYSTEM:
            self._apply()

    def _apply(self) -> None:
        self._icons.clear()
        self._app.setPalette(_palette(self.colours))
        row = QFontMetrics(self._app.font()).height() + ROW_EDGES
        # Else Qt 6.10 styles each widget again for each of its ancestors: 2.3 s instead of 0.5 s with one panel.
        self._app.setStyleSheet("")
        self._app.setStyleSheet(style_sheet(self.colours, self._write_icon, self._points, row))
        for target, (name, meaning) in list(self._bound.items()):
            if isValid(target):
                target.setIcon(self.icon(name, meaning))
            else:
                del self._bound[target]
        self.changed.emit()


@cache
def _icon_source(name: str) -> str:
    """The icon as it is shipped, with `currentColor` for its colour."""
    return paths.resource("icons", f"{name}.svg").read_text(encoding="utf-8")


def _system_points() -> float:
    """Points of the body's text, from the size of the system's texts."""
    if QGuiApplication.platformName() in ("offscreen", "minimal"):
        return BODY_POINTS
    points = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont).pointSizeF()
    return (
        BODY_POINTS * min(max(points / USUAL_POINTS.get(sys.platform, 10.0), 0.8), 2.0) if points > 0 else BODY_POINTS
    )


def _set_points(widget: QWidget, points: float) -> None:
    font = widget.font()
    font.setPointSizeF(points)
    widget.setFont(font)


def _application_font(points: float) -> QFont:
    """Inter in body size; the system's font where the bundled files cannot be read."""
    families: list[str] = []
    for name in FONT_FILES:
        number = QFontDatabase.addApplicationFont(str(paths.resource("fonts", name)))
        families += QFontDatabase.applicationFontFamilies(number)
    font = QFont(families[0]) if families else QFont()
    font.setPointSizeF(points)
    font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    return font


def _palette(colours: Colours) -> QPalette:
    roles = QPalette.ColorRole
    palette = QPalette(QColor(colours.base), QColor(colours.window))
    for role, colour in (
        (roles.Window, colours.window),
        (roles.WindowText, colours.text),
        (roles.Base, colours.base),
        (roles.AlternateBase, colours.alternate),
        (roles.Text, colours.text),
        (roles.Button, colours.base),
        (roles.ButtonText, colours.text),
        (roles.BrightText, colours.on_accent),
        (roles.ToolTipBase, colours.base),
        (roles.ToolTipText, colours.text),
        (roles.PlaceholderText, colours.muted),
        (roles.Highlight, colours.accent),
        (roles.HighlightedText, colours.on_accent),
        (roles.Accent, colours.accent),
        (roles.Link, colours.link),
        (roles.LinkVisited, colours.link),
        (roles.Light, colours.base),
        (roles.Midlight, colours.sunken),
        (roles.Mid, colours.border),
        (roles.Dark, colours.control_border),
        (roles.Shadow, colours.border),
    ):
        palette.setColor(role, QColor(colour))
    for role in (roles.WindowText, roles.Text, roles.ButtonText, roles.PlaceholderText):
        palette.setColor(QPalette.ColorGroup.Disabled, role, QColor(colours.disabled))
    palette.setColor(QPalette.ColorGroup.Disabled, roles.Base, QColor(colours.window))
    palette.setColor(QPalette.ColorGroup.Disabled, roles.Highlight, QColor(colours.sunken))
    palette.setColor(QPalette.ColorGroup.Disabled, roles.HighlightedText, QColor(colours.disabled))
    return palette
