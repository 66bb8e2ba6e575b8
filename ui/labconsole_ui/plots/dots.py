"""Dots on a canvas: points that no line makes visible. Drawn directly: pyqtgraph's scatter plot costs 50 ms a frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyqtgraph as pg  # type: ignore[import-untyped]
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter


class Dot(NamedTuple):
    """A point in the plot's own numbers, its diameter (px) and its colour."""

    x: float
    y: float
    size: float
    colour: QColor


class Dots(pg.GraphicsObject):  # type: ignore[misc]
    """Shows dots, later ones over those before."""

    def __init__(self) -> None:
        super().__init__()
        self.dots: tuple[Dot, ...] = ()
        self.hide()

    def set_dots(self, dots: Sequence[Dot]) -> None:
        """Show these instead of the ones before."""
        self.dots = tuple(dots)
        self.setVisible(bool(dots))
        self.update()

    def boundingRect(self) -> QRectF:  # noqa: N802 - Qt's name
        """All that is seen."""
        rectangle = self.viewRect()
        return QRectF() if rectangle is None else QRectF(rectangle)

    def viewRangeChanged(self) -> None:  # noqa: N802 - pyqtgraph's
        """Other numbers are seen."""
        self.prepareGeometryChange()

    def paint(self, p: QPainter, opt: Any, widget: Any) -> None:
        """Draw them as circles, whatever the axes' scales are."""
        places = p.worldTransform()
        p.resetTransform()
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        p.setPen(Qt.PenStyle.NoPen)
        for dot in self.dots:
            p.setBrush(dot.colour)
            p.drawEllipse(places.map(QPointF(dot.x, dot.y)), dot.size / 2, dot.size / 2)
        p.setWorldTransform(places)
