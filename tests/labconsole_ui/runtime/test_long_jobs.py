"""Long jobs: progress, cancelled by a click, refused with a sentence; the window is not blocked."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import shiboken6
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QProgressBar, QProgressDialog, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from labconsole.errors import UserError
from labconsole_ui.runtime.long_jobs import Job, LongJobs
from labconsole_ui.widgets.message_bar import Message


@pytest.fixture
def window() -> Iterator[QWidget]:
    widget = QWidget()
    widget.show()
    yield widget
    shiboken6.delete(widget)


def steps(job: Job) -> str:
    for step in range(400):
        job.part(step, 400)
        time.sleep(0.02)
    return "done"


def test_a_long_job_shows_its_progress_and_is_cancelled_by_a_click(qtbot: QtBot, window: QWidget) -> None:
    messages: list[Message] = []
    done: list[str] = []
    jobs = LongJobs(window, messages.append)
    jobs.run("Writing", steps, done.append)
    [dialog] = window.findChildren(QProgressDialog)
    assert not dialog.isVisible(), "a short job shows no dialog"
    qtbot.waitUntil(lambda: dialog.isVisible() and dialog.value() > 0)
    [bar] = dialog.findChildren(QProgressBar)
    assert not bar.isTextVisible() and bar.value() > 0, "the bar is too thin for a text"
    [cancel] = dialog.findChildren(QPushButton)
    qtbot.mouseClick(cancel, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: bool(messages))
    assert messages[0].sentence == "Cancelled. Nothing half-written is left."
    assert done == [] and jobs.dialogs == []


def test_jobs_run_in_order_and_a_refusal_is_reported(qtbot: QtBot, window: QWidget) -> None:
    messages: list[Message] = []
    done: list[int] = []

    def refuse(_ticket: Job) -> int:
        raise UserError("The disk is full: free some space.")

    jobs = LongJobs(window, messages.append)
    jobs.run("One", lambda _ticket: 1, done.append)
    jobs.run("Two", refuse, done.append)
    jobs.run("Three", lambda _ticket: 3, done.append)
    qtbot.waitUntil(lambda: done == [1, 3])
    assert [message.sentence for message in messages] == ["The disk is full: free some space."]


def test_unexpected_exception_of_a_job_is_raised_and_closes_its_dialog(qtbot: QtBot, window: QWidget) -> None:
    def fail(_ticket: Job) -> int:
        raise ZeroDivisionError("a fault")

    jobs = LongJobs(window, lambda _message: None)
    with qtbot.captureExceptions() as caught:
        jobs.run("One", fail, lambda _number: None)
        qtbot.waitUntil(lambda: bool(caught))
    assert caught[0][0] is ZeroDivisionError
    assert jobs.dialogs == [] and not any(dialog.isVisible() for dialog in window.findChildren(QProgressDialog))
