"""Watches the runs that were launched together and tells when all of them are done."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from labconsole.store.records import RunStatus
from labconsole_ui.bridge import QueueBridge


class CampaignWatch(QObject):
    """`done` carries the ids of the runs, in their order, and how many of them finished."""

    done = Signal(list, int)

    def __init__(self, bridge: QueueBridge) -> None:
        super().__init__(bridge)
        self._groups: list[tuple[list[int], dict[int, RunStatus]]] = []
        bridge.finished.connect(self._finished)

    def watch(self, run_ids: list[int]) -> None:
        """Watch these runs as one group."""
        if run_ids:
            self._groups.append((run_ids, {}))

    def _finished(self, run_id: int, status: RunStatus) -> None:
        for group in list(self._groups):
            run_ids, ended = group
            if run_id not in run_ids:
                continue
            ended[run_id] = status
            if len(ended) == len(run_ids):
                self._groups.remove(group)
                finished = sum(status is RunStatus.FINISHED for status in ended.values())
                self.done.emit(run_ids, finished)
