"""The centre of the window: pages in tabs, each opened once and found by its key."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QTabBar, QTabWidget, QWidget

from labconsole.safe_text import shown_lines
from labconsole_ui.theme.theme import Theme

MAX_TITLE = 28
LOADED_PAGES = 4
"""Number of pages with data that stay loaded behind the one in front; of others only the tab stays."""


class FreedPage(QWidget):
    """The placeholder of a page that was freed."""


class Pages(QTabWidget):
    """Tabs that can be moved and closed. `shown` carries the key of the page that is in front."""

    shown = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._icons: dict[QWidget, tuple[str, str]] = {}
        self._makers: dict[str, Callable[[], QWidget]] = {}
        """Factories of pages that can be freed, by key; the page in front most recently is the last."""
        self.setDocumentMode(True)
        self.setMovable(True)
        self.setTabsClosable(True)
        self.setElideMode(Qt.TextElideMode.ElideRight)
        self.setAccessibleName(self.tr("Pages"))
        self.tabBar().setAccessibleName(self.tr("Pages"))
        self.tabBar().setExpanding(False)
        self.tabBar().installEventFilter(self)
        self.tabCloseRequested.connect(self.close_page)
        self.currentChanged.connect(self._brought_to_front)
        theme.changed.connect(self._paint_icons)

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt names it
        """A wide page must not push the window over the edge of the screen."""
        return QSize(420, 200)

    @property
    def current_key(self) -> str:
        """The key of the page in front, or an empty text."""
        widget = self.currentWidget()
        return widget.objectName() if widget is not None else ""

    def page(self, key: str) -> QWidget | None:
        """The open page of this key."""
        return next((page for page in self.all_pages() if page.objectName() == key), None)

    def all_pages(self) -> list[QWidget]:
        """All open pages, from left to right."""
        return [page for index in range(self.count()) if (page := self.widget(index)) is not None]

    def show_page(
        self,
        key: str,
        title: str,
        icon: str,
        make: Callable[[], QWidget],
        *,
        closable: bool = True,
        freed: bool = False,
    ) -> QWidget:
        """Bring the page to the front, created if it is not open.

        With `freed` its memory may be freed while it is not in front; it is then created again.
        """
        found = self.page(key)
        if found is None:
            if freed:
                self._makers[key] = make
            found = make()
            found.setObjectName(key)
            self._icons[found] = (icon, "muted")
            title = shown_lines(title)
            short = title if len(title) <= MAX_TITLE else f"{title[: MAX_TITLE - 1]}…"
            index = self.addTab(found, self._theme.icon(icon, "muted"), short)
            self.setTabToolTip(index, title)
            button = self.tabBar().tabButton(index, QTabBar.ButtonPosition.RightSide)
            if not closable:
                self.tabBar().setTabButton(index, QTabBar.ButtonPosition.RightSide, None)
            elif button is not None:
                button.setAccessibleName(self.tr("Close {title}").format(title=title))
        self.setCurrentWidget(found)
        return self.page(key) or found

    def set_icon(self, key: str, icon: str, meaning: str) -> None:
        """Set the icon of a page, if it is open."""
        page = self.page(key)
        if page is not None:
            self._icons[page] = (icon, meaning)
            self._paint_icons()

    def step(self, by: int) -> None:
        """Go to the page `by` places to the right, cyclically."""
        self.setCurrentIndex((self.currentIndex() + by) % self.count())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt names it
        """A click with the middle button closes the page of that tab."""
        released = watched is self.tabBar() and event.type() == QEvent.Type.MouseButtonRelease
        if released and isinstance(event, QMouseEvent) and event.button() is Qt.MouseButton.MiddleButton:
            index = self.tabBar().tabAt(event.position().toPoint())
            if index >= 0:
                self.close_page(index)
            return True
        return super().eventFilter(watched, event)

    def close_page(self, index: int) -> None:
        """Close the page at `index`, unless it has no close button."""
        if self.tabBar().tabButton(index, QTabBar.ButtonPosition.RightSide) is None:
            return
        widget = self.all_pages()[index]
        self.removeTab(index)
        self._icons.pop(widget, None)
        self._makers.pop(widget.objectName(), None)
        widget.close()
        widget.deleteLater()

    def _brought_to_front(self, index: int) -> None:
        key = self.current_key
        if key in self._makers:
            self._makers[key] = make = self._makers.pop(key)
            if isinstance(self.currentWidget(), FreedPage):
                self._put(index, make())
            self._free()
        self.shown.emit(key)

    def _free(self) -> None:
        """Free the pages that were not in front for longest, all but `LOADED_PAGES`."""
        made = [key for key in self._makers if not isinstance(self.page(key), FreedPage)]
        for key in made[: -LOADED_PAGES - 1]:
            page = self.page(key)
            if page is not None:
                self._put(self.indexOf(page), FreedPage())

    def _put(self, index: int, page: QWidget) -> None:
        """Replace a page by another one in the same tab."""
        before = self.all_pages()[index]
        page.setObjectName(before.objectName())
        self._icons[page] = self._icons.pop(before)
        self.blockSignals(True)
        self.insertTab(index, page, self.tabIcon(index), self.tabText(index))
        self.setTabToolTip(index, self.tabToolTip(index + 1))
        side = QTabBar.ButtonPosition.RightSide
        button, old_button = self.tabBar().tabButton(index, side), self.tabBar().tabButton(index + 1, side)
        if button is not None and old_button is not None:
            button.setAccessibleName(old_button.accessibleName())
        if self.currentWidget() is before:
            self.setCurrentIndex(index)
        self.removeTab(index + 1)
        self.blockSignals(False)
        before.close()
        before.deleteLater()

    def _paint_icons(self) -> None:
        for index, page in enumerate(self.all_pages()):
            self.setTabIcon(index, self._theme.icon(*self._icons[page]))
