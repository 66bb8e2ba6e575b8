"""The menu bar: everything the window can do, with its shortcut."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QDockWidget, QMainWindow, QMenu

from labconsole_ui.help.guide_page import guide_path
from labconsole_ui.help.help_page import show_about
from labconsole_ui.shell import docks
from labconsole_ui.shell.docks import in_front, is_folded, unfold
from labconsole_ui.shell.navigation import GUIDE, HELP, START
from labconsole_ui.theme.theme import Theme, ThemeMode

if TYPE_CHECKING:
    from labconsole_ui.shell.main_window import MainWindow


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


def build_menus(window: MainWindow) -> MenuBuilder:
    """Fill the menu bar of `window`, whose views are there already."""

    tr = QCoreApplication.translate
    menus = MenuBuilder(window, window.services.theme)
    file = menus.menu(tr("Menus", "&File"))
    menus.add(file, tr("Menus", "Run the &demo"), window.run_demo, "Ctrl+D", "run")
    file.addSeparator()
    menus.add(file, tr("Menus", "&Import runs ..."), window.files.ask_import, "Ctrl+I", "import")
    menus.add(file, tr("Menus", "&Open another database ..."), window.ask_database, "Ctrl+O", "database")
    file.addSeparator()
    menus.add(file, tr("Menus", "&Close page"), window.close_page, "Ctrl+W")
    menus.add(file, tr("Menus", "&Quit"), window.close, "Ctrl+Q")
    queue = menus.menu(tr("Menus", "&Queue"))
    view = window.queue_view
    menus.adopt(queue, [view.pause_action, view.cancel_action])
    queue.addSeparator()
    menus.adopt(queue, [view.open_action, view.repeat_action, view.remove_action, view.up_action, view.down_action])
    queue.addSeparator()
    menus.adopt(queue, [view.clear_action])
    runs = menus.menu(tr("Menus", "R&uns"))
    chosen = window.history_view.run_actions
    menus.adopt(runs, [chosen.open, chosen.compare, chosen.report])
    runs.addSeparator()
    menus.adopt(runs, [chosen.use, chosen.pin])
    runs.addSeparator()
    menus.adopt(runs, [chosen.export, chosen.verify])
    runs.addSeparator()
    menus.adopt(runs, [chosen.group, chosen.trash, chosen.restore, chosen.purge])
    show = menus.menu(tr("Menus", "&View"))
    menus.add(show, tr("Menus", "&Start page"), lambda: window.show_page(START), "Alt+Home", "home")
    show.addSeparator()
    menus.add_docks(
        show, [window.navigation_dock, window.queue_dock, window.live_dock, window.history_dock, window.log_dock]
    )
    menus.add(show, tr("Menus", "&Fold the panes beneath"), lambda: docks.toggle_bottom(window), "Ctrl+J", "panes")
    show.addSeparator()
    menus.add(show, tr("Menus", "&Next page"), lambda: window.pages.step(1), "Ctrl+Tab")
    menus.add(show, tr("Menus", "&Previous page"), lambda: window.pages.step(-1), "Ctrl+Shift+Tab")
    show.addSeparator()
    titles = {
        ThemeMode.SYSTEM: tr("Menus", "Theme &of the system"),
        ThemeMode.LIGHT: tr("Menus", "&Light theme"),
        ThemeMode.DARK: tr("Menus", "&Dark theme"),
    }
    menus.add_themes(show, titles, window.set_theme)
    show.addSeparator()
    larger = menus.add(show, tr("Menus", "Lar&ger text"), lambda: window.step_text_size(1), "Ctrl++")
    larger.setShortcuts([QKeySequence("Ctrl++"), QKeySequence("Ctrl+=")])  # Plus without Shift, on many keyboards
    menus.add(show, tr("Menus", "S&maller text"), lambda: window.step_text_size(-1), "Ctrl+-")
    menus.add(show, tr("Menus", "Text size of the s&ystem"), lambda: window.set_text_size(100), "Ctrl+0")
    show.addSeparator()
    menus.add(show, tr("Menus", "Full s&creen"), window.toggle_full_screen, "F11")
    menus.add(show, tr("Menus", "&Reset layout"), window.reset_layout)
    about = menus.menu(tr("Menus", "&Help"))
    menus.add(about, tr("Menus", "&Help and shortcuts"), lambda: window.show_page(HELP), "F1", "help")
    if guide_path() is not None:
        menus.add(about, tr("Menus", "Operator's &guide"), lambda: window.show_page(GUIDE), "Shift+F1", "book")
    menus.add(about, tr("Menus", "Folder of the &data"), window.open_data_folder, icon="folder")
    menus.add(about, tr("Menus", "&About"), lambda: show_about(window), icon="info")
    return menus
