"""Closing the window while runs are in progress or wait: the question, and its answers."""

from __future__ import annotations

from threading import Event

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from labconsole.engine.queue import QueueState
from labconsole.store.records import RunStatus
from labconsole_ui.runtime.long_jobs import LongJobs
from labconsole_ui.shell.close_dialog import CloseQuestion
from labconsole_ui.shell.main_window import MainWindow
from tests.labconsole_ui.campaigns import campaign, endless


def test_closing_an_idle_window_asks_nothing(window: MainWindow) -> None:
    window.close()
    assert not window.isVisible()


def test_a_window_that_still_writes_files_is_not_closed(qtbot: QtBot, window: MainWindow) -> None:
    finish = Event()
    jobs = LongJobs(window, window.messages.show_message)
    jobs.run("Exporting", lambda _ticket: finish.wait(120), lambda _: None)
    window.close()
    assert window.isVisible()
    assert window.messages.entries()[0].message.sentence.startswith("Files are still being read or written")
    finish.set()
    qtbot.waitUntil(lambda: not jobs.dialogs)
    window.close()
    assert not window.isVisible()


def question(window: MainWindow) -> CloseQuestion:
    found = window.findChild(CloseQuestion)
    assert found is not None
    return found


@pytest.mark.usefixtures("worker_threads")
def test_closing_during_a_run_asks_and_stay_stays(qtbot: QtBot, window: MainWindow) -> None:
    queue = window.services.bridge.queue
    queue.submit(endless())
    qtbot.waitUntil(lambda: queue.items[0].state is QueueState.RUNNING)
    window.close()
    assert window.isVisible()
    qtbot.mouseClick(question(window).stay_button, Qt.MouseButton.LeftButton)
    qtbot.wait(50)
    assert window.isVisible()
    assert queue.items[0].state is QueueState.RUNNING


@pytest.mark.usefixtures("worker_threads")
def test_cancel_and_close_cancels_the_run_and_keeps_what_it_measured(qtbot: QtBot, window: MainWindow) -> None:
    queue = window.services.bridge.queue
    running, waiting = [*queue.submit(endless()), *queue.submit(campaign("Later"))]
    qtbot.waitUntil(lambda: queue.items[0].done > 0)
    window.close()
    qtbot.mouseClick(question(window).cancel_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not window.isVisible())
    with window.services.reader() as reader:
        assert reader.run(running).row.status is RunStatus.CANCELLED
        assert reader.run(running).series
        assert reader.run(waiting).row.status is RunStatus.CANCELLED


@pytest.mark.usefixtures("worker_threads")
def test_close_when_done_waits_for_the_queue(qtbot: QtBot, window: MainWindow) -> None:
    queue = window.services.bridge.queue
    run_ids = queue.submit(campaign("A", "B"))
    qtbot.waitUntil(lambda: queue.items[0].state is QueueState.RUNNING)
    window.close()
    qtbot.mouseClick(question(window).wait_button, Qt.MouseButton.LeftButton)
    assert window.isVisible()
    qtbot.waitUntil(lambda: not window.isVisible())
    with window.services.reader() as reader:
        assert [reader.run(run_id).row.status for run_id in run_ids] == [RunStatus.FINISHED] * 2
