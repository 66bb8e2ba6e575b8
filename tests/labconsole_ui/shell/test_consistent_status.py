"""Start page, history, queue and status bar show the same status of each run, also after a kill."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QToolButton
from pytestqt.qtbot import QtBot

from labconsole.engine.queue import RunQueue
from labconsole.store.records import RunStatus
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.runtime.services import Services
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.shell.menus import bring_forward
from labconsole_ui.views.queue.queue_model import QueueColumn
from labconsole_ui.views.start_page import RecentRun, StartPage
from tests.labconsole_ui.campaigns import campaign, endless
from tests.labconsole_ui.shown_messages import shown_sentences
from tests.labconsole_ui.window_kills import Kill, kill_window

Opener = Callable[[Services], MainWindow]


@pytest.fixture
def kill(home: Path) -> Kill:
    """The kill of a window during the first run of its demo; more runs were waiting."""
    return kill_window(home / "runs.db", home)


def words(window: MainWindow) -> dict[str, dict[int, str]]:
    """The status of each run that is shown, by the place where it is shown."""
    history, queue = window.history_view.model, window.queue_view.model
    start = window.findChild(StartPage)  # to search the whole window for the lines takes ten times as long
    lines = [line.text().split("   ·   ") for line in start.findChildren(RecentRun) if not line.isHidden()]
    return {
        "start page": {int(parts[0]): parts[2] for parts in lines},
        "history": {history.record(row).id: history.index(row, 0).data() for row in range(history.rowCount())},
        "queue": {
            queue.record(row).run_id: queue.index(row, QueueColumn.STATUS).data() for row in range(queue.rowCount())
        },
    }


def disagreement(window: MainWindow) -> str:
    """The first difference of two places about a run, or an empty text."""
    shown, bar = words(window), window.status.state_label.text()
    of_run: dict[int, set[str]] = {}
    for place in shown.values():
        for run_id, word in place.items():
            of_run.setdefault(run_id, set()).add(word)
    active = {run_id for run_id, of_one in of_run.items() if of_one & {"Running", "Recovering", "Cancelling"}}
    if any(len(of_one) > 1 for of_one in of_run.values()):
        return str(shown)
    if active and not any(f"un {run_id}" in bar for run_id in active):
        return f"{bar}: {shown}"
    return ""


@pytest.mark.timeout(120)
def test_after_a_kill_nothing_is_lost_and_all_views_agree_at_once_and_none_shows_running(
    qtbot: QtBot, kill: Kill, services: Services, open_window: Opener
) -> None:
    """The nightly set kills windows at six more moments (`test_window_killed.py`)."""
    killed = kill.run_id
    seen: set[str] = set()
    window = open_window(services)
    bring_forward(window.history_dock)

    def over() -> bool:
        assert not disagreement(window)
        seen.update(word for place in words(window).values() for word in place.values())
        shown = words(window)
        latest = set(shown["start page"].values())
        return shown["history"].get(killed) == "Interrupted" and latest == {"Cancelled"}

    qtbot.waitUntil(lambda: over() or words(window)["history"].get(killed) == "Recovering")
    assert set(words(window)["queue"].values()) == {"Recovering"}
    assert window.status.state_label.text().startswith(f"Recovering run {killed}: Test 1")
    services.bridge.recover()
    qtbot.waitUntil(over)
    assert seen <= {"Recovering", "Interrupted", "Cancelled"}, "nothing is running, and nothing waits"
    assert window.queue_view.model.rowCount() == 0 and window.status.state_label.text() == "Ready"
    qtbot.waitUntil(lambda: bool(shown_sentences(window)))
    [sentence] = shown_sentences(window)
    assert sentence.startswith(f"Run {killed} (Test 1: plain) was interrupted: "), "Run 10 () names nothing"
    assert kill.in_mid_run
    kill.assert_recovered()


def click(qtbot: QtBot, window: MainWindow, name: str) -> None:
    buttons = window.queue_view.findChildren(QToolButton)
    qtbot.mouseClick(next(one for one in buttons if one.accessibleName() == name), Qt.MouseButton.LeftButton)


@pytest.mark.usefixtures("worker_threads")
def test_a_cancelled_run_is_cancelling_everywhere_until_it_has_ended(qtbot: QtBot, window: MainWindow) -> None:
    queue = window.services.bridge.queue
    bring_forward(window.queue_dock)
    [run_id] = queue.submit(endless())
    qtbot.waitUntil(lambda: queue.items[0].done > 0 and run_id in words(window)["start page"])
    assert not disagreement(window)
    click(qtbot, window, "Cancel run")
    assert {place[run_id] for place in words(window).values() if run_id in place} == {"Cancelling"}
    assert window.status.state_label.text() == f"Cancelling run {run_id}: Long"
    assert not window.queue_view.cancel_action.isEnabled()

    def over() -> bool:
        assert not disagreement(window)
        return all(place.get(run_id) == "Cancelled" for place in words(window).values())

    qtbot.waitUntil(over)


@pytest.fixture
def other_console(qtbot: QtBot, bridge: QueueBridge, home: Path) -> Iterator[RunQueue]:
    """A second console's queue on the same database."""
    queue = RunQueue(home / "runs.db")
    yield queue
    queue.close()


def test_runs_of_another_console_are_shown_with_its_host_and_process(
    qtbot: QtBot, window: MainWindow, other_console: RunQueue
) -> None:
    """A run of this window waits for them, which its status shows.

    Their worker is a process: the console of a run in progress is the parent of its worker.
    """
    queue = window.services.bridge.queue
    bring_forward(window.queue_dock)
    theirs, after = other_console.submit(endless())[0], other_console.submit(campaign("Next"))[0]
    other_console.pump()
    where = f"process {os.getpid()} on {platform.node()}"
    wanted = f"Run {theirs} of another console ({where}): Long"

    def pumped(condition: Callable[[], bool]) -> Callable[[], bool]:
        def check() -> bool:
            other_console.pump()
            assert not disagreement(window)
            return condition()

        return check

    qtbot.waitUntil(pumped(lambda: window.status.state_label.text() == wanted))
    shown = words(window)["queue"]
    assert shown == {theirs: "Running", after: "Waiting"}
    assert where in str(window.queue_view.model.index(0, QueueColumn.CAMPAIGN).data())
    window.queue_view.table.selectAll()
    assert not window.queue_view.remove_action.isEnabled() and not window.queue_view.cancel_action.isEnabled()

    start = window.findChild(StartPage)
    assert start.demo_button.isEnabled() and start.demo_caption.text().startswith("All four AMQP tests")
    [own] = queue.submit(campaign("Mine"))
    assert not start.demo_button.isEnabled()
    qtbot.waitUntil(pumped(lambda: window.status.state_label.text().startswith(f"Waiting for run {theirs} ")))
    assert words(window)["queue"][own] == "Waiting"
    assert start.demo_caption.text() == f"Mine: waiting for run {theirs} of another console ({where})."
    other_console.cancel_all()
    qtbot.waitUntil(pumped(lambda: bool(queue.items) and queue.items[0].status is RunStatus.FINISHED))
    assert queue.others == ()
