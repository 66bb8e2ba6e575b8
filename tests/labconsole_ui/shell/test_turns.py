"""Work in pieces: in order, other things in between, nothing twice."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer
from pytestqt.qtbot import QtBot

from labconsole_ui.turns import Turns


class Diary:
    """Pieces of work that note that they were done."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def first(self) -> None:
        self.done.append("first")

    def second(self) -> None:
        self.done.append("second")

    def third(self) -> None:
        self.done.append("third")


def test_other_things_come_between_the_pieces(qtbot: QtBot) -> None:
    owner, diary = QObject(), Diary()
    turns = Turns(owner)
    turns.add(lambda: QTimer.singleShot(0, diary.second), diary.first, diary.third, diary.third)
    assert diary.done == []
    qtbot.waitUntil(lambda: len(diary.done) == 3)
    assert diary.done.index("second") < 2, "it was asked for in the first turn, before the last one"
    qtbot.wait(20)
    assert diary.done.count("third") == 1, "the same piece waits once"


def test_pieces_go_before_others_or_take_their_place(qtbot: QtBot) -> None:
    owner, diary = QObject(), Diary()
    turns = Turns(owner)
    turns.add(diary.third)
    turns.add_first([diary.first, diary.second])
    qtbot.waitUntil(lambda: diary.done == ["first", "second", "third"])
    turns.add(diary.first, diary.second)
    turns.replace([diary.third])
    qtbot.waitUntil(lambda: len(diary.done) == 4)
    qtbot.wait(20)
    assert diary.done[3:] == ["third"]
