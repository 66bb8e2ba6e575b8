"""Alt keys: on every page each letter leads to one place, the menu bar's own letters to its menus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QAbstractButton, QLabel, QTabBar, QWidget

from labconsole.clock import wall_now
from labconsole.processes import Owner
from labconsole.store.records import NewCampaign, NewScenario
from labconsole_ui.runtime.page_targets import GUIDE, HELP, START, targets_of
from labconsole_ui.runtime.services import Services
from labconsole_ui.shell.main_window import MainWindow
from tests.helpers.pages import opened

CAMPAIGN = NewCampaign(
    "demo",
    "Two runs",
    "",
    7,
    tuple(NewScenario(f"Test {test}", "amqp.messaging", {"test": test}) for test in (1, 2)),
    ((0, 1), (1, 1)),
)


def clashes(window: MainWindow, where: str) -> str:
    """Controls with the same Alt key in the window as it is now."""
    texts = [action.text() for action in window.menuBar().actions()]
    texts += [text for widget in window.findChildren(QWidget) for text in texts_of(widget)]
    found: dict[str, list[str]] = {}
    for text in texts:
        if key := QKeySequence.mnemonic(text).toString():
            found.setdefault(key, []).append(text)
    twice = {key: same for key, same in found.items() if len(same) > 1}
    return f"{where}: {twice}" if twice else ""


def texts_of(widget: QWidget) -> list[str]:
    """Texts of a widget whose Alt keys work, also of a hidden one in a shown parent."""
    above = widget.parentWidget()
    if above is None or not above.isVisible() or above.window() is not widget.window():
        return []
    if isinstance(widget, QAbstractButton):
        return [widget.text()]
    if isinstance(widget, QLabel) and widget.buddy() is not None:
        return [widget.text()]
    return [widget.tabText(index) for index in range(widget.count())] if isinstance(widget, QTabBar) else []


def places_on(page: QWidget) -> Iterator[str]:
    """Brings each tab of a page to the front, with its name; without tabs the page is one place."""
    all_tabs = page.findChildren(QTabBar)
    if not all_tabs:
        yield ""
    for tabs in all_tabs:
        for index in range(tabs.count()):
            tabs.setCurrentIndex(index)
            yield tabs.tabText(index)


def faults_on_page(window: MainWindow, name: str) -> list[str]:
    """Clashes on the page in front, with each pane below it."""
    page = window.pages.currentWidget()
    assert page is not None
    return [
        fault
        for place in places_on(page)
        for dock in window._bottom_docks
        if not dock.raise_() and (fault := clashes(window, f"{name}, {place}, {dock.windowTitle()}"))
    ]


def test_alt_keys_are_unique_on_every_page(shown_window: MainWindow) -> None:
    targets = [target for plugin in shown_window.services.plugins.found for target in targets_of(plugin)]
    faults = []
    for target in [START, HELP, GUIDE, *targets]:
        opened(shown_window, target)
        faults += faults_on_page(shown_window, target)
    assert not faults, "\n".join(faults)


def test_alt_keys_are_unique_on_the_pages_of_runs(window: MainWindow, services: Services) -> None:
    runs = services.bridge.queue.store.add_campaign(CAMPAIGN, Owner(2**22 + 1, 1.0, "another boot"), wall_now())
    window.runs.open_run(runs[0])
    faults = faults_on_page(window, "run")
    window.runs.compare_runs(runs)
    faults += faults_on_page(window, "comparison")
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("position", range(5))
def test_letters_within_a_menu_are_unique(shown_window: MainWindow, position: int) -> None:
    menu = shown_window.menuBar().actions()[position].menu()
    assert menu is not None
    keys = [QKeySequence.mnemonic(action.text()).toString() for action in menu.actions()]
    twice = {key for key, count in Counter(filter(None, keys)).items() if count > 1}
    assert not twice, [action.text() for action in menu.actions()]
