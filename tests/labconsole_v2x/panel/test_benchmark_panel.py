"""The benchmark's page in a real window: what a run takes, a run by click, and what the live page says after it."""

from __future__ import annotations

import os

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox
from pytestqt.qtbot import QtBot

from labconsole.analysis.number_format import format_duration
from labconsole.engine.queue import QueueState
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.views.run.run_view import RunView
from labconsole_v2x.benchmark.benchmark_parameters import BenchmarkParameters
from labconsole_v2x.benchmark.benchmark_trial import expected_seconds
from labconsole_v2x.live.live_parameters import LiveParameters
from labconsole_v2x.panel.benchmark_panel import BenchmarkPanel
from labconsole_v2x.panel.live_facts import Speed, live_facts
from labconsole_v2x.panel.live_panel import LivePanel
from tests.helpers.pages import opened_trial
from tests.labconsole_v2x.panel.page_facts import facts

LEFT = Qt.MouseButton.LeftButton
SHORT = {"rounds": 1, "seconds": 0.05, "cores": 1, "openssl": False, "backend": "openssl"}


@pytest.fixture
def page(shown_window: MainWindow) -> BenchmarkPanel:
    panel = opened_trial(shown_window, "v2x.benchmark")
    assert isinstance(panel, BenchmarkPanel)
    return panel


def test_page_says_how_long_a_run_takes_and_on_how_many_cores(qtbot: QtBot, page: BenchmarkPanel) -> None:
    assert page.presets.profile_name == "v2x-benchmark"
    cores = os.cpu_count()
    whole = expected_seconds(BenchmarkParameters())
    assert facts(page) == {
        "A run takes about": format_duration(whole),
        "Several cores": f"{cores} processes, {cores} threads",
    }
    page.form.set_values({**page.form.values(), **SHORT, "cores": 3})
    qtbot.waitUntil(lambda: facts(page).get("Several cores") == "3 processes, 3 threads")
    short = expected_seconds(BenchmarkParameters.model_validate({**SHORT, "cores": 3}))
    assert short < whole / 5 and facts(page)["A run takes about"] == format_duration(short)


def test_token_is_chosen_by_name(qtbot: QtBot, page: BenchmarkPanel) -> None:
    assert page.form.row("token").isHidden()
    page.form.set_values({**page.form.values(), "backend": "token"})
    qtbot.waitUntil(lambda: not page.form.row("token").isHidden())
    box = page.form.row("token").editor.findChild(QComboBox)
    assert box is not None and "lab" in [box.itemText(place) for place in range(box.count())]


@pytest.mark.usefixtures("worker_threads")
def test_run_by_click_is_what_the_live_page_judges_loads_by(
    qtbot: QtBot, page: BenchmarkPanel, shown_window: MainWindow
) -> None:
    live = opened_trial(shown_window, "v2x.live")
    assert isinstance(live, LivePanel)
    assert facts(live)["This computer"] == "not measured yet"
    opened_trial(shown_window, "v2x.benchmark")
    page.form.set_values({**page.form.values(), **SHORT})
    qtbot.mouseClick(page.run_bar.run_button, LEFT)
    queue = page.context.bridge.queue
    qtbot.waitUntil(lambda: [item.state for item in queue.items] == [QueueState.DONE])
    (item,) = queue.items
    assert item.status is RunStatus.FINISHED
    qtbot.waitUntil(lambda: facts(live).get("This computer", "not measured yet") != "not measured yet")
    with Reader(queue.store.path) as reader:
        metrics = reader.run(item.run_id).row.metrics
    rate = metrics["verify_decoded_rate"].value
    live.form.set_values({**live.form.values(), "senders": 15, "rate": 100.0})
    expected = live_facts(
        LiveParameters(senders=15, rate=100.0),
        Speed(rate, metrics["raw_verify_rate"].value, metrics["sign_rate"].value),
    )
    (judged,) = (fact.value for fact in expected if fact.name == "This computer")
    qtbot.waitUntil(lambda: facts(live).get("This computer") == judged)
    live.form.set_values({**live.form.values(), "verification": "token"})
    qtbot.waitUntil(lambda: facts(live).get("This computer") == "not measured yet")
    qtbot.waitUntil(lambda: f"one core can serve {rate / 10:,.0f}" in live.glance.serves[2].text())
    page.context.open_run(item.run_id)
    view = shown_window.pages.currentWidget()
    assert isinstance(view, RunView)
    qtbot.waitUntil(
        lambda: "Time of one operation" in view.plots and view.plots["Time of one operation"].curves() != ()
    )
    titles = [curve.title for curve in view.plots["Time of one operation"].curves()]
    assert sorted(titles) == sorted(
        [
            *("Raw signature", "Raw verification", "Sign a packet", "Verify a packet"),
            *("Verify and decode", "Verify, nothing known", "Parse and hash"),
        ]
    )
