"""The history finds runs: filters, sorting, campaigns, dragging."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor
from pytestqt.qtbot import QtBot
from sqlalchemy import update

from labconsole.analysis.number_format import format_figure
from labconsole.clock import wall_now
from labconsole.model.placement import Placement, RoleRequest
from labconsole.model.trial import Evaluation, Verdict, VerdictKind
from labconsole.store import schema
from labconsole.store.encoding import time_to_text
from labconsole_ui.runs.drag_and_drop import decode_runs
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.history import filter_query
from labconsole_ui.views.history.columns import column_of
from labconsole_ui.views.history.history_view import HistoryView
from tests.labconsole_ui.views.conftest import StoredRuns
from tests.labconsole_ui.views.history.history_rows import cell, click, heads_and_runs, select, shown, stored_run

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support")


def test_all_runs_are_shown_newest_first_with_their_key_figures(view: HistoryView, filled: StoredRuns) -> None:
    assert shown(view) == [3, 2, 1]
    throughput = stored_run(filled, 1).metrics["throughput"]
    assert cell(view, 1, "Throughput") == format_figure(throughput.value, throughput.unit)
    assert (cell(view, 3, "Status"), cell(view, 3, "Throughput")) == ("Failed", "")
    assert cell(view, 1, "Trial") == "AMQP 1.0 (SWIM)"
    started = view.model.index(2, column_of(view.model.fields, "Started"))
    assert started.data(Qt.ItemDataRole.ToolTipRole) == "2025-05-20 06:00:40 UTC"


def test_runs_are_found_by_the_hosts_that_they_ask_for(filled: StoredRuns) -> None:
    run = stored_run(filled, 1)
    placed = replace(run, placement=Placement(roles=(RoleRequest(role="sender-*", host="host-b"),)).stored())
    found = [
        filter_query.accepts(filter_query.parse("host-b"), one, filter_query.searchable(one)) for one in (run, placed)
    ]
    assert found == [False, True]


def test_a_run_whose_data_fail_a_check_is_marked(make: Callable[[StoredRuns], HistoryView], filled: StoredRuns) -> None:
    bad = Verdict("all messages were accepted", "fail", "20 messages were refused.", kind=VerdictKind.INTEGRITY)
    missed = Verdict("service level kept", "fail", "Too slow.")
    for run_id, verdict in ((1, bad), (2, missed)):
        metrics = tuple(stored_run(filled, run_id).metrics.values())
        filled.store.replace_evaluation(run_id, Evaluation(metrics, (verdict,)))
    view = make(filled)
    assert [cell(view, run_id, "Status") for run_id in (1, 2, 3)] == ["Check failed", "Finished", "Failed"]
    marked = view.model.index(2, column_of(view.model.fields, "Status"))
    assert marked.data(Qt.ItemDataRole.ToolTipRole) == "20 messages were refused."


def test_a_figure_that_is_not_judged_is_grey_with_its_reason(
    make: Callable[[StoredRuns], HistoryView], filled: StoredRuns, theme: Theme
) -> None:
    metrics = stored_run(filled, 1).metrics
    burst = replace(metrics["throughput"], not_judged="all within 2 ms")
    filled.store.replace_evaluation(1, Evaluation((burst, metrics["latency_mean"]), ()))
    view = make(filled)
    role = Qt.ItemDataRole
    throughput, judged = (
        view.model.index(shown(view).index(run_id), column_of(view.model.fields, "Throughput")) for run_id in (1, 2)
    )
    assert throughput.data(role.ToolTipRole) == "Not judged: all within 2 ms."
    assert throughput.data(role.ForegroundRole) == QColor(theme.colour("muted"))
    assert judged.data(role.ForegroundRole) is None and judged.data(role.ToolTipRole) == judged.data()


def test_a_rate_of_six_digits_is_not_cut_off(view: HistoryView, filled: StoredRuns) -> None:
    width = view.table.columnWidth(column_of(view.model.fields, "Throughput"))
    assert width > view.table.fontMetrics().horizontalAdvance("228,671 msg/s") + 12


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


def test_the_panel_filters_by_profile_and_time_and_its_button_shows_it(
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


def test_runs_are_grouped_by_campaign_and_a_head_selects_all_of_its_runs(view: HistoryView, qtbot: QtBot) -> None:
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


def test_lines_are_dragged_as_runs(view: HistoryView) -> None:
    view.run_actions.group.trigger()
    select(view, 3)
    rows = [view.model.index(row, 0) for row in (1, 2)]
    assert decode_runs(view.model.mimeData(rows)) == [3, 2, 1]
    assert view.table.dragEnabled()
    assert view.model.flags(rows[1]) & Qt.ItemFlag.ItemIsDragEnabled


def test_a_click_on_a_title_sorts_by_value_and_runs_without_one_come_last(view: HistoryView, qtbot: QtBot) -> None:
    header = view.table.horizontalHeader()
    place = header.sectionViewportPosition(column_of(view.model.fields, "Throughput")) + 10
    for expected in ([2, 1, 3], [1, 2, 3]):
        qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(place, 10))
        assert shown(view) == expected


def test_terms_with_an_unknown_field_are_plain_text() -> None:
    assert filter_query.parse("host:5671 Tag:A") == (filter_query.Term("", "host:5671"), filter_query.Term("tag", "a"))
    assert filter_query.parse('status: "two words') == (filter_query.Term("", "two words"),)
