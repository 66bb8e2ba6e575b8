"""The panels of step times and device benchmark: tokens and devices by name, and what an emulation will take."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QComboBox, QLabel
from pytestqt.qtbot import QtBot

from labconsole.profiles.timing_profile import load_timing
from labconsole_ui.panels.trial_panel import TrialPanel
from labconsole_ui.shell.main_window import MainWindow
from tests.helpers.pages import opened_trial

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)


def facts(panel: TrialPanel) -> dict[str, str]:
    labels = [label.text() for label in panel.facts_card.findChildren(QLabel) if not label.isHidden()]
    return dict(zip(labels[::2], labels[1::2], strict=True))


def boxes(panel: TrialPanel, name: str) -> list[str]:
    combo = panel.form.row(name).editor.findChild(QComboBox)
    return [combo.itemText(place) for place in range(combo.count())]


def test_step_on_an_emulated_device_shows_its_duration(qtbot: QtBot, window: MainWindow) -> None:
    panel = opened_trial(window, "keypool.step-times")
    assert panel.presets.profile_name == "keypool-step-times"
    assert "lab" in boxes(panel, "token")
    devices = panel.form.row("timing").editor.findChild(QComboBox)
    assert devices.itemText(0) == "None: as fast as the token is" and devices.currentIndex() == 0
    assert facts(panel) == {}
    devices.setCurrentIndex(devices.findText("luna-sa-1700"))
    devices.activated.emit(devices.currentIndex())
    assert load_timing("luna-sa-1700").key_generation.shortest_ms == 588
    qtbot.waitUntil(lambda: facts(panel) == {"The device takes": "58.8 s"})


def test_the_benchmark_takes_any_token(window: MainWindow) -> None:
    panel = opened_trial(window, "keypool.device-benchmark")
    assert panel is not None and "lab" in boxes(panel, "token")
    assert facts(panel) == {}
