"""Work that would hold up the window, done on one thread of its own; results come back on the window's thread."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event
from typing import Any, TypeVar

from PySide6.QtCore import QObject, Signal, Slot

from labconsole.trial import TrialError

Result = TypeVar("Result")


class _Mailbox(QObject):
    """Carries results between threads; has no parent, so that it outlives the view while a thread still works."""

    arrived = Signal(object)


class Background(QObject):
    """Jobs of one view, one after another. When the view goes, waiting jobs are dropped and nothing is delivered."""

    def __init__(self, parent: QObject, at_end: Callable[[], None] | None = None) -> None:
        """`at_end` is called last of all on the thread, to release what the jobs shared."""
        super().__init__(parent)
        self._ended = Event()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=type(parent).__name__)
        self._mailbox = _Mailbox()
        self._mailbox.arrived.connect(self._deliver)
        self.destroyed.connect(partial(_end, self._executor, self._ended, at_end))

    def submit(self, work: Callable[[], Result], then: Callable[[Result], None], failed: Callable[[str], None]) -> None:
        """Run `work` on the thread, then `then` with its result here, or `failed` with a TrialError's sentence.

        Any other exception is raised here, where the window's last net takes it.
        """
        self._executor.submit(_run, work, then, failed, self._mailbox, self._ended)

    @Slot(object)
    def _deliver(self, action: Callable[[], None]) -> None:
        action()


def _run(
    work: Callable[[], Any], then: Callable[[Any], None], failed: Callable[[str], None], box: _Mailbox, ended: Event
) -> None:
    if ended.is_set():
        return
    try:
        result = work()
    except TrialError as error:
        box.arrived.emit(partial(failed, str(error)))
    except Exception as error:  # noqa: BLE001 - not swallowed: raised again on the window's thread
        box.arrived.emit(partial(_raise, error))
    else:
        box.arrived.emit(partial(then, result))


def _end(executor: ThreadPoolExecutor, ended: Event, at_end: Callable[[], None] | None) -> None:
    if ended.is_set():
        return  # PySide reports some ends twice
    ended.set()
    if at_end is not None:
        try:
            executor.submit(at_end)
        except RuntimeError:  # the interpreter is ending and has joined all threads: nobody else uses it now
            at_end()
    executor.shutdown(wait=False)


def _raise(error: Exception) -> None:
    raise error
