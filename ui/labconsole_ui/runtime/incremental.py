"""Builds a page in pieces, each in its own turn of the event loop, without blocking the window."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, runtime_checkable

from PySide6.QtCore import QObject, QTimer


class EventLoopQueue(QObject):
    """Does pieces in order; painting and clicks are processed between them."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._waiting: deque[Callable[[], None]] = deque()
        self._next = QTimer(self)
        self._next.setInterval(0)
        self._next.timeout.connect(self._do_one)

    def add(self, *pieces: Callable[[], None]) -> None:
        """Append pieces. One that still waits is not added again: it will show the newest state."""
        self._waiting.extend(piece for piece in pieces if piece not in self._waiting)
        self._start()

    def add_first(self, pieces: Iterable[Callable[[], None]]) -> None:
        """Insert pieces before those that wait."""
        self._waiting.extendleft(reversed(list(pieces)))
        self._start()

    def replace(self, pieces: Iterable[Callable[[], None]]) -> None:
        """Replace the pieces that wait."""
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


class PageBuilder(QObject):
    """Runs a generator that yields after each piece, one piece per turn of the event loop."""

    def __init__(self, parent: QObject, pieces: Iterator[None]) -> None:
        super().__init__(parent)
        self.complete = False
        self.on_failure: Callable[[Exception], None] | None = None
        """Called with the error of a piece that failed in a turn of its own; without it the error is raised there."""
        self._pieces = pieces
        self._failure: Exception | None = None
        self._later: list[Callable[[], object]] = []
        self._turns = EventLoopQueue(self)
        self._turns.add(self._build_next)

    def step(self) -> bool:
        """Build the next piece. Returns whether there are more; raises what the piece raises."""
        if self._failure is not None:
            raise self._failure
        if self.complete:
            return False
        try:
            next(self._pieces)
        except StopIteration:
            self.complete = True
            self._turns.replace([])
            for action in self._later:
                action()
            self._later.clear()
            return False
        except Exception as error:
            self._failure = error
            raise
        return True

    def finish(self) -> None:
        """Build all remaining pieces at once, for a caller that needs the whole page now."""
        while self.step():
            pass

    def when_complete(self, action: Callable[[], object]) -> None:
        """Do `action` once all pieces are built, or now if they are."""
        if self.complete:
            action()
        else:
            self._later.append(action)

    def _build_next(self) -> None:
        if self.complete or self._failure is not None:
            return
        try:
            if self.step():
                self._turns.add(self._build_next)
        except Exception as error:
            if self.on_failure is None:
                raise
            self.on_failure(error)


@runtime_checkable
class BuiltIncrementally(Protocol):
    """A page that opens as an empty frame; `building` fills it."""

    building: PageBuilder
