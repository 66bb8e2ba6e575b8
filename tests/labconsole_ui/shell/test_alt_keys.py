"""Alt keys: each letter leads to one place, on pages of runs (`test_every_page.py`: on the others) and in menus."""

from __future__ import annotations

from collections import Counter

import pytest
from PySide6.QtGui import QKeySequence

from labconsole.clock import wall_now
from labconsole.processes import Owner
from labconsole.store.records import NewCampaign, NewScenario
from labconsole_ui.runtime.services import Services
from labconsole_ui.shell.main_window import MainWindow
from tests.labconsole_ui.shell.alt_keys import faults_on_page

CAMPAIGN = NewCampaign(
    "demo",
    "Two runs",
    "",
    7,
    tuple(NewScenario(f"Test {test}", "amqp.messaging", {"test": test}) for test in (1, 2)),
    ((0, 1), (1, 1)),
)


def test_alt_keys_are_unique_on_the_pages_of_runs(window: MainWindow, services: Services) -> None:
    runs = services.bridge.queue.store.add_campaign(CAMPAIGN, Owner(2**22 + 1, 1.0, "another boot"), wall_now())
    window.runs.open_run(runs[0])
    faults = faults_on_page(window, "run")
    window.runs.compare_runs(runs)
    faults += faults_on_page(window, "comparison")
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("position", range(5))
def test_letters_within_a_menu_are_unique(shown_window: MainWindow, position: int) -> None:
    menu = shown_window.menuBar().actions()[position].menu()
    assert menu is not None
    keys = [QKeySequence.mnemonic(action.text()).toString() for action in menu.actions()]
    twice = {key for key, count in Counter(filter(None, keys)).items() if count > 1}
    assert not twice, [action.text() for action in menu.actions()]
