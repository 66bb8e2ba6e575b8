"""Painting of the comparison's cells: titles with remarks, values with their changes below."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from labconsole_ui.tables.record_table import RecordModel
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.views.comparison.comparison_rows import CellText, Row
from labconsole_ui.widgets.labels import wrap

Index = QModelIndex | QPersistentModelIndex
PADDING = 7
TITLE_PADDING = 7
"""The indent of texts that Qt paints."""
GAP = 8
ABOVE = 3
"""Free height (px) above and below the lines of a cell."""
_LEFT = int((Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter).value)
_RIGHT = int((Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter).value)
_GROUNDS = {"good": "good_ground", "bad": "bad_ground"}


class RowDelegate(QStyledItemDelegate):
    """Common parts of titles and values: fonts with figures of equal width, background and selection."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.theme = theme
        self._fonts = {role: _table_font(theme, role) for role in FontRole}
        self._heights = (self.metrics(FontRole.STRONG).height(), self.metrics(FontRole.CAPTION).height())

    def font(self, role: FontRole) -> QFont:
        """Figures of equal width, as in all tables; created once, since each cell is painted with two of them."""
        return self._fonts[role]

    def metrics(self, role: FontRole) -> QFontMetrics:
        """The measures of `font`."""
        return QFontMetrics(self._fonts[role])

    def line_heights(self) -> tuple[int, int]:
        """Heights of the first line of a cell and of the lines below."""
        return self._heights

    def row(self, index: Index) -> Row:
        """The row that is painted."""
        model = index.model()
        assert isinstance(model, RecordModel)
        row: Row = model.record(index.row())
        return row

    def paint_ground(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """The cell without its text."""
        self.initStyleOption(option, index)
        option.text = ""
        option.widget.style().drawControl(QStyle.ControlElement.CE_ItemViewItem, option, painter, option.widget)


class TitleDelegate(RowDelegate):
    """The title of a row with an arrow to better values and smaller remarks below; wrapped, never cut."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row = self.row(index)
        if not row.detailed:
            super().paint(painter, option, index)
            return
        self.paint_ground(painter, option, index)
        area = QRect(option.rect).adjusted(TITLE_PADDING, ABOVE, -TITLE_PADDING, -ABOVE)
        first, further = self.line_heights()
        painter.save()
        painter.setFont(self.font(FontRole.BODY))
        painter.setPen(QColor(self.theme.colour("text")))
        for line in self._title_lines(row, area.width()):
            painter.drawText(QRect(area.left(), area.top(), area.width(), first), _LEFT, line)
            area.setTop(area.top() + first)
        painter.setFont(self.font(FontRole.CAPTION))
        painter.setPen(QColor(self.theme.colour("muted")))
        for line in self._about_lines(row, area.width()):
            painter.drawText(QRect(area.left(), area.top(), area.width(), further), _LEFT, line)
            area.setTop(area.top() + further)
        painter.restore()

    def height(self, row: Row, width: int) -> int:
        """The height of the row in a column `width` px wide; 0 for a plain line."""
        if not row.detailed:
            return 0
        first, further = self.line_heights()
        inner = width - 2 * TITLE_PADDING
        return 2 * ABOVE + first * len(self._title_lines(row, inner)) + further * len(self._about_lines(row, inner))

    def _title_lines(self, row: Row, width: int) -> list[str]:
        return wrap(titled(row), width, self.metrics(FontRole.BODY)).split("\n")

    def _about_lines(self, row: Row, width: int) -> list[str]:
        return wrap(row.about, width, self.metrics(FontRole.CAPTION)).split("\n") if row.about else []


def titled(row: Row) -> str:
    """The row's title with the arrow to what is better, which stays on the line of the last word."""
    return f"{row.title}\N{NO-BREAK SPACE}{row.arrow}" if row.arrow else row.title


class ValueDelegate(RowDelegate):
    """A value with its change below; a judged one has a tinted background, a colour and a word next to it.

    Where columns must be narrow (`compact`) the interval of a change and the word have lines of their own.
    """

    compact = False

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row = self.row(index)
        if row.heading:
            super().paint(painter, option, index)
            return
        cell = self.cell(index)
        self.paint_ground(painter, option, index)
        if cell is None:
            return
        painter.save()
        if cell.tone:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(self.theme.colour(_GROUNDS[cell.tone])))
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.drawRoundedRect(QRect(option.rect).adjusted(3, 2, -3, -2), 4, 4)
        area = QRect(option.rect).adjusted(PADDING, 0, -PADDING, 0)
        colour = QColor(self.theme.colour(cell.tone or "muted"))
        if row.detailed:
            self._paint_detailed(painter, area, cell, colour)
        else:
            painter.setFont(self.font(FontRole.TABLE))
            painter.setPen(QColor(self.theme.colour("text")))
            elided = painter.fontMetrics().elidedText(cell.value, Qt.TextElideMode.ElideRight, area.width())
            painter.drawText(area, _RIGHT, elided)
        painter.restore()

    def cell(self, index: Index) -> CellText | None:
        """The texts of a cell."""
        cells, place = self.row(index).cells, index.column() - 1
        return cells[place] if 0 <= place < len(cells) else None

    def least_width(self, rows: Sequence[Row], column: int, *, compact: bool) -> int:
        """The least width of the column for its values and changes; long parameters are elided."""
        strong, caption = self.metrics(FontRole.STRONG), self.metrics(FontRole.CAPTION)
        widths = [0]
        for row in rows:
            if row.detailed:
                cell = row.cells[column]
                mark = caption.horizontalAdvance(cell.mark) + GAP if cell.mark and not compact else 0
                widths += [strong.horizontalAdvance(cell.value) + mark]
                widths += [caption.horizontalAdvance(line) for line in _lines(cell, compact=compact)]
        return max(widths) + 2 * PADDING + 2

    def height(self, row: Row) -> int:
        """The height of a detailed row."""
        first, further = self.line_heights()
        below = max((len(_lines(cell, compact=self.compact)) for cell in row.cells), default=1)
        return first + further * below + 2 * ABOVE

    def _paint_detailed(self, painter: QPainter, area: QRect, cell: CellText, colour: QColor) -> None:
        first, further = self.line_heights()
        top = QRect(area.left(), area.top() + ABOVE, area.width(), first)
        painter.setFont(self.font(FontRole.STRONG))
        painter.setPen(QColor(self.theme.colour("muted" if cell.grey else "text")))
        painter.drawText(top, _RIGHT, cell.value)
        painter.setFont(self.font(FontRole.CAPTION))
        painter.setPen(colour)
        painter.drawText(top, _LEFT, "" if self.compact else cell.mark)
        for place, line in enumerate(_lines(cell, compact=self.compact)):
            below = QRect(area.left(), top.top() + first + place * further, area.width(), further)
            painter.drawText(below, _RIGHT, line)


def _lines(cell: CellText, *, compact: bool) -> list[str]:
    """The lines below a value; in a narrow column with the word of its judgement."""
    if not compact:
        return cell.change.split("\n")
    return [*cell.change.replace(" [", "\n[").split("\n"), *([cell.mark] if cell.mark else [])]


def _table_font(theme: Theme, role: FontRole) -> QFont:
    font = theme.font(role)
    font.setFeature(QFont.Tag("tnum"), 1)
    return font
