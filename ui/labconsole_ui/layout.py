"""The docks of the window: where they stand at first, and how their places are remembered."""

from __future__ import annotations

from itertools import pairwise

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QDockWidget, QMainWindow, QWidget

from labconsole_ui.settings import WindowState

LAYOUT_VERSION = 1
FIRST_SIZE = QSize(1280, 800)
_GEOMETRY = "window/geometry"
_DOCKS = "window/docks"


def add_dock(window: QMainWindow, name: str, title: str, area: Qt.DockWidgetArea, content: QWidget) -> QDockWidget:
    """Put `content` into a dock that can be moved, floated and closed."""
    dock = QDockWidget(title, window)
    dock.setObjectName(name)
    dock.setWidget(content)
    dock.setAccessibleName(title)
    window.addDockWidget(area, dock)
    return dock


def arrange(window: QMainWindow, navigation: QDockWidget, live: QDockWidget, bottom: list[QDockWidget]) -> None:
    """The layout of a first start: navigation left, live plots right, queue, history and log in tabs beneath."""
    areas = Qt.DockWidgetArea
    window.setCorner(Qt.Corner.BottomLeftCorner, areas.LeftDockWidgetArea)
    window.setCorner(Qt.Corner.BottomRightCorner, areas.BottomDockWidgetArea)
    for dock, area in ((navigation, areas.LeftDockWidgetArea), (live, areas.RightDockWidgetArea)):
        dock.setFloating(False)
        window.addDockWidget(area, dock)
        dock.show()
    for dock in bottom:
        dock.setFloating(False)
        window.addDockWidget(areas.BottomDockWidgetArea, dock)
        dock.show()
    for first, second in pairwise(bottom):
        window.tabifyDockWidget(first, second)
    bottom[0].raise_()
    width, height = window.width(), window.height()
    window.resizeDocks([navigation], [210], Qt.Orientation.Horizontal)
    window.resizeDocks([live], [max(400, width * 33 // 100)], Qt.Orientation.Horizontal)
    window.resizeDocks(bottom[:1], [max(210, height * 26 // 100)], Qt.Orientation.Vertical)


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
