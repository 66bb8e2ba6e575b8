"""The centre of the window: pages in tabs, each opened once and found again by its key."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QTabBar, QTabWidget, QWidget

from labconsole_ui.theme import Theme

MAX_TITLE = 28


class Pages(QTabWidget):
    """Tabs that can be moved and closed. `shown` carries the key of the page that is in front."""

    shown = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._icons: dict[QWidget, str] = {}
        self.setDocumentMode(True)
        self.setMovable(True)
        self.setTabsClosable(True)
        self.setElideMode(Qt.TextElideMode.ElideRight)
        self.setAccessibleName(self.tr("Pages"))
        self.tabBar().setAccessibleName(self.tr("Pages"))
        self.tabBar().setExpanding(False)
        self.tabCloseRequested.connect(self.close_page)
        self.currentChanged.connect(lambda _index: self.shown.emit(self.current_key))
        theme.changed.connect(self._paint_icons)

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt names it
        """A wide page must not push the window over the edge of the screen."""
        return QSize(420, 200)

    @property
    def current_key(self) -> str:
        """The key of the page in front, or nothing."""
        widget = self.currentWidget()
        return widget.objectName() if widget is not None else ""

    def page(self, key: str) -> QWidget | None:
        """The open page of this key."""
        return next((page for page in self.all_pages() if page.objectName() == key), None)

    def all_pages(self) -> list[QWidget]:
        """All open pages, from left to right."""
        return [page for index in range(self.count()) if (page := self.widget(index)) is not None]

    def show_page(
        self, key: str, title: str, icon: str, make: Callable[[], QWidget], *, closable: bool = True
    ) -> QWidget:
        """Bring the page to the front, made now if it is not open."""
        found = self.page(key)
        if found is None:
            found = make()
            found.setObjectName(key)
            self._icons[found] = icon
            short = title if len(title) <= MAX_TITLE else f"{title[: MAX_TITLE - 1]}…"
            index = self.addTab(found, self._theme.icon(icon, "muted"), short)
            self.setTabToolTip(index, title)
            button = self.tabBar().tabButton(index, QTabBar.ButtonPosition.RightSide)
            if not closable:
                self.tabBar().setTabButton(index, QTabBar.ButtonPosition.RightSide, None)
            elif button is not None:
                button.setAccessibleName(self.tr("Close {title}").format(title=title))
        self.setCurrentWidget(found)
        return found

    def close_page(self, index: int) -> None:
        """Close the page at `index`, unless it has no close button."""
        if self.tabBar().tabButton(index, QTabBar.ButtonPosition.RightSide) is None:
            return
        widget = self.all_pages()[index]
        self.removeTab(index)
        self._icons.pop(widget, None)
        widget.close()
        widget.deleteLater()

    def _paint_icons(self) -> None:
        for index, page in enumerate(self.all_pages()):
            self.setTabIcon(index, self._theme.icon(self._icons[page], "muted"))
