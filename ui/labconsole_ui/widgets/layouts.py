"""Layouts: one that wraps widgets like words, a page that scrolls, pages of tabs, a window as high as its contents."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QRect, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QLayout,
    QLayoutItem,
    QScrollArea,
    QStackedWidget,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)


class FlowLayout(QLayout):
    """Widgets in lines, as many per line as fit the width."""

    def __init__(self, parent: QWidget | None = None, spacing: int = 4) -> None:
        super().__init__(parent)
        self._items: list[QLayoutItem] = []
        self.setContentsMargins(0, 0, 0, 0)
        self.setSpacing(spacing)

    def addItem(self, item: QLayoutItem) -> None:  # noqa: N802 - Qt's name
        """Append `item`."""
        self._items.append(item)

    def count(self) -> int:
        """Number of items."""
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:  # noqa: N802 - Qt's name
        """The item at `index`, None beyond the last."""
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:  # noqa: N802 - Qt's name
        """Remove the item at `index` and return it."""
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:  # noqa: N802 - Qt's name
        """None: the layout needs no more than its size hint."""
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:  # noqa: N802 - Qt's name
        """Narrow layouts are higher."""
        return True

    def heightForWidth(self, width: int) -> int:  # noqa: N802 - Qt's name
        """Height of all lines at `width`."""
        return self._place(QRect(0, 0, width, 0), dry=True)

    def setGeometry(self, rect: QRect) -> None:  # noqa: N802 - Qt's name
        """Place all items in `rect`."""
        super().setGeometry(rect)
        self._place(rect, dry=False)

    def sizeHint(self) -> QSize:
        """The size of the largest item; the height follows from the width."""
        return self.minimumSize()

    def minimumSize(self) -> QSize:  # noqa: N802 - Qt's name
        """The size of the largest item."""
        size = QSize()
        for item in self._items:
            size = size.expandedTo(item.minimumSize())
        return size

    def _place(self, rect: QRect, *, dry: bool) -> int:
        """Place the items, those of a line in the middle of its height; returns the height of all lines."""
        top, lines = rect.y(), self._lines(rect.width())
        for line in lines:
            height = max(item.sizeHint().height() for item in line)
            left = rect.x()
            for item in () if dry else line:
                hint = item.sizeHint()
                item.setGeometry(QRect(left, top + (height - hint.height()) // 2, hint.width(), hint.height()))
                left += hint.width() + self.spacing()
            top += height + self.spacing()
        return top - rect.y() - (self.spacing() if lines else 0)

    def _lines(self, width: int) -> list[list[QLayoutItem]]:
        """The items line by line, as many per line as fit `width`; hidden ones are left out."""
        lines: list[list[QLayoutItem]] = []
        end = 0
        for item in (each for each in self._items if not each.isEmpty()):
            wide = item.sizeHint().width()
            if lines and end + self.spacing() + wide <= width:
                lines[-1].append(item)
                end += self.spacing() + wide
            else:
                lines.append([item])
                end = wide
        return lines


class ScrollPage(QScrollArea):
    """A page that scrolls; its content is in `column`, and the keyboard focus stays visible."""

    def __init__(self, max_width: int, margin: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.page = QWidget(self.viewport())
        self.page.setProperty("page", True)
        self.page.setMaximumWidth(max_width)
        self.column = QVBoxLayout(self.page)
        self.column.setContentsMargins(margin, margin, margin, margin)
        self.setWidget(self.page)
        self.page.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt names it
        if watched is self.page and event.type() == QEvent.Type.LayoutRequest:
            self._fit()
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Give the column the height that its wrapped texts need at this width."""
        width = min(self.viewport().width(), self.page.maximumWidth())
        needed = max(self.column.totalHeightForWidth(width), self.column.totalMinimumSize().height())
        if self.page.minimumHeight() != needed:
            self.page.setMinimumHeight(needed)


def page_parent(tabs: QTabWidget) -> QStackedWidget:
    """The widget to create pages of `tabs` with: `addTab` styles one with another parent again, with its children."""
    stack = tabs.findChild(QStackedWidget, options=Qt.FindChildOption.FindDirectChildrenOnly)
    assert isinstance(stack, QStackedWidget)
    return stack


def fit_height(window: QWidget) -> None:
    """Make `window` as high as its layout needs."""
    layout = window.layout()
    if layout is not None:
        layout.activate()
        height = max(layout.totalHeightForWidth(window.width()), layout.totalMinimumSize().height())
        window.setMinimumHeight(height)
        window.resize(window.width(), height)
