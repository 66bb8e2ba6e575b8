"""The card around a plot: title, legend, menu, keyboard focus, export as PNG and SVG."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QBuffer, QIODevice, QRectF, QSaveFile, Qt, QTimer
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
)
from PySide6.QtWidgets import (
    QBoxLayout,
    QFileDialog,
    QFrame,
    QGridLayout,
    QMenu,
    QMessageBox,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from labconsole_ui.plots.canvas import Canvas
from labconsole_ui.plots.image_export import PlotPicture
from labconsole_ui.plots.legend import Legend
from labconsole_ui.theme.style_sheet import RADIUS
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import plain_label

IMAGE_SCALE = 2.0
MIN_CANVAS_HEIGHT = 108
"""In a lower plot, the numbers of the left axis would touch."""
MIN_HEIGHT = MIN_CANVAS_HEIGHT + 36
"""Of a card with a legend of one line."""
NARROW = 300
"""Below this width (px) the legend is below the title."""


class PlotCard(QFrame):
    """A plot with title and legend. Subclasses draw on `canvas` in `redraw`, once for many changes.

    A plot in a hidden tab, or scrolled out of view, costs nothing: it is drawn once it comes into view. Its canvas,
    which takes 25 ms, is created when it is first drawn.
    """

    legend_beneath = False
    """Whether the legend is below the title however wide the plot is."""

    def __init__(self, title: str, theme: Theme, empty_text: str, parent: QWidget | None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._legend_shared = False
        self._canvas: Canvas | None = None
        self._stale = False
        """Whether it is to be drawn once it comes into view."""
        self.setProperty("card", True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumHeight(MIN_HEIGHT)
        self._area = QWidget(self)
        # Not ignored in its height: a card whose title needs two lines would not become higher.
        self._area.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding)
        self._area.setMinimumHeight(MIN_CANVAS_HEIGHT)
        self.legend = Legend(theme, self)
        self._title = plain_label("", self)
        self._title.setWordWrap(True)
        self.set_title(title)
        self._empty = plain_label(empty_text, self._area)
        self._empty.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._empty.setProperty("muted", True)
        self._empty.setWordWrap(True)
        self._arrange()
        self._due = QTimer(self)
        self._due.setSingleShot(True)
        self._due.setInterval(0)
        self._due.timeout.connect(self._redraw_canvas)
        theme.changed.connect(self._apply_fonts)
        self._apply_fonts()

    def redraw(self) -> None:
        """Draw the visible range."""
        raise NotImplementedError

    def create_canvas(self) -> Canvas:
        """The canvas, connected to the plot; called once, when it is needed."""
        raise NotImplementedError

    @property
    def canvas(self) -> Canvas:
        """The drawing area, which a plot has once there was something to draw."""
        if self._canvas is None:
            self._canvas = self.create_canvas()
            self._canvas.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
            self._name_canvas()
            self._canvas.getPlotItem().setVisible(self._empty.isHidden())
            self._area_grid.addWidget(self._canvas, 0, 0)
            self._canvas.show()  # Qt would show it in a later turn, after it is drawn
            self._empty.raise_()
            self._area_grid.activate()
        return self._canvas

    @property
    def title(self) -> str:
        """What the plot shows."""
        return self._title.text()

    def set_title(self, title: str) -> None:
        """Set the title."""
        self._title.setText(title)
        self.setAccessibleName(title)
        self._name_canvas()

    def _name_canvas(self) -> None:
        if self._canvas is not None:
            self._canvas.setAccessibleName(self.tr("Drawing area of {0}").format(self.title))

    def set_empty_text(self, text: str) -> None:
        """Set the text shown while there is nothing to draw."""
        self._empty.setText(text)

    def add_to_header(self, widget: QWidget) -> None:
        """Put `widget` at the right of the title, before the legend."""
        self._header.insertWidget(1, widget)

    def use_shared_legend(self) -> None:
        """Hide the legend on the card, since several plots share one; pictures keep it."""
        self._legend_shared = True
        self.legend.hide()
        self._header.addStretch(1)

    def show_legend(self, shown: bool) -> None:
        """Show the legend if it is the card's own."""
        self.legend.setVisible(shown and not self._legend_shared)

    def show_empty(self, empty: bool) -> None:
        """Show the text for an empty plot, or the plot."""
        self._empty.setVisible(empty)
        if self._canvas is not None:
            self._canvas.getPlotItem().setVisible(not empty)

    def schedule(self) -> None:
        """Draw once, however much changes: in the next turn of the event loop in which the plot is in view."""
        self._stale = True
        if not self.visibleRegion().isEmpty():
            self._due.start()

    def _redraw_canvas(self) -> None:
        self._stale = False
        if self._canvas is not None or self._empty.isHidden():
            self.redraw()

    # Export

    def image(self) -> QPixmap:
        """The plot with title and legend as an image at twice the screen's resolution."""
        return self._picture().pixmap(IMAGE_SCALE)

    def svg(self) -> bytes:
        """The plot with title and legend as SVG."""
        return self._picture().svg()

    def copy_image(self) -> None:
        """Put the image on the clipboard."""
        QGuiApplication.clipboard().setPixmap(self.image())

    def save_image(self, path: Path) -> bool:
        """Write the plot as SVG if the name ends so, else as PNG; False if the file cannot be written."""
        file = QSaveFile(str(path))
        if not file.open(QIODevice.OpenModeFlag.WriteOnly):
            return False
        file.write(self.svg() if path.suffix.lower() == ".svg" else self._png())
        return file.commit()

    def _picture(self) -> PlotPicture:
        self.redraw()
        return PlotPicture(self.title, self.canvas, self.legend.shown(), self._theme)

    def _png(self) -> bytes:
        buffer = QBuffer()
        buffer.open(QIODevice.OpenModeFlag.WriteOnly)
        self.image().save(buffer, "PNG")
        return bytes(buffer.data().data())

    def menu(self) -> QMenu:
        """The context menu of the plot."""
        menu = QMenu(self)
        menu.setAccessibleName(self.tr("Plot actions"))
        menu.addAction(self.tr("Copy image") + "\tCtrl+C", self.copy_image)
        menu.addAction(self.tr("Save as PNG or SVG ...") + "\tCtrl+S", self._save_dialog)
        return menu

    def _save_dialog(self) -> None:
        kinds = {self.tr("PNG image (*.png)"): ".png", self.tr("SVG drawing (*.svg)"): ".svg"}
        name = "".join(" " if letter in '/\\:*?"<>|' else letter for letter in self.title)
        chosen, kind = QFileDialog.getSaveFileName(self, self.tr("Save plot"), f"{name}.png", ";;".join(kinds))
        if not chosen:
            return
        path = Path(chosen)
        suffix = kinds.get(kind, ".png")
        path = path if path.suffix.lower() == suffix else path.with_suffix(suffix)
        if not self.save_image(path):
            QMessageBox.warning(self, self.tr("Save plot"), self.tr("{0} cannot be written.").format(path))

    # Events

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """The menu, by right click or menu key."""
        menu = self.menu()
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(event.globalPos())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy and save by keyboard."""
        control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        if control and event.key() == Qt.Key.Key_C:
            self.copy_image()
        elif control and event.key() == Qt.Key.Key_S:
            self._save_dialog()
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Show the focus ring."""
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Hide the focus ring."""
        super().focusOutEvent(event)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """The card, with a ring while it has the keyboard; what changed out of view is drawn in the next turn."""
        super().paintEvent(event)
        if self._stale:
            self._due.start()
        if self.hasFocus():
            painter = QPainter(self)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(self._theme.colour("link"), 2))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), RADIUS + 2, RADIUS + 2)
            painter.end()

    def hideEvent(self, event: QHideEvent) -> None:
        """Stop drawing while the plot is hidden."""
        super().hideEvent(event)
        self._due.stop()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the legend where there is room."""
        super().resizeEvent(event)
        narrow, directions = event.size().width() < NARROW or self.legend_beneath, QBoxLayout.Direction
        self._header.setDirection(directions.TopToBottom if narrow else directions.LeftToRight)
        self._header.setSpacing(0 if narrow else 8)

    def _arrange(self) -> None:
        self._header = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._header.setSpacing(8)
        self._header.addWidget(self._title)
        self._header.addWidget(self.legend, 1)
        self._area_grid = QGridLayout(self._area)
        self._area_grid.setContentsMargins(0, 0, 0, 0)
        self._area_grid.addWidget(self._empty, 0, 0)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(10, 6, 8, 4)
        layout.setSpacing(2)
        layout.addLayout(self._header)
        layout.addWidget(self._area, 1)

    def _apply_fonts(self) -> None:
        self._title.setFont(self._theme.font(FontRole.STRONG))
