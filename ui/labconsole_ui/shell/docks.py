"""The docks of the window: title bars, default layout, stored layout, folding."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QSize, Qt
from PySide6.QtWidgets import QDockWidget, QHBoxLayout, QLabel, QMainWindow, QTabBar, QToolButton, QWidget
from shiboken6 import isValid

from labconsole_ui.runtime.settings import WindowState
from labconsole_ui.theme.theme import FontRole, Theme


class TitleBar(QWidget):
    """Dragging it moves the dock, as with Qt's own."""

    def __init__(self, dock: QDockWidget, theme: Theme) -> None:
        super().__init__(dock)
        self._folded = False
        line = QHBoxLayout(self)
        line.setContentsMargins(12, 5, 6, 5)
        line.setSpacing(2)
        title = QLabel(dock.windowTitle())
        title.setFont(theme.font(FontRole.STRONG))
        line.addWidget(title, 1)
        for icon, text, action in (
            ("open", self.tr("Float: {title}"), lambda: dock.setFloating(not dock.isFloating())),
            ("remove", self.tr("Close: {title}"), dock.close),
        ):
            button = QToolButton()
            theme.bind_icon(button, icon, "muted")
            button.setIconSize(QSize(14, 14))
            button.setFocusPolicy(Qt.FocusPolicy.NoFocus)
            button.setToolTip(text.format(title=dock.windowTitle()))
            button.setAccessibleName(text.format(title=dock.windowTitle()))
            button.clicked.connect(action)
            line.addWidget(button)

    def set_folded(self, folded: bool) -> None:
        """Set the height to 0, or to that of the title."""
        if folded != self._folded:
            self._folded = folded
            self.setVisible(not folded)
            self.updateGeometry()

    def sizeHint(self) -> QSize:
        return QSize(0, 0) if self._folded else super().sizeHint()

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt names it
        return QSize(0, 0) if self._folded else super().minimumSizeHint()


LAYOUT_VERSION = 2
WIDE = 1500
"""From this width (px) on the live plots are next to the pages; in a narrower window, a tab below them."""
MIN_SIZE = QSize(1024, 700)
LARGEST_FIRST_SIZE = QSize(1760, 1040)
BOTTOM_HEIGHT = 244
_GEOMETRY = "window/geometry"
_DOCKS = "window/docks"
_FOLLOWS = "window/live-follows-width"
_FOLDED = "folded"
_BOTTOM = Qt.DockWidgetArea.BottomDockWidgetArea


def create_dock(window: QMainWindow, theme: Theme, name: str, title: str, least_width: int) -> QDockWidget:
    """A dock that can be moved, floated and closed; `reset_layout` places it.

    Its content is created with it as parent: a widget that gets its parent late is styled again with all its children.
    """
    dock = QDockWidget(title, window)
    dock.setObjectName(name)
    dock.setAccessibleName(title)
    dock.setMinimumWidth(least_width)
    dock.setTitleBarWidget(TitleBar(dock, theme))
    dock.dockLocationChanged.connect(lambda _area: _show_title_bars(window))
    dock.topLevelChanged.connect(lambda _floating: _show_title_bars(window))
    dock.visibilityChanged.connect(lambda _visible: _show_title_bars(window))
    return dock


def first_size(window: QMainWindow) -> QSize:
    """The size at a first start: most of the screen, within limits."""
    room = window.screen().availableSize() * 0.94
    return room.boundedTo(LARGEST_FIRST_SIZE).expandedTo(MIN_SIZE)


def reset_layout(window: QMainWindow, navigation: QDockWidget, live: QDockWidget, bottom: list[QDockWidget]) -> None:
    """Set the default layout: navigation at the left, queue, history and log in tabs below the pages.

    The live plots are at the right of a wide window, and the second tab of a narrow one.
    """
    areas = Qt.DockWidgetArea
    window.setCorner(Qt.Corner.BottomLeftCorner, areas.LeftDockWidgetArea)
    window.setCorner(Qt.Corner.BottomRightCorner, areas.BottomDockWidgetArea)
    for dock in (navigation, live, *bottom):
        dock.setProperty(_FOLDED, False)
        window.removeDockWidget(dock)
        dock.setFloating(False)
    window.addDockWidget(areas.LeftDockWidgetArea, navigation)
    window.addDockWidget(_BOTTOM, bottom[0])
    _place_live(window, live, bottom)
    for dock in (navigation, live, *bottom):
        dock.show()
    bottom[0].raise_()
    window.resizeDocks([navigation], [200], Qt.Orientation.Horizontal)
    window.resizeDocks(bottom[:1], [max(BOTTOM_HEIGHT, window.height() * 27 // 100)], Qt.Orientation.Vertical)


def move_live_dock(window: QMainWindow, live: QDockWidget, bottom: list[QDockWidget], before: int) -> None:
    """Move the live plots to their default place for the new width, unless the operator has moved them."""
    if (before >= WIDE) == (window.width() >= WIDE) or not _placed_by_width(window, live, before):
        return
    front = next((dock for dock in (live, *bottom) if in_front(dock)), bottom[0])
    hidden = [dock for dock in (live, *bottom) if dock.isHidden()]
    _place_live(window, live, bottom)
    for dock in (live, *bottom):
        dock.setVisible(dock not in hidden)
    front.raise_()


def _place_live(window: QMainWindow, live: QDockWidget, bottom: list[QDockWidget]) -> None:
    # Into the tabs at once: side by side they would need more width than a small screen has.
    if window.width() >= WIDE:
        window.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, live)
        others = bottom[1:]
    else:
        others = [live, *bottom[1:]]
    for dock in others:
        window.tabifyDockWidget(bottom[0], dock)
    window.resizeDocks([live], [window.width() * 31 // 100], Qt.Orientation.Horizontal)


def _placed_by_width(window: QMainWindow, live: QDockWidget, width: int) -> bool:
    wanted = Qt.DockWidgetArea.RightDockWidgetArea if width >= WIDE else _BOTTOM
    return not live.isFloating() and window.dockWidgetArea(live) == wanted


# Folding of the panes below the pages


def in_front(dock: QDockWidget) -> bool:
    """Whether the dock can be seen, not only its tab."""
    return dock.isVisible() and not dock.visibleRegion().isEmpty()


def bottom_docks(window: QMainWindow) -> list[QDockWidget]:
    """The docks below the pages, hidden or not."""
    return [dock for dock in _docks(window) if not dock.isFloating() and window.dockWidgetArea(dock) == _BOTTOM]


def toggle_bottom(window: QMainWindow) -> None:
    """Fold the docks below the pages, or unfold them as they were."""
    docks = bottom_docks(window)
    shown = [dock for dock in docks if not dock.isHidden()]
    if not shown:
        unfold(window)
        return
    front = next((dock for dock in shown if in_front(dock)), shown[0])
    for dock in docks:
        dock.setProperty(_FOLDED, "front" if dock is front else dock in shown)
    for dock in shown:
        dock.hide()


def unfold(window: QMainWindow) -> None:
    """Unfold what `toggle_bottom` has folded; all docks below the pages if that is unknown."""
    docks = bottom_docks(window)
    folded = [dock for dock in docks if dock.property(_FOLDED)] or docks
    for dock in folded:
        dock.show()
    for dock in folded:
        if dock.property(_FOLDED) == "front":
            dock.raise_()
        dock.setProperty(_FOLDED, False)


def is_folded(dock: QDockWidget) -> bool:
    """Whether the dock was folded with those below the pages."""
    return dock.isHidden() and bool(dock.property(_FOLDED))


def _show_title_bars(window: QMainWindow) -> None:
    """A dock among tabs is named by its tab; a title bar would repeat it."""
    if not isValid(window):
        # Docks also report that they are hidden while their window is deleted.
        return
    for tabs in window.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly):
        tabs.setAccessibleName(QCoreApplication.translate("Layout", "Panes"))
    for dock in _docks(window):
        tabbed = not dock.isFloating() and bool(window.tabifiedDockWidgets(dock))
        bar = dock.titleBarWidget()
        if isinstance(bar, TitleBar):
            bar.set_folded(tabbed)


def _docks(window: QMainWindow) -> list[QDockWidget]:
    """All docks, also those of a floating group, which is a window of its own.

    To search all widgets of the window took 0.4 ms each time, 20 times while it opens.
    """
    direct = Qt.FindChildOption.FindDirectChildrenOnly
    owners = (window, *(child for child in window.findChildren(QWidget, options=direct) if child.isWindow()))
    return [dock for owner in owners for dock in owner.findChildren(QDockWidget, options=direct)]


def save_layout(window: QMainWindow, state: WindowState, live: QDockWidget) -> None:
    """Store geometry and docks, and whether the live plots are at their default place."""
    state.set(_FOLLOWS, _placed_by_width(window, live, window.width()))
    state.set(_GEOMETRY, window.saveGeometry())
    state.set(_DOCKS, window.saveState(LAYOUT_VERSION))


def restore_layout(window: QMainWindow, state: WindowState) -> bool:
    """Restore the stored layout. Returns whether the docks could be restored."""
    geometry, docks = state.blob(_GEOMETRY), state.blob(_DOCKS)
    if not geometry.isEmpty():
        window.restoreGeometry(geometry)
    return not docks.isEmpty() and window.restoreState(docks, LAYOUT_VERSION)


def follows_width(state: WindowState) -> bool:
    """Whether the live plots were at their default place, or nothing is stored."""
    return state.flag(_FOLLOWS, True)


def clear_layout(state: WindowState) -> None:
    """Remove the stored layout."""
    state.remove(_GEOMETRY)
    state.remove(_DOCKS)
    state.remove(_FOLLOWS)
