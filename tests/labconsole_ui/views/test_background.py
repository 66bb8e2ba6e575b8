"""Work in the background: results and errors come on the window's thread; a view that goes takes its jobs along."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from shiboken6 import delete, isValid

from labconsole.trial import TrialError
from labconsole_ui.background import Background


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


def test_a_fault_of_the_trial_is_a_sentence_and_anything_else_is_raised(owner: QObject, qtbot: QtBot) -> None:
    background = Background(owner)
    said: list[str] = []

    def refuse() -> None:
        raise TrialError("There is no run 7.")

    def break_down() -> None:
        raise ZeroDivisionError("broken")

    background.submit(refuse, pytest.fail, said.append)
    qtbot.waitUntil(lambda: said == ["There is no run 7."])
    with qtbot.captureExceptions() as raised:
        background.submit(break_down, pytest.fail, said.append)
        qtbot.waitUntil(lambda: bool(raised))
    assert raised[0][0] is ZeroDivisionError


def test_nothing_is_delivered_to_a_view_that_is_gone_and_its_thread_ends(owner: QObject, qtbot: QtBot) -> None:
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
