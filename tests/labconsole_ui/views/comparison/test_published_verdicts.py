"""Published verdicts on the comparison page, next to those of the runs."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from labconsole.model.plugin import Plugins
from labconsole.model.trial import Evaluation, Metric, Verdict
from labconsole.processes import this_process
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, NewScenario, RunStatus
from labconsole.store.run_store import Store
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.comparison.comparison_rows import CellText
from labconsole_ui.views.comparison.comparison_view import ComparisonView
from tests.helpers.practice import KIND, PLUGIN

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Two runs each of counting to 100, which pass both their verdicts, and to 200, of which one fails."""
    path = tmp_path / "runs.db"
    store = Store.open(path)
    scenarios = tuple(NewScenario(f"Count {count}", KIND, {"count": count, "roles": 1}) for count in (100, 200))
    order = ((0, 1), (1, 1), (0, 2), (1, 2))
    run_ids = store.add_campaign(NewCampaign("p", "Practice", "", 7, scenarios, order), this_process(), NOW)
    for run_id, (index, repeat) in zip(run_ids, order, strict=True):
        store.run_started(run_id, this_process(), {}, [], NOW)
        whole = not (index == 1 and repeat == 2)
        counted = Verdict("all counted", "pass" if whole else "fail", "All of them." if whole else "Three are missing.")
        clean = Verdict("clean", "pass", "No dust.")
        store.replace_evaluation(run_id, Evaluation((Metric("counted", 100.0, ""),), (counted, clean)))
        store.run_ended(run_id, RunStatus.FINISHED, "", NOW)
    store.close()
    return path


@pytest.fixture
def view(database: Path, theme: Theme, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> Iterator[ComparisonView]:
    monkeypatch.syspath_prepend(str(PLUGIN))
    importlib.invalidate_caches()
    made = ComparisonView(lambda: Reader(database), [1, 2, 3, 4], Plugins.discover(), theme)
    qtbot.addWidget(made)
    made.resize(1280, 900)
    made.show()
    qtbot.waitUntil(lambda: made.stack.currentWidget() is not made.reading)
    qtbot.waitUntil(lambda: len(made.controls.published_menu.actions()) > 1)
    yield made
    made.close()
    sys.modules.pop("practice_trial", None)


def titles(view: ComparisonView) -> list[str]:
    return [row.title for row in view.table.rows.records()]


def cells(view: ComparisonView, title: str) -> tuple[CellText, ...]:
    return next(row.cells for row in view.table.rows.records() if row.title == title)


def click(view: ComparisonView, title: str, qtbot: QtBot) -> None:
    index = view.table.model().index(titles(view).index(title), 0)
    view.table.scrollTo(index)
    place = view.table.visualRect(index).center()
    qtbot.mouseClick(view.table.viewport(), Qt.MouseButton.LeftButton, pos=place)


def add_published(view: ComparisonView, table: str, qtbot: QtBot) -> None:
    """Choose the columns of a published table that are of the same scenarios as the runs."""
    [menu] = [action.menu() for action in view.controls.published_menu.actions() if table in action.text()]
    before = len(view.selection.published)
    next(action for action in menu.actions() if action.text() == "Those of the same scenarios").trigger()
    qtbot.waitUntil(lambda: len(view.selection.published) > before)
    qtbot.waitUntil(lambda: view.table_data is not None and len(view.table_data.columns) > 2)
    qtbot.waitUntil(lambda: view.table.model().columnCount() == len(view.table_data.columns) + 1)


def test_published_verdicts_are_next_to_those_of_the_same_scenario(view: ComparisonView, qtbot: QtBot) -> None:
    add_published(view, "Practice verdicts", qtbot)
    ours, theirs, other, printed = cells(view, "all counted")
    assert (ours.value, ours.change, ours.mark, ours.tone) == ("pass", "", "", "")
    assert "2 of 2 pass" in ours.help
    assert (theirs.value, theirs.mark) == ("passed", "✓ as ours")
    assert "The practice book, Table 1" in theirs.help
    assert (other.value, other.change, other.tone) == ("fail", "1 of 2 pass\n1 of 2 fail", "bad")
    assert "Three are missing." in other.help
    assert (printed.value, printed.mark) == ("passed", "✗ not as ours")
    assert [cell.value for cell in cells(view, "nothing skipped")] == ["–", "not tested", "–", "–"]
    assert cells(view, "counted in time")[1].tone == "bad"


def test_verdicts_that_passed_in_all_runs_are_folded_until_their_heading_is_clicked(
    view: ComparisonView, qtbot: QtBot
) -> None:
    heading = "Verdicts passed in all runs: 1"
    assert "all counted" in titles(view) and "clean" not in titles(view)
    folded = len(titles(view))
    click(view, heading, qtbot)
    assert titles(view)[titles(view).index(heading) + 1] == "clean"
    assert [cell.value for cell in cells(view, "clean")] == ["pass", "pass"]
    assert len(titles(view)) == folded + 1, "the equal parameters stay folded"
    click(view, heading, qtbot)
    assert "clean" not in titles(view)


def test_a_copied_table_and_the_csv_have_the_verdicts(view: ComparisonView, qtbot: QtBot, tmp_path: Path) -> None:
    add_published(view, "Practice verdicts", qtbot)
    line = next(line for line in view.table.as_tsv().splitlines() if line.startswith("all counted"))
    first, second = ["pass", "passed", "✓ as ours"], ["fail", "1 of 2 pass 1 of 2 fail", "passed", "✗ not as ours"]
    assert line.split("\t")[2:] == [*first, *second, ""]
    path = tmp_path / "comparison.csv"
    view.export_csv(path)
    qtbot.waitUntil(path.exists)
    assert "counted in time" in path.read_text(encoding="utf-8")
