"""A plot as SVG: title and legend over the canvas, as vectors and text."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QBuffer, QIODevice, QPointF, QRectF, QSizeF
from PySide6.QtGui import QColor, QFontMetricsF, QPainter
from PySide6.QtSvg import QSvgGenerator

from labconsole_ui.plots.canvas import Canvas
from labconsole_ui.theme import FontRole, Theme

MARGIN = 12.0
SWATCH = 10.0
GAP = 18.0

Entry = tuple[str, QColor]


def svg_of(title: str, canvas: Canvas, legend: Sequence[Entry], theme: Theme) -> bytes:
    """The canvas as it is seen, with title and legend, in the theme's colours."""
    plot = QRectF(canvas.viewport().rect())
    places, legend_height = _placed(legend, plot.width(), theme)
    head = QFontMetricsF(theme.font(FontRole.STRONG)).height() + 8
    size = QSizeF(plot.width() + 2 * MARGIN, head + legend_height + plot.height() + 2 * MARGIN)
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    # SVG Tiny, the default, knows no clipping: curves would run out of a zoomed plot.
    generator = QSvgGenerator(QSvgGenerator.SvgVersion.Svg11)
    generator.setOutputDevice(buffer)
    generator.setResolution(canvas.logicalDpiX())
    generator.setSize(size.toSize())
    generator.setViewBox(QRectF(QPointF(0, 0), size))
    generator.setTitle(title)
    painter = QPainter(generator)
    painter.fillRect(QRectF(QPointF(0, 0), size), theme.colour("base"))
    painter.translate(MARGIN, MARGIN)
    painter.setPen(theme.colour("text"))
    painter.setFont(theme.font(FontRole.STRONG))
    painter.drawText(QPointF(0, painter.fontMetrics().ascent()), title)
    painter.setFont(theme.font(FontRole.CAPTION))
    baseline = QFontMetricsF(painter.font()).ascent()
    for (text, colour), place in zip(legend, places, strict=True):
        at = place + QPointF(0, head)
        painter.fillRect(QRectF(at.x(), at.y() + baseline / 2 - 1, SWATCH, 4), colour)
        painter.drawText(at + QPointF(SWATCH + 5, baseline), text)
    canvas.scene().render(painter, plot.translated(0, head + legend_height), plot)
    painter.end()
    return bytes(buffer.data().data())


def _placed(legend: Sequence[Entry], width: float, theme: Theme) -> tuple[list[QPointF], float]:
    """Where the entries stand, line by line, and how high they are together."""
    metrics = QFontMetricsF(theme.font(FontRole.CAPTION))
    places, x, y = [], 0.0, 0.0
    for text, _ in legend:
        wide = SWATCH + 5 + metrics.horizontalAdvance(text)
        if x and x + wide > width:
            x, y = 0.0, y + metrics.height() + 2
        places.append(QPointF(x, y))
        x += wide + GAP
    return places, y + metrics.height() + 8 if places else 0.0
