"""The history: finding, sorting, opening, editing, deleting with undo, following the database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from PySide6.QtCore import QEvent, QItemSelectionModel, QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QLineEdit, QMessageBox
from pytestqt.qtbot import QtBot

from labconsole.analysis.figures import format_figure
from labconsole.plugin import Plugins
from labconsole.store import edits
from labconsole.store.errors import StoreError
from labconsole.store.reader import Reader
from labconsole.store.records import RunRow, RunStatus
from labconsole_ui.bridge import QueueBridge
from labconsole_ui.history import query
from labconsole_ui.history.columns import column_of
from labconsole_ui.history.source import RunSource
from labconsole_ui.history.view import HistoryView
from labconsole_ui.theme import Theme
from tests.labconsole_ui.shell.slot_watch import slots_watched

if TYPE_CHECKING:
    from conftest import StoredRuns

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


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
        ("status:finished nowhere", []),
    ],
)
def test_typing_into_the_filter_box_finds_runs(view: HistoryView, qtbot: QtBot, typed: str, runs: list[int]) -> None:
    qtbot.keyClicks(view.filters.search, typed)
    assert shown(view) == runs
    assert view.stack.currentWidget() is (view.table if runs else view.empty)


def test_boxes_filter_too_and_one_button_clears_everything(view: HistoryView, qtbot: QtBot) -> None:
    view.filters.status_box.setCurrentIndex(view.filters.status_box.findText("Failed"))
    assert shown(view) == [3]
    qtbot.keyClicks(view.filters.search, "plain")
    assert shown(view) == []
    qtbot.mouseClick(view.clear_button, Qt.MouseButton.LeftButton)
    assert shown(view) == [3, 2, 1]


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
    assert [entry.message.sentence for entry in view.messages.entries()] == ["2 runs moved to trash"]
    qtbot.keyClick(view.table, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: shown(view) == [3, 2, 1])
    assert not stored_run(filled, 1).trashed


def test_the_message_offers_undo(view: HistoryView, qtbot: QtBot) -> None:
    select(view, 2)
    qtbot.mouseClick(view.delete_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: shown(view) == [3, 1])
    [entry] = view.messages.entries()
    assert entry.message.sentence == "Run 2 moved to trash"
    qtbot.mouseClick(entry.link_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: shown(view) == [3, 2, 1])


def test_the_trash_can_be_seen_restored_and_emptied(
    view: HistoryView, filled: StoredRuns, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    select(view, 1, 2)
    qtbot.keyClick(view.table, Qt.Key.Key_Delete)
    qtbot.waitUntil(lambda: shown(view) == [3])
    qtbot.mouseClick(view.filters.trash_button, Qt.MouseButton.LeftButton)
    assert shown(view) == [2, 1]
    assert not view.delete_button.isVisible() and view.restore_button.isVisible()
    select(view, 2)
    qtbot.mouseClick(view.restore_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: shown(view) == [1])
    monkeypatch.setattr(QMessageBox, "question", lambda *_: QMessageBox.StandardButton.Yes)
    qtbot.mouseClick(view.purge_button, Qt.MouseButton.LeftButton)
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
    assert not view.open_button.isEnabled()
    select(view, 1)
    assert view.use_button.isEnabled() and not view.compare_button.isEnabled()
    qtbot.keyClick(view.table, Qt.Key.Key_Return)
    qtbot.mouseClick(view.use_button, Qt.MouseButton.LeftButton)
    select(view, 1, 3)
    qtbot.mouseClick(view.compare_button, Qt.MouseButton.LeftButton)
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


def test_rows_are_copied_with_their_titles_and_exported(view: HistoryView, qtbot: QtBot, tmp_path: Path) -> None:
    select(view, 1)
    qtbot.keyClick(view.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    head, row = QGuiApplication.clipboard().text().splitlines()
    assert head.split("\t")[:3] == ["Status", "Run", "Scenario"]
    assert row.split("\t")[:3] == ["Finished", "1", "Plain small"]
    view.export_to(tmp_path / "csv")
    qtbot.waitUntil(lambda: bool(view.messages.entries()), timeout=5_000)
    assert "throughput" in (tmp_path / "csv" / "run-1" / "metrics.csv").read_text(encoding="utf-8")


def test_hidden_columns_and_widths_are_remembered(
    view: HistoryView, make: Callable[[StoredRuns], HistoryView], filled: StoredRuns, qtbot: QtBot
) -> None:
    column = column_of(view.model.fields, "Repeat")
    view._show_column(column, False)
    view.table.setColumnWidth(0, 187)
    again = make(filled)
    again.restore_columns(view.columns_state())
    assert again.table.isColumnHidden(column) and again.table.columnWidth(0) == 187


def test_without_runs_the_view_says_what_to_do(make: Callable[[StoredRuns], HistoryView], stored: StoredRuns) -> None:
    view = make(stored)
    assert view.stack.currentWidget() is view.empty
    assert view.empty_label.text().startswith("No runs yet.")
    assert not view.clear_button.isVisible()


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
