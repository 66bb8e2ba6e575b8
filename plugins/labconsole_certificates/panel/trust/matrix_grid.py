"""The State x State matrix as a widget: trust by colour and mark; 40 States are drawn in one frame."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from PySide6.QtCore import QEvent, QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QRegion, QResizeEvent
from PySide6.QtWidgets import QAbstractScrollArea, QToolTip, QWidget

from labconsole_certificates.panel.trust.matrix_painting import GridCell, GridPainter
from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.labels import plain_tooltip

LEAST_CELL = 22
SQUARE_CELL = 30
WIDE_CELL = QSize(150, 39)
WIDEST_CELL = 240
_MOST_NAME = 190.0
_EDGE = 10.0
_BELOW_NAMES = 4.0
_STEPS = {
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
    Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
}


class TrustGrid(QAbstractScrollArea):
    """Rows trust, columns are trusted. `chosen` carries row and column of a cell that was clicked or moved to.

    Few States get wide cells with words; of many each cell is a square with a mark. The names stay visible.
    """

    chosen = Signal(int, int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._painter = GridPainter(theme)
        self._names: Sequence[str] = ()
        self._cells: Mapping[tuple[int, int], GridCell] = {}
        self._current: tuple[int, int] | None = None
        self._hovered: tuple[int, int] | None = None
        self._cell = QSize(LEAST_CELL, LEAST_CELL)
        self._left = self._top = 0.0
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(self.tr("Who trusts whom"))
        self.viewport().setMouseTracking(True)
        theme.changed.connect(self._recolour)

    @property
    def current(self) -> tuple[int, int] | None:
        """Row and column of the chosen cell."""
        return self._current

    def show_matrix(self, names: Sequence[str], cells: Mapping[tuple[int, int], GridCell]) -> None:
        """Show these States: `cells` by row and column, both counted from 0; none on the diagonal."""
        self._names, self._cells = tuple(names), dict(cells)
        if self._current not in self._cells:
            self._current = None
        self._hovered = None
        self._arrange()

    def cell_at(self, place: QPoint) -> tuple[int, int] | None:
        """Row and column of the cell at a point of the viewport, None outside of cells."""
        x = place.x() - self._left
        y = place.y() - self._top
        if x < 0 or y < 0:
            return None
        column = int((x + self.horizontalScrollBar().value()) // self._cell.width())
        row = int((y + self.verticalScrollBar().value()) // self._cell.height())
        return (row, column) if (row, column) in self._cells else None

    def cell_area(self, row: int, column: int) -> QRectF:
        """The rectangle of a cell in the viewport."""
        return QRectF(
            self._left + column * self._cell.width() - self.horizontalScrollBar().value(),
            self._top + row * self._cell.height() - self.verticalScrollBar().value(),
            self._cell.width(),
            self._cell.height(),
        )

    def choose(self, row: int, column: int) -> None:
        """Choose a cell, scroll to it, and emit `chosen`."""
        if (row, column) not in self._cells:
            return
        before, self._current = self._current, (row, column)
        self._reveal(row, column)
        self.setAccessibleDescription(self._cells[row, column].sentence)
        self._update_names_and(before, self._current)
        self.chosen.emit(row, column)

    def sizeHint(self) -> QSize:
        return QSize(720, 360)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the visible cells that are to be updated, then the names, which stay."""
        painter, updated = QPainter(self.viewport()), event.region()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        width, height = self.viewport().width(), self.viewport().height()
        rows = self._visible_cells(self.verticalScrollBar().value(), self._cell.height(), height - self._top)
        columns = self._visible_cells(self.horizontalScrollBar().value(), self._cell.width(), width - self._left)
        painter.setClipRect(QRectF(self._left, self._top, width, height))
        for row in rows:
            top = self.cell_area(row, 0).top()
            if not updated.intersects(QRectF(self._left, top, width, self._cell.height()).toAlignedRect()):
                continue
            for column in columns:
                area = self.cell_area(row, column)
                if not updated.intersects(area.toAlignedRect()):
                    continue
                cell = self._cells.get((row, column))
                if cell is None:
                    self._painter.none(painter, area)
                else:
                    self._painter.cell(painter, area, cell)
        if self._current is not None:
            self._painter.current(painter, self.cell_area(*self._current), focused=self.hasFocus())
        marked = self._hovered or self._current or (-1, -1)
        painter.setClipRect(QRectF(0, self._top, width, height))
        for row in rows:
            area = QRectF(0, self.cell_area(row, 0).top(), self._left - _EDGE, self._cell.height())
            self._painter.row_name(painter, area, self._names[row], strong=row == marked[0])
        painter.setClipRect(QRectF(self._left, 0, width, height))
        for column in columns:
            area = QRectF(self.cell_area(0, column).left(), 0, self._cell.width(), self._top - _BELOW_NAMES)
            self._painter.column_name(
                painter, area, self._names[column], strong=column == marked[1], slanted=self._slanted
            )
        painter.end()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        found = self.cell_at(event.position().toPoint())
        if found is not None and event.button() is Qt.MouseButton.LeftButton:
            self.choose(*found)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._hover(self.cell_at(event.position().toPoint()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """The arrow keys move from cell to cell, skipping the diagonal."""
        step = _STEPS.get(Qt.Key(event.key()))
        if step is None:
            super().keyPressEvent(event)
            return
        row, column = self._current or (-step[0], -step[1])
        row, column = row + step[0], column + step[1]
        while 0 <= row < len(self._names) and 0 <= column < len(self._names):
            if (row, column) in self._cells:
                self.choose(row, column)
                return
            row, column = row + step[0], column + step[1]

    def viewportEvent(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            found = self.cell_at(event.pos())
            text = "" if found is None else self._cells[found].sentence
            QToolTip.showText(event.globalPos(), plain_tooltip(text), self)
            return True
        if event.type() == QEvent.Type.Leave:
            self._hover(None)
        return super().viewportEvent(event)

    @property
    def _slanted(self) -> bool:
        return self._cell.width() < self._painter.name_width(self._names) + 4

    def _hover(self, found: tuple[int, int] | None) -> None:
        if found != self._hovered:
            self._hovered = found
            self._update_names_and()

    def _update_names_and(self, *cells: tuple[int, int] | None) -> None:
        """Paint all names again, whose weight follows the cell that is pointed to, and of the cells only these.

        To paint all cells of 40 States takes 40 ms.
        """
        seen = self.viewport().rect()
        updated = QRegion(0, 0, seen.width(), math.ceil(self._top))
        updated |= QRegion(0, 0, math.ceil(self._left), seen.height())
        for cell in cells:
            if cell is not None:
                updated |= QRegion(self.cell_area(*cell).toAlignedRect())
        self.viewport().update(updated)

    def _arrange(self) -> None:
        """Make cells as wide as possible; scroll bars if even the smallest do not fit."""
        count = len(self._names)
        widest = self._painter.name_width(self._names)
        self._left = min(widest, _MOST_NAME) + 2 * _EDGE
        room = (self.viewport().width() - self._left) / max(count, 1)
        if room >= WIDE_CELL.width():
            self._cell = QSize(min(int(room), WIDEST_CELL), WIDE_CELL.height())
        else:
            side = max(LEAST_CELL, min(int(room), SQUARE_CELL))
            self._cell = QSize(side, side)
        named, beyond = min(widest, _MOST_NAME), 0.0
        self._top = _BELOW_NAMES + self._painter.line_height + 4
        if self._slanted:
            self._top = _BELOW_NAMES + self._painter.slant_height(named)
            beyond = self._painter.slant_beyond(named)
        for bar, whole, seen, step in (
            (self.horizontalScrollBar(), self._cell.width() * count + beyond, self.viewport().width() - self._left, 3),
            (self.verticalScrollBar(), self._cell.height() * count, self.viewport().height() - self._top, 3),
        ):
            bar.setRange(0, max(0, math.ceil(whole - seen)))
            bar.setPageStep(max(1, int(seen)))
            bar.setSingleStep(LEAST_CELL * step)
        self.viewport().update()

    def _reveal(self, row: int, column: int) -> None:
        for bar, begin, length, seen in (
            (
                self.horizontalScrollBar(),
                column * self._cell.width(),
                self._cell.width(),
                self.viewport().width() - self._left,
            ),
            (
                self.verticalScrollBar(),
                row * self._cell.height(),
                self._cell.height(),
                self.viewport().height() - self._top,
            ),
        ):
            if begin < bar.value():
                bar.setValue(begin)
            elif begin + length > bar.value() + seen:
                bar.setValue(math.ceil(begin + length - seen))

    def _visible_cells(self, scrolled: int, size: int, room: float) -> range:
        return range(scrolled // size, min(len(self._names), math.ceil((scrolled + max(room, 0)) / size)))

    def _recolour(self) -> None:
        self._painter.reset_colours()
        self.viewport().update()
