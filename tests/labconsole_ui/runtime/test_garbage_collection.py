"""Garbage is collected in the window's thread, whichever thread creates objects."""

from __future__ import annotations

import gc
import threading

from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from labconsole_ui.runtime.background import Background
from labconsole_ui.runtime.garbage_collection import WindowCollector


class Circle:
    """Garbage that only a collection finds; it records the thread that deletes it."""

    def __init__(self, gone: list[int]) -> None:
        self.self, self.gone = self, gone

    def __del__(self) -> None:
        self.gone.append(threading.get_ident())


def test_other_threads_never_collect_garbage(qtbot: QtBot) -> None:
    owner, gone, done = QObject(), list[int](), list[int]()
    background = Background(owner)

    def make_many() -> int:
        return len([[number] for number in range(200_000)])

    for _ in range(20):
        for _ in range(100):
            Circle(gone)
        background.submit(make_many, done.append, done.append)
        qtbot.wait(1)
    qtbot.waitUntil(lambda: len(done) == 20 and len(gone) > 1000)
    assert set(gone) == {threading.get_ident()}


def test_python_collects_garbage_again_after_the_window_is_deleted(qtbot: QtBot) -> None:
    owner = QObject()
    collector = WindowCollector(owner)
    assert not gc.isenabled()
    collector.stop()
    assert gc.isenabled()
    gc.disable()  # as the application of the tests has it
