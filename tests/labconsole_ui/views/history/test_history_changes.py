"""The history changes runs: baseline, trash with undo, notes and tags."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QMessageBox
from pytestqt.qtbot import QtBot

from labconsole.store.reader import Reader
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.views.history.columns import column_of
from labconsole_ui.views.history.history_view import HistoryView
from tests.labconsole_ui.shown_messages import shown_sentences
from tests.labconsole_ui.views.conftest import StoredRuns
from tests.labconsole_ui.views.history.history_rows import cell, select, shown, stored_run

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support")


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


def test_delete_moves_to_the_trash_and_ctrl_z_brings_back(view: HistoryView, filled: StoredRuns, qtbot: QtBot) -> None:
    select(view, 1, 3)
    qtbot.keyClick(view.table, Qt.Key.Key_Delete)
    qtbot.waitUntil(lambda: shown(view) == [2])
    assert stored_run(filled, 1).trashed and stored_run(filled, 3).trashed
    assert shown_sentences(view) == ["2 runs moved to trash"]
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
    assert shown_sentences(view) == ["Run 3 moved to trash"]
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


def test_a_live_run_is_not_deleted_and_the_reason_is_shown(
    make: Callable[[StoredRuns], HistoryView], stored: StoredRuns, qtbot: QtBot
) -> None:
    [run_id] = stored.queued(("Waiting", {}))
    view = make(stored)
    select(view, run_id)
    qtbot.keyClick(view.table, Qt.Key.Key_Delete)
    qtbot.waitUntil(lambda: len(view.messages.entries()) == 2)
    assert view.messages.entries()[0].message.sentence.startswith(f"Run {run_id} is queued")
    assert shown(view) == [run_id]


def test_a_note_being_typed_survives_changes_which_are_shown_afterwards(
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
