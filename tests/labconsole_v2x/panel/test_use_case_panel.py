"""The page of use cases in a real window: a run by click fills the list, check marks are the parameter `cases`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QComboBox, QPushButton, QTreeWidgetItem
from pytestqt.qtbot import QtBot

from labconsole.analysis.number_format import NO_FIGURE
from labconsole.engine.protocol import LiveFrame, RoleValues
from labconsole.engine.queue import QueueState
from labconsole.store.records import RunStatus
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.views.run.run_view import RunView
from labconsole_v2x.panel.use_cases.use_case_list import CASE, REQUIRED, RESULT, SOURCE
from labconsole_v2x.panel.use_cases.use_case_monitor import CaseResult, RunResults, newest_results
from labconsole_v2x.panel.use_cases.use_case_panel import CHECK_LIST, SCENARIO, UseCasePanel, expected_seconds
from labconsole_v2x.use_case_reference import reported_results
from labconsole_v2x.use_cases.catalogue import CODES, USE_CASES
from labconsole_v2x.use_cases.use_case import ReferencePoint
from labconsole_v2x.use_cases.use_case_parameters import UseCaseParameters
from tests.helpers.pages import opened_trial
from tests.labconsole_ui.shared_window import SharedWindow
from tests.labconsole_v2x.panel.page_facts import facts

LEFT = Qt.MouseButton.LeftButton
SHORT = ("F-SIG-01", "F-SIG-06", "A-SIG-03")


@pytest.fixture
def page(shown_window: MainWindow) -> UseCasePanel:
    return use_cases(shown_window)


@pytest.fixture
def damaged_token(shared: SharedWindow) -> Iterator[str]:
    """The name of a token without objects, in the home of the window."""
    folder = shared.home / "tokens"
    (folder / "lab").mkdir(parents=True)
    yield "lab"
    shutil.rmtree(folder)


def use_cases(window: MainWindow) -> UseCasePanel:
    panel = opened_trial(window, "v2x.use-cases")
    assert isinstance(panel, UseCasePanel)
    return panel


def items(page: UseCasePanel) -> Iterator[QTreeWidgetItem]:
    """The rows of cases."""
    for group in map(page.list.topLevelItem, range(page.list.topLevelItemCount())):
        assert group is not None
        yield from map(group.child, range(group.childCount()))


def row(page: UseCasePanel, code: str) -> QTreeWidgetItem:
    return next(item for item in items(page) if item.text(CASE) == code)


def group(page: UseCasePanel, point: ReferencePoint) -> QTreeWidgetItem:
    found = page.list.topLevelItem(list(ReferencePoint).index(point))
    assert found is not None
    return found


def click(qtbot: QtBot, page: UseCasePanel, item: QTreeWidgetItem) -> None:
    """Click on a row's title."""
    page.list.scrollToItem(item)
    place = page.list.visualItemRect(item).topLeft() + QPoint(page.list.columnWidth(CASE) + 20, 6)
    qtbot.mouseClick(page.list.viewport(), LEFT, pos=place)


def click_mark(qtbot: QtBot, page: UseCasePanel, item: QTreeWidgetItem) -> None:
    """Click on a row's check mark."""
    page.list.scrollToItem(item)
    place = page.list.visualItemRect(item).center()
    place.setX(page.list.visualRect(page.list.indexFromItem(item, CASE)).left() + 16)
    qtbot.mouseClick(page.list.viewport(), LEFT, pos=place)


def choose(qtbot: QtBot, page: UseCasePanel, *codes: str) -> None:
    """Check these cases alone, by click."""
    qtbot.mouseClick(page.none_button, LEFT)
    for code in codes:
        click_mark(qtbot, page, row(page, code))
    qtbot.waitUntil(lambda: page.form.values()["cases"] == ", ".join(codes))


def run_by_click(qtbot: QtBot, page: UseCasePanel) -> int:
    """The number of the run, after its end and when its verdicts are shown."""
    queue = page.context.bridge.queue
    before = len(queue.items)
    qtbot.mouseClick(page.run_bar.run_button, LEFT)
    return ended(qtbot, page, before)


def ended(qtbot: QtBot, page: UseCasePanel, before: int = 0) -> int:
    queue = page.context.bridge.queue
    qtbot.waitUntil(lambda: len(queue.items) > before)
    qtbot.waitUntil(lambda: all(item.state is QueueState.DONE for item in queue.items), timeout=60_000)
    item = queue.items[-1]
    assert item.status is RunStatus.FINISHED
    stored = newest_results(queue.store.path, "v2x.use-cases")
    assert stored.run_id == item.run_id
    qtbot.waitUntil(lambda: page.monitor.shown == stored)
    return item.run_id


def test_empty_page_lists_all_cases_by_reference_point_with_what_the_source_reports(
    page: UseCasePanel, shown_window: MainWindow
) -> None:
    check_letters(page, shown_window)
    assert page.presets.profile_name == "v2x-use-cases" and page.tabs.currentIndex() == CHECK_LIST
    assert {item.text(CASE) for item in items(page)} == set(CODES)
    for point in ReferencePoint:
        parent = group(page, point)
        codes = {parent.child(number).text(CASE) for number in range(parent.childCount())}
        assert codes == {code for code, case in USE_CASES.items() if case.reference_point is point}
    first = group(page, ReferencePoint.RP1)
    kinds = [(first.child(at).text(CASE)[0], first.child(at).text(REQUIRED)) for at in range(first.childCount())]
    assert list(dict.fromkeys(kinds)) == [(kind, need) for kind in "FA" for need in ("mandatory", "optional")]
    reported = reported_results(shown_window.services.plugins)
    for code, printed in {**reported, "A-SIG-06": "not printed", "FUN-01": NO_FIGURE}.items():
        assert row(page, code).text(SOURCE) == printed
    assert {item.text(RESULT) for item in items(page)} == {NO_FIGURE}
    assert page.summary.passed[1].text() == NO_FIGURE and "No run yet" in page.summary.run_label.text()
    assert not page.failed_button.isEnabled() and not page.open_run_button.isEnabled()
    assert "Select a case" in page.details.toPlainText()
    assert facts(page)["Use cases"] == "36 of 36, and 10 functions"
    assert 15 <= expected_seconds(CODES) <= 30
    assert facts(page)["Keys of stations"] == "in software"


def check_letters(page: UseCasePanel, window: MainWindow) -> None:
    """Each letter is for one button."""
    shown = [button.text() for button in page.findChildren(QPushButton) if not button.isHidden()]
    menus = [menu.text() for menu in window.menuBar().actions() if menu.text() != "&Runs"]
    letters = [text.split("&")[1][0].upper() for text in (*shown, *menus) if "&" in text]
    assert len(letters) > 8 and len(set(letters)) == len(letters), letters


def test_a_selected_case_shows_its_steps_criterion_and_test_purposes(qtbot: QtBot, page: UseCasePanel) -> None:
    for code in ("A-CER-04", "F-SIG-01", "F-ENC-01"):
        click(qtbot, page, row(page, code))
        case, text = USE_CASES[code], " ".join(page.details.toPlainText().split())
        for line in (case.title, *case.steps, case.capability, case.interpretation, *map(str, case.criteria)):
            assert line in text
        assert all(purpose in text for purpose in case.test_purposes)
        assert ("Attacker's capability" in text) is bool(case.capability)
        assert ("Closest ETSI test purposes" in text) is bool(case.test_purposes)
    qtbot.keyClick(page.list, Qt.Key.Key_Down)
    assert page.details.toPlainText().startswith(page.list.currentItem().text(CASE))
    assert page.list.currentItem().text(CASE) != "F-ENC-01"
    click(qtbot, page, group(page, ReferencePoint.RP2))
    assert "Select a case" in page.details.toPlainText()


def test_check_marks_are_the_parameter_cases(qtbot: QtBot, page: UseCasePanel) -> None:
    assert page.form.values()["cases"] == "all" and set(page.list.checked) == set(CODES)
    choose(qtbot, page, "FUN-01", "A-SIG-04")
    assert facts(page)["Use cases"] == "1 of 36, and 1 functions"
    assert facts(page)["A run takes about"] == "5 s"
    choose(qtbot, page, *SHORT)
    click(qtbot, page, row(page, "A-SIG-03"))
    qtbot.keyClick(page.list, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: page.form.values()["cases"] == "F-SIG-01, F-SIG-06")
    click_mark(qtbot, page, group(page, ReferencePoint.RP2))
    qtbot.waitUntil(lambda: page.form.values()["cases"] == "F-SIG-01, F-SIG-06, F-PSN-02, A-CER-06")
    page.form.set_values({**page.form.values(), "cases": "fun-01"})
    assert page.list.checked == ("FUN-01",)
    assert group(page, ReferencePoint.RP1).checkState(CASE) is Qt.CheckState.Unchecked
    assert group(page, ReferencePoint.FUNCTIONS).checkState(CASE) is Qt.CheckState.PartiallyChecked
    qtbot.mouseClick(page.none_button, LEFT)
    assert page.form.problems and not page.list.checked
    qtbot.mouseClick(page.run_bar.problem_button, LEFT)
    assert page.tabs.currentIndex() == SCENARIO and page.form.isVisible() and not page.context.bridge.queue.items
    page.tabs.setCurrentIndex(CHECK_LIST)
    qtbot.mouseClick(page.all_button, LEFT)
    assert page.form.values()["cases"] == "all" and set(page.list.checked) == set(CODES)


@pytest.mark.usefixtures("worker_threads")
def test_run_by_click_fills_the_list_and_its_verdicts_stay(
    qtbot: QtBot, page: UseCasePanel, shown_window: MainWindow
) -> None:
    seen: list[RunResults] = []
    page.monitor.changed.connect(seen.append)
    choose(qtbot, page, *SHORT)
    click(qtbot, page, row(page, "F-SIG-06"))
    run_id = run_by_click(qtbot, page)
    words = [tuple(shown.results[code].word for code in SHORT) for shown in seen if shown.running]
    assert ("waiting", "waiting", "waiting") in words or ("in progress", "waiting", "waiting") in words
    assert all(shown.results["F-SIG-02"].word == "not tested" for shown in seen if shown.running and shown.parameters)
    assert {row(page, code).text(RESULT) for code in SHORT} == {"passed"}
    assert row(page, "F-SIG-02").text(RESULT) == "not tested"
    assert row(page, "F-SIG-02").toolTip(RESULT) == "Not among the chosen cases."
    assert "Passed. station: choice of the ticket: 20 x no ticket" in page.details.toPlainText()
    assert group(page, ReferencePoint.RP1).text(RESULT).startswith("3 of ")
    figures = [figure[1].text() for figure in (page.summary.passed, page.summary.failed, page.summary.not_tested)]
    assert figures == ["3 / 36", "0 / 36", "33 / 36"]
    assert page.summary.functions[1].text() == "0 / 10"
    assert page.summary.run_label.text() == f"Run {run_id}, keys in software."
    check_copies(qtbot, page)
    qtbot.mouseClick(page.open_run_button, LEFT)
    assert isinstance(shown_window.pages.currentWidget(), RunView)


def check_copies(qtbot: QtBot, page: UseCasePanel) -> None:
    """The whole list by its button, selected rows by Ctrl+C."""
    qtbot.mouseClick(page.copy_button, LEFT)
    titles, *lines = [line.split("\t") for line in QGuiApplication.clipboard().text().splitlines()]
    assert titles == ["Reference point", "Case", "Title", "Required", "Source", "Result"]
    assert {line[1]: line[5] for line in lines}.items() >= dict.fromkeys(SHORT, "passed").items()
    assert len(lines) == len(CODES)
    click(qtbot, page, row(page, "A-SIG-03"))
    page.list.setFocus()
    qtbot.keyClick(page.list, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    (copied,) = QGuiApplication.clipboard().text().splitlines()[1:]
    title = USE_CASES["A-SIG-03"].title
    assert copied.split("\t") == [ReferencePoint.RP1.value, "A-SIG-03", title, "mandatory", "passed", "passed"]


@pytest.mark.usefixtures("worker_threads")
def test_failed_cases_are_run_again_by_click(qtbot: QtBot, page: UseCasePanel) -> None:
    results = {code: CaseResult("passed") for code in CODES}
    results |= {code: CaseResult("failed", "a reason") for code in ("F-SIG-01", "A-SIG-03")}
    page.monitor.shown = RunResults(7, UseCaseParameters(), results=results)
    page.monitor.changed.emit(page.monitor.shown)
    assert row(page, "A-SIG-03").text(RESULT) == "failed" and page.failed_button.isEnabled()
    assert page.summary.failed[1].text() == "2 / 36" and page.summary.failed[1].property("tone") == "bad"
    qtbot.mouseClick(page.failed_button, LEFT)
    assert page.form.values()["cases"] == "F-SIG-01, A-SIG-03"
    ended(qtbot, page)
    assert row(page, "A-SIG-03").text(RESULT) == "passed" and not page.failed_button.isEnabled()


@pytest.mark.usefixtures("worker_threads")
def test_token_that_cannot_be_used_is_the_reason_of_each_case(
    qtbot: QtBot, damaged_token: str, page: UseCasePanel
) -> None:
    choose(qtbot, page, *SHORT)
    page.form.set_values({**page.form.values(), "backend": "token"})
    box = page.form.row("token").editor.findChild(QComboBox)
    assert box is not None and damaged_token in [box.itemText(place) for place in range(box.count())]
    assert facts(page)["Keys of stations"] == "in token lab"
    run_id = run_by_click(qtbot, page)
    click(qtbot, page, row(page, "F-SIG-01"))
    assert "Not tested. The token lab is damaged (its objects are gone)" in page.details.toPlainText()
    assert page.summary.run_label.text() == f"Run {run_id}, keys in token lab."
    assert page.summary.not_tested[1].text() == "36 / 36"


def test_column_widths_are_remembered(qtbot: QtBot, page: UseCasePanel, shown_window: MainWindow) -> None:
    width = page.list.columnWidth(SOURCE) + 31
    page.list.setColumnWidth(SOURCE, width)
    shown_window.pages.close_page(shown_window.pages.currentIndex())
    again = opened_trial(shown_window, "v2x.use-cases")
    assert isinstance(again, UseCasePanel) and again is not page
    assert again.list.columnWidth(SOURCE) == width


def test_list_fills_the_window_and_no_column_is_cut(qtbot: QtBot, page: UseCasePanel, shown_window: MainWindow) -> None:
    results = {code: CaseResult("not tested") for code in CODES}
    page.list.show_results(replace(RunResults(1), results=results))
    for column in (CASE, REQUIRED, SOURCE, RESULT):
        assert page.list.sizeHintForColumn(column) <= page.list.columnWidth(column), column
    assert not page.list.horizontalScrollBar().isVisible()
    before = page.split.height()
    shown_window.resize(1280, 1400)
    qtbot.waitUntil(lambda: page.split.height() >= before + 200)


def test_list_is_scrolled_into_view_when_a_run_begins(qtbot: QtBot, page: UseCasePanel) -> None:
    check_frame_of_another_trial(page)
    bar = page._area.verticalScrollBar()
    assert bar.value() == 0 and bar.maximum() > 0, "the panes of the queue leave no room for the list"
    page.monitor._show(RunResults(1, running=True, results={"F-SIG-01": CaseResult("in progress")}))
    assert bar.value() > 0
    bar.setValue(0)
    page.monitor._show(RunResults(1, running=True, results={"F-SIG-01": CaseResult("passed")}))
    assert bar.value() == 0, "later the operator decides"


def check_frame_of_another_trial(page: UseCasePanel) -> None:
    """It changes nothing."""
    frame = LiveFrame(0, None, 0, 0, {}, {}, by_role=RoleValues(states={"results": {"role": '{"F-SIG-01": "passed"}'}}))
    page.context.bridge.live.emit(99, frame)
    assert page.monitor.shown == RunResults()
