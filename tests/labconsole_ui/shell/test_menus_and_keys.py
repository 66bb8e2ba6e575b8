"""Each menu entry and shortcut of version 0.1.0 still exists, by its name or one of `TITLES`.

`window-0.1.0.json` was recorded before the tree was redesigned, and is never written again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from PySide6.QtGui import QAction, QShortcut
from PySide6.QtWidgets import QMenu, QTabBar
from pytestqt.qtbot import QtBot

from labconsole_ui.runtime.page_targets import GUIDE, HELP, START, targets_of
from labconsole_ui.shell.main_window import MainWindow
from tests.helpers.pages import opened

RECORDED = json.loads((Path(__file__).parent / "window-0.1.0.json").read_text())
TITLES: dict[str, str] = {
    "Help and shortcuts": "Help on this page",
    "Help > Help and shortcuts": "Help > Help on this page",
    "Operator's guide": "Documentation",
    "Help > Operator's guide": "Help > Documentation",
}
"""Entry or shortcut of version 0.1.0 -> its name today."""


def entries(menu: QMenu, path: str) -> Iterator[tuple[str, str]]:
    """Path of each entry below `menu` -> its shortcuts."""
    for action in menu.actions():
        if action.menu() is not None:
            yield from entries(action.menu(), f"{path} > {plain(action.text())}")
        elif not action.isSeparator():
            yield f"{path} > {plain(action.text())}", keys_of(action)


def shortcuts(window: MainWindow) -> Iterator[tuple[str, str]]:
    """Title of each action with keys, in any view -> its keys; keys without a title by themselves."""
    for action in window.findChildren(QAction):
        if keys := keys_of(action):
            yield plain(action.text()), keys
    for shortcut in window.findChildren(QShortcut):
        yield f"key {shortcut.key().toString()}", shortcut.key().toString()


def plain(text: str) -> str:
    """The text without the mark of the Alt key, which test_alt_keys checks."""
    return text.replace("&", "")


def keys_of(action: QAction) -> str:
    return ", ".join(sequence.toString() for sequence in action.shortcuts())


def test_menus_and_shortcuts_are_those_of_version_0_1_0(qtbot: QtBot, window: MainWindow) -> None:
    for page in [
        START,
        HELP,
        GUIDE,
        *(target for plugin in window.services.plugins.found for target in targets_of(plugin)),
    ]:
        for tabs in opened(window, page).findChildren(QTabBar):
            for index in range(tabs.count()):
                tabs.setCurrentIndex(index)
                qtbot.wait(50)  # build pages that are built in pieces
    menus = dict(found for menu in window.menuBar().actions() for found in entries(menu.menu(), plain(menu.text())))
    keys = dict(shortcuts(window))
    for was, now in ((RECORDED["menus"], menus), (RECORDED["keys"], keys)):
        assert {TITLES.get(name, name): keys for name, keys in was.items()}.items() <= now.items()
