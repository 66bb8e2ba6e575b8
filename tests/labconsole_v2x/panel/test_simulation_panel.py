"""The page of the simulated testbed in a real window: load of a scenario, a run by click, a profile that lacks it."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox
from pytestqt.qtbot import QtBot

from labconsole.engine.queue import QueueState
from labconsole.store.records import RunStatus
from labconsole_ui.shell.main_window import MainWindow
from labconsole_v2x.panel.simulation_panel import SimulationPanel
from tests.helpers.pages import opened_trial
from tests.labconsole_v2x.panel.page_facts import facts


@pytest.fixture
def page(shown_window: MainWindow) -> SimulationPanel:
    panel = opened_trial(shown_window, "v2x.simulation")
    assert isinstance(panel, SimulationPanel)
    return panel


def test_page_says_what_is_offered_and_what_the_receiver_serves(qtbot: QtBot, page: SimulationPanel) -> None:
    assert page.presets.profile_name == "v2x-attacks-published"
    assert facts(page) == {"Offered to the receiver": "70 packets/s", "Offered load of its stack": "56 %"}
    page.form.set_values({**page.form.values(), "attackers": 4, "attack_rate": 100.0})
    qtbot.waitUntil(
        lambda: facts(page) == {"Offered to the receiver": "450 packets/s", "Offered load of its stack": "360 %"}
    )
    page.form.set_values({**page.form.values(), "dcc": True})
    qtbot.waitUntil(
        lambda: facts(page) == {"Offered to the receiver": "≤ 450 packets/s", "Offered load of its stack": "≤ 360 %"}
    )
    assert "nexcom-vtc6201-table42" in {combo.currentText() for combo in page.form.findChildren(QComboBox)}


def test_scenario_that_its_run_would_refuse_is_refused_at_the_field_without_old_facts(
    qtbot: QtBot, page: SimulationPanel
) -> None:
    page.form.set_values({"timing": "nexcom-vtc6201-table42"})
    qtbot.waitUntil(lambda: bool(facts(page)) and page.run_bar.run_button.isEnabled())
    page.form.set_values({**page.form.values(), "security": "header"})
    sentence = "The timing profile nexcom-vtc6201-table42 has no receiver.service_ms.header: choose another profile"
    assert page.form.row("timing").error_label.text().startswith(sentence)
    assert facts(page) == {} and page.facts_card.isHidden()
    assert not page.run_bar.run_button.isEnabled() and not page.run_bar.campaign_button.isEnabled()
    page.form.set_values({**page.form.values(), "security": "full"})
    qtbot.waitUntil(lambda: bool(facts(page)) and page.run_bar.run_button.isEnabled())


@pytest.mark.usefixtures("worker_threads")
def test_run_by_click_is_finished_at_once(qtbot: QtBot, page: SimulationPanel, shown_window: MainWindow) -> None:
    queue = shown_window.services.bridge.queue
    qtbot.mouseClick(page.run_bar.run_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: bool(queue.items) and queue.items[-1].state is QueueState.DONE, timeout=60_000)
    assert queue.items[-1].status is RunStatus.FINISHED
    run_id = queue.items[-1].run_id
    assert run_id is not None
    with shown_window.services.reader() as reader:
        found = {metric.name: metric.value for metric in reader.run(run_id).metrics if not metric.labels}
    assert found["benign_share"] == pytest.approx(71.42, abs=0.3) and found["packet_loss"] < 1
