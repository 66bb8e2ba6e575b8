"""The role of a measuring trial: threads time operations on one token, and the role's own thread records them."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import ExitStack
from threading import Event
from typing import Any, ClassVar

import numpy as np

from labconsole.model.role import Role, RoleContext
from labconsole.model.trial import Series
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.opening import Token, open_token
from labconsole_keypool.measuring.timed_operations import Operations

_INTERVAL_S = 0.05

Row = tuple[int, ...]
"""One timed operation: the columns of its series, in order."""


class Observations:
    """Rows queued between the threads that time and the one that records; `add` and `take` may run at the same time."""

    def __init__(self) -> None:
        self._rows: deque[Row] = deque()

    def add(self, *row: int) -> None:
        """Add the row of one operation; from any thread."""
        self._rows.append(row)

    def take(self) -> list[Row]:
        """Remove and return the rows that were added since the last call, in order."""
        return [self._rows.popleft() for _ in range(len(self._rows))]


def run_threads(functions: Sequence[Callable[[], None]], on_interval: Callable[[], None], failed: Event) -> None:
    """Run each of `functions` in its own thread until all have ended; calls `on_interval` meanwhile and at the end.

    `failed` is set as soon as one of them fails, for the others to check; its error is raised once all have ended.
    """
    with ThreadPoolExecutor(len(functions)) as threads:
        pending = [threads.submit(function) for function in functions]
        running = set(pending)
        while running:
            ended, running = wait(running, _INTERVAL_S, FIRST_EXCEPTION)
            if any(one.exception() is not None for one in ended):
                failed.set()
            on_interval()
    for done in pending:
        done.result()


class TimedRole(Role):
    """Base of the roles that time operations on one token.

    Settings: `parameters` and the token's `configuration` as JSON; the PIN under its request's key.
    """

    operations: ClassVar[Series]

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        self.observations = Observations()
        self.resources = ExitStack()
        """Closed at the end, the last one first."""
        self._failed = Event()

    def open_token(self, name: str) -> Token:
        """Open the token until the role ends. Raises TokenError."""
        configuration = TokenConfiguration.model_validate(self.context.settings["configuration"])
        pin = self.context.secret(configuration.pin_request(name).key)
        return self.resources.enter_context(open_token(name, configuration, pin))

    def run(self) -> dict[str, Any]:
        """Measure, recording the operations meanwhile."""
        self._writer = self.context.series(self.operations)
        self.measure()
        return {}

    @abstractmethod
    def measure(self) -> None:
        """Time all operations of the run, by `time_threads`."""

    @abstractmethod
    def show(self, operations: Operations) -> None:
        """Count newly recorded operations on the live channels."""

    def time_threads(self, functions: Sequence[Callable[[], None]]) -> None:
        """Run each of `functions` in its own thread until all have ended. Raises the error of one that failed."""
        self._failed.clear()
        run_threads(functions, self._record, self._failed)

    def stopped(self) -> bool:
        """Whether threads are to end soon: the run was cancelled, or another thread failed."""
        return self.context.stop_requested or self._failed.is_set()

    def close(self) -> None:
        """Close the token with all keys that were made, and what was opened after it."""
        self.resources.close()

    def _record(self) -> None:
        names = [column.name for column in self.operations.columns]
        rows = np.array(self.observations.take(), np.int64).reshape(-1, len(names))
        operations = dict(zip(names, rows.T, strict=True))
        self._writer.extend(**operations)
        self.show(operations)
        self.context.tick()


def identity(token: Token) -> str:
    """Manufacturer and model of the token."""
    return f"{token.identity.manufacturer} {token.identity.model}"
