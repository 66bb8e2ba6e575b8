"""Texts of imported runs are shown as plain text, also where they look like markup."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtGui import Qt as GuiQt
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QLabel,
    QPlainTextEdit,
    QTableView,
    QTabWidget,
    QWidget,
)
from pytestqt.qtbot import QtBot
from sqlalchemy import update

from labconsole.model.trial import Level
from labconsole.output.report.report_request import ReportKind, ReportRequest
from labconsole.store import edits, schema
from labconsole.store.records import RunStatus
from labconsole_ui.runtime.long_jobs import LongJobs
from labconsole_ui.shell.log_pane import LogLine
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.views.comparison.comparison_view import ComparisonView
from labconsole_ui.views.report.report_window import ReportWindow
from labconsole_ui.views.run.run_view import RunView
from labconsole_ui.widgets.message_bar import Message, Tone
from tests.labconsole_ui.views.conftest import StoredRuns

MARKUP = "<img src='file:///etc/passwd'><b>shouted</b>"


def taken_for_markup(window: QWidget) -> Iterator[str]:
    """Texts that Qt would render as rich text although they are plain."""
    for label in window.findChildren(QLabel):
        if label.textFormat() is Qt.TextFormat.AutoText and GuiQt.mightBeRichText(label.text()):
            yield f"{label.parent()}: {label.text()}"
    for widget in window.findChildren(QWidget):
        if GuiQt.mightBeRichText(widget.toolTip()) and "<b>" in widget.toolTip():
            yield f"{widget}: tooltip {widget.toolTip()}"
    for view in window.findChildren(QTableView):
        model = view.model()
        for column in range(model.columnCount(QModelIndex())):
            head = model.headerData(column, Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole)
            tips = [
                model.index(row, column).data(Qt.ItemDataRole.ToolTipRole)
                for row in range(model.rowCount(QModelIndex()))
            ]
            yield from (f"{view.accessibleName()}: {tip}" for tip in (head, *tips) if "<b>" in str(tip or ""))


def test_markup_in_runs_is_shown_as_text(qtbot: QtBot, window: MainWindow) -> None:
    with closing(StoredRuns(window.services.database)) as runs:
        run_ids = runs.finished((MARKUP, {"test": 1}), (f"Other {MARKUP}", {"test": 3}), messages=50)
        failed = runs.queued((MARKUP, {"test": 2}), campaign=MARKUP)[0]
        runs.start(failed)
        runs.end(failed, RunStatus.FAILED, MARKUP)
        for run_id in (*run_ids, failed):
            edits.set_note(runs.store, run_id, MARKUP)
            edits.set_tags(runs.store, run_id, [MARKUP])
        with runs.store.writer.transaction() as connection:
            connection.execute(update(schema.event).values(message=MARKUP, data='{"a": "<b>data</b>"}'))
            connection.execute(update(schema.campaign).values(title=MARKUP))
            connection.execute(update(schema.run).values(warnings='["<b>warning</b> of the run"]'))
            connection.execute(update(schema.verdict).values(name=MARKUP, reason=MARKUP))
    window.history_view.refresh()
    window.history_view.run_actions.group.setChecked(True)
    qtbot.waitUntil(lambda: len(window.history_view.model.records()) == 3)
    for run_id in (run_ids[0], failed):
        window.runs.open_run(run_id)
        view = window.pages.currentWidget()
        assert isinstance(view, RunView)
        qtbot.waitUntil(lambda view=view: "sites" in view.tables and not view.progress.isVisible())
    window.runs.compare_runs(run_ids)
    page = window.pages.currentWidget()
    assert isinstance(page, ComparisonView)
    qtbot.waitUntil(lambda: page.table_data is not None)
    qtbot.wait(300)
    report = ReportWindow(window.services, ReportRequest(tuple(run_ids), ReportKind.COMPARISON), window)
    report.show()
    qtbot.waitUntil(lambda: bool(report.pages.pages))
    assert list(taken_for_markup(window)) == []
    report.close()


def test_the_name_of_a_file_is_not_markup(qtbot: QtBot, window: MainWindow) -> None:
    jobs = LongJobs(window, window.messages.show_message)
    jobs.run(f"Importing {MARKUP}.lcz", lambda _ticket: None, lambda _: None)
    assert list(taken_for_markup(window)) == []
    qtbot.waitUntil(lambda: not jobs.dialogs)
    window.runs.open_run(99)
    view = window.pages.currentWidget()
    assert isinstance(view, RunView)
    view.artefacts.status.setText(str(Path("/tmp") / MARKUP))
    assert list(taken_for_markup(window)) == []


OBEYED = "red \x1b[31m\u202egnp.exe"


def obeyed(window: QWidget) -> Iterator[str]:
    """Texts in the window with a character that a terminal obeys, or that turns the direction of writing."""
    labels = (*window.findChildren(QLabel), *window.findChildren(QAbstractButton))
    texts = [f"{type(label).__name__} in {type(label.parent()).__name__}: {label.text()}" for label in labels]
    texts += [edit.toPlainText() for edit in window.findChildren(QPlainTextEdit) if edit.isReadOnly()]
    texts += [widget.toolTip() for widget in window.findChildren(QWidget)]
    texts += [tabs.tabText(index) for tabs in window.findChildren(QTabWidget) for index in range(tabs.count())]
    for view in window.findChildren(QAbstractItemView):
        model = view.model()
        if model is not None:
            columns = range(model.columnCount(QModelIndex()))
            rows = range(model.rowCount(QModelIndex()))
            cells = (model.index(row, column).data() for row in rows for column in columns)
            texts += [f"{type(view).__name__} {view.accessibleName()}: {cell}" for cell in cells]
    yield from (text for text in texts if "\x1b" in text or "\u202e" in text)


def test_control_characters_in_runs_are_escaped(qtbot: QtBot, window: MainWindow) -> None:
    with closing(StoredRuns(window.services.database)) as runs:
        run_ids = runs.finished((OBEYED, {"test": 1}), (f"Other {OBEYED}", {"test": 3}), messages=50)
        with runs.store.writer.transaction() as connection:
            connection.execute(update(schema.event).values(message=OBEYED))
            connection.execute(update(schema.campaign).values(title=OBEYED))
            connection.execute(update(schema.verdict).values(name=OBEYED, reason=OBEYED))
    window.log_pane.add(LogLine("12:00", Level.INFO, "run 1", OBEYED))
    window.messages.show_message(Message(Tone.WARNING, OBEYED))
    window.history_view.refresh()
    qtbot.waitUntil(lambda: len(window.history_view.model.records()) == 2)
    window.runs.open_run(run_ids[0])
    view = window.pages.currentWidget()
    assert isinstance(view, RunView)
    qtbot.waitUntil(lambda: "sites" in view.tables and not view.progress.isVisible())
    window.runs.compare_runs(run_ids)
    page = window.pages.currentWidget()
    assert isinstance(page, ComparisonView)
    qtbot.waitUntil(lambda: page.table_data is not None)
    assert list(obeyed(window)) == []
    assert "<U+001B>[31m<U+202E>gnp.exe" in window.log_pane.view.toPlainText()
