"""Work for the window's thread in pieces, each in a turn of the event loop of its own: at once it would hold it up."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer


class Turns(QObject):
    """Does the pieces in order; what they change is painted between them, and clicks are taken."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._waiting: list[Callable[[], None]] = []
        self._next = QTimer(self)
        self._next.setInterval(0)
        self._next.timeout.connect(self._do_one)

    def add(self, *pieces: Callable[[], None]) -> None:
        """Do these too. One that still waits is not done twice: it shows what is newest when its turn comes."""
        self._waiting += [piece for piece in pieces if piece not in self._waiting]
        self._next.start()

    def _do_one(self) -> None:
        piece = self._waiting.pop(0)
        if not self._waiting:
            self._next.stop()
        piece()
