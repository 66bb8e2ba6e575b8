"""The side-by-side view: columns, baseline, folding, copying and exporting."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from labconsole.plugin import Plugins
from labconsole.store.reader import Reader
from labconsole_ui.sidebyside.view import SideBySideView
from labconsole_ui.theme import Theme

if TYPE_CHECKING:
    from conftest import StoredRuns

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


@pytest.fixture
def view(
    stored: StoredRuns, qtbot: QtBot, plugins: Plugins, theme: Theme, readers: Callable[[], Reader]
) -> Iterator[SideBySideView]:
    """Two scenarios with two repeats each; the second one is half as fast."""
    run_ids = stored.finished(("Plain", {"test": 1}), ("Signed", {"test": 3}), repeats=2, messages=500)
    view = SideBySideView(readers, run_ids, plugins, theme)
    view.resize(1280, 800)
    view.show()
    qtbot.waitUntil(lambda: view.table_data is not None)
    yield view
    view.close()
    view.deleteLater()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def headings(view: SideBySideView) -> list[str]:
    model = view.table.model()
    return [
        model.headerData(column, Qt.Orientation.Horizontal).replace("\n", " | ")
        for column in range(model.columnCount())
    ]


def titles(view: SideBySideView) -> list[str]:
    return [row.title for row in view.table.rows.records()]


def row(view: SideBySideView, title: str) -> list[str]:
    """The row as it is copied: better, then value (and difference) of each scenario, then the remark."""
    view.table.clearSelection()
    for line in view.as_tsv().splitlines():
        if line.startswith(f"{title}\t"):
            return line.split("\t")[1:]
    raise KeyError(title)


def test_repeats_are_one_column_and_differences_are_plain(view: SideBySideView) -> None:
    assert headings(view) == ["", "Better", "Plain | 2 repeats, baseline", "Signed | 2 repeats"]
    assert view.as_tsv().splitlines()[0].split("\t") == [
        "", "Better", "Plain 2 repeats, baseline", "Signed 2 repeats", "difference", "Remark",
    ]  # fmt: skip
    better, plain, signed, difference, remark = row(view, "Message throughput")
    assert better == "↑" and plain.endswith("msg/s") and signed.endswith("msg/s")
    assert difference.startswith("-49.") or difference.startswith("-50.")
    assert remark == "fewer than 5 repeats"
    cell = view.table.model().index(titles(view).index("Message throughput"), 3)
    assert cell.data() == f"{signed}  {difference}", "one cell says both"
    assert "fewer than 5 repeats" in view.note.text() and "no interval yet" in view.note.text()
    for column in range(view.table.model().columnCount()):
        assert view.table.model().index(4, column).data(Qt.ItemDataRole.ForegroundRole) is None, "no colour claims"


def test_another_baseline_is_chosen_in_the_box(view: SideBySideView, qtbot: QtBot) -> None:
    before = row(view, "Message throughput")
    qtbot.keyClick(view.baseline_box, Qt.Key.Key_Down)
    assert headings(view)[2:] == ["Plain | 2 repeats", "Signed | 2 repeats, baseline"]
    _, plain, difference, signed, _ = row(view, "Message throughput")
    assert (plain, signed) == (before[1], before[2])
    assert 95 < float(difference.strip("+ %")) < 105


def test_another_baseline_is_chosen_at_the_column(view: SideBySideView) -> None:
    assert view.baseline_action(0) is None and view.baseline_action(2) is None
    action = view.baseline_action(3)
    assert action is not None
    action.trigger()
    assert headings(view)[3] == "Signed | 2 repeats, baseline"
    assert view.baseline_box.currentText() == "Signed"


def test_each_run_can_stand_alone(view: SideBySideView, qtbot: QtBot) -> None:
    qtbot.keyClick(view.group_box, Qt.Key.Key_Space)
    assert headings(view)[2:] == [
        "Plain · run 1 | baseline",
        "Signed · run 2 | ",
        "Plain · run 3 | ",
        "Signed · run 4 | ",
    ]


def test_only_differing_parameters_are_shown_until_unfolded(view: SideBySideView, qtbot: QtBot) -> None:
    table = view.table
    assert titles(view)[:3] == ["Parameters that differ", "Test", "Metrics"]
    assert row(view, "Test")[1:3] == ["1", "3"]
    folded, heading = len(titles(view)), titles(view)[-1]
    assert heading.startswith("Equal parameters: ")
    place = table.model().index(folded - 1, 0)
    table.scrollTo(place)
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=table.visualRect(place).center())
    assert len(titles(view)) > folded + 20
    table.setCurrentIndex(table.model().index(folded - 1, 0))
    qtbot.keyClick(table, Qt.Key.Key_Return)
    assert len(titles(view)) == folded


def test_four_scenarios_with_differences_need_no_scrolling_sideways(
    stored: StoredRuns, qtbot: QtBot, plugins: Plugins, theme: Theme, readers: Callable[[], Reader]
) -> None:
    names = ("Test 1: plain", "Test 2: TLS", "Test 3: TLS, signed", "Test 4: TLS, signed, encrypted")
    run_ids = stored.finished(*((name, {"test": number}) for number, name in enumerate(names, 1)), messages=500)
    view = SideBySideView(readers, run_ids, plugins, theme)
    qtbot.addWidget(view)
    view.resize(1080, 440)
    view.show()
    qtbot.waitUntil(lambda: view.table_data is not None)
    assert len(headings(view)) == 6
    assert not view.table.horizontalScrollBar().isVisible()
    assert headings(view)[5].replace(" | ", " ") == "Test 4: TLS, signed, encrypted run 4"
    qtbot.wait(20)


def test_definitions_are_tooltips(view: SideBySideView, plugins: Plugins) -> None:
    model = view.table.model()
    tips = {model.index(row, 0).data(): model.index(row, 0).data(Qt.ItemDataRole.ToolTipRole) for row in range(20)}
    [described] = [kind for kind in plugins.trial("amqp.messaging").metrics if kind.name == "throughput"]
    assert tips["Message throughput"] == described.description


def test_the_comparison_leaves_as_text_and_as_csv(
    view: SideBySideView, tmp_path: Path, qtbot: QtBot, readers: Callable[[], Reader]
) -> None:
    lines = view.as_tsv().splitlines()
    assert any(line.startswith("Message throughput\t↑\t") for line in lines)
    file = tmp_path / "comparison.csv"
    view.export_csv(file)
    qtbot.waitUntil(file.exists)
    table = {line["metric"]: line for line in csv.DictReader(file.read_text(encoding="utf-8").splitlines())}
    with readers() as reader:
        values = [run.metrics["throughput"].value for run in reader.runs() if run.scenario == "Plain"]
    assert float(table["throughput"]["Plain"]) == pytest.approx(sum(values) / 2)
    assert table["throughput"]["Plain: runs"] == "2" and table["throughput"]["unit"] == "msg/s"
    assert table["throughput"]["Plain: difference [%]"] == ""


def test_a_folder_that_is_not_there_is_said_and_nothing_is_written(
    view: SideBySideView, tmp_path: Path, qtbot: QtBot
) -> None:
    view.export_csv(tmp_path / "missing" / "comparison.csv")
    qtbot.waitUntil(lambda: bool(view.messages.entries()))
    assert "cannot be written" in view.messages.entries()[0].message.sentence
