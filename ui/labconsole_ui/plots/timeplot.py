"""A plot over time: curves with a legend, pan and zoom, crosshair with values, image export, keyboard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt, QTimer
from PySide6.QtGui import (
    QContextMenuEvent,
    QFocusEvent,
    QGuiApplication,
    QHideEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import (
    QBoxLayout,
    QFileDialog,
    QFrame,
    QLabel,
    QMenu,
    QMessageBox,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from labconsole_ui.plots.canvas import Canvas
from labconsole_ui.plots.legend import Legend
from labconsole_ui.plots.reduce import CurveData
from labconsole_ui.plots.units import axis_unit
from labconsole_ui.style import RADIUS
from labconsole_ui.theme import FontRole, Theme

IMAGE_SCALE = 2.0
PAN_STEP = 0.1
ZOOM_STEP = 0.8
HEADROOM = 1.06
LEAST_HEIGHT = 140
NARROW = 300
"""Below this width (px) the legend stands beneath the title."""


@dataclass(frozen=True)
class PlotCurve:
    """A curve: `t_s` in seconds since T0 and never falling, `values` in the plot's unit, NaN for gaps."""

    title: str
    t_s: NDArray[np.float64]
    values: NDArray[np.float64]


class TimePlot(QFrame):
    """Curves of one unit over time. Curves keep colour and visibility by title when they are set again."""

    def __init__(self, title: str, unit: str, theme: Theme, *, empty_text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._unit = axis_unit(unit)
        self._data: dict[str, CurveData] = {}
        self._hidden: set[str] = set()
        self._whole_x = True
        self._whole_y = True
        self._crosshair_at: float | None = None
        self.setProperty("card", True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleDescription(
            self.tr("Arrow keys move along time, plus and minus zoom, Home shows everything, Shift+arrow reads values.")
        )
        self.setMinimumHeight(LEAST_HEIGHT)
        self.canvas = Canvas(self._unit, theme)
        self.canvas.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
        self.legend = Legend(theme, self)
        self._title = QLabel(self)
        self._title.setWordWrap(True)
        self.set_title(title)
        self._empty = QLabel(empty_text, self.canvas)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._empty.setProperty("muted", True)
        self._empty.setWordWrap(True)
        self._readout = QLabel(self.canvas)
        self._readout.setTextFormat(Qt.TextFormat.RichText)
        self._readout.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._readout.hide()
        self._arrange()
        self._due = QTimer(self)
        self._due.setSingleShot(True)
        self._due.setInterval(0)
        self._due.timeout.connect(self.redraw)
        self.legend.toggled.connect(self._toggle)
        self.canvas.view.moved.connect(self._moved)
        self.canvas.view.whole_wanted.connect(self.show_whole)
        self.canvas.view.sigResized.connect(self._schedule)
        self.canvas.scene().sigMouseMoved.connect(self._point_at)
        self.canvas.pointer_left.connect(self._hide_crosshair)
        self.canvas.resized.connect(lambda: self._empty.setGeometry(self.canvas.rect()))
        theme.changed.connect(self._apply_theme)
        self._apply_theme()
        self.set_curves(())

    def set_curves(self, curves: Sequence[PlotCurve]) -> None:
        """Show these curves instead of the ones before. Raises ValueError for unequal lengths."""
        self._data = {curve.title: CurveData(curve.t_s, curve.values * self._unit.factor) for curve in curves}
        titles = list(self._data)
        self.legend.set_titles(titles, self._hidden)
        self.legend.setVisible(bool(titles))
        empty = not any(len(data) for data in self._data.values())
        self._empty.setVisible(empty)
        self.canvas.getPlotItem().setVisible(not empty)
        self._schedule()

    def curves(self) -> tuple[PlotCurve, ...]:
        """The curves shown or hidden, in the order of the legend; values in the unit in which they are drawn."""
        return tuple(PlotCurve(title, data.x, data.y) for title, data in self._data.items())

    @property
    def title(self) -> str:
        """What the plot shows."""
        return self._title.text()

    def set_title(self, title: str) -> None:
        """What the plot shows, from now on."""
        self._title.setText(title)
        self.setAccessibleName(title)
        self.canvas.setAccessibleName(self.tr("Drawing area of {0}").format(title))

    def set_unit(self, unit: str) -> None:
        """The unit of the curves that are set from now on."""
        if unit != self._unit.stored:
            self._unit = axis_unit(unit)
            self.canvas.set_unit(self._unit)

    def show_whole(self) -> None:
        """Show all curves from begin to end."""
        self._whole_x = self._whole_y = True
        self._schedule()

    def redraw(self) -> None:
        """Reduce the curves to the part and width that is seen, and draw them."""
        view = self.canvas.view
        if self._whole_x:
            low, high = self._time_range()
            view.setXRange(low, high, padding=0)
        else:
            low, high = view.viewRange()[0]
        bins = max(1, int(view.width()))
        drawn: list[tuple[NDArray[np.float64], NDArray[np.float64], bool]] = []
        top, bottom = 0.0, 0.0
        for title, data in self._data.items():
            if title in self._hidden:
                drawn.append((np.empty(0), np.empty(0), False))
                continue
            x, y = data.reduced(low, high, bins)
            drawn.append((x, y, data.gaps))
            if len(y) and not (data.gaps and np.isnan(y).all()):
                top, bottom = max(top, float(np.nanmax(y))), min(bottom, float(np.nanmin(y)))
        if self._whole_y:
            view.setYRange(bottom * HEADROOM, top * HEADROOM if top > bottom else bottom + 1.0, padding=0)
        self.canvas.draw(drawn)
        self._update_crosshair()

    def image(self) -> QPixmap:
        """The plot with title and legend as an image at twice the screen's resolution."""
        pixmap = QPixmap(self.size() * IMAGE_SCALE)
        pixmap.setDevicePixelRatio(IMAGE_SCALE)
        pixmap.fill(self._theme.colour("base"))
        self.redraw()
        self.render(pixmap)
        return pixmap

    def copy_image(self) -> None:
        """Put the image on the clipboard."""
        QGuiApplication.clipboard().setPixmap(self.image())

    def save_image(self, path: Path) -> bool:
        """Write the image as PNG; False if the file cannot be written."""
        return self.image().save(str(path), "PNG")

    def menu(self) -> QMenu:
        """What can be done with the plot."""
        menu = QMenu(self)
        menu.setAccessibleName(self.tr("Plot actions"))
        menu.addAction(self.tr("Show everything") + "\tHome", self.show_whole)
        menu.addSeparator()
        menu.addAction(self.tr("Copy image") + "\tCtrl+C", self.copy_image)
        menu.addAction(self.tr("Save as PNG ...") + "\tCtrl+S", self._save_dialog)
        return menu

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """The menu, by right click or menu key."""
        menu = self.menu()
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(event.globalPos())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Pan, zoom, read values, copy and save by keyboard."""
        key, modifiers = event.key(), event.modifiers()
        shift = bool(modifiers & Qt.KeyboardModifier.ShiftModifier)
        control = bool(modifiers & Qt.KeyboardModifier.ControlModifier)
        if key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            step = 1 if key == Qt.Key.Key_Right else -1
            self._step_crosshair(step) if shift else self._pan(step * PAN_STEP)
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self._zoom(ZOOM_STEP)
        elif key == Qt.Key.Key_Minus:
            self._zoom(1 / ZOOM_STEP)
        elif key == Qt.Key.Key_Home:
            self.show_whole()
        elif key == Qt.Key.Key_Escape and self._crosshair_at is not None:
            self._hide_crosshair()
        elif control and key == Qt.Key.Key_C:
            self.copy_image()
        elif control and key == Qt.Key.Key_S:
            self._save_dialog()
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Show where the keyboard is."""
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Show where the keyboard is no more."""
        super().focusOutEvent(event)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """The card, with a ring while it has the keyboard."""
        super().paintEvent(event)
        if self.hasFocus():
            painter = QPainter(self)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(self._theme.colour("link"), 2))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), RADIUS + 2, RADIUS + 2)
            painter.end()

    def showEvent(self, event: QShowEvent) -> None:
        """Draw what came while the plot was hidden."""
        super().showEvent(event)
        self._schedule()

    def hideEvent(self, event: QHideEvent) -> None:
        """Nothing is drawn while the plot is hidden."""
        super().hideEvent(event)
        self._due.stop()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the legend where there is room."""
        super().resizeEvent(event)
        narrow, directions = event.size().width() < NARROW, QBoxLayout.Direction
        self._header.setDirection(directions.TopToBottom if narrow else directions.LeftToRight)
        self._header.setSpacing(0 if narrow else 8)

    def _schedule(self) -> None:
        """Draw once with the next turn of the event loop, however much has changed until then."""
        if self.isVisible():
            self._due.start()

    def _arrange(self) -> None:
        self._header = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._header.setSpacing(8)
        self._header.addWidget(self._title)
        self._header.addWidget(self.legend, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(10, 6, 8, 4)
        layout.setSpacing(2)
        layout.addLayout(self._header)
        layout.addWidget(self.canvas, 1)

    def _apply_theme(self) -> None:
        self._title.setFont(self._theme.font(FontRole.STRONG))
        colours = self._theme.colours
        self._readout.setStyleSheet(
            f"background: {colours.base}; color: {colours.text}; border: 1px solid {colours.border};"
            "border-radius: 4px; padding: 4px 6px;"
        )
        self._update_crosshair()

    def _time_range(self) -> tuple[float, float]:
        shown = [data.x for title, data in self._data.items() if len(data) and title not in self._hidden]
        low = min((float(x[0]) for x in shown), default=0.0)
        high = max((float(x[-1]) for x in shown), default=1.0)
        return min(0.0, low), high if high > low else low + 1.0

    def _toggle(self, title: str, shown: bool) -> None:
        self._hidden.discard(title) if shown else self._hidden.add(title)
        self._schedule()

    def _moved(self, axis: int) -> None:
        if axis == 0:
            self._whole_x = False
        else:
            self._whole_y = False
        self._schedule()

    def _pan(self, part: float) -> None:
        low, high = self.canvas.view.viewRange()[0]
        shift = (high - low) * part
        self._set_time(low + shift, high + shift)

    def _zoom(self, factor: float) -> None:
        low, high = self.canvas.view.viewRange()[0]
        middle = self._crosshair_at if self._crosshair_at is not None else (low + high) / 2
        self._set_time(middle - (middle - low) * factor, middle + (high - middle) * factor)

    def _set_time(self, low: float, high: float) -> None:
        self._whole_x = False
        self.canvas.view.setXRange(low, high, padding=0)
        self._schedule()

    def _step_crosshair(self, step: int) -> None:
        low, high = self.canvas.view.viewRange()[0]
        at = self._crosshair_at if self._crosshair_at is not None else (low + high) / 2
        self._crosshair_at = min(high, max(low, at + step * (high - low) / 100))
        self._update_crosshair()

    def _point_at(self, position: QPointF) -> None:
        view = self.canvas.view
        if not view.sceneBoundingRect().contains(position):
            self._hide_crosshair()
            return
        self._crosshair_at = float(view.mapSceneToView(position).x())
        self._update_crosshair()

    def _hide_crosshair(self) -> None:
        self._crosshair_at = None
        self._update_crosshair()

    def readings(self) -> list[tuple[str, str]]:
        """(title, value with unit) of every shown curve at the crosshair."""
        if self._crosshair_at is None:
            return []
        values = [
            (title, data.value_at(self._crosshair_at))
            for title, data in self._data.items()
            if title not in self._hidden
        ]
        return [(title, self._unit.text(value)) for title, value in values if value is not None]

    def _update_crosshair(self) -> None:
        readings = self.readings()
        shown = bool(readings)
        self.canvas.crosshair.setVisible(shown)
        self._readout.setVisible(shown)
        if not shown or self._crosshair_at is None:
            return
        self.canvas.crosshair.setValue(self._crosshair_at)
        colours = [self._theme.series_colour(list(self._data).index(title)).name() for title, _ in readings]
        rows = "".join(
            f"<tr><td style='color:{colour}'>■&nbsp;</td><td>{title}&nbsp;&nbsp;</td>"
            f"<td align='right'><b>{value}</b></td></tr>"
            for colour, (title, value) in zip(colours, readings, strict=True)
        )
        when = self.tr("{0} s since T0").format(f"{self._crosshair_at:,.3f}")
        self._readout.setText(f"<table>{rows}</table><span>{when}</span>")
        self._readout.setAccessibleName(", ".join(f"{title} {value}" for title, value in readings) + ", " + when)
        self._readout.adjustSize()
        area = self.canvas.view.sceneBoundingRect()
        at = self.canvas.mapFromScene(self.canvas.view.mapViewToScene(QPointF(self._crosshair_at, 0.0))).x()
        left = at + 12 if at < area.center().x() else at - 12 - self._readout.width()
        self._readout.move(int(left), int(area.top()) + 6)

    def _save_dialog(self) -> None:
        chosen, _ = QFileDialog.getSaveFileName(
            self, self.tr("Save plot"), f"{self.title}.png", self.tr("PNG image (*.png)")
        )
        if chosen and not self.save_image(Path(chosen)):
            QMessageBox.warning(self, self.tr("Save plot"), self.tr("{0} cannot be written.").format(chosen))
