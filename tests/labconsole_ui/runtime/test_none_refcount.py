"""Guard against the PySide6 6.12 fault: a reference to None lost on every call that returns nothing."""

from __future__ import annotations

import sys

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

CALLS = 5000


def test_calls_that_return_nothing_keep_the_count_of_none(qtbot: QtBot) -> None:
    label = QLabel()
    qtbot.addWidget(label)
    plain = QObject()
    before = sys.getrefcount(None)
    for number in range(CALLS):
        label.setNum(number)
        plain.setObjectName("x")
        label.update()
    assert abs(sys.getrefcount(None) - before) < CALLS // 10
