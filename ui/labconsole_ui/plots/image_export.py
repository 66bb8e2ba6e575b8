"""A plot as a picture: title and legend over the canvas, as SVG or as an image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QBuffer, QIODevice, QPointF, QRectF, QSizeF
from PySide6.QtGui import QFontMetricsF, QPainter, QPixmap
from PySide6.QtSvg import QSvgGenerator

from labconsole_ui.plots.canvas import Canvas
from labconsole_ui.theme.theme import FontRole, Theme

MARGIN = 12.0
SWATCH = 10.0
GAP = 18.0

Entry = tuple[str, int]
"""A curve's title, and the index of its colour."""


@dataclass(frozen=True)
class PlotPicture:
    """The content of a picture: the visible canvas, with title and legend, in the theme's colours."""

    title: str
    canvas: Canvas
    legend: Sequence[Entry]
    theme: Theme

    def svg(self) -> bytes:
        """Vectors and text."""
        buffer = QBuffer()
        buffer.open(QIODevice.OpenModeFlag.WriteOnly)
        # SVG Tiny, the default, knows no clipping: curves would run out of a zoomed plot.
        generator = QSvgGenerator(QSvgGenerator.SvgVersion.Svg11)
        generator.setOutputDevice(buffer)
        generator.setResolution(self.canvas.logicalDpiX())
        generator.setSize(self._size().toSize())
        generator.setViewBox(QRectF(QPointF(0, 0), self._size()))
        generator.setTitle(self.title)
        painter = QPainter(generator)
        self._paint(painter)
        painter.end()
        return bytes(buffer.data().data())

    def pixmap(self, scale: float) -> QPixmap:
        """An image at `scale` times the resolution of a common screen."""
        pixmap = QPixmap((self._size() * scale).toSize())
        pixmap.setDevicePixelRatio(scale)
        painter = QPainter(pixmap)
        self._paint(painter)
        painter.end()
        return pixmap

    def _paint(self, painter: QPainter) -> None:
        theme, plot = self.theme, self._plot()
        places, legend_height = self._placed()
        painter.fillRect(QRectF(QPointF(0, 0), self._size()), theme.colour("base"))
        painter.translate(MARGIN, MARGIN)
        painter.setPen(theme.colour("text"))
        painter.setFont(theme.font(FontRole.STRONG))
        painter.drawText(QPointF(0, painter.fontMetrics().ascent()), self.title)
        painter.setFont(theme.font(FontRole.CAPTION))
        ascent = QFontMetricsF(painter.font()).ascent()
        for (text, colour), place in zip(self.legend, places, strict=True):
            at = place + QPointF(0, self._head())
            theme.paint_swatch(painter, QRectF(at.x(), at.y() + ascent / 2, SWATCH, 4), colour)
            painter.drawText(at + QPointF(SWATCH + 5, ascent), text)
        self.canvas.scene().render(painter, plot.translated(0, self._head() + legend_height), plot)

    def _plot(self) -> QRectF:
        return QRectF(self.canvas.viewport().rect())

    def _head(self) -> float:
        return QFontMetricsF(self.theme.font(FontRole.STRONG)).height() + 8

    def _size(self) -> QSizeF:
        _, legend_height = self._placed()
        plot = self._plot()
        return QSizeF(plot.width() + 2 * MARGIN, self._head() + legend_height + plot.height() + 2 * MARGIN)

    def _placed(self) -> tuple[list[QPointF], float]:
        """The positions of the legend entries, line by line, and their height together."""
        metrics = QFontMetricsF(self.theme.font(FontRole.CAPTION))
        places, x, y = [], 0.0, 0.0
        for text, _ in self.legend:
            wide = SWATCH + 5 + metrics.horizontalAdvance(text)
            if x and x + wide > self._plot().width():
                x, y = 0.0, y + metrics.height() + 2
            places.append(QPointF(x, y))
            x += wide + GAP
        return places, y + metrics.height() + 8 if places else 0.0
