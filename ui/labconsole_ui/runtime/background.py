"""Jobs on a thread of their own; their results arrive on the window's thread."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from functools import partial
from threading import Lock, Thread
from typing import Any, TypeVar

from PySide6.QtCore import QObject, Signal, Slot

from labconsole.errors import UserError

Result = TypeVar("Result")
SWITCH_S = 0.0005
"""How long a thread keeps the interpreter while another wants it. With Python's 5 ms every call into Qt, which releases
the interpreter, may cost the window 5 ms while a job runs: painting a table then takes a quarter of a second."""


class _Mailbox(QObject):
    """Carries results between threads; without parent, so that it outlives the view of a running job."""

    arrived = Signal(object)


class Background(QObject):
    """Jobs of one view, in order. When the view is deleted, waiting jobs and results are dropped."""

    def __init__(self, parent: QObject, at_end: Callable[[], None] | None = None) -> None:
        """`at_end` is called last of all, to release what the jobs shared."""
        super().__init__(parent)
        sys.setswitchinterval(SWITCH_S)
        self._worker = _Worker(type(parent).__name__)
        self._mailbox = _Mailbox()
        self._mailbox.arrived.connect(self._deliver)
        self.destroyed.connect(partial(self._worker.end, at_end))

    def submit(self, work: Callable[[], Result], then: Callable[[Result], None], failed: Callable[[str], None]) -> None:
        """Run `work` on the thread, then `then` with its result here, or `failed` with a UserError's sentence.

        Any other exception is raised here, where the window's exception hook handles it.
        """
        self._worker.add(partial(_run, work, then, failed, self._mailbox))

    @Slot(object)
    def _deliver(self, action: Callable[[], None]) -> None:
        action()


class _Worker:
    """Does jobs in order, on a thread that exists only while there are any."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = Lock()
        self._jobs: deque[Callable[[], None]] = deque()
        self._running = False
        self._ended = False

    def add(self, job: Callable[[], None]) -> None:
        with self._lock:
            if self._ended:
                return
            self._jobs.append(job)
            if not self._running:
                Thread(target=self._work, name=self._name).start()
                self._running = True

    def end(self, last: Callable[[], None] | None) -> None:
        """Drop waiting jobs and do `last`: after the job in progress, or at once; a second call does nothing.

        No thread is started for it: an interpreter that exits with the view still open starts none.
        """
        with self._lock:
            if self._ended:
                return
            self._ended = True
            self._jobs.clear()
            if last is None:
                return
            if self._running:
                self._jobs.append(last)
                return
        last()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._jobs:
                    self._running = False
                    return
                job = self._jobs.popleft()
            job()


def _run(work: Callable[[], Any], then: Callable[[Any], None], failed: Callable[[str], None], box: _Mailbox) -> None:
    try:
        result = work()
    except UserError as error:
        box.arrived.emit(partial(failed, str(error)))
    except Exception as error:  # noqa: BLE001 - not swallowed: raised again on the window's thread
        box.arrived.emit(partial(_raise, error))
    else:
        box.arrived.emit(partial(then, result))


def _raise(error: Exception) -> None:
    raise error
