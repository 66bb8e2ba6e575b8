"""Notifications of runs: launched groups that are done, and runs that failed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from PySide6.QtCore import QObject, Signal

from labconsole.model.trial import REMEDY
from labconsole.store.errors import StoreError
from labconsole.store.reader import Reader
from labconsole.store.records import RunDetail, RunStatus
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.widgets.message_bar import Link, Message, Tone

LONG_S = 30.0
"""The result of a run longer than this stays until it was opened: operators use other windows meanwhile."""


@dataclass
class LaunchedRuns:
    """Runs that were launched together, in their order; `compare`: whether they are compared when done."""

    run_ids: list[int]
    compare: bool
    begun_s: float = field(default_factory=time.monotonic)
    took_s: float = 0.0
    ended: dict[int, RunStatus] = field(default_factory=dict)

    @property
    def finished(self) -> int:
        """Number of finished runs."""
        return sum(status is RunStatus.FINISHED for status in self.ended.values())

    @property
    def long(self) -> bool:
        """Whether all of them together took long."""
        return self.took_s >= LONG_S


class LaunchWatcher(QObject):
    """`done` carries the `LaunchedRuns`; runs that the queue repeated come last."""

    done = Signal(object)

    def __init__(self, bridge: QueueBridge) -> None:
        super().__init__(bridge)
        self._groups: list[LaunchedRuns] = []
        self._queue = bridge.queue
        bridge.finished.connect(self._finished)

    def watch(self, run_ids: list[int], compare: bool = False) -> None:
        """Watch these runs as one group."""
        if run_ids:
            self._groups.append(LaunchedRuns(list(run_ids), compare))

    def _finished(self, run_id: int, status: RunStatus) -> None:
        for group in list(self._groups):
            if run_id not in group.run_ids:
                continue
            group.ended[run_id] = status
            if run_id in self._queue.repeated:
                group.run_ids.append(self._queue.repeated[run_id])
            if len(group.ended) == len(group.run_ids):
                self._groups.remove(group)
                group.took_s = time.monotonic() - group.begun_s
                self.done.emit(group)


SAYS_SAMPLES_ARE_KEPT = "is kept"
"""Reasons of the engine with this text say already what happened to the samples."""


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
        if SAYS_SAMPLES_ARE_KEPT not in reason:
            message = self.tr("{message} What it recorded until then is kept.").format(message=message)
        link = (self.tr("Open run"), lambda: self._open_run(run_id))
        self._show(Message(Tone.BAD, message, link=link, remedy=None if run is None else self._remedy(run)))

    def _remedy(self, run: RunDetail) -> Link | None:
        """The remedy that the run has proposed, or None."""
        remedy = next((event.data for event in run.events if event.name == REMEDY), None)
        return None if remedy is None else (str(remedy["title"]), lambda: self._again(run, remedy["parameters"]))

    def _again(self, run: RunDetail, changes: Mapping[str, Any]) -> None:
        self._run_again(run, changes)
