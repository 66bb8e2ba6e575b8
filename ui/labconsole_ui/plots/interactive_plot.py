"""A plot along a horizontal scale: pan, zoom and a crosshair that reads values, by mouse and keyboard."""

from __future__ import annotations

from html import escape

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLabel, QMenu, QWidget

from labconsole_ui.plots.axes import Scale, axis_unit
from labconsole_ui.plots.canvas import Canvas
from labconsole_ui.plots.plot_card import PlotCard
from labconsole_ui.theme.theme import FontRole, Theme

PAN_STEP = 0.1
ZOOM_STEP = 0.8


class InteractivePlot(PlotCard):
    """Subclasses draw in `redraw` and answer `readings` and `entry_colour`."""

    def __init__(
        self, title: str, unit: str, scale: Scale, theme: Theme, *, empty_text: str, parent: QWidget | None = None
    ) -> None:
        self._unit = axis_unit(unit)
        self._scale = scale
        self._hidden: set[str] = set()
        self._whole_x = True
        self._whole_y = True
        self._crosshair_at: float | None = None
        super().__init__(title, theme, empty_text, parent)
        self.setAccessibleDescription(
            self.tr("Arrow keys move sideways, plus and minus zoom, Home shows everything, Shift+arrow reads values.")
        )
        self._readout = QLabel(self)
        self._readout.setTextFormat(Qt.TextFormat.RichText)
        self._readout.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._readout.hide()
        self.legend.toggled.connect(self.show_entry)
        theme.changed.connect(self._apply_theme)
        self._apply_theme()

    def create_canvas(self) -> Canvas:
        """The canvas with axes for the plot's unit and scale."""
        canvas = Canvas(self._unit, self._scale, self._theme)
        canvas.view.moved.connect(self._moved)
        canvas.view.whole_wanted.connect(self.show_whole)
        canvas.view.sigResized.connect(self.schedule)
        canvas.scene().sigMouseMoved.connect(self._point_at)
        canvas.pointer_left.connect(self._hide_crosshair)
        return canvas

    def readings(self) -> list[tuple[str, str]]:
        """(title, value with unit) of what is shown at the crosshair; empty without one."""
        raise NotImplementedError

    def entry_colour(self, title: str) -> int:
        """The index of the colour of the legend's entry `title`."""
        raise NotImplementedError

    def show_whole(self) -> None:
        """Show everything from begin to end."""
        self._whole_x = self._whole_y = True
        self.schedule()

    def menu(self) -> QMenu:
        """The context menu of the plot."""
        menu = super().menu()
        first = menu.actions()[0]
        whole = menu.addAction(self.tr("Show everything") + "\tHome", self.show_whole)
        menu.insertAction(first, whole)
        menu.insertSeparator(first)
        return menu

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Pan, zoom and read values by keyboard."""
        key = event.key()
        shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
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
        else:
            super().keyPressEvent(event)

    def show_entry(self, title: str, shown: bool) -> None:
        """Show or hide the entry `title` of the legend."""
        self._hidden.discard(title) if shown else self._hidden.add(title)
        self.legend.check(title, shown)
        self.schedule()

    def _moved(self, axis: int) -> None:
        if axis == 0:
            self._whole_x = False
        else:
            self._whole_y = False
        self.schedule()

    def _pan(self, part: float) -> None:
        low, high = self.canvas.view.viewRange()[0]
        shift = (high - low) * part
        self._set_range(low + shift, high + shift)

    def _zoom(self, factor: float) -> None:
        low, high = self.canvas.view.viewRange()[0]
        middle = self._crosshair_at if self._crosshair_at is not None else (low + high) / 2
        self._set_range(middle - (middle - low) * factor, middle + (high - middle) * factor)

    def _set_range(self, low: float, high: float) -> None:
        self._whole_x = False
        self.canvas.view.setXRange(low, high, padding=0)
        self.schedule()

    # Crosshair

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

    def _update_crosshair(self) -> None:
        if self._canvas is None:
            return
        readings = self.readings()
        shown = bool(readings)
        self.canvas.crosshair.setVisible(shown)
        self._readout.setVisible(shown)
        if not shown or self._crosshair_at is None:
            return
        self.canvas.crosshair.setValue(self._crosshair_at)
        rows = "".join(
            f"<tr><td style='color:{self._theme.series_colour(self.entry_colour(title)).name()}'>■&nbsp;</td>"
            f"<td>{escape(title)}&nbsp;&nbsp;</td><td align='right'><b>{value}</b></td></tr>"
            for title, value in readings
        )
        where = self._scale.text(self._crosshair_at)
        self._readout.setText(f"<table>{rows}</table><span>{where}</span>")
        self._readout.setAccessibleName(", ".join(f"{title} {value}" for title, value in readings) + ", " + where)
        self._readout.adjustSize()
        self._readout.move(self._readout_position(self._crosshair_at))
        self._readout.raise_()

    def _readout_position(self, position: float) -> QPoint:
        """The position of the readings: on the wider side of the crosshair, and within the card."""
        view, size = self.canvas.view, self._readout.size()
        area = view.sceneBoundingRect()
        at = self.canvas.mapFromScene(view.mapViewToScene(QPointF(position, 0.0))).x()
        left = at + 12 if at < area.center().x() else at - 12 - size.width()
        corner = self.canvas.mapTo(self, QPoint(int(left), int(area.top()) + 6))
        room = self.size() - size
        return QPoint(max(2, min(corner.x(), room.width() - 2)), max(2, min(corner.y(), room.height() - 2)))

    def _apply_theme(self) -> None:
        colours = self._theme.colours
        self._readout.setFont(self._theme.font(FontRole.CAPTION))
        self._readout.setStyleSheet(
            f"background: {colours.base}; color: {colours.text}; border: 1px solid {colours.border};"
            "border-radius: 4px; padding: 4px 6px;"
        )
        self._update_crosshair()
