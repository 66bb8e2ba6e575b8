"""Work for the window's thread in pieces, each in a turn of the event loop of its own: at once it would hold it up."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from PySide6.QtCore import QObject, QTimer


class Turns(QObject):
    """Does pieces in order; what they change is painted between them, and clicks are taken."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._waiting: deque[Callable[[], None]] = deque()
        self._next = QTimer(self)
        self._next.setInterval(0)
        self._next.timeout.connect(self._do_one)

    def add(self, *pieces: Callable[[], None]) -> None:
        """Do these too, last. One that still waits is not done twice: it shows what is newest when its turn comes."""
        self._waiting.extend(piece for piece in pieces if piece not in self._waiting)
        self._start()

    def add_first(self, pieces: Iterable[Callable[[], None]]) -> None:
        """Do these too, before those that wait."""
        self._waiting.extendleft(reversed(list(pieces)))
        self._start()

    def replace(self, pieces: Iterable[Callable[[], None]]) -> None:
        """Do these, and no more what still waits."""
        self._waiting = deque(pieces)
        if self._waiting:
            self._next.start()
        else:
            self._next.stop()

    def _start(self) -> None:
        if self._waiting:
            self._next.start()

    def _do_one(self) -> None:
        piece = self._waiting.popleft()
        if not self._waiting:
            self._next.stop()
        piece()
