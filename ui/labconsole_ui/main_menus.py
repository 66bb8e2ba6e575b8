"""The menus of the main window: all that it can do, with shortcuts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QKeySequence

from labconsole_ui.help.guide_page import guide_path
from labconsole_ui.help.help_page import show_about
from labconsole_ui.shell import docks
from labconsole_ui.shell.menus import MenuBuilder
from labconsole_ui.shell.navigation import GUIDE, HELP, START
from labconsole_ui.theme.theme import ThemeMode

if TYPE_CHECKING:
    from labconsole_ui.shell.main_window import MainWindow


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
