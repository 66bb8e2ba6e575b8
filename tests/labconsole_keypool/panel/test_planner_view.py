"""The planner in the window by clicks: figures with derivations, a log imported, refused and forgotten, values used."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QLineEdit, QPushButton
from pytestqt.qtbot import QtBot

from labconsole.store.records import RunStatus
from labconsole_keypool.panel import planner_view
from labconsole_keypool.panel.planner_view import PlannerView
from labconsole_keypool.panel.service_panel import PLANNER, ServicePanel
from labconsole_keypool.planning.arrival_log import HOUR
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.shell.navigation import Navigation
from tests.labconsole_keypool.synthetic_weeks import synthetic_weeks

EXACTLY = Qt.MatchFlag.MatchExactly | Qt.MatchFlag.MatchRecursive
pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
Slots = list[tuple[str, float]]


@pytest.fixture
def slots(monkeypatch: pytest.MonkeyPatch) -> Slots:
    """How long each of the planner's slots held up the window, ms."""
    lasted: Slots = []

    def timed(name: str) -> Callable[..., Any]:
        original = getattr(PlannerView, name)

        def slot(view: PlannerView, *arguments: Any) -> Any:
            began = time.thread_time()
            result = original(view, *arguments)
            lasted.append((name, (time.thread_time() - began) * 1000))
            return result

        return slot

    for name in ("_show", "_have_log", "_plan_when_seen", "fill_from_scenario", "clear_log"):
        monkeypatch.setattr(PlannerView, name, timed(name))
    return lasted


@pytest.fixture
def view(qtbot: QtBot, window: MainWindow, slots: Slots) -> Iterator[PlannerView]:
    """The planner's tab of the page, as it comes up; at the end no computation is in progress."""
    planner = open_planner(qtbot, window)
    yield planner
    settle(qtbot, planner)


def open_planner(qtbot: QtBot, window: MainWindow) -> PlannerView:
    """Click through to the planner, and wait for its first plan."""
    navigation = window.findChild(Navigation)
    (entry,) = navigation.findItems("Key pool, live", EXACTLY)
    place = navigation.visualItemRect(entry).center()
    qtbot.mouseClick(navigation.viewport(), Qt.MouseButton.LeftButton, pos=place)
    page = window.pages.currentWidget()
    assert isinstance(page, ServicePanel)
    page.building.finish()
    tab = page.tabs.tabRect(PLANNER).center()
    qtbot.mouseClick(page.tabs, Qt.MouseButton.LeftButton, pos=tab)
    settle(qtbot, page.planner)
    return page.planner


def settle(qtbot: QtBot, view: PlannerView) -> None:
    """Wait until everything that was entered is computed."""
    qtbot.waitUntil(lambda: view.plan is not None and view.status.text() == "")


def click(qtbot: QtBot, button: QPushButton) -> None:
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def cells(view: PlannerView, row: str) -> list[str]:
    """The texts of a row, by its name."""
    model = view.figures.model
    place = [record.name for record in model.records()].index(row)
    return [str(model.index(place, column).data()) for column in range(model.columnCount())]


def enter(qtbot: QtBot, view: PlannerView, name: str, text: str) -> None:
    edit = view.form.row(name).editor.findChild(QLineEdit)
    edit.selectAll()
    qtbot.keyClicks(edit, text)


def choose_file(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """Answers the system's dialog in place of the operator."""
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_arguments: (str(path), ""))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    weeks = synthetic_weeks(5, 1, scale=100)
    hours = [f"{weeks.start + number * HOUR},{count:.0f}" for number, count in enumerate(weeks.requests)]
    path = tmp_path / "arrivals of spring.csv"
    path.write_text("\n".join(["hour,count", *hours]))
    return path


def test_input_is_planned_in_three_ways_and_a_row_shows_its_derivation(
    qtbot: QtBot, view: PlannerView, slots: Slots
) -> None:
    enter(qtbot, view, "rate", "60")
    enter(qtbot, view, "duration_s", "50")
    enter(qtbot, view, "queue_limit", "50")
    qtbot.waitUntil(lambda: cells(view, "dropped")[1] == "450 requests")
    settle(qtbot, view)
    assert cells(view, "queue")[1:3] == ["50 requests", "50 requests"]
    assert cells(view, "dropped")[2] == "450 requests"
    assert cells(view, "queue")[3].startswith("– no run with a pool near 3,000 requests at 60/s with luna-sa-1700")
    assert cells(view, "first_drop")[1] == "5 s"
    table = view.figures.table
    place = table.visualRect(view.figures.model.index(1, 0)).center()
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    derivation = view.figures.derivation.text().splitlines()
    assert derivation[:2] == ["Q = (HR - BR) * T", "Q = (60 - 50) * 50 s = 500 requests"]
    assert derivation[3] == "Simulation: 50 requests, 3,000 requests at 60/s"
    enter(qtbot, view, "rate", "70")
    qtbot.waitUntil(lambda: "Q = (70 - 50)" in view.figures.derivation.text())
    assert view.figures.disagreement.isHidden()
    enter(qtbot, view, "duration_s", "1200")
    qtbot.waitUntil(lambda: "the simulation" in view.figures.disagreement.text())
    assert not view.figures.disagreement.isHidden() and "keys last for" in view.figures.disagreement.text()
    assert max(ms for _, ms in slots) < 50, slots


def test_the_scenario_s_rate_service_and_device_are_where_it_begins(qtbot: QtBot, view: PlannerView) -> None:
    page = view.parentWidget()
    while not isinstance(page, ServicePanel):
        page = page.parentWidget()
    scenario = {"arrivals": "constant", "rate": 40.0, "requests": 3000, "timing": "luna-sa-1700", "queue_limit": 150}
    page.form.set_values({**scenario, "sign": "stockholm-base-rate"})
    click(qtbot, view.scenario_button)
    values = view.form.values()
    assert (values["rate"], values["duration_s"], values["queue_limit"]) == (40, 75, 150)
    assert values["sign"] == "stockholm-base-rate"
    qtbot.waitUntil(lambda: cells(view, "dropped")[1] == "876.3 requests")


def test_log_is_imported_forecast_from_and_cleared(
    qtbot: QtBot, view: PlannerView, monkeypatch: pytest.MonkeyPatch, log: Path, slots: Slots
) -> None:
    choose_file(monkeypatch, log)
    click(qtbot, view.import_button)
    qtbot.waitUntil(view.forecast.isVisible)
    settle(qtbot, view)
    card = view.forecast
    assert card.title.text() == "Forecast from arrivals of spring.csv"
    assert "better than the same hour of the week before" in card.errors.text()
    assert card.plot is not None
    curves = {curve.title: curve for curve in card.plot.curves()}
    assert list(curves) == ["Week before", "Held-out week", "Its forecast", "Next week"]
    assert view.plan is not None and view.plan.forecast is not None
    assert curves["Held-out week"].values.tolist() == view.plan.forecast.held_out.tolist()
    assert curves["Next week"].x[0] == curves["Held-out week"].x[-1] + 1
    assert card.model.rowCount() > 5
    click(qtbot, view.forget_button)
    assert card.isHidden() and view.forget_button.isHidden()
    qtbot.waitUntil(lambda: view.plan is not None and view.plan.forecast is None)
    assert max(ms for _, ms in slots) < 50, slots


def test_faulty_log_is_reported_and_the_plan_stays(
    qtbot: QtBot, view: PlannerView, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = cells(view, "pool")
    for text, sentence in (
        ("2026-03-02T08:00,1\n2026-03-02T09:00,ten\n", "line 2: the count must be a whole number from 0 on"),
        ("2026-03-02T08:00,1\n2026-03-02T09:00,10\n", "A forecast needs 3 weeks at least"),
    ):
        (tmp_path / "log.csv").write_text(text)
        choose_file(monkeypatch, tmp_path / "log.csv")
        click(qtbot, view.import_button)
        qtbot.waitUntil(lambda sentence=sentence: sentence in view.trouble.text() and view.trouble.isVisible())
    assert cells(view, "pool") == before and view.forecast.isHidden()
    click(qtbot, view.runs_button)
    qtbot.waitUntil(lambda: "has no run of the signing service" in view.trouble.text())


def test_use_these_values_puts_the_pool_s_size_into_the_form_of_the_scenario(
    qtbot: QtBot, view: PlannerView, window: MainWindow, monkeypatch: pytest.MonkeyPatch, log: Path
) -> None:
    page = window.pages.currentWidget()
    assert isinstance(page, ServicePanel)
    page.building.finish()
    choose_file(monkeypatch, log)
    click(qtbot, view.import_button)
    qtbot.waitUntil(lambda: view.plan is not None and view.plan.generation is not None)
    assert view.plan is not None and view.plan.pool_keys > 1000
    rate = page.form.values()["rate"]
    click(qtbot, view.use_button)
    assert page.form.values()["pool_at_start"] == view.plan.pool_keys
    assert page.form.values()["rate"] == rate, "the rest of the scenario stays"
    assert page.form.problems == ()


def test_input_during_a_computation_is_planned_once_afterwards(
    qtbot: QtBot, view: PlannerView, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[float] = []
    entered = threading.Event()
    original = planner_view.make_plan

    def slow(parameters: Any, *arguments: Any) -> Any:
        planned.append(parameters.rate)
        assert entered.wait(60)
        return original(parameters, *arguments)

    monkeypatch.setattr(planner_view, "make_plan", slow)
    for rate in (11.0, 12.0, 13.0, 14.0):
        view.form.set_values({**view.form.values(), "rate": rate})
    entered.set()
    qtbot.waitUntil(lambda: planned == [11.0, 14.0])
    settle(qtbot, view)
    assert cells(view, "hsms_with_pool")[1] == "1 HSM"


def test_a_run_that_ends_after_the_page_was_closed_plans_nothing(qtbot: QtBot, window: MainWindow) -> None:
    """An error in a slot fails the test: pytest-qt sees it."""
    view = open_planner(qtbot, window)
    with qtbot.waitSignal(view.destroyed):
        window.close_page()
    window.services.bridge.finished.emit(1, RunStatus.FINISHED)
