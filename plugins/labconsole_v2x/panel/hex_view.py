"""Octets in hexadecimal and ASCII, of which a range is highlighted; a click or a key chooses an octet."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import (
    QAction,
    QFontDatabase,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QWidget

from labconsole_ui.theme.theme import Theme

_MARGIN = 8
_GAP = 2
"""Characters between offset, hexadecimal and ASCII."""
_WIDE, _NARROW = 16, 8
"""Octets in a line, where there is room, and where there is not."""
_LINE_SPACING = 4
_PRINTABLE = range(0x20, 0x7F)


class HexView(QAbstractScrollArea):
    """`chosen` carries the number of an octet that was clicked, or reached by the arrow keys."""

    chosen = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._octets = b""
        self._marked = range(0)
        self._current = 0
        self.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.setAccessibleName(self.tr("Octets of the packet"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setStyleSheet(
            "HexView { border: 1px solid palette(mid); border-radius: 6px; background: palette(base); padding: 1px; }"
            "HexView:focus { border-color: palette(link); }"
        )
        self.copy_action = QAction(self.tr("Copy octets as hexadecimal"), self)
        self.copy_action.setShortcut(QKeySequence.StandardKey.Copy)
        self.copy_action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        self.copy_action.triggered.connect(self.copy_octets)
        self.addAction(self.copy_action)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        theme.changed.connect(self.viewport().update)

    @property
    def octets(self) -> bytes:
        """What is shown."""
        return self._octets

    @property
    def marked(self) -> bytes:
        """The highlighted octets."""
        return self._octets[self._marked.start : self._marked.stop]

    def show_octets(self, octets: bytes) -> None:
        """Show other octets, none of them highlighted."""
        self._octets, self._marked, self._current = octets, range(0), 0
        self.verticalScrollBar().setValue(0)
        self._fit()

    def mark(self, start: int, end: int) -> None:
        """Highlight the octets from `start` to `end` (excluded), and show the first of them."""
        self._marked = range(start, min(end, len(self._octets)))
        if self._current not in self._marked:
            self._current = start
        self.setAccessibleDescription(
            self.tr("Octets {first} to {last}: {text}").format(
                first=start, last=self._marked.stop - 1, text=self.marked.hex(" ")
            )
        )
        bar, line = self.verticalScrollBar(), self._current // self._in_line
        first = max(bar.value(), line - self._lines_shown + 1)
        bar.setValue(min(first, line))
        self.viewport().update()

    def copy_octets(self) -> None:
        """Copy the highlighted octets, or all of them, as hexadecimal."""
        QGuiApplication.clipboard().setText((self.marked or self._octets).hex())

    def octet_at(self, place: QPoint) -> int | None:
        """The octet whose hexadecimal or ASCII is at a place of the viewport."""
        line = self.verticalScrollBar().value() + (place.y() - _MARGIN) // self._line_height
        column = (place.x() - _MARGIN) / self._character
        hexadecimal, ascii_start = self._columns
        if hexadecimal <= column < hexadecimal + 3 * self._in_line:
            within = int(column - hexadecimal) // 3
        elif ascii_start <= column < ascii_start + self._in_line:
            within = int(column - ascii_start)
        else:
            return None
        octet = line * self._in_line + within
        return octet if place.y() >= _MARGIN and octet < len(self._octets) else None

    def place_of(self, octet: int) -> QRect:
        """Where the hexadecimal of an octet is in the viewport."""
        line = octet // self._in_line - self.verticalScrollBar().value()
        left = _MARGIN + (self._columns[0] + octet % self._in_line * 3) * self._character
        top = _MARGIN + line * self._line_height
        return QRect(round(left), top, round(2 * self._character), self._line_height)

    def sizeHint(self) -> QSize:
        """Wide enough for 16 octets in a line."""
        characters = self._offset_digits + 2 * _GAP + 4 * _WIDE
        width = round(characters * self._character) + 2 * _MARGIN + self.verticalScrollBar().sizeHint().width() + 4
        return QSize(width, 8 * self._line_height)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose the octet under the pointer."""
        octet = self.octet_at(event.position().toPoint())
        if octet is not None and event.button() == Qt.MouseButton.LeftButton:
            self._choose(octet)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrow keys, Home and End choose another octet."""
        steps: dict[int, int] = {
            Qt.Key.Key_Left: -1,
            Qt.Key.Key_Right: 1,
            Qt.Key.Key_Up: -self._in_line,
            Qt.Key.Key_Down: self._in_line,
            Qt.Key.Key_PageUp: -self._in_line * self._lines_shown,
            Qt.Key.Key_PageDown: self._in_line * self._lines_shown,
            Qt.Key.Key_Home: -len(self._octets),
            Qt.Key.Key_End: len(self._octets),
        }
        step = steps.get(event.key())
        if step is None or event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier:
            super().keyPressEvent(event)
        elif self._octets:
            self._choose(min(max(self._current + step, 0), len(self._octets) - 1))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show as many octets in a line as fit."""
        super().resizeEvent(event)
        self._fit()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the visible lines."""
        painter = QPainter(self.viewport())
        painter.fillRect(event.rect(), self._theme.colour("base"))
        height, ascent = self._line_height, self.fontMetrics().ascent() + _LINE_SPACING // 2
        hexadecimal, ascii_start = self._columns
        first = self.verticalScrollBar().value()
        for row in range(self._lines_shown + 1):
            start = (first + row) * self._in_line
            line = self._octets[start : start + self._in_line]
            if not line:
                break
            top = _MARGIN + row * height
            self._paint_mark(painter, start, len(line), top)
            painter.setPen(self._theme.colour("muted"))
            painter.drawText(_MARGIN, top + ascent, f"{start:0{self._offset_digits}x}")
            for place, octet in enumerate(line):
                marked = start + place in self._marked
                painter.setPen(self._theme.colour("on_accent" if marked else "text"))
                character = chr(octet) if octet in _PRINTABLE else "·"
                painter.drawText(self._left(hexadecimal + 3 * place), top + ascent, f"{octet:02x}")
                if not marked and octet not in _PRINTABLE:
                    painter.setPen(self._theme.colour("muted"))
                painter.drawText(self._left(ascii_start + place), top + ascent, character)
        if self._octets and self.hasFocus():
            painter.setPen(self._theme.colour("link"))
            painter.drawRect(self.place_of(self._current).adjusted(-2, 0, 1, -1))
        painter.end()

    def _paint_mark(self, painter: QPainter, start: int, size: int, top: int) -> None:
        """Paint the ground of the highlighted octets of a line as one piece."""
        first, last = max(self._marked.start, start), min(self._marked.stop, start + size)
        if first >= last:
            return
        hexadecimal, ascii_start = self._columns
        for column, step, gap in ((hexadecimal, 3, 1), (ascii_start, 1, 0)):
            left = self._left(column + step * (first - start)) - 2 * gap
            right = self._left(column + step * (last - start) - gap) + 2 * gap
            painter.fillRect(left, top, right - left, self._line_height, self._theme.colour("accent"))

    def _choose(self, octet: int) -> None:
        self._current = octet
        self.viewport().update()
        self.chosen.emit(octet)

    def _fit(self) -> None:
        lines = -(-len(self._octets) // self._in_line)
        bar = self.verticalScrollBar()
        bar.setPageStep(self._lines_shown)
        bar.setRange(0, max(0, lines - self._lines_shown))
        self.viewport().update()

    def _left(self, column: int) -> int:
        return round(_MARGIN + column * self._character)

    @property
    def _character(self) -> float:
        return self.fontMetrics().horizontalAdvance("0" * 64) / 64

    @property
    def _line_height(self) -> int:
        return self.fontMetrics().height() + _LINE_SPACING

    @property
    def _lines_shown(self) -> int:
        return max(1, (self.viewport().height() - 2 * _MARGIN) // self._line_height)

    @property
    def _offset_digits(self) -> int:
        return 4 if len(self._octets) <= 0x10000 else 6

    @property
    def _in_line(self) -> int:
        """Octets in a line: as many as there is room for."""
        characters = self._offset_digits + 2 * _GAP + 4 * _WIDE - 1
        return _WIDE if 2 * _MARGIN + characters * self._character <= self.viewport().width() else _NARROW

    @property
    def _columns(self) -> tuple[int, int]:
        """The characters in front of the first hexadecimal and the first ASCII."""
        hexadecimal = self._offset_digits + _GAP
        return hexadecimal, hexadecimal + 3 * self._in_line - 1 + _GAP
