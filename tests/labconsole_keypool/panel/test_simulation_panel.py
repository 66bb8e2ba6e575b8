"""The key pool's panel by clicks: presets, with and without a pool, the facts before the run, and a run."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QLabel, QLineEdit
from pytestqt.qtbot import QtBot

from labconsole.engine.queue import QueueState
from labconsole.profiles.timing_profile import load_timing
from labconsole.store.records import RunStatus
from labconsole_ui.form.segmented_editor import SegmentedEditor
from labconsole_ui.panels.trial_panel import TrialPanel
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.shell.navigation import Navigation
from labconsole_ui.views.run.run_view import RunView

KIND = "keypool.simulation"
EXACTLY = Qt.MatchFlag.MatchExactly | Qt.MatchFlag.MatchRecursive
pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)


@pytest.fixture
def panel(qtbot: QtBot, shown_window: MainWindow) -> TrialPanel:
    """The page, opened from the navigation."""
    navigation = shown_window.findChild(Navigation)
    (entry,) = navigation.findItems("Key pool, simulated", EXACTLY)
    place = navigation.visualItemRect(entry).center()
    qtbot.mouseClick(navigation.viewport(), Qt.MouseButton.LeftButton, pos=place)
    page = shown_window.pages.currentWidget()
    assert isinstance(page, TrialPanel) and page.context.trial.kind == KIND
    page.building.finish()
    return page


def facts(panel: TrialPanel) -> dict[str, str]:
    labels = [label.text() for label in panel.facts_card.findChildren(QLabel) if not label.isHidden()]
    return dict(zip(labels[::2], labels[1::2], strict=True))


def choose_scenario(panel: TrialPanel, name: str) -> None:
    combo = panel.presets.scenario_combo
    combo.setCurrentIndex(combo.findText(name))
    combo.activated.emit(combo.currentIndex())


def test_presets_pool_and_mistakes_by_clicks(qtbot: QtBot, panel: TrialPanel) -> None:
    assert panel.presets.profile_name == "keypool-published"
    assert facts(panel)["Signing"] == "26.32/s" and facts(panel)["Without keys"] == "1.600/s"
    choose_scenario(panel, "Fig. 4-3: with pool")
    expected = {
        "Signing": "50/s",
        "Without keys": "1.640/s",
        "Keys at the start": "22,300",
        "Unwrapping a batch": "12.2 s",
    }
    qtbot.waitUntil(lambda: facts(panel) == {**expected, "Arrivals": "3,000 in 17 min 52 s"})
    timing = panel.form.row("timing").editor.findChild(QComboBox)
    assert timing.currentText() == "luna-sa-1700"
    assert timing.currentData(Qt.ItemDataRole.ToolTipRole) == load_timing("luna-sa-1700").title
    keys = panel.form.row("keys").editor
    assert isinstance(keys, SegmentedEditor)
    qtbot.mouseClick(keys.buttons[1], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "Keys at the start" not in facts(panel))
    assert panel.form.row("batch").isHidden()
    qtbot.mouseClick(keys.buttons[0], Qt.MouseButton.LeftButton)
    edit = panel.form.row("keys_at_start").editor.findChild(QLineEdit)
    edit.selectAll()
    qtbot.keyClicks(edit, "13000")
    wrong = "In the token's RAM: The RAM of this device holds 12,033 key pairs: enter fewer."
    qtbot.waitUntil(lambda: panel.form.problems == (wrong,))
    assert not panel.run_bar.run_button.isEnabled()


def test_arrivals_are_described_before_the_run_unless_too_long_or_too_many(qtbot: QtBot, panel: TrialPanel) -> None:
    panel.form.set_values({"arrivals": "constant", "rate": 0.00001})
    qtbot.waitUntil(lambda: facts(panel).get("Arrivals") == "–")
    panel.form.set_values({"arrivals": "business-day", "requests": 1_665_000})
    qtbot.waitUntil(lambda: "Signing" in facts(panel) and "Arrivals" not in facts(panel))


@pytest.mark.usefixtures("worker_threads")
def test_a_run_by_click_is_drawn_with_all_its_curves(qtbot: QtBot, panel: TrialPanel, shown_window: MainWindow) -> None:
    choose_scenario(panel, "Fig. 4-5: queue of 50, with pool")
    qtbot.mouseClick(panel.run_bar.run_button, Qt.MouseButton.LeftButton)
    queue = panel.context.bridge.queue
    qtbot.waitUntil(lambda: [item.state for item in queue.items] == [QueueState.DONE])
    (item,) = queue.items
    assert item.status is RunStatus.FINISHED
    panel.context.open_run(item.run_id)
    view = shown_window.pages.currentWidget()
    assert isinstance(view, RunView)
    expected = {"Latency", "Queue length", "Arrival rate", "Keys in the token"}
    qtbot.waitUntil(lambda: expected <= view.plots.keys())
    assert [curve.title for curve in view.plots["Latency"].curves()] == ["Latency", "Dropped"]
