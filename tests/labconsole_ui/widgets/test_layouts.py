"""Pages of tabs: created with their parent, they are not styled twice."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QLabel, QTabWidget
from pytestqt.qtbot import QtBot

from labconsole_ui.widgets.layouts import page_parent


class ParentChanges(QObject):
    """Counts the changes of a widget's parent."""

    count = 0

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt names it
        self.count += event.type() == QEvent.Type.ParentChange
        return super().eventFilter(watched, event)


def test_a_page_keeps_the_parent_that_it_was_created_with(qtbot: QtBot) -> None:
    tabs, changes = QTabWidget(), ParentChanges()
    qtbot.addWidget(tabs)
    pages = [QLabel(text, page_parent(tabs)) for text in ("First", "Second")]
    for page in pages:
        page.installEventFilter(changes)
        tabs.addTab(page, page.text())
    tabs.show()
    assert changes.count == 0
    assert [page.isVisible() for page in pages] == [True, False]
    tabs.setCurrentIndex(1)
    assert [page.isVisible() for page in pages] == [False, True]
