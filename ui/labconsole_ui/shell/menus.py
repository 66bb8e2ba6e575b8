"""The menu bar: everything the window can do, with its shortcut."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QDockWidget, QMainWindow, QMenu

from labconsole_ui.shell.docks import in_front, is_folded, unfold
from labconsole_ui.theme.theme import Theme, ThemeMode


class MenuBuilder:
    """Fills the menu bar of a window and keeps the actions for the help page."""

    def __init__(self, window: QMainWindow, theme: Theme) -> None:
        self._window = window
        self._theme = theme
        self.actions: list[QAction] = []

    def menu(self, title: str) -> QMenu:
        """A new menu of the bar."""
        # Not addMenu(title): PySide deletes such a menu after somebody called QAction.menu().
        made = QMenu(title, self._window.menuBar())
        self._window.menuBar().addMenu(made)
        return made

    def add(
        self,
        menu: QMenu,
        text: str,
        action: Callable[[], object],
        keys: str | QKeySequence.StandardKey = "",
        icon: str = "",
    ) -> QAction:
        """A new entry of `menu`."""
        made = menu.addAction(text)
        if keys:
            made.setShortcut(QKeySequence(keys))
        if icon:
            self._theme.bind_icon(made, icon, "muted")
        made.triggered.connect(lambda _checked=False: action())
        self.actions.append(made)
        return made

    def adopt(self, menu: QMenu, actions: list[QAction]) -> None:
        """Show actions that belong to a view in `menu` too."""
        menu.addActions(actions)
        self.actions += actions

    def add_docks(self, menu: QMenu, docks: list[QDockWidget]) -> None:
        """Entries that show and focus a dock, and hide it when it is in front already: Ctrl+1, Ctrl+2, ..."""
        for number, dock in enumerate(docks, start=1):
            made = self.add(menu, dock.windowTitle(), partial(_toggle, dock), f"Ctrl+{number}")
            made.setCheckable(True)
            made.setChecked(dock.isVisible())
            dock.visibilityChanged.connect(made.setChecked)
            dock.toggleViewAction().setVisible(False)

    def add_themes(self, menu: QMenu, titles: dict[ThemeMode, str], chosen: Callable[[ThemeMode], None]) -> None:
        """One entry for each theme; the one that is shown is marked."""
        group = QActionGroup(menu)
        for mode, title in titles.items():
            made = self.add(menu, title, partial(chosen, mode))
            made.setCheckable(True)
            made.setChecked(self._theme.mode is mode)
            group.addAction(made)


def _toggle(dock: QDockWidget) -> None:
    if in_front(dock) and dock.isAncestorOf(dock.window().focusWidget() or dock.window()):
        dock.hide()
        return
    bring_forward(dock)


def bring_forward(dock: QDockWidget, *, focus: bool = True) -> None:
    """Show a dock in front of those it shares its place with, and move the focus into it."""
    window = dock.parentWidget()
    if is_folded(dock) and isinstance(window, QMainWindow):
        unfold(window)
    dock.show()
    dock.raise_()
    content = dock.widget()
    if focus and content is not None:
        first = content.nextInFocusChain()
        inside = first is not None and content.isAncestorOf(first)
        target = first if first is not None and inside else content
        target.setFocus(Qt.FocusReason.ShortcutFocusReason)
