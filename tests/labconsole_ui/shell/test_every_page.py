"""All pages of all plugins in one window: names for assistive technology, Alt keys, and the menus of version 0.1.0.

`window-0.1.0.json` was recorded before the tree was redesigned, and is never written again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from PySide6.QtGui import QAction, QShortcut
from PySide6.QtWidgets import QMenu, QWidget

from labconsole_ui.runtime.incremental import BuiltIncrementally
from labconsole_ui.runtime.page_targets import GUIDE, HELP, START, targets_of
from labconsole_ui.shell.main_window import MainWindow
from tests.helpers.pages import opened
from tests.labconsole_ui.controls import nameless
from tests.labconsole_ui.shared_window import SharedWindow
from tests.labconsole_ui.shell.alt_keys import faults_on_page

RECORDED = json.loads((Path(__file__).parent / "window-0.1.0.json").read_text())
TITLES: dict[str, str] = {
    "Help and shortcuts": "Help on this page",
    "Help > Help and shortcuts": "Help > Help on this page",
    "Operator's guide": "Documentation",
    "Help > Operator's guide": "Help > Documentation",
}
"""Entry or shortcut of version 0.1.0 -> its name today."""


@dataclass
class Findings:
    """What is found on all pages."""

    nameless: dict[str, list[str]] = field(default_factory=dict)
    """Widgets without a name, by the page that was opened, and at the end in the whole window."""
    same_alt_keys: list[str] = field(default_factory=list)
    menus: dict[str, str] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)


@pytest.fixture(scope="module")
def findings(module_window: SharedWindow) -> Findings:
    """Of a window in which each page was opened, and then each of its tabs, to its last piece."""
    window, findings = module_window.window, Findings()
    findings.nameless["window"] = nameless(window)
    targets = [target for plugin in window.services.plugins.found for target in targets_of(plugin)]
    pages = {target: opened(window, target) for target in (START, HELP, GUIDE, *targets)}
    findings.nameless |= {target: nameless(page) for target, page in pages.items()}
    findings.nameless["window with pages"] = nameless(window)
    for target in pages:
        window.show_page(target)
        findings.same_alt_keys += faults_on_page(window, target)
    for page in pages.values():
        for part in page.findChildren(QWidget):
            if isinstance(part, BuiltIncrementally):
                part.building.finish()
    for menu in window.menuBar().actions():
        findings.menus.update(entries(menu.menu(), plain(menu.text())))
    findings.keys.update(shortcuts(window))
    return findings


def test_every_widget_that_takes_the_focus_has_a_name(findings: Findings) -> None:
    assert not any(findings.nameless.values()), findings.nameless


def test_alt_keys_are_unique_on_every_page(findings: Findings) -> None:
    assert not findings.same_alt_keys, "\n".join(findings.same_alt_keys)


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
    """The text without the mark of the Alt key."""
    return text.replace("&", "")


def keys_of(action: QAction) -> str:
    return ", ".join(sequence.toString() for sequence in action.shortcuts())


def test_menus_and_shortcuts_are_those_of_version_0_1_0(findings: Findings) -> None:
    for was, now in ((RECORDED["menus"], findings.menus), (RECORDED["keys"], findings.keys)):
        assert {TITLES.get(name, name): keys for name, keys in was.items()}.items() <= now.items()
