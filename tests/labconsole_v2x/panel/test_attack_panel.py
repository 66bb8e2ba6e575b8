"""The page of live attacks in a real window: facts of a scenario, a run by click, attackers among the stations."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from labconsole.engine.queue import QueueState
from labconsole.store.records import RunStatus
from labconsole_ui.shell.main_window import MainWindow
from labconsole_v2x.panel.attack_panel import AttackPanel
from labconsole_v2x.stations.receiving import REASONS
from tests.helpers.pages import opened_trial
from tests.labconsole_v2x.live.live_lab import own_transport
from tests.labconsole_v2x.panel.page_facts import facts


@pytest.fixture
def page(shown_window: MainWindow) -> AttackPanel:
    panel = opened_trial(shown_window, "v2x.attack")
    assert isinstance(panel, AttackPanel)
    return panel


def test_facts_have_the_load_of_attackers(qtbot: QtBot, page: AttackPanel) -> None:
    assert page.presets.profile_name == "v2x-attacks-live"
    assert (facts(page)["Attackers"], facts(page)["Verifications"]) == ("20 packets/s", "70 /s")
    page.form.set_values({**page.form.values(), "attackers": 4, "attack_rate": 100.0})
    qtbot.waitUntil(lambda: facts(page)["Attackers"] == "400 packets/s")
    assert (facts(page)["Messages"], facts(page)["Verifications"]) == ("50 msg/s", "450 /s")


@pytest.mark.usefixtures("worker_threads")
def test_run_by_click_shows_attackers_and_its_results(
    qtbot: QtBot, page: AttackPanel, shown_window: MainWindow
) -> None:
    short = {"senders": 2, "attackers": 2, "attack_rate": 20.0, "warm_up": 0.5, "duration": 1.0}
    page.form.set_values({**page.form.values(), **own_transport(), **short})
    queue = shown_window.services.bridge.queue
    qtbot.mouseClick(page.run_bar.run_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: bool(queue.items) and queue.items[0].state is QueueState.RUNNING)
    queue.pause()  # it is not repeated, though the computer is busy
    qtbot.waitUntil(lambda: queue.items[0].state is QueueState.DONE)
    assert queue.items[0].status is RunStatus.FINISHED
    assert set(page.monitor.board.stations) == {0, 1, 2, 3, 4}
    qtbot.waitUntil(lambda: "mean of run" in page.glance.verified[2].text())
    run_id = queue.items[0].run_id
    assert run_id is not None
    with shown_window.services.reader() as reader:
        found = reader.run(run_id)
        received = reader.samples(run_id).table("received", "receiver")
    invalid = np.count_nonzero(received["reason"] == REASONS.index("signature invalid"))
    assert page.monitor.board.reasons["signature invalid"] == invalid > 0
    verdicts = {verdict.name: verdict.result for verdict in found.verdicts}
    assert verdicts["no attack packet was accepted"] == "pass"
