"""The window as a whole: pages, menus, first start, broken plugins, names for assistive technology."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QLabel,
    QPushButton,
    QTextBrowser,
    QWidget,
)
from pytestqt.qtbot import QtBot

from labconsole.model.plugin import BrokenPlugin, Plugin, Plugins
from labconsole_ui.runtime.services import Services, WindowLock
from labconsole_ui.runtime.settings import WindowState
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.shell.navigation import Navigation
from labconsole_ui.shell.pages import Pages
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.comparison.comparison_view import ComparisonView
from labconsole_ui.views.start_page import RecentRun, StartPage
from tests.helpers.pages import opened_trial
from tests.labconsole_ui.campaigns import KIND, campaign
from tests.labconsole_ui.controls import nameless


@pytest.mark.usefixtures("worker_threads")
def test_every_widget_of_a_run_and_a_comparison_that_takes_the_focus_has_a_name(
    qtbot: QtBot, window: MainWindow
) -> None:
    """Those of all other pages are in `test_every_page.py`."""
    (run_id,) = window.services.bridge.queue.submit(campaign("A"))
    qtbot.waitUntil(lambda: not window.services.bridge.queue.busy)
    window.runs.open_run(run_id)
    window.runs.compare_runs([run_id])
    qtbot.wait(300)
    assert nameless(window) == []


def test_nothing_flashes_up_as_a_window_of_its_own(qapp: QApplication, qtbot: QtBot, shown_window: MainWindow) -> None:
    class Watch(QObject):
        seen: list[str] = []  # noqa: RUF012

        def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt names it
            if event.type() == QEvent.Type.Show and isinstance(watched, QWidget) and watched.isWindow():
                self.seen.append(repr(watched))
            return False

    watch = Watch()
    qapp.installEventFilter(watch)
    opened_trial(shown_window, KIND)
    shown_window.show_page("help")
    shown_window.runs.compare_runs([])
    qtbot.wait(100)
    qapp.removeEventFilter(watch)
    assert watch.seen == []


@pytest.mark.usefixtures("worker_threads")
def test_demo_is_one_click_away_and_brings_the_live_plots_forward(qtbot: QtBot, window: MainWindow) -> None:
    window.live_dock.hide()
    page = window.findChild(StartPage)
    qtbot.mouseClick(page.demo_button, Qt.MouseButton.LeftButton)
    queue = window.services.bridge.queue
    assert sorted(item.scenario.split(":")[0] for item in queue.items[:4]) == ["Test 1", "Test 2", "Test 3", "Test 4"]
    assert window.live_dock.isVisible()
    qtbot.waitUntil(lambda: window.findChild(ComparisonView) is not None)
    compared = window.findChild(ComparisonView)
    qtbot.waitUntil(lambda: len(compared.answers.cards()) == 6)
    assert {card.number.text() for card in compared.answers.cards()} == {"–"}, "questions that are not answered yet"
    assert compared.progress.text().startswith("Round 1 of 5, 0 of 20 runs done.")
    assert not page.demo_button.isEnabled()


@pytest.mark.usefixtures("worker_threads")
def test_start_page_shows_the_latest_runs_with_their_status(qtbot: QtBot, window: MainWindow) -> None:
    page, queue = window.findChild(StartPage), window.services.bridge.queue

    def latest() -> list[str]:
        lines = (line for line in page.findChildren(RecentRun) if not line.isHidden())
        return [line.text().split("   ·   ")[2] for line in lines]

    assert latest() == []
    queue.submit(campaign("A", "B", loop="open", rate=100, count=40))
    qtbot.waitUntil(lambda: latest() == ["Waiting", "Running"])
    qtbot.waitUntil(lambda: latest() == ["Running", "Finished"])
    qtbot.waitUntil(lambda: latest() == ["Finished", "Finished"])


@pytest.mark.parametrize(("text", "key"), [("Help and shortcuts", "help"), ("Documentation", "guide")])
def test_start_page_leads_to_the_documentation(qtbot: QtBot, shown_window: MainWindow, text: str, key: str) -> None:
    page = shown_window.findChild(StartPage)
    link = next(button for button in page.findChildren(QAbstractButton) if button.text() == text)
    qtbot.mouseClick(link, Qt.MouseButton.LeftButton)
    assert shown_window.pages.current_key == key
    shown = shown_window.pages.currentWidget()
    browser = shown if isinstance(shown, QTextBrowser) else shown.findChild(QTextBrowser)
    qtbot.waitUntil(lambda: len(browser.toPlainText()) > 500)


def test_broken_plugins_are_shown_with_their_error(
    services: Services, open_window: Callable[[Services], MainWindow]
) -> None:
    bad_trial = Plugin(name="bad", title="Bad", description="Cannot load", trials={"bad.trial": "no_such_module:Trial"})
    plugins = Plugins((*services.plugins.found, bad_trial), (BrokenPlugin("gone", "ImportError: no module gone"),))
    window = open_window(replace(services, plugins=plugins))
    navigation = window.findChild(Navigation)
    titles = [navigation.topLevelItem(row).text(0) for row in range(navigation.topLevelItemCount())]
    assert "gone (broken)" in titles
    window.show_page("broken:gone")
    assert any("ImportError: no module gone" in widget.toPlainText() for widget in details(window))
    window.show_page("trial:bad.trial")
    assert any("no_such_module" in widget.toPlainText() for widget in details(window))
    opened_trial(window, KIND)


def details(window: MainWindow) -> list[QWidget]:
    return [widget for widget in window.findChildren(QWidget) if widget.accessibleName() == "Error of the plugin"]


def test_pages_are_stepped_through_by_keys_and_closed_by_the_middle_button(
    qtbot: QtBot, shown_window: MainWindow
) -> None:
    opened_trial(shown_window, KIND)
    shown_window.show_page("help")
    qtbot.keyClick(shown_window, Qt.Key.Key_Tab, Qt.KeyboardModifier.ControlModifier)
    assert shown_window.pages.current_key == "start"
    qtbot.keyClick(
        shown_window, Qt.Key.Key_Backtab, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    )
    assert shown_window.pages.current_key == "help"
    bar = shown_window.pages.tabBar()
    for index in (2, 0):
        qtbot.mouseClick(bar, Qt.MouseButton.MiddleButton, pos=bar.tabRect(index).center())
    assert [page.objectName() for page in shown_window.pages.all_pages()] == ["start", f"trial:{KIND}"]


def test_second_window_on_the_same_database_is_reported(window: MainWindow, theme: Theme, home: Path) -> None:
    assert window.status.notice_label.isHidden()
    other = WindowLock(home / "runs.db")
    assert other.other_process is not None
    window.status.show_notice("Another console", "…")
    assert window.status.notice_label.isVisible()


def test_every_menu_entry_can_be_reached_by_keyboard(shown_window: MainWindow) -> None:
    for menu_action in shown_window.menuBar().actions():
        assert "&" in menu_action.text()
        menu = menu_action.menu()
        assert menu is not None
        shortcuts = [action.shortcut().toString() for action in menu.actions() if not action.shortcut().isEmpty()]
        assert len(shortcuts) == len(set(shortcuts))


def test_menus_survive_being_read(shown_window: MainWindow) -> None:
    def look() -> list[int]:
        counts = []
        for action in shown_window.menuBar().actions():
            menu = action.menu()
            counts.append(len(menu.actions()))
        return counts

    before = look()
    gc.collect()
    assert look() == before
    shown_window.show_page("help")


def test_help_lists_the_shortcuts(shown_window: MainWindow) -> None:
    (entry,) = [
        action for action in shown_window._menus.actions if action.text().replace("&", "") == "Help and shortcuts"
    ]
    entry.trigger()
    assert shown_window.pages.current_key == "help"
    text = shown_window.pages.currentWidget().toPlainText()
    for keys in ("F1", "Ctrl+D", "Ctrl+Return", "Ctrl+Q"):
        assert keys in text


def test_pages_are_found_again_and_closed_but_the_start_page_stays(qtbot: QtBot, shown_window: MainWindow) -> None:
    pages = shown_window.findChild(Pages)
    first = shown_window.open_trial(KIND)
    shown_window.show_page("start")
    assert shown_window.open_trial(KIND) is first
    pages.close_page(pages.currentIndex())
    assert pages.page(f"trial:{KIND}") is None
    shown_window.show_page("start")
    pages.close_page(pages.currentIndex())
    assert pages.page("start") is not None


def test_about_names_the_licences(qtbot: QtBot, shown_window: MainWindow) -> None:
    from labconsole_ui.help.help_page import show_about

    box = show_about(shown_window)
    words = " ".join(label.text() for label in box.findChildren(QLabel))
    assert "Lesser General Public License" in words
    assert "Open Font License" in words
    qtbot.mouseClick(box.findChildren(QPushButton)[0], Qt.MouseButton.LeftButton)


def test_window_starts_with_any_nonsense_in_its_settings(
    services: Services, open_window: Callable[[Services], MainWindow]
) -> None:
    for key in ("window/docks", "window/geometry", "window/theme", f"form/{KIND}", "history/columns"):
        services.state.set(key, "\u0000[]{}")
    services.state.save()
    state = WindowState(services.state.path)
    window = open_window(replace(services, state=state))
    opened_trial(window, KIND)
