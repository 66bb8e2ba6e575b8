"""The history emits runs to open, follows the database and stores its columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from labconsole.model.plugin import Plugins
from labconsole.store.errors import StoreError
from labconsole.store.reader import Reader
from labconsole.store.records import RunRow
from labconsole_ui.views.history.columns import column_of
from labconsole_ui.views.history.history_view import HistoryView
from labconsole_ui.views.history.run_loader import RunLoader
from tests.labconsole_ui.slot_watch import again_after_a_long_turn, slots_watched
from tests.labconsole_ui.views.conftest import StoredRuns
from tests.labconsole_ui.views.history.history_rows import select, shown

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support")


class StutteringReader(Reader):
    """Fails at the first read of all runs, like a disk with a transient error."""

    asked = 0

    def runs(self, **conditions: Any) -> list[RunRow]:
        self.asked += 1
        if self.asked == 1:
            raise StoreError("The disk hiccups: try again.")
        return super().runs(**conditions)


def test_failed_read_is_repeated_at_the_next_poll(stored: StoredRuns, plugins: Plugins) -> None:
    stored.queued(("A", {"test": 1}))
    source = RunLoader(lambda: StutteringReader(stored.path), plugins)
    with pytest.raises(StoreError):
        source.read(force=False)
    read = source.read(force=False)
    assert read is not None and len(read.runs) == 1
    assert source.read(force=False) is None
    source.close()


def test_enter_double_click_and_buttons_emit_the_selected_runs(view: HistoryView, qtbot: QtBot) -> None:
    opened: list[list[int]] = []
    compared: list[list[int]] = []
    used: list[int] = []
    view.open_runs.connect(opened.append)
    view.compare_runs.connect(compared.append)
    view.use_parameters.connect(used.append)
    assert not view.run_actions.open_button.isEnabled()
    select(view, 1)
    assert view.run_actions.use.isEnabled() and not view.run_actions.compare_button.isEnabled()
    qtbot.keyClick(view.table, Qt.Key.Key_Return)
    view.run_actions.use.trigger()
    select(view, 1, 3)
    qtbot.mouseClick(view.run_actions.compare_button, Qt.MouseButton.LeftButton)
    place = view.table.visualRect(view.model.index(1, 2)).center()
    qtbot.mouseClick(view.table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    qtbot.mouseDClick(view.table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert (opened, compared, used) == ([[1], [2]], [[3, 1]], [1])


def test_runs_of_another_console_appear_and_the_selection_stays(
    view: HistoryView, filled: StoredRuns, qtbot: QtBot
) -> None:
    select(view, 2)
    filled.finished(("Later", {"test": 2}))
    qtbot.waitUntil(lambda: shown(view) == [4, 3, 2, 1])
    assert [run.id for run in view.selected()] == [2]


def test_rows_are_copied_with_their_titles(view: HistoryView, qtbot: QtBot) -> None:
    select(view, 1)
    qtbot.keyClick(view.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    head, row = QGuiApplication.clipboard().text().splitlines()
    assert head.split("\t")[:3] == ["Status", "Run", "Scenario"]
    assert row.split("\t")[:3] == ["Finished", "1", "Plain small"]


def test_hidden_columns_and_widths_are_remembered(
    view: HistoryView, make: Callable[[StoredRuns], HistoryView], filled: StoredRuns, qtbot: QtBot
) -> None:
    column = column_of(view.model.fields, "Repeat")
    view.table.setColumnHidden(column, True)
    view.table.setColumnWidth(0, 187)
    again = make(filled)
    again.restore_columns(view.columns_state())
    assert again.table.isColumnHidden(column) and again.table.columnWidth(0) == 187


def test_without_runs_the_view_shows_what_to_do(make: Callable[[StoredRuns], HistoryView], stored: StoredRuns) -> None:
    view = make(stored)
    assert view.stack.currentWidget() is view.empty
    assert view.empty.label.text().startswith("No runs yet.")
    assert not view.empty.clear_button.isVisible()


@pytest.mark.serial
@again_after_a_long_turn
def test_two_thousand_runs_do_not_block_the_window(
    make: Callable[[StoredRuns], HistoryView], stored: StoredRuns, qtbot: QtBot
) -> None:
    """Measured by the processor time of the window's thread: a busy machine must not fail the test."""
    view = make(stored)
    stored.many(2_000)
    with slots_watched() as watch:
        view.refresh()
        qtbot.waitUntil(lambda: view.model.rowCount() >= 2_000)
        qtbot.waitUntil(lambda: len(view._haystacks) >= 2_000)
        qtbot.keyClicks(view.filters.search, 'status:finished scenario:"test 3"', delay=5)
        view.table.sortByColumn(6, Qt.SortOrder.DescendingOrder)
        qtbot.wait(50)
    assert view.model.rowCount() == 500
    watch.assert_short()
