"""The headings of the columns: colour of their curves, title, number of repeats, and badges for what they are."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPen
from PySide6.QtWidgets import QHeaderView, QWidget

from labconsole_ui.sidebyside.headings import Heading
from labconsole_ui.sidebyside.wrapping import wrap
from labconsole_ui.theme import FontRole, Theme

PADDING = 7
SWATCH = 10
BADGE_PADDING = 6
MOST_LINES, MOST_NARROW_LINES = 2, 5
LEAST_WIDTH, MOST_WIDTH = 90, 260


class ColumnHeader(QHeaderView):
    """Paints `headings` over the columns from the second one on; the first column has no heading."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._theme = theme
        self._headings: tuple[Heading, ...] = ()
        self.setSectionsClickable(True)
        theme.changed.connect(self._repaint)

    def set_headings(self, headings: Sequence[Heading]) -> None:
        """Show these."""
        self._headings = tuple(headings)
        self._repaint()

    def fit(self) -> None:
        """As high as the columns' widths make it."""
        title, caption = self._metrics()
        lines = [
            _lines(heading, self.sectionSize(index + 1), title)
            for index, heading in enumerate(self._headings)
            if index + 1 < self.count()
        ]
        self.setFixedHeight(max(lines, default=1) * title.height() + caption.height() + 18)

    def least_width(self, index: int, *, compact: bool) -> int:
        """So wide must the column be for its title on `MOST_LINES` lines (more where it is narrow), and its badges."""
        most = MOST_NARROW_LINES if compact else MOST_LINES
        heading = self._headings[index]
        title, caption = self._metrics()
        badges = sum(caption.horizontalAdvance(text) + 2 * BADGE_PADDING + 4 for text, _ in heading.badges)
        width = max(caption.horizontalAdvance(heading.count) + 8 + badges + 2 * PADDING, LEAST_WIDTH)
        while width < MOST_WIDTH and _lines(heading, width, title) > most:
            width += 10
        return width

    def paintSection(self, painter: QPainter, rect: QRect, logicalIndex: int) -> None:  # noqa: N802, N803 - Qt's
        """Title, and beneath it count and badges."""
        theme = self._theme
        index = logicalIndex - 1
        heading = self._headings[index] if 0 <= index < len(self._headings) else None
        painter.save()
        ground = theme.colour("info_ground" if heading is not None and heading.published else "base")
        painter.fillRect(rect, ground)
        painter.setPen(QPen(theme.colour("border"), 1))
        painter.drawLine(rect.bottomLeft(), rect.bottomRight())
        if heading is not None:
            self._paint(painter, rect.adjusted(PADDING, 6, -PADDING, -6), heading)
        painter.restore()

    def sizeHint(self) -> QSize:
        """As high as was fitted."""
        return QSize(super().sizeHint().width(), self.height())

    def _paint(self, painter: QPainter, area: QRect, heading: Heading) -> None:
        theme = self._theme
        title, caption = self._metrics()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        if heading.colour is not None:
            painter.setBrush(theme.series_colour(heading.colour))
            painter.drawRoundedRect(QRectF(area.left(), area.top() + title.height() / 2 - 2, SWATCH, 4), 2, 2)
        font = theme.font(FontRole.STRONG)
        font.setItalic(heading.published)
        painter.setFont(font)
        painter.setPen(theme.colour("text"))
        inset = _inset(heading)
        text = wrap(heading.title, area.width() - inset, title)
        painter.drawText(area.adjusted(inset, 0, 0, 0), int(Qt.AlignmentFlag.AlignLeft.value), text)
        painter.setFont(theme.font(FontRole.CAPTION))
        line = QRect(area.left(), area.bottom() - caption.height() + 1, area.width(), caption.height())
        painter.setPen(theme.colour("muted"))
        painter.drawText(line, int(Qt.AlignmentFlag.AlignLeft.value), heading.count)
        right = line.right() + 1
        for badge, colour in reversed(heading.badges):
            width = caption.horizontalAdvance(badge) + 2 * BADGE_PADDING
            pill = QRectF(right - width, line.top() - 1, width, line.height() + 2)
            self._paint_badge(painter, pill, badge, theme.colour(colour))
            right -= width + 4

    def _paint_badge(self, painter: QPainter, pill: QRectF, text: str, colour: QColor) -> None:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(colour, 1))
        painter.drawRoundedRect(pill, pill.height() / 2, pill.height() / 2)
        painter.drawText(pill, int(Qt.AlignmentFlag.AlignCenter.value), text)

    def _metrics(self) -> tuple[QFontMetrics, QFontMetrics]:
        return QFontMetrics(self._theme.font(FontRole.STRONG)), QFontMetrics(self._theme.font(FontRole.CAPTION))

    def _repaint(self) -> None:
        self.viewport().update()


def _inset(heading: Heading) -> int:
    """Room for the colour at the left of the title."""
    return SWATCH + 6 if heading.colour is not None else 0


def _lines(heading: Heading, width: int, metrics: QFontMetrics) -> int:
    """Number of lines of the title in a column `width` px wide."""
    return wrap(heading.title, width - 2 * PADDING - _inset(heading), metrics).count("\n") + 1
