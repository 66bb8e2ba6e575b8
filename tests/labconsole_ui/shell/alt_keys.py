"""Controls of a window whose Alt keys are the same."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QAbstractButton, QLabel, QTabBar, QWidget

from labconsole_ui.shell.main_window import MainWindow


def clashes(window: MainWindow, where: str) -> str:
    """Controls with the same Alt key in the window as it is now."""
    texts = [action.text() for action in window.menuBar().actions()]
    texts += [text for widget in below_shown(window) for text in texts_of(widget)]
    found: dict[str, list[str]] = {}
    for text in texts:
        if key := QKeySequence.mnemonic(text).toString():
            found.setdefault(key, []).append(text)
    twice = {key: same for key, same in found.items() if len(same) > 1}
    return f"{where}: {twice}" if twice else ""


def below_shown(widget: QWidget) -> Iterator[QWidget]:
    """The widgets in shown parents of the same window, also hidden ones."""
    for child in widget.children():
        if isinstance(child, QWidget) and not child.isWindow():
            yield child
            if child.isVisible():
                yield from below_shown(child)


def texts_of(widget: QWidget) -> list[str]:
    """Texts of a widget that can have Alt keys."""
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
