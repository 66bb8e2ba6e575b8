"""The comparison page: table, baseline, folding, adding and removing columns, copy and export."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QEvent, QMimeData, QPointF, Qt
from PySide6.QtGui import QColor, QDragEnterEvent, QDropEvent, QImage
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot
from sqlalchemy import update

from labconsole.analysis.comparison import compare, group_repeats
from labconsole.model.placement import Placement, RoleRequest
from labconsole.model.plugin import Plugins
from labconsole.store import schema
from labconsole.store.edits import pin_baseline
from labconsole.store.encoding import to_json
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus
from labconsole_ui.runs.drag_and_drop import RUNS_TYPE, encode_runs
from labconsole_ui.runtime.settings import WindowState
from labconsole_ui.theme.theme import Theme, ThemeMode
from labconsole_ui.views.comparison.column_header import Density
from labconsole_ui.views.comparison.comparison_rows import CellText, Row, Section, rows_of
from labconsole_ui.views.comparison.comparison_view import ComparisonView
from tests.helpers.post_trial import PostTrial, run
from tests.labconsole_ui.views.conftest import StoredRuns

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")

PUBLISHED = "swim-within-malaysia-medium"
Open = Callable[..., ComparisonView]


@pytest.fixture
def opened(
    qtbot: QtBot, plugins: Plugins, theme: Theme, readers: Callable[[], Reader]
) -> Iterator[Callable[..., ComparisonView]]:
    """Opens a view on runs and waits for its first page."""
    views: list[ComparisonView] = []

    def make(run_ids: list[int], width: int = 1280) -> ComparisonView:
        view = ComparisonView(readers, run_ids, plugins, theme)
        views.append(view)
        view.resize(width, 800)
        view.show()
        qtbot.waitUntil(lambda: view.stack.currentWidget() is not view.reading)
        return view

    yield make
    for view in views:
        view.close()
        view.deleteLater()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture
def view(stored: StoredRuns, opened: Open) -> ComparisonView:
    """Two scenarios with two repeats each; the second one is half as fast."""
    return opened(stored.finished(("Plain", {"test": 1}), ("Signed", {"test": 3}), repeats=2, messages=500))


@pytest.fixture
def judged(stored: StoredRuns, opened: Open) -> ComparisonView:
    """Two scenarios with five repeats each, so that differences are judged."""
    return opened(stored.finished(("Plain", {"test": 1}), ("Signed", {"test": 3}), repeats=5, messages=500))


def headings(view: ComparisonView) -> list[str]:
    model = view.table.model()
    return [model.headerData(column, Qt.Orientation.Horizontal) for column in range(1, model.columnCount())]


def titles(view: ComparisonView) -> list[str]:
    return [row.title for row in view.table.rows.records()]


def row(view: ComparisonView, title: str) -> Row:
    return next(row for row in view.table.rows.records() if row.title == title and not row.heading)


def cells(view: ComparisonView, title: str) -> tuple[CellText, ...]:
    return row(view, title).cells


def index(view: ComparisonView, title: str, column: int) -> Any:
    """Of a scenario's cell; column -1 has the titles."""
    return view.table.model().index(titles(view).index(title), column + 1)


def act(view: ComparisonView, column: int, text: str) -> None:
    next(action for action in view.column_actions(column) if action.text() == text).trigger()


def image(view: ComparisonView, title: str, column: int) -> QImage:
    """The cell as it is painted."""
    view.table.clearSelection()
    place = index(view, title, column)
    view.table.scrollTo(place)
    return view.table.viewport().grab(view.table.visualRect(place)).toImage()


def has_colour(picture: QImage, colour: QColor) -> bool:
    wanted = colour.rgb()
    return any(picture.pixel(x, y) == wanted for x in range(picture.width()) for y in range(picture.height()))


def test_repeats_are_one_column_with_their_number(view: ComparisonView) -> None:
    assert headings(view) == ["Plain, 2 repeats, baseline", "Signed, 2 repeats"]
    plain, signed = cells(view, "Message throughput")
    assert plain.value.endswith("msg/s") and plain.change == ""
    assert signed.change.startswith(("-49.", "-50.")) and "[" in signed.change, "two runs each give an interval"
    throughput = row(view, "Message throughput")
    assert throughput.arrow == "↑", "it is next to the title"
    assert index(view, "Message throughput", -1).data() == "Message throughput, higher is better, fewer than 5 repeats"


def test_the_arrow_to_better_values_is_drawn_next_to_the_title(view: ComparisonView) -> None:
    drawn = image(view, "Message throughput", -1)
    assert image(view, "Message throughput", -1) == drawn
    view.table.rows.set_records([replace(one, better="") for one in view.table.rows.records()])
    assert image(view, "Message throughput", -1) != drawn


def test_few_repeats_are_named_in_the_line_and_never_coloured(view: ComparisonView, theme: Theme) -> None:
    assert "fewer than 5 repeats" in row(view, "Message throughput").about
    assert {cell.tone for row in view.table.rows.records() for cell in row.cells} == {""}
    assert not has_colour(image(view, "Message throughput", 1), theme.colour("bad_ground"))


def test_enough_repeats_are_judged_by_colour_and_text(judged: ComparisonView, theme: Theme) -> None:
    plain, signed = cells(judged, "Message throughput")
    assert (signed.mark, signed.tone) == ("worse", "bad") and (plain.mark, plain.tone) == ("", "")
    assert has_colour(image(judged, "Message throughput", 1), theme.colour("bad_ground"))
    assert not has_colour(image(judged, "Message throughput", 0), theme.colour("bad_ground"))


def test_better_is_green_where_the_baseline_is_the_slower_one(
    judged: ComparisonView, theme: Theme, qtbot: QtBot
) -> None:
    judged.baseline_box.setCurrentIndex(1)
    qtbot.waitUntil(lambda: cells(judged, "Message throughput")[0].change != "")
    faster, slower = cells(judged, "Message throughput")
    assert (faster.mark, faster.tone) == ("better", "good") and (slower.mark, slower.tone) == ("", "")
    picture = image(judged, "Message throughput", 0)
    seen = {picture.pixelColor(x, y).name() for x in range(picture.width()) for y in range(picture.height())}
    assert theme.colour("good_ground").name() in seen and theme.colour("good").name() in seen


@pytest.mark.parametrize("width", [1239, 1079])
def test_the_demo_is_read_without_scrolling_sideways_on_a_common_screen(
    stored: StoredRuns, opened: Open, qtbot: QtBot, width: int
) -> None:
    """The page of a window of 1440 px, and of one of 1280 x 800 px with the docks open."""
    demo = [("Test 1: plain", 1), ("Test 2: TLS", 2), ("Test 3: TLS, signed", 3), ("Test 4: TLS, signed, encrypted", 4)]
    scenarios = [(title, {"test": test}) for title, test in demo]
    view = opened(stored.finished(*scenarios, repeats=5, messages=300), width)
    view.resize(width, 452)
    qtbot.wait(20)
    table = view.table
    assert table.horizontalScrollBar().maximum() == 0
    shown = table.viewport().rect()
    places = [place for place, one in enumerate(table.rows.records()) if one.metric]
    seen = [place for place in places if shown.contains(table.visualRect(table.model().index(place, 0)))]
    assert len(seen) >= 6
    bar = view.tabs.tabBar()
    assert bar.rect().contains(bar.tabRect(bar.count() - 1)), "all tabs are seen"


def test_a_single_run_has_a_difference_without_interval_and_the_reason(stored: StoredRuns, opened: Open) -> None:
    view = opened(stored.finished(("Plain", {"test": 1}), ("Signed", {"test": 3}), messages=500))
    _, signed = cells(view, "Message throughput")
    assert signed.change.endswith(" %") and "[" not in signed.change
    throughput = row(view, "Message throughput")
    assert throughput.about == "one run: no interval", "that these are fewer than five follows from it"
    assert throughput.remark == "fewer than 5 repeats; one run: no interval", "all of it where one points at the line"


def test_another_baseline_is_chosen_in_the_box(view: ComparisonView, qtbot: QtBot) -> None:
    before = [cell.value for cell in cells(view, "Message throughput")]
    qtbot.keyClick(view.baseline_box, Qt.Key.Key_Down)
    qtbot.waitUntil(lambda: headings(view) == ["Plain, 2 repeats", "Signed, 2 repeats, baseline"])
    plain, signed = cells(view, "Message throughput")
    assert [plain.value, signed.value] == before and signed.change == ""
    assert 95 < float(plain.change.split(" ")[0].strip("+")) < 105


def test_columns_are_moved_removed_and_brought_back_at_their_heading(view: ComparisonView, qtbot: QtBot) -> None:
    act(view, 1, "Use as baseline")
    qtbot.waitUntil(lambda: headings(view)[1] == "Signed, 2 repeats, baseline")
    assert view.baseline_box.currentText() == "Signed"
    act(view, 1, "Move left")
    qtbot.waitUntil(lambda: headings(view)[0] == "Signed, 2 repeats, baseline")
    act(view, 0, "Remove from the comparison")
    qtbot.waitUntil(lambda: headings(view) == ["Plain, 2 repeats, baseline"])
    assert "no longer compared" in view.messages.entries()[0].message.sentence
    view.table.setFocus()
    qtbot.keyClick(view.table, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: headings(view) == ["Signed, 2 repeats, baseline", "Plain, 2 repeats"])
    assert view.column_actions(-1) == [] and view.column_actions(2) == []


def test_changes_in_quick_succession_all_count(judged: ComparisonView, qtbot: QtBot) -> None:
    judged.set_grouped(False)
    judged.set_baseline(1)
    judged.remove_column(0)
    qtbot.waitUntil(lambda: len(headings(judged)) == 5)
    assert {heading.partition(" ")[0] for heading in headings(judged)} == {"Signed"}
    judged.undo()
    judged.undo()
    judged.undo()
    qtbot.waitUntil(lambda: headings(judged) == ["Plain, 5 repeats, baseline", "Signed, 5 repeats"])
    assert judged.group_box.isChecked()


def test_requests_before_the_table_is_loaded_are_applied(
    stored: StoredRuns, plugins: Plugins, theme: Theme, readers: Callable[[], Reader], qtbot: QtBot
) -> None:
    plain, signed, more = stored.finished(
        ("Plain", {"test": 1}), ("Signed", {"test": 3}), ("TLS", {"test": 2}), messages=300
    )
    view = ComparisonView(readers, [plain, signed], plugins, theme)
    qtbot.addWidget(view)
    view.resize(700, 800)
    view.add_runs([more])
    view.add_published([f"{PUBLISHED}/test-1"])
    view.add_published(["not in any source"])
    view.undo()
    view.set_grouped(False)
    view.set_baseline(1)
    mode = theme.mode
    theme.set_mode(ThemeMode.LIGHT if theme.dark else ThemeMode.DARK)
    assert view.column_actions(0) == []
    time.sleep(0.3)  # long enough for all background reads to finish first
    view.show()
    qtbot.waitUntil(lambda: view.table_data is not None)
    assert view.selection.entries == (plain, signed, more, f"{PUBLISHED}/test-1")
    assert len(headings(view)) == 4 and not view.group_box.isChecked()
    assert view.splitter.orientation() is Qt.Orientation.Vertical
    view.undo()
    qtbot.waitUntil(view.group_box.isChecked)
    theme.set_mode(mode)


def test_a_page_that_is_closed_at_once_leaves_no_thread(
    stored: StoredRuns, plugins: Plugins, theme: Theme, readers: Callable[[], Reader], qtbot: QtBot
) -> None:
    runs = stored.finished(("Plain", {"test": 1}), messages=300)
    view = ComparisonView(readers, [], plugins, theme)
    gone = []
    view.destroyed.connect(lambda: gone.append(True))
    view.show()
    view.add_runs(runs)
    view.close()
    view.deleteLater()
    QApplication.sendPostedEvents(view, QEvent.Type.DeferredDelete)
    assert gone
    qtbot.wait(50)  # a deleted page receives nothing: pytest-qt would report it


def test_how_the_width_is_shared_is_remembered(
    view: ComparisonView, plugins: Plugins, theme: Theme, readers: Callable[[], Reader], qtbot: QtBot, tmp_path: Path
) -> None:
    state = WindowState(tmp_path / "window.ini")
    shares = []
    for _ in range(2):
        other = ComparisonView(readers, view.selection.run_ids, plugins, theme, state)
        qtbot.addWidget(other)
        other.resize(1400, 800)
        other.show()
        qtbot.waitUntil(lambda other=other: other.table_data is not None)
        if not shares:
            other.splitter.moveSplitter(500, 1)
        table, tabs = other.splitter.sizes()
        shares.append(table / (table + tabs))
    assert shares[0] < 0.45
    assert shares[1] == pytest.approx(shares[0], abs=0.02)
    qtbot.wait(20)


def test_without_columns_the_page_shows_how_to_add_some(view: ComparisonView, qtbot: QtBot) -> None:
    for left in (1, 0):
        act(view, 0, "Remove from the comparison")
        qtbot.waitUntil(lambda left=left: len(view._page.columns) == left)
    assert view.empty.isVisible() and "Drag runs from the history" in view.empty.text()
    assert not view.controls.report_button.isEnabled()


def test_each_run_can_be_its_own_column(view: ComparisonView, qtbot: QtBot) -> None:
    qtbot.keyClick(view.group_box, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: len(headings(view)) == 4)
    assert headings(view) == ["Plain · run 1, baseline", "Signed · run 2", "Plain · run 3", "Signed · run 4"]


def test_runs_are_dropped_on_the_page(stored: StoredRuns, view: ComparisonView, qtbot: QtBot) -> None:
    more = stored.finished(("Encrypted", {"test": 4}), messages=300)
    data = encode_runs(more)
    actions, buttons = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    none = Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(view.rect().center(), actions, data, buttons, none)
    QApplication.sendEvent(view, enter)
    assert enter.isAccepted() and view.drop_hint.isVisible() and "this run" in view.drop_hint.text()
    QApplication.sendEvent(view, QDropEvent(QPointF(view.rect().center()), actions, data, buttons, none))
    qtbot.waitUntil(lambda: headings(view)[-1] == f"Encrypted, run {more[0]}")
    assert not view.drop_hint.isVisible()
    foreign = QMimeData()
    foreign.setData(RUNS_TYPE, b'{"runs": [1]}')
    refused = QDragEnterEvent(view.rect().center(), actions, foreign, buttons, none)
    QApplication.sendEvent(view, refused)
    assert not refused.isAccepted()


def test_a_run_in_progress_is_left_out_and_named(stored: StoredRuns, opened: Open) -> None:
    done = stored.finished(("Plain", {"test": 1}), messages=300)
    [going] = stored.queued(("Signed", {"test": 3}))
    stored.start(going)
    view = opened([*done, going])
    assert view.selection.run_ids == tuple(done)
    assert f"Run {going} is still running" in view.messages.entries()[0].message.sentence


def test_an_interrupted_run_is_compared_and_marked(stored: StoredRuns, opened: Open, qtbot: QtBot) -> None:
    done = stored.finished(("Plain", {"test": 1}), messages=300)
    [cut] = stored.queued(("Signed", {"test": 3}))
    stored.start(cut)
    stored.sample(cut, messages=200)
    stored.end(cut, RunStatus.INTERRUPTED, "The computer went down.")
    view = opened([*done, cut])
    assert len(headings(view)) == 2
    qtbot.waitUntil(lambda: "interrupted" in view.findings.text.toPlainText())
    assert f"Run {cut} of Signed is interrupted" in view.findings.text.toPlainText()


def test_a_missing_run_is_reported(stored: StoredRuns, opened: Open) -> None:
    view = opened([77])
    assert "77" in view.messages.entries()[0].message.sentence
    assert view.empty.isVisible()


def test_the_pinned_baseline_is_the_first_column_and_can_be_removed(
    stored: StoredRuns, opened: Open, qtbot: QtBot
) -> None:
    pinned = stored.finished(("Reference", {"test": 1}), repeats=2, messages=300)
    pin_baseline(stored.store, pinned[0])
    view = opened(stored.finished(("Signed", {"test": 3}), repeats=2, messages=300))
    assert headings(view) == ["Reference, 2 repeats, baseline", "Signed, 2 repeats"]
    assert "pinned baseline" in view.messages.entries()[0].message.sentence
    act(view, 0, "Remove from the comparison")
    qtbot.waitUntil(lambda: headings(view) == ["Signed, 2 repeats, baseline"])


def test_repeats_of_the_pinned_baseline_are_those_on_its_hosts(stored: StoredRuns, opened: Open) -> None:
    pinned = stored.finished(("Reference", {"test": 1}), ("Reference", {"test": 1}), repeats=2, messages=300)
    placement = Placement(roles=(RoleRequest(host="host-b"),)).stored()
    with stored.store.writer.transaction() as connection:
        second = update(schema.scenario).where(schema.scenario.c.position == 1)
        connection.execute(second.values(placement=to_json(placement)))
    pin_baseline(stored.store, pinned[0])
    view = opened(stored.finished(("Signed", {"test": 3}), repeats=2, messages=300))
    assert headings(view) == ["Reference, 2 repeats, baseline", "Signed, 2 repeats"]


def test_a_pinned_run_among_those_compared_is_the_baseline(stored: StoredRuns, opened: Open) -> None:
    run_ids = stored.finished(("Plain", {"test": 1}), ("Signed", {"test": 3}), messages=300)
    pin_baseline(stored.store, run_ids[1])
    assert headings(opened(run_ids)) == ["Plain, run 1", "Signed, run 2, baseline"]


def published_actions(menu: QMenu, text: str) -> list[Any]:
    """All choices of this text, table by table."""
    below = [action.menu() for action in menu.actions() if action.menu() is not None]
    return [action for table in below for action in table.actions() if action.text() == text]


def test_published_columns_are_next_to_the_runs_and_marked(
    stored: StoredRuns, opened: Open, qtbot: QtBot, theme: Theme
) -> None:
    scenarios = [(f"Test {test}", {"test": test, "payload": "fpl-tac"}) for test in (1, 2)]
    view = opened(stored.finished(*scenarios, repeats=5, messages=300))
    menu = view.controls.published_menu
    qtbot.waitUntil(lambda: len(menu.actions()) > 1)
    assert menu.actions()[0].text() == "Of the same scenarios"
    published_actions(menu, "Those of the same scenarios")[0].trigger()
    qtbot.waitUntil(lambda: len(headings(view)) == 4)
    assert view.selection.published == (f"{PUBLISHED}/test-1", f"{PUBLISHED}/test-2")
    assert [heading.endswith(", published") for heading in headings(view)] == [False, True, False, True], (
        "each right of its own"
    )
    header = view.table.header
    tip = view.table.model().headerData(2, Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole)
    assert "WP/16" in tip
    view.table.horizontalScrollBar().setValue(view.table.horizontalScrollBar().maximum())
    place = header.sectionViewportPosition(2)
    picture = header.viewport().grab().toImage()
    assert picture.pixelColor(place + 4, 4) == theme.colour("info_ground"), "the heading is tinted"
    cell = cells(view, "Message throughput")[1]
    assert cell.value.endswith(" msg/s*") and cell.change.startswith("ours ")
    assert cell.mark in ("✓ within", "✗ outside") and cell.tone == ""
    assert "msg / sec" in cell.help and "WP/16" in cell.help, "what is printed, and where"
    assert "different origins" not in row(view, "Message throughput").about
    assert view.origins.isVisible() and view.origins.text().startswith("* Published by the source")
    with qtbot.waitSignal(view.report_wanted) as wanted:
        view.controls.report_button.click()
    assert wanted.args == [list(view.selection.run_ids), list(view.selection.published), view.selection.run_ids[0]]


def test_published_columns_are_seen_next_to_their_scenarios_without_scrolling_at_1280(
    stored: StoredRuns, opened: Open, qtbot: QtBot
) -> None:
    """The page of a window of 1280 x 800 px, with the navigation and the docks open."""
    demo = [("Test 1: plain", 1), ("Test 2: TLS", 2), ("Test 3: TLS, signed", 3), ("Test 4: TLS, signed, encrypted", 4)]
    scenarios = [(title, {"test": test, "payload": "fpl-tac"}) for title, test in demo]
    view = opened(stored.finished(*scenarios, repeats=5, messages=200), 1079)
    view.resize(1079, 452)
    view.add_published([f"{PUBLISHED}/test-{test}" for _, test in demo])
    qtbot.waitUntil(lambda: len(headings(view)) == 8)
    qtbot.wait(20)
    table, header = view.table, view.table.header
    assert view.splitter.orientation() is Qt.Orientation.Vertical, "the table has the whole width"
    assert table.horizontalScrollBar().maximum() == 0, "every column is seen"
    assert [heading.endswith(", published") for heading in headings(view)] == [False, True] * 4
    assert all(cell.change.startswith("ours ") for cell in cells(view, "Message throughput")[1::2]), "with its ratio"
    assert header.density is Density.DENSE and [header._headings[place].short for place in (0, 1)] == [
        "",
        "SWIM within Malaysia, medium payload",
    ]
    assert table.columnWidth(0) >= 200, "titles are readable"


def test_the_first_column_stays_when_the_others_are_scrolled(stored: StoredRuns, opened: Open) -> None:
    scenarios = [(f"Scenario {number}", {"test": 1, "count": 1_000 + number}) for number in range(8)]
    view = opened(stored.finished(*scenarios, messages=200), width=900)
    table = view.table
    assert not table.frozen.isVisible()
    table.horizontalScrollBar().setValue(200)
    assert table.frozen.isVisible() and table.frozen.width() == table.columnWidth(0)
    table.verticalScrollBar().setValue(60)
    assert table.frozen.verticalScrollBar().value() == 60
    rows = range(table.model().rowCount())
    assert [table.frozen.rowHeight(row) for row in rows] == [table.rowHeight(row) for row in rows]


def test_only_differing_parameters_are_shown_until_unfolded(view: ComparisonView, qtbot: QtBot) -> None:
    table = view.table
    assert titles(view)[:3] == ["Parameters that differ", "Test", "Metrics"]
    assert [cell.value for cell in cells(view, "Test")] == ["1", "3"]
    folded, heading = len(titles(view)), titles(view)[-1]
    assert heading.startswith("Equal parameters: ")
    place = table.model().index(folded - 1, 0)
    table.scrollTo(place)
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=table.visualRect(place).center())
    assert len(titles(view)) > folded + 20
    table.setCurrentIndex(table.model().index(folded - 1, 0))
    qtbot.keyClick(table, Qt.Key.Key_Return)
    assert len(titles(view)) == folded


def test_parameters_that_not_all_trials_have_are_folded() -> None:
    runs = [run(1, "open", {"lost": 2}, parameters={"sealed": True})]
    runs.append(run(2, "box", {"lost": 4}, kind="box", parameters={"sealed": True, "box": 7}))
    comparison = compare(group_repeats(runs), PostTrial())
    folded = [row.title for row in rows_of(comparison)]
    assert "Parameters that differ" not in folded
    assert folded[-2:] == ["Parameters that not all trials have: 1", "Equal parameters: 1"]
    assert [row.title for row in rows_of(comparison, unfolded=[Section.FOREIGN])][-2] == "box"


def test_definitions_are_tooltips(view: ComparisonView, plugins: Plugins) -> None:
    [described] = [kind for kind in plugins.trial("amqp.messaging").metrics if kind.name == "throughput"]
    tip = view.table.model().index(titles(view).index("Message throughput"), 0).data(Qt.ItemDataRole.ToolTipRole)
    assert tip.startswith(described.description)
    assert "95 % interval" in index(view, "Message throughput", 1).data(Qt.ItemDataRole.ToolTipRole)


def test_the_comparison_is_copied_as_text_and_exported_as_csv(
    view: ComparisonView, tmp_path: Path, qtbot: QtBot, readers: Callable[[], Reader]
) -> None:
    head, *lines = view.table.as_tsv().splitlines()
    assert head.split("\t") == [
        *("", "Better", "Plain, 2 repeats, baseline", "Signed, 2 repeats"),
        *("difference [95 % interval]", "Remark"),
    ]
    assert any(line.startswith("Message throughput\t↑\t") for line in lines)
    file = tmp_path / "comparison.csv"
    view.export_csv(file)
    qtbot.waitUntil(file.exists)
    table = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
    [plain] = [line for line in table if line["metric"] == "throughput" and line["scenario"] == "Plain"]
    with readers() as reader:
        values = [run.metrics["throughput"].value for run in reader.runs() if run.scenario == "Plain"]
    assert min(values) <= float(plain["value"]) <= max(values)
    assert plain["runs"] == "2" and plain["unit"] == "msg/s"


def test_missing_folder_is_reported_and_nothing_is_written(view: ComparisonView, tmp_path: Path, qtbot: QtBot) -> None:
    (tmp_path / "file").write_text("")
    view.export_csv(tmp_path / "file" / "comparison.csv")
    qtbot.waitUntil(lambda: bool(view.messages.entries()))
    assert "cannot be written" in view.messages.entries()[0].message.sentence


def test_panes_are_below_a_narrow_table_and_may_fill_the_page(stored: StoredRuns, opened: Open, qtbot: QtBot) -> None:
    view = opened(stored.finished(("Plain", {"test": 1}), messages=300), width=700)
    assert view.splitter.orientation() is Qt.Orientation.Vertical
    view.resize(1280, 800)
    assert view.splitter.orientation() is Qt.Orientation.Horizontal
    qtbot.keyClick(view.whole_button, Qt.Key.Key_Space)
    assert not view.table.isVisible() and view.findings.isVisible()
    qtbot.keyClick(view.whole_button, Qt.Key.Key_Space)
    assert view.table.isVisible()
