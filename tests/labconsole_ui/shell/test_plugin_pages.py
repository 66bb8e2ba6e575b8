"""Pages of plugins other than trials: navigation, start page, broken pages, dropped files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QPlainTextEdit, QPushButton, QTreeWidgetItem, QWidget
from pytestqt.qtbot import QtBot

from labconsole.model.plugin import Plugin, PluginPage, Plugins
from labconsole_ui.panels.plugin_page import PageContext
from labconsole_ui.runtime.services import Services
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.shell.navigation import Navigation
from labconsole_ui.views.start_page import StartPage


class FilingPage(QWidget):
    """A page that records the files that it opens."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self.context = context
        self.given: list[Path] = []

    def open_files(self, paths: Sequence[Path]) -> None:
        self.given.extend(paths)


FILING = Plugin(
    name="filing",
    title="Filing",
    description="Takes files",
    pages={"desk": PluginPage(title="Desk", factory=f"{__name__}:FilingPage", opens=(".pem", ".p12"))},
)
BAD = Plugin(
    name="bad",
    title="Bad",
    description="Has one page that fails",
    pages={
        "gone": PluginPage(title="Gone", factory="no_such_module:Page"),
        "other": PluginPage(title="Other", factory=f"{__name__}:FilingPage"),
    },
)


def with_pages(services: Services, open_window: Callable[[Services], MainWindow]) -> MainWindow:
    return open_window(replace(services, plugins=Plugins((*services.plugins.found, FILING, BAD))))


def entry(navigation: Navigation, *titles: str) -> QTreeWidgetItem:
    items = [navigation.topLevelItem(row) for row in range(navigation.topLevelItemCount())]
    for title in titles[:-1]:
        parent = next(item for item in items if item.text(0) == title)
        items = [parent.child(row) for row in range(parent.childCount())]
    return next(item for item in items if item.text(0) == titles[-1])


def click(qtbot: QtBot, navigation: Navigation, item: QTreeWidgetItem) -> None:
    navigation.scrollToItem(item)
    place = navigation.visualItemRect(item).center()
    qtbot.mouseClick(navigation.viewport(), Qt.MouseButton.LeftButton, pos=place)


def test_page_is_one_click_away_and_marked_while_it_is_in_front(
    qtbot: QtBot, services: Services, open_window: Callable[[Services], MainWindow]
) -> None:
    window = with_pages(services, open_window)
    navigation = window.navigation
    item = entry(navigation, "Filing")
    click(qtbot, navigation, item)
    page = window.pages.currentWidget()
    assert isinstance(page, FilingPage)
    assert window.pages.current_key == "page:filing:desk"
    assert page.context.plugin is FILING
    assert navigation.currentItem() is item
    window.show_page("start")
    window.show_page("page:filing:desk")
    assert window.pages.currentWidget() is page


def test_start_page_opens_the_page_of_a_plugin_without_trials(
    qtbot: QtBot, services: Services, open_window: Callable[[Services], MainWindow]
) -> None:
    window = with_pages(services, open_window)
    buttons = window.findChild(StartPage).findChildren(QPushButton)
    button = next(button for button in buttons if button.accessibleName() == "Open Filing")
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert window.pages.current_key == "page:filing:desk"


def test_each_page_of_the_console_has_an_icon_of_its_own(window: MainWindow) -> None:
    hosts, agreements = (
        item.icon(0).pixmap(18, 18).toImage()
        for title in ("Hosts", "Agreements")
        for item in window.navigation.findItems(title, Qt.MatchFlag.MatchExactly)
    )
    assert hosts != agreements
    for target in ("page:console:hosts", "page:console:agreements"):
        window.plugin_pages.open(target)
    tabs = [window.pages.tabIcon(index).pixmap(18, 18).toImage() for index in range(1, window.pages.count())]
    assert len(tabs) == 2 and tabs[0] != tabs[1]


def test_page_that_cannot_be_created_is_shown_as_broken_and_the_plugin_s_other_page_works(
    qtbot: QtBot, services: Services, open_window: Callable[[Services], MainWindow]
) -> None:
    window = with_pages(services, open_window)
    click(qtbot, window.navigation, entry(window.navigation, "Bad", "Gone"))
    details = window.pages.currentWidget().findChild(QPlainTextEdit)
    assert "no_such_module" in details.toPlainText()
    click(qtbot, window.navigation, entry(window.navigation, "Bad", "Other"))
    assert isinstance(window.pages.currentWidget(), FilingPage)


def test_files_dropped_anywhere_go_to_the_page_that_takes_their_kind(
    services: Services, open_window: Callable[[Services], MainWindow], tmp_path: Path
) -> None:
    window = with_pages(services, open_window)
    data = QMimeData()
    names = ("root.PEM", "notes.txt", "key.p12")
    data.setUrls([QUrl.fromLocalFile(str(tmp_path / name)) for name in names] + [QUrl("https://a.example/b.pem")])
    assert entered(window, data)
    window.dropEvent(drop(data))
    page = window.pages.page("page:filing:desk")
    assert isinstance(page, FilingPage)
    assert [path.name for path in page.given] == ["root.PEM", "key.p12"]


def test_files_that_no_page_opens_are_not_accepted(
    services: Services, open_window: Callable[[Services], MainWindow], tmp_path: Path
) -> None:
    window = with_pages(services, open_window)
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tmp_path / "notes.txt"))])
    assert not entered(window, data)


def entered(window: MainWindow, data: QMimeData) -> bool:
    buttons, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    event = QDragEnterEvent(QPointF(5, 5).toPoint(), Qt.DropAction.CopyAction, data, buttons, keys)
    event.ignore()
    window.dragEnterEvent(event)
    return event.isAccepted()


def drop(data: QMimeData) -> QDropEvent:
    buttons, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    return QDropEvent(QPointF(5, 5), Qt.DropAction.CopyAction, data, buttons, keys)
