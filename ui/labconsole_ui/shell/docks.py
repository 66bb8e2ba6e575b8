"""The docks of the window: where they stand at first, and how their places are remembered."""

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
        """Take no room, or room for the title."""
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
"""From this width (px) on there is room for the live plots beside the pages; below they are a tab beneath them."""
MIN_SIZE = QSize(1024, 700)
LARGEST_FIRST_SIZE = QSize(1760, 1040)
BOTTOM_HEIGHT = 244
_GEOMETRY = "window/geometry"
_DOCKS = "window/docks"
_FOLLOWS = "window/live-follows-width"
_FOLDED = "folded"
_BOTTOM = Qt.DockWidgetArea.BottomDockWidgetArea


def create_dock(
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


def first_size(window: QMainWindow) -> QSize:
    """The size of a first start: most of the screen, neither tiny nor as wide as a wall."""
    room = window.screen().availableSize() * 0.94
    return room.boundedTo(LARGEST_FIRST_SIZE).expandedTo(MIN_SIZE)


def arrange(window: QMainWindow, navigation: QDockWidget, live: QDockWidget, bottom: list[QDockWidget]) -> None:
    """The layout of a first start: navigation left, queue, history and log in tabs beneath the pages.

    The live plots stand at the right of a wide window, and are the second tab of a narrow one.
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


def follow_width(window: QMainWindow, live: QDockWidget, bottom: list[QDockWidget], before: int) -> None:
    """Move the live plots to where the window's new width wants them, unless the operator has put them elsewhere."""
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


# Folding the panes beneath the pages away


def in_front(dock: QDockWidget) -> bool:
    """Whether the dock can be seen, not only its tab."""
    return dock.isVisible() and not dock.visibleRegion().isEmpty()


def bottom_docks(window: QMainWindow) -> list[QDockWidget]:
    """The docks that stand beneath the pages, hidden or not."""
    docks = window.findChildren(QDockWidget)
    return [dock for dock in docks if not dock.isFloating() and window.dockWidgetArea(dock) == _BOTTOM]


def toggle_bottom(window: QMainWindow) -> None:
    """Fold the docks beneath the pages away, or bring them back as they were."""
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
    """Bring back what `toggle_bottom` has folded away; all docks beneath the pages if that is not known any more."""
    docks = bottom_docks(window)
    folded = [dock for dock in docks if dock.property(_FOLDED)] or docks
    for dock in folded:
        dock.show()
    for dock in folded:
        if dock.property(_FOLDED) == "front":
            dock.raise_()
        dock.setProperty(_FOLDED, False)


def is_folded(dock: QDockWidget) -> bool:
    """Whether the dock was folded away with those beneath the pages."""
    return dock.isHidden() and bool(dock.property(_FOLDED))


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


def remember(window: QMainWindow, state: WindowState, live: QDockWidget) -> None:
    """Keep size, place and docks, and whether the live plots stand where the width wants them."""
    state.keep(_FOLLOWS, _placed_by_width(window, live, window.width()))
    state.keep(_GEOMETRY, window.saveGeometry())
    state.keep(_DOCKS, window.saveState(LAYOUT_VERSION))


def restore(window: QMainWindow, state: WindowState) -> bool:
    """Bring back what was kept. Returns whether the docks could be."""
    geometry, docks = state.blob(_GEOMETRY), state.blob(_DOCKS)
    if not geometry.isEmpty():
        window.restoreGeometry(geometry)
    return not docks.isEmpty() and window.restoreState(docks, LAYOUT_VERSION)


def follows_width(state: WindowState) -> bool:
    """Whether the live plots stood where the width wanted them, or nothing is remembered."""
    return state.flag(_FOLLOWS, True)


def forget(state: WindowState) -> None:
    """Forget what was kept."""
    state.forget(_GEOMETRY)
    state.forget(_DOCKS)
    state.forget(_FOLLOWS)
