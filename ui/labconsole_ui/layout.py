"""The docks of the window: where they stand at first, and how their places are remembered."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QSize, Qt
from PySide6.QtWidgets import QDockWidget, QMainWindow, QTabBar, QWidget
from shiboken6 import isValid

from labconsole_ui.settings import WindowState
from labconsole_ui.theme import Theme
from labconsole_ui.title_bar import TitleBar

LAYOUT_VERSION = 1
FIRST_SIZE = QSize(1280, 800)
_GEOMETRY = "window/geometry"
_DOCKS = "window/docks"


def make_dock(
    window: QMainWindow, theme: Theme, name: str, title: str, content: QWidget, least_width: int
) -> QDockWidget:
    """Put `content` into a dock that can be moved, floated and closed; `arrange` gives it its place."""
    dock = QDockWidget(title, window)
    dock.setObjectName(name)
    dock.setWidget(content)
    dock.setAccessibleName(title)
    dock.setMinimumWidth(least_width)
    dock.setTitleBarWidget(TitleBar(dock, theme))
    dock.dockLocationChanged.connect(lambda _area: _show_title_bars(window))
    dock.topLevelChanged.connect(lambda _floating: _show_title_bars(window))
    dock.visibilityChanged.connect(lambda _visible: _show_title_bars(window))
    return dock


def arrange(window: QMainWindow, navigation: QDockWidget, live: QDockWidget, bottom: list[QDockWidget]) -> None:
    """The layout of a first start: navigation left, live plots right, queue, history and log in tabs beneath."""
    areas = Qt.DockWidgetArea
    window.setCorner(Qt.Corner.BottomLeftCorner, areas.LeftDockWidgetArea)
    window.setCorner(Qt.Corner.BottomRightCorner, areas.BottomDockWidgetArea)
    for dock in (navigation, live, *bottom):
        window.removeDockWidget(dock)
    for dock, area in (
        (navigation, areas.LeftDockWidgetArea),
        (live, areas.RightDockWidgetArea),
        (bottom[0], areas.BottomDockWidgetArea),
    ):
        dock.setFloating(False)
        window.addDockWidget(area, dock)
    for dock in bottom[1:]:
        dock.setFloating(False)
        # Into the tabs at once: side by side they would need more width than a small screen has.
        window.tabifyDockWidget(bottom[0], dock)
    for dock in (navigation, live, *bottom):
        dock.show()
    bottom[0].raise_()
    width, height = window.width(), window.height()
    window.resizeDocks([navigation, live], [200, max(380, width * 31 // 100)], Qt.Orientation.Horizontal)
    window.resizeDocks(bottom[:1], [max(190, height * 25 // 100)], Qt.Orientation.Vertical)


def _show_title_bars(window: QMainWindow) -> None:
    """A dock among tabs is named by its tab; a title bar of its own would only say it again."""
    if not isValid(window):
        # Docks report that they hide also while the window that holds them goes.
        return
    for tabs in window.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly):
        tabs.setAccessibleName(QCoreApplication.translate("Layout", "Panes"))
    for dock in window.findChildren(QDockWidget):
        tabbed = not dock.isFloating() and bool(window.tabifiedDockWidgets(dock))
        bar = dock.titleBarWidget()
        if isinstance(bar, TitleBar):
            bar.set_folded(tabbed)


def remember(window: QMainWindow, state: WindowState) -> None:
    """Keep size, place and docks."""
    state.keep(_GEOMETRY, window.saveGeometry())
    state.keep(_DOCKS, window.saveState(LAYOUT_VERSION))


def restore(window: QMainWindow, state: WindowState) -> bool:
    """Bring back what was kept. Returns whether the docks could be."""
    geometry, docks = state.blob(_GEOMETRY), state.blob(_DOCKS)
    if not geometry.isEmpty():
        window.restoreGeometry(geometry)
    return not docks.isEmpty() and window.restoreState(docks, LAYOUT_VERSION)


def forget(state: WindowState) -> None:
    """Forget what was kept."""
    state.forget(_GEOMETRY)
    state.forget(_DOCKS)
