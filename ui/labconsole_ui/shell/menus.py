"""The menu bar, with all commands of the window and their shortcuts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QDockWidget, QMainWindow, QMenu

from labconsole_ui.help.help_page import show_about
from labconsole_ui.runtime.page_targets import GUIDE, HELP, START
from labconsole_ui.shell import docks
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
        # Not addMenu(title): PySide deletes such a menu after a call of QAction.menu().
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

    def add_groups(self, menu: QMenu, groups: Sequence[list[QAction]]) -> None:
        """Show actions that belong to a view in `menu`, too, with a line between groups."""
        for number, actions in enumerate(groups):
            if number:
                menu.addSeparator()
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

    def add_themes(self, menu: QMenu, titles: dict[ThemeMode, str], chosen: Callable[[ThemeMode], object]) -> None:
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


@dataclass(frozen=True)
class MenuCommands:
    """What the entries of the menu bar do, and the actions of views that are in it, too, in groups."""

    run_demo: Callable[[], object]
    import_runs: Callable[[], object]
    open_database: Callable[[], object]
    close_page: Callable[[], object]
    show_page: Callable[[str], object]
    step_page: Callable[[int], object]
    set_theme: Callable[[ThemeMode], object]
    step_text_size: Callable[[int], object]
    set_text_size: Callable[[int], object]
    toggle_full_screen: Callable[[], object]
    reset_layout: Callable[[], object]
    open_chapter: Callable[[], object]
    open_data_folder: Callable[[], object]
    queue_actions: Sequence[list[QAction]]
    run_actions: Sequence[list[QAction]]
    docks: list[QDockWidget]


def build_menus(window: QMainWindow, theme: Theme, commands: MenuCommands) -> MenuBuilder:
    """Fill the menu bar of `window`."""

    tr = QCoreApplication.translate
    menus = MenuBuilder(window, theme)
    file = menus.menu(tr("Menus", "&File"))
    menus.add(file, tr("Menus", "Run the &demo"), commands.run_demo, "Ctrl+D", "run")
    file.addSeparator()
    menus.add(file, tr("Menus", "&Import runs ..."), commands.import_runs, "Ctrl+I", "import")
    menus.add(file, tr("Menus", "&Open another database ..."), commands.open_database, "Ctrl+O", "database")
    file.addSeparator()
    menus.add(file, tr("Menus", "&Close page"), commands.close_page, "Ctrl+W")
    menus.add(file, tr("Menus", "&Quit"), window.close, "Ctrl+Q")
    menus.add_groups(menus.menu(tr("Menus", "&Queue")), commands.queue_actions)
    menus.add_groups(menus.menu(tr("Menus", "R&uns")), commands.run_actions)
    show = menus.menu(tr("Menus", "&View"))
    menus.add(show, tr("Menus", "&Start page"), lambda: commands.show_page(START), "Alt+Home", "home")
    show.addSeparator()
    menus.add_docks(show, commands.docks)
    menus.add(show, tr("Menus", "&Fold the panes beneath"), lambda: docks.toggle_bottom(window), "Ctrl+J", "panes")
    show.addSeparator()
    menus.add(show, tr("Menus", "&Next page"), lambda: commands.step_page(1), "Ctrl+Tab")
    menus.add(show, tr("Menus", "&Previous page"), lambda: commands.step_page(-1), "Ctrl+Shift+Tab")
    show.addSeparator()
    titles = {
        ThemeMode.SYSTEM: tr("Menus", "Theme &of the system"),
        ThemeMode.LIGHT: tr("Menus", "&Light theme"),
        ThemeMode.DARK: tr("Menus", "&Dark theme"),
    }
    menus.add_themes(show, titles, commands.set_theme)
    show.addSeparator()
    larger = menus.add(show, tr("Menus", "Lar&ger text"), lambda: commands.step_text_size(1), "Ctrl++")
    larger.setShortcuts([QKeySequence("Ctrl++"), QKeySequence("Ctrl+=")])  # Plus without Shift, on many keyboards
    menus.add(show, tr("Menus", "S&maller text"), lambda: commands.step_text_size(-1), "Ctrl+-")
    menus.add(show, tr("Menus", "Text size of the s&ystem"), lambda: commands.set_text_size(100), "Ctrl+0")
    show.addSeparator()
    menus.add(show, tr("Menus", "Full s&creen"), commands.toggle_full_screen, "F11")
    menus.add(show, tr("Menus", "&Reset layout"), commands.reset_layout)
    about = menus.menu(tr("Menus", "&Help"))
    menus.add(about, tr("Menus", "Help on this &page"), commands.open_chapter, "F1")
    menus.add(about, tr("Menus", "D&ocumentation"), lambda: commands.show_page(GUIDE), "Shift+F1", "book")
    menus.add(about, tr("Menus", "&Help and shortcuts"), lambda: commands.show_page(HELP), icon="help")
    menus.add(about, tr("Menus", "Folder of the &data"), commands.open_data_folder, icon="folder")
    menus.add(about, tr("Menus", "&About"), lambda: show_about(window), icon="info")
    return menus
