"""The strokes of the pool's picture: tanks, rings, arrows with keys on them, and texts that are never clipped."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QLinearGradient, QPainter, QPainterPath, QPen

from labconsole_ui.theme.theme import FontRole, Theme

_CORNER = 10.0
_FULL = 0.94
"""So high (part of a tank) stands what is full."""
_DOT = 3.4
_MOST_DOTS = 7
_DOT_ROOM = 14.0


class PoolDrawing:
    """Draws with `painter` in the theme's colours; all lengths in device independent pixels."""

    def __init__(self, painter: QPainter, theme: Theme) -> None:
        self._painter = painter
        self._theme = theme
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)

    def tank(self, area: QRectF, colour: QColor, level: float, mark: float | None) -> None:
        """A vessel filled to `level` (0 to 1), with a dashed line at `mark` where it has one."""
        painter, colours = self._painter, self._theme.colours
        path = QPainterPath()
        path.addRoundedRect(area, _CORNER, _CORNER)
        painter.fillPath(path, QColor(colours.sunken))
        painter.save()
        painter.setClipPath(path)
        if level > 0:
            filled = QRectF(area)
            filled.setTop(_height_of(area, level))
            gradient = QLinearGradient(filled.topLeft(), filled.bottomLeft())
            gradient.setColorAt(0, _translucent(colour, 0.55))
            gradient.setColorAt(1, _translucent(colour, 0.85))
            painter.fillRect(filled, gradient)
            painter.setPen(QPen(colour, 2))
            painter.drawLine(filled.topLeft(), filled.topRight())
        if mark is not None:
            y = _height_of(area, mark)
            painter.setPen(QPen(QColor(colours.text), 1.6, Qt.PenStyle.DashLine))
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
        painter.restore()
        painter.setPen(QPen(QColor(colours.control_border), 1.2))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPath(path)

    def ring(self, area: QRectF, colour: QColor, *, pale: bool) -> QRectF:
        """A place that keys pass through; returns the area inside."""
        size = min(area.width(), area.height()) - 6
        ring = QRectF(area.center().x() - size / 2, area.center().y() - size / 2, size, size)
        self._painter.setBrush(QColor(self._theme.colours.base))
        self._painter.setPen(QPen(QColor(self._theme.colours.border) if pale else colour, 4))
        self._painter.drawEllipse(ring)
        return ring.adjusted(2, 2, -2, -2)

    def count(self, area: QRectF, number: int) -> None:
        """A number in the middle of `area`, on a ground of its own: readable however full the tank is."""
        painter, text = self._painter, f"{number:,}"
        fonts = [self._theme.font(role) for role in (FontRole.TITLE, FontRole.STRONG, FontRole.CAPTION)]
        room = area.width() - 8
        font = next((font for font in fonts if QFontMetricsF(font).horizontalAdvance(text) <= room), fonts[-1])
        metrics = QFontMetricsF(font)
        box = QRectF(0, 0, metrics.horizontalAdvance(text) + 8, metrics.height() + 2)
        box.moveCenter(area.center())
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(_translucent(QColor(self._theme.colours.base), 0.9))
        painter.drawRoundedRect(box, 6, 6)
        painter.setPen(QColor(self._theme.colours.text))
        painter.setFont(font)
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)

    def arrow(self, begin: QPointF, length: float) -> None:
        """A line to the right with a head."""
        end, y = begin.x() + length, begin.y()
        self._painter.setPen(QPen(QColor(self._theme.colours.control_border), 1.6))
        self._painter.drawLine(begin, QPointF(end - 1, y))
        self._painter.drawLine(QPointF(end - 6, y - 5), QPointF(end, y))
        self._painter.drawLine(QPointF(end - 6, y + 5), QPointF(end, y))

    def keys(self, begin: QPointF, length: float, rate: float, travelled: float) -> None:
        """Keys on an arrow, the more the higher the rate (per second); `travelled` moves them along."""
        dots = max(1, min(_MOST_DOTS, int(length / _DOT_ROOM), 1 + int(rate / 4)))
        self._painter.setPen(Qt.PenStyle.NoPen)
        self._painter.setBrush(QColor(self._theme.colours.link))
        for number in range(dots):
            x = begin.x() + (travelled + number * length / dots) % length
            self._painter.drawEllipse(QPointF(x, begin.y()), _DOT, _DOT)

    def whole_text(self, text: str, role: FontRole, colour: str, middle: QPointF, room: float) -> None:
        """As `text`, but nothing where there is no room for all of it."""
        if QFontMetricsF(self._theme.font(role)).horizontalAdvance(text) <= room:
            self.text(text, role, colour, middle, room)

    def text(self, text: str, role: FontRole, colour: str, middle: QPointF, room: float) -> None:
        """A line around `middle`, cut with an ellipsis where `room` is too narrow; `colour` by its meaning."""
        font = self._theme.font(role)
        metrics = QFontMetricsF(font)
        box = QRectF(0, 0, room, metrics.height())
        box.moveCenter(middle)
        self._painter.setFont(font)
        self._painter.setPen(self._theme.colour(colour))
        shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room)
        self._painter.drawText(box, Qt.AlignmentFlag.AlignCenter, shown)


def _height_of(area: QRectF, share: float) -> float:
    return area.bottom() - area.height() * min(1.0, share) * _FULL


def _translucent(colour: QColor, alpha: float) -> QColor:
    mixed = QColor(colour)
    mixed.setAlphaF(alpha)
    return mixed
