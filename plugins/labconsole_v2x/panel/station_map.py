"""A simple map of the stations: where they drive, and who hears whom."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QEvent, QLineF, QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QHelpEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import plain_tooltip
from labconsole_v2x.panel.station_board import StationBoard, StationState

_DOT, _ROADSIDE_DOT, _REACH = 5.0, 8.0, 9.0
_MARGIN = 26.0
_LEAST_SPAN_M = 200.0
_SCALES_M = (10, 20, 50, 100, 200, 500, 1000)
_MOST_LINES = 600
"""With more pairs, only those of the selected station are drawn."""
_LABELLED = 40
"""Up to so many stations have their numbers next to them."""


class StationMap(QWidget):
    """Shows the stations of a board; a click selects one."""

    selected = Signal(int)
    """The number of a station; -1 where none is."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._board = StationBoard()
        self._chosen = -1
        self._span_m = _LEAST_SPAN_M
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMouseTracking(True)
        self.setAccessibleName(self.tr("Map of the stations"))
        theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        """Nearly square."""
        return QSize(480, 420)

    def clear(self) -> None:
        """Show an empty map."""
        self._span_m = _LEAST_SPAN_M
        self.show_board(StationBoard())

    def show_board(self, board: StationBoard) -> None:
        """Show these stations; the scale never becomes finer in one run, so that the map is calm."""
        self._board = board
        far = max((max(abs(one.east_m), abs(one.north_m)) for one in board.stations.values()), default=0.0)
        self._span_m = max(self._span_m, far)
        self.update()

    def select(self, number: int) -> None:
        """Mark a station; -1 for none."""
        if number != self._chosen:
            self._chosen = number
            self.update()

    def place(self, state: StationState) -> QPointF:
        """Where a station is drawn."""
        room = min(self.width(), self.height()) / 2 - _MARGIN
        scale = max(room, 1.0) / self._span_m
        middle = QPointF(self.width() / 2, self.height() / 2)
        return middle + QPointF(state.east_m * scale, -state.north_m * scale)

    def station_at(self, point: QPointF) -> int:
        """The number of the station at a point; -1 for none."""
        distances = [
            (QLineF(point, self.place(state)).length(), state.number) for state in self._board.stations.values()
        ]
        nearest = min(distances, default=(_REACH + 1, -1))
        return nearest[1] if nearest[0] <= _REACH else -1

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Select the station under the pointer."""
        self.select(self.station_at(event.position()))
        self.selected.emit(self._chosen)

    def event(self, event: QEvent) -> bool:
        """Say which station is under the pointer."""
        if isinstance(event, QHelpEvent):
            number = self.station_at(QPointF(event.pos()))
            text = self.description(number) if number >= 0 else ""
            QToolTip.showText(event.globalPos(), plain_tooltip(text), self)
            return True
        return super().event(event)

    def description(self, number: int) -> str:
        """A station in words."""
        state = self._board.stations[number]
        name = self.tr("Roadside station") if state.roadside else self.tr("Station {0}").format(number)
        parts = [name]
        if not state.on:
            parts.append(self.tr("stopped"))
        if state.heard is not None:
            parts.append(self.tr("hears {0}").format(len(state.heard)))
        heard_by = self._board.heard_by(number)
        if heard_by is not None:
            parts.append(self.tr("heard by {0}").format(heard_by))
        return ", ".join(parts)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw ground, lines, stations and scale."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colours = self._theme.colours
        ground = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.setPen(QPen(QColor(colours.border), 1))
        painter.setBrush(QColor(colours.base))
        painter.drawRoundedRect(ground, 8, 8)
        stations = self._board.stations
        if not stations:
            painter.setPen(QColor(colours.muted))
            painter.setFont(self._theme.font(FontRole.BODY))
            painter.drawText(
                ground, Qt.AlignmentFlag.AlignCenter, self.tr("Stations appear here once a run has started")
            )
            return
        places = {number: self.place(state) for number, state in stations.items()}
        self._draw_lines(painter, places)
        for state in stations.values():
            self._draw_station(painter, state, places[state.number])
        self._draw_labels(painter, places)
        self._draw_scale(painter)

    def _draw_lines(self, painter: QPainter, places: Mapping[int, QPointF]) -> None:
        colour, stations = QColor(self._theme.colour("link")), self._board.stations
        if self._chosen in stations:
            colour.setAlphaF(0.75)
            painter.setPen(QPen(colour, 1.4))
            heard = stations[self._chosen].heard or frozenset()
            others = heard | {number for number, state in stations.items() if self._chosen in (state.heard or ())}
            pairs = [(self._chosen, number) for number in others]
        elif self._board.pairs <= _MOST_LINES:
            colour.setAlphaF(0.22)
            painter.setPen(QPen(colour, 1.0))
            pairs = [(number, heard) for number, state in stations.items() for heard in state.heard or ()]
        else:
            return
        painter.drawLines([QLineF(places[one], places[other]) for one, other in pairs if other in places])

    def _draw_station(self, painter: QPainter, state: StationState, place: QPointF) -> None:
        colours = self._theme.colours
        heard = bool(self._board.heard_by(state.number))
        size = _ROADSIDE_DOT if state.roadside else _DOT
        fill = self._theme.series_colour(1 if state.roadside else 0)
        if not (heard or state.roadside):
            fill = QColor(colours.bad if state.on else colours.sunken)
        painter.setBrush(fill)
        chosen = state.number == self._chosen
        painter.setPen(QPen(QColor(colours.text if chosen else colours.base), 2.2 if chosen else 1.2))
        if state.roadside:
            painter.drawRoundedRect(QRectF(place.x() - size, place.y() - size, 2 * size, 2 * size), 3, 3)
        else:
            painter.drawEllipse(place, size, size)

    def _draw_labels(self, painter: QPainter, places: Mapping[int, QPointF]) -> None:
        """Draw numbers next to the stations; one that would cover those before is left out."""
        painter.setFont(self._theme.font(FontRole.CAPTION))
        metrics, taken = QFontMetricsF(painter.font()), list[QRectF]()
        few = len(places) <= _LABELLED
        numbers = [number for number in places if number == self._chosen]
        numbers += [number for number in places if number != self._chosen and few]
        for number in numbers:
            text = self.tr("Roadside") if number == 0 else str(number)
            size = QSizeF(metrics.horizontalAdvance(text), metrics.height())
            shift = QPointF(-size.width() / 2, _ROADSIDE_DOT + 2) if number == 0 else QPointF(_DOT + 3, -size.height())
            room = QRectF(places[number] + shift, size)
            room.moveLeft(min(room.left(), self.width() - size.width() - 4))
            if any(room.intersects(other) for other in taken):
                continue
            taken.append(room)
            painter.setPen(QColor(self._theme.colours.text if number == self._chosen else self._theme.colours.muted))
            painter.drawText(room, Qt.AlignmentFlag.AlignLeft, text)

    def _draw_scale(self, painter: QPainter) -> None:
        room = min(self.width(), self.height()) / 2 - _MARGIN
        pixels = room / self._span_m
        length = max((metres for metres in _SCALES_M if metres * pixels <= self.width() / 4), default=_SCALES_M[0])
        begin = QPointF(12, self.height() - 12)
        painter.setPen(QPen(QColor(self._theme.colours.muted), 1.4))
        painter.drawLine(begin, begin + QPointF(length * pixels, 0))
        painter.setFont(self._theme.font(FontRole.CAPTION))
        painter.drawText(begin + QPointF(0, -5), f"{length} m")
