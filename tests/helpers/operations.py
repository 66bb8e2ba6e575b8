"""Drives actions in their processes, or in threads, as a console does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from labconsole.engine.operation_process import OperationEnd, OperationProcess
from labconsole.security.secrets import Secret
from tests.helpers.worker_threads import OperationThread

TIMEOUT_S = 60.0


class _OperationInThread(OperationProcess):
    worker = OperationThread


class Operations:
    """Starts actions and pumps them; `close` ends those that a test leaves. `in_threads`: without processes."""

    def __init__(self, *, in_threads: bool = False) -> None:
        self._kind = _OperationInThread if in_threads else OperationProcess
        self._wakeup = threading.Event()
        self._started: list[OperationProcess] = []

    def start(
        self, name: str, *, secrets: dict[str, Secret] | None = None, typed: str = "", **parameters: Any
    ) -> OperationProcess:
        """Start an action."""
        process = self._kind(name, parameters, self._wakeup.set, secrets, typed)
        self._started.append(process)
        return process

    def do(
        self, name: str, *, secrets: dict[str, Secret] | None = None, typed: str = "", **parameters: Any
    ) -> OperationEnd:
        """Do an action to its end."""
        return self.end(self.start(name, secrets=secrets, typed=typed, **parameters))

    def pump_until(self, process: OperationProcess, condition: Callable[[], bool]) -> None:
        """Wait until `condition`, before the action ends."""
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < deadline and process.end is None, process.end
            self._pump(process)

    def end(self, process: OperationProcess) -> OperationEnd:
        """Wait for the end."""
        deadline = time.monotonic() + TIMEOUT_S
        while process.end is None:
            assert time.monotonic() < deadline
            self._pump(process)
        return process.end

    def close(self) -> None:
        """End what still runs."""
        for process in self._started:
            process.close()

    def _pump(self, process: OperationProcess) -> None:
        process.pump()
        self._wakeup.wait(0.05)
        self._wakeup.clear()
