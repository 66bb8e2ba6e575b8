"""Jobs of seconds or minutes: done on a thread, with a dialog that shows progress and can cancel them."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from threading import Event
from typing import NoReturn, TypeVar

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QProgressDialog, QWidget

from labconsole.errors import UserError
from labconsole_ui.runtime.background import Background
from labconsole_ui.widgets.labels import busy_bar, plain_label
from labconsole_ui.widgets.message_bar import Message, Tone

Result = TypeVar("Result")
DIALOG_DELAY_MS = 600
"""A job that takes less time shows no dialog."""
REPORT_INTERVAL_S = 0.05
STEPS = 1000
UNKNOWN = -1
WIDTH = 420


class CancelledError(UserError):
    """The operator has cancelled the job."""


class Job:
    """Passed to a job to report progress; its methods raise CancelledError once it is cancelled.

    Not a QObject: its last reference may be released on the job's thread.
    """

    def __init__(self, report: Callable[[str, int], None]) -> None:
        self._report = report
        self._cancelled = Event()
        self._text = ""
        self._last = 0.0

    def cancel(self) -> None:
        """Let the job stop at its next report of progress."""
        self._cancelled.set()

    def part(self, done: int, total: int) -> None:
        """Report `done` of `total`."""
        self._check_cancelled()
        now = time.perf_counter()
        if total and now - self._last > REPORT_INTERVAL_S:
            self._last = now
            self._report(self._text, STEPS * done // total)

    def share(self, share: float) -> None:
        """Report the part that is done, 0 to 1."""
        self.part(round(share * STEPS), STEPS)

    def step(self, text: str) -> None:
        """Report what is being done now."""
        self._check_cancelled()
        self._text = text
        self._report(text, UNKNOWN)

    def _check_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise CancelledError


class LongJobs(QObject):
    """Does jobs one after another for a window; `show` gets a message for a cancelled or failed one."""

    _report = Signal(int, str, int)

    def __init__(self, window: QWidget, show: Callable[[Message], None]) -> None:
        super().__init__(window)
        self._window = window
        self._show = show
        self._background = Background(self)
        self._dialogs: dict[int, QProgressDialog] = {}
        self._count = 0
        self._report.connect(self._progress)

    def run(self, title: str, work: Callable[[Job], Result], then: Callable[[Result], None]) -> Job:
        """Do `work` on the thread, then `then` with its result here. Returns the job, which can cancel it."""
        self._count += 1
        number = self._count
        job = Job(partial(self._report.emit, number))
        dialog = self._dialogs[number] = QProgressDialog("", self.tr("Cancel"), 0, 0, self._window)
        dialog.setLabel(plain_label(title, dialog))
        dialog.setBar(busy_bar(title, dialog))
        dialog.setWindowTitle(title)
        dialog.setWindowModality(Qt.WindowModality.NonModal)
        dialog.setAutoReset(False)
        dialog.setMinimumDuration(DIALOG_DELAY_MS)
        dialog.setMinimumWidth(WIDTH)
        dialog.canceled.connect(lambda: job.cancel())
        self._background.submit(
            lambda: _outcome(work, job),
            lambda outcome: self._finished(number, outcome, then),
            lambda sentence: self._failed(number, sentence),
        )
        return job

    @property
    def dialogs(self) -> list[QProgressDialog]:
        """The dialogs of jobs that wait or are in progress."""
        return list(self._dialogs.values())

    def _progress(self, number: int, text: str, done: int) -> None:
        dialog = self._dialogs.get(number)
        if dialog is None:
            return
        if text:
            dialog.setLabelText(text)
        if done != UNKNOWN:
            dialog.setMaximum(STEPS)
            dialog.setValue(done)

    def _finished(self, number: int, outcome: Callable[[], Result], then: Callable[[Result], None]) -> None:
        self._remove_dialog(number)
        try:
            result = outcome()
        except CancelledError:
            self._show(Message(Tone.INFO, self.tr("Cancelled. Nothing half-written is left.")))
        else:
            then(result)

    def _failed(self, number: int, sentence: str) -> None:
        self._remove_dialog(number)
        self._show(Message(Tone.BAD, sentence))

    def _remove_dialog(self, number: int) -> None:
        dialog = self._dialogs.pop(number)
        dialog.close()
        dialog.deleteLater()


def _outcome(work: Callable[[Job], Result], job: Job) -> Callable[[], Result]:
    """Do the work; the returned function gives the result. Raises UserError.

    It is called on the window's thread once the dialog is closed, and raises CancelledError or a fault of the program.
    """
    try:
        result = work(job)
    except UserError as error:
        if not isinstance(error, CancelledError):
            raise
        return partial(_raised, error)
    except Exception as error:  # noqa: BLE001 - not swallowed: raised again on the window's thread
        return partial(_raised, error)
    return lambda: result


def _raised(error: Exception) -> NoReturn:
    raise error
