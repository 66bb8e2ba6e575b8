"""Paints the matrix of States: cells in the colour of their status with a mark, and readable names."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen, QPixmap

from labconsole_ui.theme.theme import FontRole, Theme

GAP = 2.0
SLANT_DEGREES = -60.0
"""Angle of column names that are too wide for their column."""
_SLANT_SINE = -math.sin(math.radians(SLANT_DEGREES))
_MARK_PX = 14
_RADIUS = 4.0
_ANY_SCRIPT = 1.25
_GROUNDS = {"good": "good_ground", "warning": "warning_ground", "bad": "bad_ground", "muted": "sunken"}


@dataclass(frozen=True)
class GridCell:
    """One cell. `meaning` is its colour (good, warning, bad, muted), `icon` its mark, `text` the label of a wide cell
    (two lines at most), `sentence` the full text for tooltip and screen reader."""

    meaning: str
    icon: str
    text: tuple[str, ...]
    sentence: str


class GridPainter:
    """Paints parts of the matrix in a theme's colours."""

    def __init__(self, theme: Theme) -> None:
        self._theme = theme
        self._names = QFontMetricsF(theme.font(FontRole.STRONG))
        self._marks = cache(self._mark)

    def reset_colours(self) -> None:
        """The theme has changed."""
        self._marks.cache_clear()

    def name_width(self, names: Iterable[str]) -> float:
        """The width of the widest of these names, px."""
        return max((self._names.horizontalAdvance(name) for name in names), default=0.0)

    @property
    def line_height(self) -> float:
        """Height of one line of names in any script, px: some are higher than Latin letters."""
        return self._names.height() * _ANY_SCRIPT

    def cell(self, painter: QPainter, area: QRectF, cell: GridCell) -> None:
        """Paint a cell: background, mark, and the text next to it if there is room."""
        inner = area.adjusted(GAP / 2, GAP / 2, -GAP / 2, -GAP / 2)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.colour(_GROUNDS[cell.meaning]))
        painter.drawRoundedRect(inner, _RADIUS, _RADIUS)
        mark = self._marks(cell.icon, cell.meaning, painter.device().devicePixelRatio())
        if area.width() < 3 * area.height():
            painter.drawPixmap(inner.center() - QPointF(_MARK_PX / 2, _MARK_PX / 2), mark)
            return
        if len(cell.text) == 1:  # in the middle
            inner.translate(0, inner.height() / 2 - 5 - _MARK_PX / 2)
        painter.drawPixmap(inner.topLeft() + QPointF(8, 5), mark)
        self._lines(painter, inner.adjusted(8 + _MARK_PX + 6, 3, -6, -3), cell.text)

    def none(self, painter: QPainter, area: QRectF) -> None:
        """Paint a cell of the diagonal, which is empty."""
        painter.setPen(QPen(self._theme.colour("border"), 1))
        painter.drawLine(area.center() - QPointF(4, 0), area.center() + QPointF(4, 0))

    def current(self, painter: QPainter, area: QRectF, *, focused: bool) -> None:
        """Paint the frame of the chosen cell."""
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(self._theme.colour("link" if focused else "text"), 2))
        painter.drawRoundedRect(area.adjusted(1, 1, -1, -1), _RADIUS, _RADIUS)

    def row_name(self, painter: QPainter, area: QRectF, name: str, *, strong: bool) -> None:
        """Paint the name to the left of a row, shortened in its middle if too long."""
        self._name_pen(painter, strong=strong)
        shown = painter.fontMetrics().elidedText(name, Qt.TextElideMode.ElideMiddle, int(area.width()))
        painter.drawText(area, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), shown)

    def column_name(self, painter: QPainter, area: QRectF, name: str, *, strong: bool, slanted: bool) -> None:
        """Paint the name above a column: horizontal if there is room for it, else slanted."""
        self._name_pen(painter, strong=strong)
        if not slanted:
            shown = painter.fontMetrics().elidedText(name, Qt.TextElideMode.ElideMiddle, int(area.width()) - 4)
            painter.drawText(area, int(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignBottom), shown)
            return
        painter.save()
        painter.translate(area.center().x() + self.line_height * 0.25, area.bottom() - 3)
        painter.rotate(SLANT_DEGREES)
        length = math.ceil(self.slant_length(area.height()))
        shown = painter.fontMetrics().elidedText(name, Qt.TextElideMode.ElideMiddle, length)
        painter.drawText(QPointF(0, 0), shown)
        painter.restore()

    @property
    def _above(self) -> float:
        """The part of a slanted name's height that its letters need, px."""
        return self.line_height * 0.5 + 4

    def slant_height(self, width: float) -> float:
        """The height of a slanted name of this width, px."""
        return width * _SLANT_SINE + self._above

    def slant_beyond(self, width: float) -> float:
        """How far a slanted name of this width extends to the right of its column, px."""
        return width * math.cos(math.radians(SLANT_DEGREES))

    def slant_length(self, height: float) -> float:
        """Width of a name that fits slanted into this height, px."""
        return (height - self._above) / _SLANT_SINE

    def _name_pen(self, painter: QPainter, *, strong: bool) -> None:
        painter.setFont(self._theme.font(FontRole.STRONG if strong else FontRole.BODY))
        painter.setPen(self._theme.colour("text"))

    def _lines(self, painter: QPainter, area: QRectF, lines: tuple[str, ...]) -> None:
        roles, colours = (FontRole.STRONG, FontRole.CAPTION), ("text", "muted")
        top = area.top()
        for line, role, colour in zip(lines, roles, colours, strict=False):
            painter.setFont(self._theme.font(role))
            painter.setPen(QColor(self._theme.colour(colour)))
            metrics = painter.fontMetrics()
            shown = metrics.elidedText(line, Qt.TextElideMode.ElideRight, int(area.width()))
            painter.drawText(QPointF(area.left(), top + metrics.ascent()), shown)
            top += metrics.height()

    def _mark(self, icon: str, meaning: str, ratio: float) -> QPixmap:
        pixmap = self._theme.icon(icon, meaning).pixmap(_MARK_PX, _MARK_PX)
        return pixmap if pixmap.devicePixelRatio() == ratio else self._theme.pixmap(icon, _MARK_PX, meaning)
