"""A preview of pages, one below the other, with the number of the visible one."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QImage, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QScrollArea,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.labels import busy_bar, plain_label

GAP = 16
MIN_SHARE = 0.6
"""Scale below which pages are resampled smoothly, which takes longer, so that thin lines stay visible."""
ZOOM_STEP = 1.25
ZOOM_RANGE = (0.5, 3.0)


class PagePicture(QWidget):
    """One page, painted as large as the widget is."""

    def __init__(self, image: QImage, number: int, parent: QWidget | None) -> None:
        super().__init__(parent)
        self._image = image
        self._small = QImage()
        self.setAccessibleName(self.tr("Page {0}").format(number))

    def set_width(self, width: int) -> None:
        """Set the width, and the height by the page's shape."""
        size = self._image.size()
        self.setFixedSize(width, round(width * size.height() / max(1, size.width())))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the page with a hairline around it."""
        size = self.size() * self.devicePixelRatioF()
        painter = QPainter(self)
        if size.width() > MIN_SHARE * self._image.width():
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
            painter.drawImage(self.rect(), self._image)
        else:
            if self._small.size() != size:
                aspect, smooth = Qt.AspectRatioMode.IgnoreAspectRatio, Qt.TransformationMode.SmoothTransformation
                self._small = self._image.scaled(size, aspect, smooth)
            painter.drawImage(self.rect(), self._small)
        painter.setPen(self.palette().mid().color())
        painter.drawRect(self.rect().adjusted(0, 0, -1, -1))


class PagesView(QWidget):
    """Pages with a bar to turn them and to zoom."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._zoom = 1.0
        self.pages: list[PagePicture] = []
        self.area = QScrollArea(self)
        self.area.setWidgetResizable(True)
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self.area.setAccessibleName(self.tr("Pages of the report"))
        self.area.verticalScrollBar().valueChanged.connect(self._scrolled)
        holder = QWidget()
        self._column = QVBoxLayout(holder)
        self._column.setContentsMargins(GAP, GAP, GAP, GAP)
        self._column.setSpacing(GAP)
        self._column.setAlignment(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop)
        self.area.setWidget(holder)
        self.note = plain_label("", self)
        self.note.setWordWrap(True)
        self.note.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.note.setMinimumHeight(80)
        self.note.setContentsMargins(24, 12, 24, 12)
        self.progress = busy_bar(self.tr("Setting the pages"), self)
        kept = self.progress.sizePolicy()
        kept.setRetainSizeWhenHidden(True)
        self.progress.setSizePolicy(kept)
        self.place = QLabel(self)
        self.place.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.place.setMinimumWidth(80)
        self.back_button = self._button(theme, "up", self.tr("Previous page"), lambda: self.turn(-1))
        self.on_button = self._button(theme, "down", self.tr("Next page"), lambda: self.turn(1))
        self.smaller_button = self._button(None, "−", self.tr("Smaller"), lambda: self._zoom_by(1 / ZOOM_STEP))
        self.larger_button = self._button(None, "+", self.tr("Larger"), lambda: self._zoom_by(ZOOM_STEP))
        self.fit_button = self._button(None, self.tr("Fit width"), self.tr("As wide as the window"), self.fit_width)
        bar = QHBoxLayout()
        bar.setContentsMargins(GAP, 6, GAP, 6)
        for widget in (self.back_button, self.place, self.on_button):
            bar.addWidget(widget)
        bar.addStretch(1)
        for widget in (self.smaller_button, self.larger_button, self.fit_button):
            bar.addWidget(widget)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(bar)
        layout.addWidget(self.progress)
        layout.addWidget(self.note)
        layout.addWidget(self.area, 1)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.show_status(self.tr("Setting the pages ..."))

    def sizeHint(self) -> QSize:
        """The size of a readable page."""
        return QSize(720, 720)

    def show_status(self, sentence: str) -> None:
        """Show a sentence, above the pages if there are any; an empty one hides it."""
        self.note.setText(sentence)
        self.note.setVisible(bool(sentence))
        self.area.setVisible(bool(self.pages))

    def set_busy(self, busy: bool) -> None:
        """Show that new pages are being set."""
        self.progress.setVisible(busy)

    def show_pages(self, images: Sequence[QImage]) -> None:
        """Show these pages; the scroll position stays."""
        scrolled = self.area.verticalScrollBar().value()
        for page in self.pages:
            self._column.removeWidget(page)
            page.hide()
            page.deleteLater()
        holder = self.area.widget()
        self.pages = [PagePicture(image, number, holder) for number, image in enumerate(images, start=1)]
        for page in self.pages:
            self._column.addWidget(page)
        self.show_status("")
        self._fit()
        self.area.verticalScrollBar().setValue(scrolled)
        self._scrolled()

    @property
    def current(self) -> int:
        """The visible page, counted from 0."""
        middle = self.area.verticalScrollBar().value() + self.area.viewport().height() // 3
        return max((index for index in range(len(self.pages)) if self._top(index) <= middle), default=0)

    def turn(self, by: int) -> None:
        """Go `by` pages forward."""
        if self.pages:
            index = min(max(self.current + by, 0), len(self.pages) - 1)
            self.area.verticalScrollBar().setValue(self._top(index) - GAP)

    def fit_width(self) -> None:
        """Make the pages as wide as the view."""
        self._zoom = 1.0
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The pages follow the width."""
        super().resizeEvent(event)
        self._fit()

    def _zoom_by(self, factor: float) -> None:
        least, most = ZOOM_RANGE
        self._zoom = min(most, max(least, self._zoom * factor))
        self._fit()

    def _fit(self) -> None:
        bar = self.area.verticalScrollBar().sizeHint().width()
        width = round((self.area.width() - bar - 2 * GAP) * self._zoom)
        for page in self.pages:
            page.set_width(max(200, width))
        self._column.activate()
        self._scrolled()

    def _top(self, index: int) -> int:
        """The top of a page, whether it is laid out already or not."""
        return GAP + sum(page.minimumHeight() + GAP for page in self.pages[:index])

    def _scrolled(self) -> None:
        count = len(self.pages)
        self.place.setText(self.tr("{0} of {1}").format(self.current + 1, count) if count else "–")
        self.back_button.setEnabled(self.current > 0)
        self.on_button.setEnabled(self.current < count - 1)

    def _button(self, theme: Theme | None, face: str, name: str, work: object) -> QToolButton:
        button = QToolButton(self)
        if theme is not None:
            theme.bind_icon(button, face)
        else:
            button.setText(face)
        button.setToolTip(name)
        button.setAccessibleName(name)
        button.setMinimumWidth(28)
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        button.clicked.connect(work)
        return button
