"""The pool as a living picture: keys being wrapped, in the store, in the token, used; it moves while keys move."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QHideEvent,
    QLinearGradient,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QShowEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from labconsole_keypool.panel.pool_state import PoolState
from labconsole_ui.theme.theme import FontRole, Theme

_CORNER = 10.0
_FULL = 0.94
"""Height of a full tank's content, as part of the tank."""
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
        """A number in the middle of `area`, on its own background: readable at any filling."""
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


FRAME_MS = 40
_SPEED = 46.0
"""So many px a second a key moves along its arrow."""
_HEIGHT = 134
_TANK_TOP, _TANK_HEIGHT, _TANK_WIDTH = 26.0, 76.0, 140.0
_CAPTION_AT, _NOTE_AT = 11.0, 119.0
_WORD_BELOW, _RATE_ABOVE = 16.0, 18.0
_SIDE_GAP = 10.0
_LEAST_ARROW = 24.0


@dataclass(frozen=True)
class _Stage:
    """A place where keys are: caption, number, the index of its colour, and a note beneath.

    A tank has a `level` from 0 to 1, and may have a `mark`; without a level keys only pass through.
    """

    caption: str
    count: int
    colour: int
    note: str
    level: float | None = None
    mark: float | None = None


def rate_text(per_second: float) -> str:
    """A rate that changes several times a second, with two digits at least: `0.53/s`, `7.2/s`, `1,234/s`."""
    return f"{per_second:,.0f}/s" if per_second >= 10 else f"{per_second:.2g}/s"


class PoolPicture(QWidget):
    """Shows a `PoolState`; still while nothing moves, and then costs nothing."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._state = PoolState()
        self._most_stored = self._most_loaded = 0
        self._low_water: int | None = None
        self._store_name = ""
        self._travelled = 0.0
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._moving = QTimer(self)
        self._moving.setInterval(FRAME_MS)
        self._moving.timeout.connect(self._move)
        theme.changed.connect(self.update)
        self.show_state(self._state)

    @property
    def state(self) -> PoolState:
        """The shown state of the pool."""
        return self._state

    @property
    def moving(self) -> bool:
        """Whether moving keys are drawn."""
        return self._moving.isActive()

    def sizeHint(self) -> QSize:
        return QSize(820, _HEIGHT)

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        return QSize(400, _HEIGHT)

    def set_pool(self, store_name: str, low_water: int | None) -> None:
        """Name of the key store, and the number of keys in the token beneath which it is refilled (None: no pool)."""
        if store_name != self._store_name:
            self.reset_levels()
        self._store_name, self._low_water = store_name, low_water
        self.update()

    def reset_levels(self) -> None:
        """The tanks are full at the largest number that is seen from now on."""
        self._most_stored = self._most_loaded = 0

    def show_state(self, state: PoolState) -> None:
        """Show where the keys are now."""
        self._state = state
        self._most_stored = max(self._most_stored, state.in_store)
        self._most_loaded = max(self._most_loaded, state.in_token)
        if self.isVisible() and state.moves:
            if not self.moving:
                self._moving.start()
        else:
            self._moving.stop()
        self.setAccessibleName(
            self.tr("Keys: {wrapping} being wrapped, {store} in the store, {token} in the token, {used} used").format(
                wrapping=state.wrapping, store=state.in_store, token=state.in_token, used=state.used
            )
        )
        self.update()

    def showEvent(self, event: QShowEvent) -> None:
        """Advance the animation."""
        super().showEvent(event)
        self.show_state(self._state)

    def hideEvent(self, event: QHideEvent) -> None:
        """Nothing moves unseen."""
        super().hideEvent(event)
        self._moving.stop()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Four stations from left to right, and an arrow between each two."""
        painter = QPainter(self)
        drawing = PoolDrawing(painter, self._theme)
        stations = self._stages()
        width = self.width() / len(stations)
        tank = min(_TANK_WIDTH, width * 0.56)
        for number, station in enumerate(stations):
            middle = width * (number + 0.5)
            self._paint_stage(drawing, station, QRectF(middle - tank / 2, _TANK_TOP, tank, _TANK_HEIGHT), width - 8)
        for number, (word, rate) in enumerate(self._moves()):
            begin = QPointF(width * (number + 0.5) + tank / 2 + _SIDE_GAP, _TANK_TOP + _TANK_HEIGHT / 2)
            self._paint_move(drawing, begin, width - tank - 2 * _SIDE_GAP, word, rate)
        painter.end()

    def _move(self) -> None:
        self._travelled += _SPEED * FRAME_MS / 1000
        self.update()

    def _paint_stage(self, drawing: PoolDrawing, station: _Stage, area: QRectF, room: float) -> None:
        colour = self._theme.series_colour(station.colour)
        if station.level is None:
            drawing.count(drawing.ring(area, colour, pale=not station.count), station.count)
        else:
            drawing.tank(area, colour, station.level, station.mark)
            drawing.count(area, station.count)
        middle = area.center().x()
        drawing.text(station.caption, FontRole.STRONG, "text", QPointF(middle, _CAPTION_AT), room)
        drawing.text(station.note, FontRole.CAPTION, "muted", QPointF(middle, _NOTE_AT), room)

    def _paint_move(self, drawing: PoolDrawing, begin: QPointF, length: float, word: str, rate: float) -> None:
        if length < _LEAST_ARROW:
            return
        drawing.arrow(begin, length)
        middle, room = begin + QPointF(length / 2, 0), length + _SIDE_GAP
        drawing.whole_text(word, FontRole.CAPTION, "muted", middle + QPointF(0, _WORD_BELOW), room)
        if rate > 0:
            drawing.whole_text(rate_text(rate), FontRole.CAPTION, "text", middle - QPointF(0, _RATE_ABOVE), room)
            drawing.keys(begin, length, rate, self._travelled)

    def _moves(self) -> tuple[tuple[str, float], ...]:
        rates = self._state.rates
        return (
            (self.tr("wrapped"), rates.stored),
            (self.tr("loaded"), rates.loaded),
            (self.tr("signed"), rates.used),
        )

    def _stages(self) -> tuple[_Stage, ...]:
        state, low = self._state, self._low_water
        full = max(self._most_loaded, 2 * (low or 0), 1)
        refill = "" if low is None else self.tr("refill below {number}").format(number=f"{low:,}")
        store = self.tr("store “{name}”").format(name=self._store_name) if self._store_name else ""
        if state.running:
            note = self.tr("{number} requests wait").format(number=f"{state.queue:,}")
        else:
            note = self.tr("{number} invalid").format(number=f"{state.lost:,}") if state.lost else ""
        return (
            _Stage(self.tr("Wrapping"), state.wrapping, 3, self.tr("made in the token")),
            _Stage(self.tr("In the store"), state.in_store, 0, store, state.in_store / max(self._most_stored, 1)),
            _Stage(
                self.tr("In the token"),
                state.in_token,
                2,
                refill,
                state.in_token / full,
                None if low is None else low / full,
            ),
            _Stage(self.tr("Used"), state.used, 1, note),
        )
