"""Background jobs: results arrive on the window's thread; those of deleted views are dropped."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from shiboken6 import delete, isValid

from labconsole.errors import UserError
from labconsole_ui.runtime.background import Background

MOST_WAITS, LONG_WAIT_S = 500, 0.004


@pytest.fixture
def owner(qapp: QApplication) -> Iterator[QObject]:
    view = QObject()
    yield view
    if isValid(view):
        delete(view)


def test_results_come_in_order_on_the_windows_thread(owner: QObject, qtbot: QtBot) -> None:
    background = Background(owner)
    got: list[tuple[int, bool, bool]] = []
    main = threading.get_ident()
    for number in range(5):
        background.submit(
            lambda number=number: (number, threading.get_ident() == main),
            lambda result: got.append((*result, threading.get_ident() == main)),
            pytest.fail,
        )
    qtbot.waitUntil(lambda: len(got) == 5)
    assert got == [(number, False, True) for number in range(5)]


def test_user_error_of_a_job_is_shown_and_any_other_exception_is_raised(owner: QObject, qtbot: QtBot) -> None:
    background = Background(owner)
    sentences: list[str] = []

    def refuse() -> None:
        raise UserError("There is no run 7.")

    def break_down() -> None:
        raise ZeroDivisionError("broken")

    background.submit(refuse, pytest.fail, sentences.append)
    qtbot.waitUntil(lambda: sentences == ["There is no run 7."])
    with qtbot.captureExceptions() as raised:
        background.submit(break_down, pytest.fail, sentences.append)
        qtbot.waitUntil(lambda: bool(raised))
    assert raised[0][0] is ZeroDivisionError


def test_no_result_is_delivered_to_a_deleted_view_and_its_thread_exits(owner: QObject, qtbot: QtBot) -> None:
    closed, go = threading.Event(), threading.Event()
    background = Background(owner, at_end=closed.set)
    delivered: list[object] = []
    started = threading.Event()

    def work() -> None:
        started.set()
        go.wait(5)

    background.submit(work, delivered.append, pytest.fail)
    background.submit(lambda: delivered.append("must not run"), delivered.append, pytest.fail)
    assert started.wait(5)
    delete(owner)
    go.set()
    assert closed.wait(5), "what the jobs shared is released"
    qtbot.waitUntil(lambda: not any(thread.name == "QObject" for thread in threading.enumerate()))
    qtbot.wait(20)
    assert delivered == []


def test_shared_resources_of_jobs_are_released_without_a_new_thread(owner: QObject, qtbot: QtBot) -> None:
    """An interpreter that exits starts no thread: Python 3.12 raises RuntimeError."""
    released: list[int] = []
    background = Background(owner, at_end=lambda: released.append(threading.get_ident()))
    done: list[int] = []
    background.submit(lambda: 1, done.append, pytest.fail)
    qtbot.waitUntil(lambda: done == [1])
    qtbot.waitUntil(lambda: not any(thread.name == "QObject" for thread in threading.enumerate()))
    delete(owner)
    assert released == [threading.get_ident()]


LEFT_BEHIND = """
import time
from PySide6.QtCore import QCoreApplication, QObject
from labconsole_ui.runtime.background import Background
app = QCoreApplication([])
idle, busy = QObject(app), QObject(app)
backgrounds = [Background(view, at_end=lambda: print("released", flush=True)) for view in (idle, busy)]
backgrounds[1].submit(lambda: time.sleep(0.3), print, print)
backgrounds[0].submit(lambda: None, lambda _: app.quit(), print)
app.exec()
"""


def test_a_window_that_was_never_deleted_exits_without_output() -> None:
    ended = subprocess.run([sys.executable, "-c", LEFT_BEHIND], capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "released\nreleased\n", "")


def test_a_job_in_python_does_not_block_the_window(owner: QObject, qtbot: QtBot) -> None:
    """A wait for the interpreter lasts as long as the job may keep it, at Python's 5 ms never less.

    On a busy computer it lasts longer: one short wait is enough. In a wait without a turn of the job, that has not had
    the interpreter.
    """
    background = Background(owner)
    started, over = threading.Event(), threading.Event()
    turns = 0

    def work() -> None:
        nonlocal turns
        started.set()
        while not over.is_set():
            sum(range(200))
            turns += 1

    background.submit(work, lambda _: None, pytest.fail)
    waits: list[float] = []
    try:
        assert started.wait(5)
        while len(waits) < MOST_WAITS and min(waits, default=1.0) >= LONG_WAIT_S:
            before, begin = turns, time.perf_counter()
            time.sleep(0)
            wait = time.perf_counter() - begin
            if turns > before:
                waits.append(wait)
    finally:
        over.set()
    assert min(waits) < LONG_WAIT_S
