"""Pages of runs that were not in front for long are freed, and created again when opened."""

from __future__ import annotations

import gc
import weakref

from pytestqt.qtbot import QtBot

from labconsole.clock import wall_now
from labconsole.processes import Owner
from labconsole.store.records import NewCampaign, NewScenario
from labconsole_ui.runtime.services import Services
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.shell.pages import LOADED_PAGES
from labconsole_ui.views.run.run_view import RunView

RUNS = LOADED_PAGES + 4
CAMPAIGN = NewCampaign(
    "demo",
    "Many runs",
    "",
    7,
    (NewScenario("Test 1", "amqp.messaging", {"test": 1}),),
    tuple((0, repeat) for repeat in range(1, RUNS + 1)),
)


def test_pages_of_runs_are_freed_behind_others_and_come_back(
    qtbot: QtBot, window: MainWindow, services: Services
) -> None:
    runs = services.bridge.queue.store.add_campaign(CAMPAIGN, Owner(2**22 + 1, 1.0, "another boot"), wall_now())
    pages = window.pages
    shown: list[str] = []
    pages.shown.connect(shown.append)
    views = []
    for run in runs:
        window.runs.open_run(run)
        view = pages.currentWidget()
        assert isinstance(view, RunView)
        qtbot.waitUntil(lambda view=view: "metrics" in view.tables)
        views.append(weakref.ref(view))
    del view
    assert shown == [f"run:{run}" for run in runs]
    tabs = [pages.tabText(index) for index in range(pages.count())]
    assert tabs == ["Start", *(f"Run {run}" for run in runs)]
    there = [isinstance(page, RunView) for page in pages.all_pages()[1:]]
    assert there == [False] * (RUNS - LOADED_PAGES - 1) + [True] * (LOADED_PAGES + 1)

    def freed() -> int:
        gc.collect()
        return sum(view() is None for view in views)

    qtbot.waitUntil(lambda: freed() == RUNS - LOADED_PAGES - 1)

    pages.setCurrentIndex(1)
    again = pages.currentWidget()
    assert isinstance(again, RunView) and again.run_id == runs[0]
    assert shown[-1] == pages.current_key == f"run:{runs[0]}"
    qtbot.waitUntil(lambda: "metrics" in again.tables)
    assert [pages.tabText(index) for index in range(pages.count())] == tabs
    window.runs.open_run(runs[1])
    assert pages.current_key == f"run:{runs[1]}" and isinstance(pages.currentWidget(), RunView)

    while pages.count() > 1:
        pages.close_page(1)
    assert not pages._makers
