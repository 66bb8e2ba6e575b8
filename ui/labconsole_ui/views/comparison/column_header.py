"""The headings of the columns: colour of their curves, title, number of repeats, and badges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from PySide6.QtCore import QCoreApplication, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPen
from PySide6.QtWidgets import QHeaderView, QWidget

from labconsole.analysis.change import origin_words
from labconsole.analysis.comparison import Comparison, RunGroup, counterpart
from labconsole.analysis.published_figures import PublishedColumn
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import wrap


@dataclass(frozen=True)
class Heading:
    """A column's heading; `badges` are (text, name of its colour)."""

    title: str
    count: str
    badges: tuple[tuple[str, str], ...] = ()
    help: str = ""
    published: bool = False
    colour: int | None = None
    """Index of the colour that the column has in plots."""
    short: str = ""
    """The title in a narrow column, where the column to the left shows the rest; empty: unchanged."""

    @property
    def text(self) -> str:
        """Title, count and badges on one line: `Test 1: plain, 5 repeats, baseline`."""
        return ", ".join(part for part in (self.title, self.count, *(badge for badge, _ in self.badges)) if part)


def heading_of(comparison: Comparison, index: int) -> Heading:
    """The heading of a column of the comparison."""
    column = comparison.columns[index]
    baseline = ((_tr("baseline"), "link"),) if index == comparison.baseline else ()
    if not isinstance(column, RunGroup):
        badges = (*baseline, (_tr("published"), "warning"))
        about = f"{column.title}\n{column.reference}"
        return Heading(column.title, "", badges, about, True, index, _short(comparison, index))
    first, repeats = column.runs[0], column.repeats
    count = _tr("run {0}").format(first.id) if len(column.runs) == 1 else _tr("{0} repeats").format(repeats)
    runs = ", ".join(str(run.id) for run in column.runs)
    about = _tr("Runs {0} of {1}").format(runs, first.campaign)
    badges = baseline if column.measured else (*baseline, (origin_words(column.origins), "warning"))
    return Heading(column.title, "" if column.title.endswith(count) else count, badges, about, colour=index)


def _short(comparison: Comparison, index: int) -> str:
    """The title of its table, for the only published column at the right of its scenario's."""
    columns = comparison.columns
    column, ours = columns[index], counterpart(columns, index)
    if not isinstance(column, PublishedColumn) or ours is None:
        return ""
    alone = sum(counterpart(columns, place) == ours for place in range(len(columns))) == 1
    return column.table_title if alone else ""


def _tr(text: str) -> str:
    return QCoreApplication.translate("SideBySide", text)


PADDING = 7
SWATCH = 10
BADGE_PADDING, BADGE_GAP = 6, 4
MAX_LINES, MAX_NARROW_LINES = 2, 5
MIN_WIDTH, MAX_WIDTH = 90, 260


class Density(IntEnum):
    """The density of columns."""

    WIDE = 0
    COMPACT = 1
    DENSE = 2


class ColumnHeader(QHeaderView):
    """Paints `headings` over the columns from the second one on.

    Where columns must be narrow (`density`) titles have more lines, and where they must be narrower still, they are
    short, and badges are below the number of runs.
    """

    density = Density.WIDE

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._theme = theme
        self._headings: tuple[Heading, ...] = ()
        self.setSectionsClickable(True)
        theme.changed.connect(self._repaint)

    def set_headings(self, headings: Sequence[Heading]) -> None:
        """Replace the headings."""
        self._headings = tuple(headings)
        self._repaint()

    def fit(self) -> None:
        """Set the height that the columns' widths need."""
        caption = self._caption()
        shown = [
            (heading, self.sectionSize(index + 1) - 2 * PADDING)
            for index, heading in enumerate(self._headings)
            if index + 1 < self.count()
        ]
        titles = [len(self._lines(heading, width, self.density)) for heading, width in shown]
        below = [len(_below_title(heading, width, caption)) for heading, width in shown]
        line = QFontMetrics(self._font(published=False)).height()
        self.setFixedHeight(max(titles, default=1) * line + max(below, default=1) * _pitch(caption) + 16)

    def least_width(self, index: int, density: Density) -> int:
        """The least width of the column for its badges, and its title on `MAX_LINES` lines (narrow: more)."""
        heading = self._headings[index]
        parts = [_width(part, self._caption()) for part in _parts(heading)]
        width = max(max(parts, default=0) if density is Density.DENSE else sum(parts), MIN_WIDTH - 2 * PADDING)
        while width < MAX_WIDTH and not self._fits(heading, width, density):
            width += 5
        return width + 2 * PADDING

    def paintSection(self, painter: QPainter, rect: QRect, logicalIndex: int) -> None:  # noqa: N802, N803 - Qt's
        """Paint the title, with count and badges below."""
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
        """The height that was set."""
        return QSize(super().sizeHint().width(), self.height())

    def _paint(self, painter: QPainter, area: QRect, heading: Heading) -> None:
        theme = self._theme
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        font = self._font(published=heading.published)
        title, caption = QFontMetrics(font), self._caption()
        if heading.colour is not None:
            theme.paint_swatch(
                painter, QRectF(area.left(), area.top() + title.height() / 2 - 2, SWATCH, 4), heading.colour
            )
        painter.setFont(font)
        painter.setPen(theme.colour("text"))
        inset = _inset(heading)
        text = "\n".join(self._lines(heading, area.width(), self.density))
        painter.drawText(area.adjusted(inset, 0, 0, 0), int(Qt.AlignmentFlag.AlignLeft.value), text)
        painter.setFont(theme.font(FontRole.CAPTION))
        top = area.bottom() - caption.height() + 1
        for line in reversed(_below_title(heading, area.width(), caption)):
            self._paint_line(painter, QRect(area.left(), top, area.width(), caption.height()), line)
            top -= _pitch(caption)

    def _paint_line(self, painter: QPainter, line: QRect, parts: Sequence[tuple[str, str]]) -> None:
        """The number of runs at the left, badges at the right."""
        right = line.right() + 1
        for text, colour in reversed(parts):
            if not colour:
                painter.setPen(self._theme.colour("muted"))
                painter.drawText(line, int(Qt.AlignmentFlag.AlignLeft.value), text)
                continue
            width = _width((text, colour), self._caption()) - BADGE_GAP
            pill = QRectF(right - width, line.top() - 1, width, line.height() + 2)
            self._paint_badge(painter, pill, text, self._theme.colour(colour))
            right -= width + BADGE_GAP

    def _paint_badge(self, painter: QPainter, pill: QRectF, text: str, colour: QColor) -> None:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(colour, 1))
        painter.drawRoundedRect(pill, pill.height() / 2, pill.height() / 2)
        painter.drawText(pill, int(Qt.AlignmentFlag.AlignCenter.value), text)

    def _font(self, *, published: bool) -> QFont:
        font = self._theme.font(FontRole.STRONG)
        font.setItalic(published)
        return font

    def _caption(self) -> QFontMetrics:
        return QFontMetrics(self._theme.font(FontRole.CAPTION))

    def _lines(self, heading: Heading, width: int, density: Density) -> list[str]:
        """The title's lines for `width` px; a word that is wider has its own line."""
        metrics = QFontMetrics(self._font(published=heading.published))
        return wrap(_title(heading, density), width - _inset(heading), metrics).split("\n")

    def _fits(self, heading: Heading, width: int, density: Density) -> bool:
        """Whether the title has at most as many lines as it may have, none of them wider than `width` px."""
        lines = self._lines(heading, width, density)
        metrics = QFontMetrics(self._font(published=heading.published))
        widest = max(map(metrics.horizontalAdvance, lines)) + _inset(heading)
        return len(lines) <= (MAX_NARROW_LINES if density else MAX_LINES) and widest <= width

    def _repaint(self) -> None:
        self.viewport().update()


def _title(heading: Heading, density: Density) -> str:
    return heading.short if density is Density.DENSE and heading.short else heading.title


def _inset(heading: Heading) -> int:
    """Room for the colour at the left of the title."""
    return SWATCH + 6 if heading.colour is not None else 0


def _parts(heading: Heading) -> list[tuple[str, str]]:
    """The parts below the title, as (text, name of the badge's colour); the number of runs has none."""
    return [*([(heading.count, "")] if heading.count else []), *heading.badges]


def _width(part: tuple[str, str], caption: QFontMetrics) -> int:
    text, colour = part
    return caption.horizontalAdvance(text) + (2 * BADGE_PADDING + BADGE_GAP if colour else 8)


def _below_title(heading: Heading, width: int, caption: QFontMetrics) -> list[list[tuple[str, str]]]:
    """The lines below the title in a column of `width` px: one line, or a line for each part."""
    parts = _parts(heading)
    return [parts] if sum(_width(part, caption) for part in parts) <= width else [[part] for part in parts]


def _pitch(caption: QFontMetrics) -> int:
    """The distance of lines of badges."""
    return caption.height() + 4
