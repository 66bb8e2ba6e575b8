"""Runs that did not finish: why, the way to the run, and what the run itself offers to put it right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from PySide6.QtCore import QObject

from labconsole.model.trial import REMEDY
from labconsole.store.errors import StoreError
from labconsole.store.reader import Reader
from labconsole.store.records import RunDetail, RunStatus
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.widgets.message_bar import Link, Message, Tone

KEPT = "is kept"
"""Reasons of the engine that have this say already what becomes of the samples."""


class FailedRuns(QObject):
    """Shows a message for each run that failed or was interrupted."""

    def __init__(
        self,
        bridge: QueueBridge,
        reader: Callable[[], Reader],
        show: Callable[[Message], None],
        open_run: Callable[[int], None],
        run_again: Callable[[RunDetail, Mapping[str, Any]], list[int]],
        parent: QObject,
    ) -> None:
        """`run_again` queues the scenario of a run with these parameters changed."""
        super().__init__(parent)
        self._bridge = bridge
        self._reader = reader
        self._show = show
        self._open_run = open_run
        self._run_again = run_again
        bridge.finished.connect(self._finished)

    def _finished(self, run_id: int, status: RunStatus) -> None:
        if status not in (RunStatus.FAILED, RunStatus.INTERRUPTED):
            return
        try:
            with self._reader() as reader:
                run = reader.run(run_id)
        except StoreError:
            run = None  # the queue's own reason says more than this
        item = next((item for item in self._bridge.queue.items if item.run_id == run_id), None)
        known = item.reason if item is not None else ""
        reason = known or (run.row.reason if run is not None else "") or self.tr("The reason is in its events.")
        name = item.scenario if item is not None else run.row.scenario if run is not None else ""
        if status is RunStatus.FAILED:
            text = self.tr("Run {run} ({name}) failed: {reason}")
        else:
            text = self.tr("Run {run} ({name}) was interrupted: {reason}")
        sentence = reason if reason.endswith((".", "!", "?")) else f"{reason}."
        message = text.format(run=run_id, name=name, reason=sentence)
        if KEPT not in reason:
            message = self.tr("{message} What it measured until then is kept.").format(message=message)
        link = (self.tr("Open run"), lambda: self._open_run(run_id))
        self._show(Message(Tone.BAD, message, link=link, remedy=None if run is None else self._remedy(run)))

    def _remedy(self, run: RunDetail) -> Link | None:
        """What the run has said would help it, if anything."""
        told = next((event.data for event in run.events if event.name == REMEDY), None)
        return None if told is None else (str(told["title"]), lambda: self._again(run, told["parameters"]))

    def _again(self, run: RunDetail, changes: Mapping[str, Any]) -> None:
        self._run_again(run, changes)
