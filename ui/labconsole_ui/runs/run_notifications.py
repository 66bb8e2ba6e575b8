"""Watches the runs that were launched together and reports when all of them are done."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from PySide6.QtCore import QObject, Signal

from labconsole.store.records import RunStatus
from labconsole_ui.runtime.queue_bridge import QueueBridge

LONG_S = 30.0
"""An operator uses another window meanwhile: the result of so long a run stays until it was looked at."""


@dataclass
class RunGroup:
    """Runs that were launched together, in their order; `compare` says that they shall be compared when done."""

    run_ids: list[int]
    compare: bool
    begun_s: float = field(default_factory=time.monotonic)
    took_s: float = 0.0
    ended: dict[int, RunStatus] = field(default_factory=dict)

    @property
    def finished(self) -> int:
        """How many of them finished."""
        return sum(status is RunStatus.FINISHED for status in self.ended.values())

    @property
    def long(self) -> bool:
        """Whether all of them together took long."""
        return self.took_s >= LONG_S


class CampaignWatch(QObject):
    """`done` carries the `RunGroup`; runs that the queue repeated are at its end."""

    done = Signal(object)

    def __init__(self, bridge: QueueBridge) -> None:
        super().__init__(bridge)
        self._groups: list[RunGroup] = []
        self._queue = bridge.queue
        bridge.finished.connect(self._finished)

    def watch(self, run_ids: list[int], compare: bool = False) -> None:
        """Watch these runs as one group."""
        if run_ids:
            self._groups.append(RunGroup(list(run_ids), compare))

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
