"""Runs an operation for a dialog, card or page, in a process of its own."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from labconsole.engine.operation_process import OperationProcess
from labconsole.security.secrets import Secret

PUMP_MS = 100


class OperationRunner(QObject):
    """One operation at a time; its process ends with the parent of the runner.

    While it is in progress `pumped` carries its `OperationProcess`, ten times a second; `said` carries each new report
    of it, and `ended` its `OperationEnd`.
    """

    pumped = Signal(object)
    said = Signal(str)
    ended = Signal(object)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._held: list[OperationProcess] = []
        self._said = ""
        self._timer = QTimer(self)
        self._timer.setInterval(PUMP_MS)
        self._timer.timeout.connect(self._pump)
        self.destroyed.connect(partial(_end, self._held))

    @property
    def running(self) -> bool:
        """Whether the operation is in progress."""
        return any(process.end is None for process in self._held)

    def start(
        self, name: str, values: Mapping[str, Any], secrets: Mapping[str, Secret] | None = None, typed: str = ""
    ) -> None:
        """Start the operation `name` as `OperationProcess` does; the one before must have ended."""
        assert not self.running
        self._said = ""
        self._held[:] = [OperationProcess(name, values, lambda: None, secrets, typed)]
        self._timer.start()

    def cancel(self) -> None:
        """Ask the operation to end."""
        for process in self._held:
            process.cancel()

    def _pump(self) -> None:
        for process in self._held:
            process.pump()
            self.pumped.emit(process)
            if process.end is not None:
                self._timer.stop()
                self.ended.emit(process.end)
            elif process.said and process.said != self._said:
                self._said = process.said
                self.said.emit(process.said)


def _end(held: list[OperationProcess]) -> None:
    """End the operation when the runner is destroyed with its window."""
    for process in held:
        process.close()
