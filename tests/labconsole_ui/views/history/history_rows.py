"""Helpers to read, select and click lines of the history."""

from __future__ import annotations

from PySide6.QtCore import QItemSelectionModel, Qt
from pytestqt.qtbot import QtBot

from labconsole.store.reader import Reader
from labconsole.store.records import RunRow
from labconsole_ui.views.history.columns import column_of
from labconsole_ui.views.history.history_view import HistoryView
from labconsole_ui.views.history.run_model import CampaignHead
from tests.labconsole_ui.views.conftest import StoredRuns


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


def heads_and_runs(view: HistoryView) -> list[str | int]:
    return [line.title if isinstance(line, CampaignHead) else line.id for line in view.model.lines()]


def click(view: HistoryView, qtbot: QtBot, row: int, column: int) -> None:
    place = view.table.visualRect(view.model.index(row, column)).center()
    qtbot.mouseClick(view.table.viewport(), Qt.MouseButton.LeftButton, pos=place)
