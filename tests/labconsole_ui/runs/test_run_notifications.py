"""Runs in the window: failures with their remedies, comparison, parameters into the form, no stall."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from labconsole.engine.queue import QueueState
from labconsole.store.records import NewCampaign, NewScenario, RunStatus
from labconsole_amqp.broker.embedded_broker import BrokerSettings
from labconsole_ui.runs.run_files import ExportFormat
from labconsole_ui.runs.run_notifications import LaunchedRuns
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.shell.menus import bring_forward
from labconsole_ui.widgets.message_bar import Message, Tone
from tests.helpers.forked_programs import runs
from tests.helpers.pages import opened_trial
from tests.labconsole_amqp.embedded_broker import serving
from tests.labconsole_ui.campaigns import KIND, campaign, endless
from tests.labconsole_ui.shown_messages import shown_sentences
from tests.labconsole_ui.slot_watch import again_after_a_long_turn, slots_watched
from tests.labconsole_ui.views.conftest import StoredRuns


@again_after_a_long_turn
def test_no_slot_blocks_the_window_while_a_run_is_in_progress(qtbot: QtBot, window: MainWindow) -> None:
    """Through two runs in processes, whose comparison is filled as they finish; the nightly set watches the demo."""
    queue = window.services.bridge.queue
    window.runs.follow_runs(queue.submit(campaign("A", "B", count=3000)))
    qtbot.waitUntil(lambda: queue.items[0].state is QueueState.RUNNING)
    with slots_watched() as watch:
        qtbot.waitUntil(lambda: not queue.busy)
        qtbot.wait(200)
    assert [item.status for item in queue.items] == [RunStatus.FINISHED] * 2
    watch.assert_short()


@pytest.mark.usefixtures("worker_threads")
def test_failed_run_is_reported_with_its_reason_and_a_link(qtbot: QtBot, shown_window: MainWindow) -> None:
    bridge = shown_window.services.bridge
    with qtbot.waitSignal(bridge.finished):
        (run_id,) = bridge.queue.submit(campaign("A", broker="external", host="127.0.0.1", port=9))
    (entry,) = shown_window.messages.entries()
    assert entry.message.sentence.startswith(f"Run {run_id} (A) failed: ")
    assert "refused" in entry.message.sentence
    assert "kept" in entry.message.sentence
    qtbot.mouseClick(entry.link_button, Qt.MouseButton.LeftButton)
    assert shown_window.pages.current_key == f"run:{run_id}"


@pytest.mark.usefixtures("worker_threads")
def test_queue_that_is_not_empty_is_drained_by_the_button_of_its_message(
    qtbot: QtBot, shown_window: MainWindow
) -> None:
    bridge = shown_window.services.bridge
    with serving(BrokerSettings(queues=("q",))) as broker:
        through: dict[str, object] = {"broker": "external", "host": "127.0.0.1", "port": broker.ports.plain}
        through |= {"address": "q", "count": 20}
        with qtbot.waitSignal(bridge.finished) as left:
            bridge.queue.submit(campaign("Left", mode="sender", **through))
        assert left.args[1] is RunStatus.FINISHED
        with qtbot.waitSignal(bridge.finished):
            bridge.queue.submit(campaign("Refused", **through))
        (entry,) = shown_window.messages.entries()
        assert "is not empty, 20 messages are in it" in entry.message.sentence
        assert entry.remedy_button.text() == "Drain the queue and run again"
        with qtbot.waitSignal(bridge.finished) as again:
            qtbot.mouseClick(entry.remedy_button, Qt.MouseButton.LeftButton)
    assert again.args[1] is RunStatus.FINISHED
    assert shown_window.messages.entries() == []
    with shown_window.services.reader() as reader:
        row = reader.run(again.args[0]).row
    assert (row.scenario, row.parameters["leftover"], row.parameters["count"]) == ("Refused", "drain", 20)


@pytest.mark.usefixtures("worker_threads")
def test_store_error_is_reported_once(qtbot: QtBot, window: MainWindow) -> None:
    queue = window.services.bridge.queue
    (run_id,) = queue.submit(campaign("A"))
    qtbot.waitUntil(lambda: not queue.busy)
    queue.store.close()
    window.queue_view.select(run_id)
    window.queue_view.repeat_action.trigger()
    assert len(window.messages.entries()) == 1


def test_run_of_a_missing_trial_is_reported(shown_window: MainWindow) -> None:
    shown_window.services.bridge.queue.pause()
    foreign = NewScenario("A", "gone.trial", {})
    (run_id,) = shown_window.services.bridge.queue.submit(NewCampaign("mine", "Mine", "", 1, (foreign,), ((0, 1),)))
    shown_window.runs.use_parameters(run_id)
    (entry,) = shown_window.messages.entries()
    assert entry.message.sentence == "The trial gone.trial of this run is not installed here."


def test_parameters_that_the_installed_trial_does_not_have_are_named(shown_window: MainWindow) -> None:
    shown_window.services.bridge.queue.pause()
    newer = NewScenario("A", KIND, {"count": 77, "of_a_later_version": 1})
    (run_id,) = shown_window.services.bridge.queue.submit(NewCampaign("mine", "Mine", "", 1, (newer,), ((0, 1),)))
    shown_window.runs.use_parameters(run_id)
    (entry,) = shown_window.messages.entries()
    assert entry.message.sentence.endswith(f"does not have these parameters of run {run_id}: of_a_later_version.")
    panel = opened_trial(shown_window, KIND)
    assert panel.form.parameters is not None
    assert panel.form.parameters.model_dump()["count"] == 77


def test_killed_run_is_reported_and_its_samples_are_stored(qtbot: QtBot, window: MainWindow) -> None:
    queue = window.services.bridge.queue
    (run_id,) = queue.submit(endless())
    qtbot.waitUntil(lambda: queue.items[0].done > 0)
    qtbot.wait(600)
    (worker,) = [child for child in psutil.Process().children() if runs(child, "labconsole.engine.worker")]
    with qtbot.waitSignal(window.services.bridge.finished):
        worker.kill()
    (entry,) = window.messages.entries()
    assert "was interrupted" in entry.message.sentence
    assert "kept" in entry.message.sentence
    with window.services.reader() as reader:
        detail = reader.run(run_id)
    assert detail.row.status is RunStatus.INTERRUPTED
    assert sum(series.rows for series in detail.series) > 0
    qtbot.mouseClick(entry.link_button, Qt.MouseButton.LeftButton)
    assert window.pages.current_key == f"run:{run_id}"


def test_comparison_has_a_short_title_and_withdraws_its_message(shown_window: MainWindow) -> None:
    shown_window.messages.show_message(Message(Tone.BAD, "Stays."))
    shown_window._campaign_done(
        LaunchedRuns([1, 2, 3, 7], compare=False, ended=dict.fromkeys([1, 2, 3, 7], RunStatus.FINISHED))
    )
    assert shown_window.messages.entries()[0].message.sentence.endswith("4 of 4 runs finished.")
    shown_window.runs.compare_runs([1, 2, 3, 7])
    assert shown_window.pages.tabText(shown_window.pages.currentIndex()) == "Compare 1-3, 7"
    assert shown_sentences(shown_window) == ["Stays."]


@pytest.mark.usefixtures("worker_threads")
def test_result_of_a_long_run_stays_until_it_is_opened(
    qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The desktop is notified unless the window is in use; a missing tray (offscreen) is not an error."""
    notices: list[str] = []
    monkeypatch.setattr("labconsole_ui.runs.run_notifications.LONG_S", 0.0)
    monkeypatch.setattr("labconsole_ui.widgets.message_bar.MESSAGE_SECONDS", 0)
    show = window.notifications.show
    monkeypatch.setattr(window.notifications, "show", lambda sentence: (notices.append(sentence), show(sentence)))
    [run_id] = window.launcher.run_scenario(campaign("A").scenarios[0], "Mine", at_once=True)
    qtbot.waitUntil(lambda: bool(window.messages.entries()))
    qtbot.wait(50)
    [entry] = window.messages.entries()
    assert entry.message.sentence.startswith(f"Run {run_id}: Finished, after ")
    assert notices == [entry.message.sentence]
    qtbot.mouseClick(entry.link_button, Qt.MouseButton.LeftButton)
    assert window.pages.current_key == f"run:{run_id}"
    assert window.messages.entries() == [], "it was looked at"


def test_parameters_of_a_run_fill_the_form(qtbot: QtBot, shown_window: MainWindow) -> None:
    shown_window.services.bridge.queue.pause()
    (run_id,) = shown_window.services.bridge.queue.submit(campaign("A", count=123, test=2))
    shown_window.runs.use_parameters(run_id)
    panel = opened_trial(shown_window, KIND)
    assert panel.form.parameters is not None
    assert panel.form.parameters.model_dump()["count"] == 123


def test_runs_are_exported_and_verified_from_the_history(
    qtbot: QtBot, window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(StoredRuns(window.services.database)) as runs:
        runs.finished(("A", {"test": 1}), ("B", {"test": 2}), messages=50)
    history = window.history_view
    bring_forward(window.history_dock)
    qtbot.waitUntil(lambda: [run.status.final for run in history.model.records()] == [True, True])
    history.table.selectAll()
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(tmp_path / "csv"))
    history.run_actions.export_menu.by_format[ExportFormat.CSV].trigger()
    qtbot.waitUntil(lambda: any("files written to" in sentence for sentence in shown_sentences(window)))
    rows = (tmp_path / "csv" / "metrics.csv").read_text(encoding="utf-8").splitlines()
    assert {row.split(",")[0] for row in rows[1:]} == {"1", "2"}
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(tmp_path / "more"))
    for chosen in (ExportFormat.JSON, ExportFormat.PARQUET):
        history.run_actions.export_menu.by_format[chosen].trigger()
    qtbot.waitUntil(lambda: any((tmp_path / "more").glob("run-2/samples-*.parquet")))
    assert json.loads((tmp_path / "more" / "run-1.json").read_text(encoding="utf-8"))["kind"] == KIND
    history.run_actions.verify.trigger()
    qtbot.waitUntil(lambda: "Verified: nothing has changed since these runs were sealed: 2." in shown_sentences(window))


def test_failed_export_is_reported_in_a_sentence(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    with closing(StoredRuns(window.services.database)) as runs:
        (run_id,) = runs.finished(("A", {"test": 1}), messages=50)
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    window.files.export_to(ExportFormat.CSV, [run_id], tmp_path / "file" / "csv")
    qtbot.waitUntil(lambda: bool(shown_sentences(window)))
    assert "cannot be written" in shown_sentences(window)[0]
    window.files.export_to(ExportFormat.CSV, [99], tmp_path / "csv")
    qtbot.waitUntil(lambda: shown_sentences(window)[0].startswith("There is no run 99"))
    assert not (tmp_path / "csv").exists()
