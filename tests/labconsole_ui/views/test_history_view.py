"""The history: finding, sorting, opening, editing, deleting with undo, following the database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from PySide6.QtCore import QEvent, QItemSelectionModel, QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QLineEdit, QMessageBox
from pytestqt.qtbot import QtBot
from sqlalchemy import update

from labconsole.analysis.figures import format_figure
from labconsole.clock import wall_now
from labconsole.plugin import Plugins
from labconsole.store import edits, schema
from labconsole.store.encoding import time_to_text
from labconsole.store.errors import StoreError
from labconsole.store.reader import Reader
from labconsole.store.records import RunRow, RunStatus
from labconsole_ui.bridge import QueueBridge
from labconsole_ui.history import query
from labconsole_ui.history.columns import column_of
from labconsole_ui.history.model import CampaignHead
from labconsole_ui.history.source import RunSource
from labconsole_ui.history.view import HistoryView
from labconsole_ui.run_mime import decode_runs
from labconsole_ui.theme import Theme
from tests.labconsole_ui.shell.slot_watch import slots_watched
from tests.labconsole_ui.told import told
from tests.labconsole_ui.views.conftest import StoredRuns

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support")


class StutteringReader(Reader):
    """Refuses the first question for all runs, as a disk that hiccups."""

    asked = 0

    def runs(self, **conditions: Any) -> list[RunRow]:
        self.asked += 1
        if self.asked == 1:
            raise StoreError("The disk hiccups: try again.")
        return super().runs(**conditions)


def test_what_could_not_be_read_is_read_at_the_next_look(stored: StoredRuns, plugins: Plugins) -> None:
    stored.queued(("A", {"test": 1}))
    source = RunSource(lambda: StutteringReader(stored.path), plugins)
    with pytest.raises(StoreError):
        source.read(force=False)
    read = source.read(force=False)
    assert read is not None and len(read.runs) == 1
    assert source.read(force=False) is None
    source.close()


@pytest.fixture
def filled(stored: StoredRuns) -> StoredRuns:
    """Runs 1 and 2 finished, 3 failed."""
    stored.finished(("Plain small", {"test": 1}), ("Signed flight plan", {"test": 3, "credit": 77}))
    [failed] = stored.queued(("Sealed", {"test": 4}), campaign="Night campaign")
    stored.start(failed)
    stored.end(failed, RunStatus.FAILED, "The certificate has expired.")
    edits.set_tags(stored.store, 1, ["reference"])
    return stored


@pytest.fixture
def make(
    qtbot: QtBot, bridge: QueueBridge, plugins: Plugins, theme: Theme, readers: Callable[[], Reader]
) -> Iterator[Callable[[StoredRuns], HistoryView]]:
    made: list[HistoryView] = []

    def history(stored: StoredRuns) -> HistoryView:
        view = HistoryView(readers, stored.path, bridge, theme, plugins)
        made.append(view)
        view.resize(1280, 700)
        view.show()
        view.activateWindow()
        qtbot.waitUntil(lambda: view._catalogue is not None)
        return view

    yield history
    for view in made:
        view.close()
        view.deleteLater()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture
def view(make: Callable[[StoredRuns], HistoryView], filled: StoredRuns) -> HistoryView:
    return make(filled)


def shown(view: HistoryView) -> list[int]:
    return [run.id for run in view.model.records()]


def select(view: HistoryView, *run_ids: int) -> None:
    view.table.setFocus()
    view.table.clearSelection()
    flags = QItemSelectionModel.SelectionFlag
    for row, run in enumerate(view.model.records()):
        if run.id in run_ids:
            view.table.selectionModel().setCurrentIndex(view.model.index(row, 0), flags.Select | flags.Rows)


def stored_run(stored: StoredRuns, run_id: int) -> RunRow:
    with Reader(stored.path) as reader:
        return reader.run(run_id).row


def cell(view: HistoryView, run_id: int, title: str) -> str:
    row = shown(view).index(run_id)
    return str(view.model.index(row, column_of(view.model.fields, title)).data())


def test_all_runs_are_shown_newest_first_with_their_key_figures(view: HistoryView, filled: StoredRuns) -> None:
    assert shown(view) == [3, 2, 1]
    throughput = stored_run(filled, 1).metrics["throughput"]
    assert cell(view, 1, "Message throughput") == format_figure(throughput.value, throughput.unit)
    assert (cell(view, 3, "Status"), cell(view, 3, "Message throughput")) == ("Failed", "")
    assert cell(view, 1, "Trial") == "AMQP messaging, Tests 1-4"
    started = view.model.index(2, column_of(view.model.fields, "Started"))
    assert started.data(Qt.ItemDataRole.ToolTipRole) == "2025-05-20 06:00:40 UTC"


@pytest.mark.parametrize(
    ("typed", "runs"),
    [
        ("signed", [2]),
        ("status:failed", [3]),
        ("tag:ref", [1]),
        ("kind:amqp status:fin", [2, 1]),
        ("expired", [3]),
        ('"night campaign"', [3]),
        ("77", [2]),
        ("run:1", [1]),
        ("on:2025-05-20", [3, 2, 1]),
        ("before:2025-05-20", []),
        ("after:2025-05 before:2025-06 failed", [3]),
        ("after:2025-05-21", []),
        ("status:finished nowhere", []),
    ],
)
def test_typing_into_the_filter_box_finds_runs(view: HistoryView, qtbot: QtBot, typed: str, runs: list[int]) -> None:
    qtbot.keyClicks(view.filters.search, typed)
    assert shown(view) == runs
    assert view.stack.currentWidget() is (view.table if runs else view.empty)


def test_boxes_filter_too_and_one_button_clears_everything(view: HistoryView, qtbot: QtBot) -> None:
    view.filters.panel.status_box.setCurrentIndex(view.filters.panel.status_box.findText("Failed"))
    assert shown(view) == [3]
    qtbot.keyClicks(view.filters.search, "plain")
    assert shown(view) == []
    qtbot.mouseClick(view.empty.clear_button, Qt.MouseButton.LeftButton)
    assert shown(view) == [3, 2, 1]


def test_the_panel_filters_by_profile_and_time_and_its_button_says_so(
    view: HistoryView, filled: StoredRuns, qtbot: QtBot
) -> None:
    qtbot.mouseClick(view.filters.panel_button, Qt.MouseButton.LeftButton)
    panel = view.filters.panel
    assert panel.isVisible()
    assert [panel.profile_box.itemText(index) for index in range(panel.profile_box.count())] == ["All profiles", "demo"]
    [today] = filled.queued(("Queued now", {"test": 1}))
    with filled.store.writer.transaction() as connection:
        created = time_to_text(wall_now())
        connection.execute(update(schema.run).where(schema.run.c.id == today).values(created=created))
    view.refresh()
    qtbot.waitUntil(lambda: shown(view) == [today, 3, 2, 1])
    qtbot.keyClick(panel.time_box, Qt.Key.Key_Down)
    assert (panel.time_box.currentText(), shown(view)) == ("Today", [today])
    assert view.filters.panel_button.text() == "Filter (1)"
    qtbot.mouseClick(panel.clear_button, Qt.MouseButton.LeftButton)
    assert shown(view) == [today, 3, 2, 1] and view.filters.panel_button.text() == "Filter"


def test_runs_stand_beneath_their_campaigns_and_a_head_stands_for_all_of_its_runs(
    view: HistoryView, qtbot: QtBot
) -> None:
    qtbot.mouseClick(view.run_actions.group_button, Qt.MouseButton.LeftButton)
    assert heads_and_runs(view) == ["Night campaign", 3, "Demo campaign", 2, 1]
    chosen: list[list[int]] = []
    view.compare_runs.connect(chosen.append)
    scenario = column_of(view.model.fields, "Scenario")
    click(view, qtbot, 2, scenario)
    assert [run.id for run in view.selected()] == [2, 1]
    qtbot.mouseClick(view.run_actions.compare_button, Qt.MouseButton.LeftButton)
    assert chosen == [[2, 1]]
    qtbot.keyClick(view.table, Qt.Key.Key_Left)
    assert heads_and_runs(view) == ["Night campaign", 3, "Demo campaign"]
    assert [run.id for run in view.selected()] == [2, 1]
    click(view, qtbot, 2, 0)
    assert heads_and_runs(view) == ["Night campaign", 3, "Demo campaign", 2, 1]
    qtbot.keyClicks(view.filters.search, "plain")
    assert heads_and_runs(view) == ["Demo campaign", 1]
    assert view.count_label.text() == "1 of 3 runs"


def heads_and_runs(view: HistoryView) -> list[str | int]:
    return [line.title if isinstance(line, CampaignHead) else line.id for line in view.model.lines()]


def click(view: HistoryView, qtbot: QtBot, row: int, column: int) -> None:
    place = view.table.visualRect(view.model.index(row, column)).center()
    qtbot.mouseClick(view.table.viewport(), Qt.MouseButton.LeftButton, pos=place)


def test_lines_are_dragged_as_runs(view: HistoryView) -> None:
    view.run_actions.group.trigger()
    select(view, 3)
    rows = [view.model.index(row, 0) for row in (1, 2)]
    assert decode_runs(view.model.mimeData(rows)) == [3, 2, 1]
    assert view.table.dragEnabled()
    assert view.model.flags(rows[1]) & Qt.ItemFlag.ItemIsDragEnabled


def test_a_run_is_pinned_as_baseline_compared_with_by_a_single_one_and_unpinned(
    view: HistoryView, filled: StoredRuns, qtbot: QtBot
) -> None:
    compared: list[list[int]] = []
    view.compare_runs.connect(compared.append)
    select(view, 1)
    view.run_actions.pin.trigger()
    qtbot.waitUntil(lambda: stored_run(filled, 1).pinned and view._all[1].pinned)
    marked = view.model.index(shown(view).index(1), column_of(view.model.fields, "Run"))
    assert not marked.data(Qt.ItemDataRole.DecorationRole).isNull()
    assert not view.run_actions.compare.isEnabled(), "the baseline is not compared with itself"
    select(view, 2)
    assert view.run_actions.compare.toolTip() == "Compare with the baseline, run 1"
    qtbot.mouseClick(view.run_actions.compare_button, Qt.MouseButton.LeftButton)
    assert compared == [[1, 2]]
    view.run_actions.pin.trigger()
    qtbot.waitUntil(lambda: stored_run(filled, 2).pinned)
    assert not stored_run(filled, 1).pinned
    view.changes.stack.undo()
    qtbot.waitUntil(lambda: stored_run(filled, 1).pinned and view._all[1].pinned)
    select(view, 1)
    assert view.run_actions.pin.text() == "Unpin the baseline"
    view.run_actions.pin.trigger()
    qtbot.waitUntil(lambda: not stored_run(filled, 1).pinned)


def test_a_click_on_a_title_sorts_by_value_and_runs_without_one_come_last(view: HistoryView, qtbot: QtBot) -> None:
    header = view.table.horizontalHeader()
    place = header.sectionViewportPosition(column_of(view.model.fields, "Message throughput")) + 10
    for expected in ([2, 1, 3], [1, 2, 3]):
        qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(place, 10))
        assert shown(view) == expected


def test_delete_moves_to_the_trash_and_ctrl_z_brings_back(view: HistoryView, filled: StoredRuns, qtbot: QtBot) -> None:
    select(view, 1, 3)
    qtbot.keyClick(view.table, Qt.Key.Key_Delete)
    qtbot.waitUntil(lambda: shown(view) == [2])
    assert stored_run(filled, 1).trashed and stored_run(filled, 3).trashed
    assert told(view) == ["2 runs moved to trash"]
    qtbot.keyClick(view.table, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: shown(view) == [3, 2, 1])
    assert not stored_run(filled, 1).trashed


def test_the_message_offers_undo(view: HistoryView, qtbot: QtBot) -> None:
    select(view, 2)
    qtbot.mouseClick(view.run_actions.trash_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: shown(view) == [3, 1])
    [entry] = view.messages.entries()
    assert entry.message.sentence == "Run 2 moved to trash"
    qtbot.mouseClick(entry.link_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: shown(view) == [3, 2, 1])


def test_undo_is_offered_for_the_latest_change_only(view: HistoryView, qtbot: QtBot) -> None:
    for run_id, rest in ((2, [3, 1]), (3, [1])):
        select(view, run_id)
        qtbot.keyClick(view.table, Qt.Key.Key_Delete)
        qtbot.waitUntil(lambda rest=rest: shown(view) == rest)
    assert told(view) == ["Run 3 moved to trash"]
    qtbot.keyClick(view.table, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: shown(view) == [3, 1])
    assert view.messages.entries() == [], "its link would bring back run 2"


def test_the_trash_can_be_seen_restored_and_emptied(
    view: HistoryView, filled: StoredRuns, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    select(view, 1, 2)
    qtbot.keyClick(view.table, Qt.Key.Key_Delete)
    qtbot.waitUntil(lambda: shown(view) == [3])
    qtbot.mouseClick(view.filters.trash_button, Qt.MouseButton.LeftButton)
    assert shown(view) == [2, 1]
    assert not view.run_actions.trash_button.isVisible() and view.run_actions.restore_button.isVisible()
    select(view, 2)
    qtbot.mouseClick(view.run_actions.restore_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: shown(view) == [1])
    monkeypatch.setattr(QMessageBox, "question", lambda *_: QMessageBox.StandardButton.Yes)
    qtbot.mouseClick(view.run_actions.purge_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: shown(view) == [])
    with Reader(filled.path) as reader:
        assert [run.id for run in reader.runs(include_trashed=True)] == [3, 2]


def test_a_live_run_is_not_deleted_and_the_reason_is_said(
    make: Callable[[StoredRuns], HistoryView], stored: StoredRuns, qtbot: QtBot
) -> None:
    [run_id] = stored.queued(("Waiting", {}))
    view = make(stored)
    select(view, run_id)
    qtbot.keyClick(view.table, Qt.Key.Key_Delete)
    qtbot.waitUntil(lambda: len(view.messages.entries()) == 2)
    assert view.messages.entries()[0].message.sentence.startswith(f"Run {run_id} is queued")
    assert shown(view) == [run_id]


def test_a_note_that_is_being_typed_outlives_changes_and_sees_them_afterwards(
    view: HistoryView, filled: StoredRuns, bridge: QueueBridge, qtbot: QtBot
) -> None:
    qtbot.waitUntil(lambda: view.model.rowCount() == 3)
    cell = view.model.index(0, column_of(view.model.fields, "Note"))
    view.table.setCurrentIndex(cell)
    view.table.edit(cell)
    editor = view.table.viewport().findChild(QLineEdit)
    qtbot.keyClicks(editor, "for the ")
    [new] = filled.queued(("Another", {"test": 1}))
    bridge.items_changed.emit()
    qtbot.wait(1200)
    assert view.table.viewport().findChild(QLineEdit) is editor and editor.isVisible()
    qtbot.keyClicks(editor, "report")
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: new in shown(view))
    qtbot.waitUntil(lambda: "for the report" in [run.note for run in view.model.records()])


@pytest.mark.parametrize(("title", "typed"), [("Note", "for the report"), ("Tags", "night, signed")])
def test_notes_and_tags_are_edited_in_the_table_and_undone(
    view: HistoryView, filled: StoredRuns, qtbot: QtBot, title: str, typed: str
) -> None:
    column = column_of(view.model.fields, title)
    view.table.setCurrentIndex(view.model.index(1, column))
    qtbot.keyClick(view.table, Qt.Key.Key_F2)
    editor = view.table.viewport().findChild(QLineEdit)
    editor.selectAll()
    qtbot.keyClicks(editor, typed)
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: cell(view, 2, title) == typed)
    row = stored_run(filled, 2)
    assert (row.note if title == "Note" else ", ".join(row.tags)) == typed
    view.changes.stack.undo()
    qtbot.waitUntil(lambda: cell(view, 2, title) == "")


def test_enter_double_click_and_buttons_hand_out_the_selected_runs(view: HistoryView, qtbot: QtBot) -> None:
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
    qtbot.waitUntil(lambda: shown(view) == [4, 3, 2, 1], timeout=3_000)
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


def test_without_runs_the_view_says_what_to_do(make: Callable[[StoredRuns], HistoryView], stored: StoredRuns) -> None:
    view = make(stored)
    assert view.stack.currentWidget() is view.empty
    assert view.empty.label.text().startswith("No runs yet.")
    assert not view.empty.clear_button.isVisible()


def test_two_thousand_runs_do_not_hold_up_the_window(
    make: Callable[[StoredRuns], HistoryView], stored: StoredRuns, qtbot: QtBot
) -> None:
    """By the processor time of the window's thread: other things that the machine does must not fail the test."""
    view = make(stored)
    stored.many(2_000)
    with slots_watched() as watch:
        view.refresh()
        qtbot.waitUntil(lambda: view.model.rowCount() >= 2_000, timeout=5_000)
        qtbot.waitUntil(lambda: len(view._haystacks) >= 2_000, timeout=5_000)
        qtbot.keyClicks(view.filters.search, 'status:finished scenario:"test 3"', delay=5)
        view.table.sortByColumn(6, Qt.SortOrder.DescendingOrder)
        qtbot.wait(50)
    assert view.model.rowCount() == 500
    watch.assert_short()


def test_words_with_a_colon_that_name_no_field_are_plain_words() -> None:
    assert query.parse("host:5671 Tag:A") == (query.Term("", "host:5671"), query.Term("tag", "a"))
    assert query.parse('status: "two words') == (query.Term("", "two words"),)
