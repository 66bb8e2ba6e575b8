"""The console's side of an operation: starts its process, follows its progress, cancels it, and reads its result."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from labconsole.engine.supervisor import Worker, WorkerProcess
from labconsole.model.operation import Result
from labconsole.security.secret_value import Secret

PROGRAM = "labconsole.engine.operation"
LOG_LINES_KEPT = 200
_MESSAGES_PER_PUMP = 200


class Outcome(StrEnum):
    """How an operation ended."""

    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


@dataclass(frozen=True)
class OperationEnd:
    """How an operation ended, and the sentence for the operator; `result` where it finished."""

    outcome: Outcome
    sentence: str
    result: Result | None = field(default=None, compare=False)

    @property
    def passed(self) -> bool:
        """Whether it finished, and its result is not negative."""
        return self.outcome is Outcome.DONE and (self.result is None or self.result.passed)


@dataclass(frozen=True)
class OperationProgress:
    """Progress of an operation: `done` of `total`, and `eta_s` from the mean so far; None before anything is done."""

    done: int
    total: int
    eta_s: float | None


class OperationProcess:
    """An operation in its own process. Call `pump` on every wake and about four times a second, until `end` is there.

    `wake` is called from reader threads. `typed` is what the operator typed as confirmation. Secrets go over standard
    input. Create it on a thread that lives as long: Linux kills the process with the thread that created it.
    """

    worker: ClassVar[Callable[..., Worker]] = WorkerProcess
    """What performs the operation: called with the task, `wake`, the secrets and the program."""

    def __init__(
        self,
        name: str,
        parameters: Mapping[str, Any],
        wake: Callable[[], None],
        secrets: Mapping[str, Secret] | None = None,
        typed: str = "",
    ) -> None:
        self.progress: OperationProgress | None = None
        self.said = ""
        """The newest report of the operation."""
        self.end: OperationEnd | None = None
        self._begun: tuple[float, int] | None = None
        self._report: dict[str, Any] | None = None
        self._handed_over: list[tuple[str, Secret]] = []
        self._log: deque[str] = deque(maxlen=LOG_LINES_KEPT)
        task = {"t": "operation", "name": name, "parameters": dict(parameters), "typed": typed}
        self._process = self.worker(task, wake, secrets, PROGRAM)

    @property
    def pid(self) -> int:
        """Process id of the operation."""
        return self._process.pid

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._process.cancelled

    def cancel(self) -> None:
        """Ask the operation to end; one that does not is terminated, then killed, by later calls of `pump`."""
        self._process.cancel()

    def pump(self) -> None:
        """Read the messages of the process, and take the next step of the cancel ladder if it is due."""
        if self.end is not None:
            return
        gone = self._process.escalate()
        while messages := self._process.take_messages(_MESSAGES_PER_PUMP):
            for message in messages:
                self._take(message)
        if gone:
            self._process.close()
            self.end = self._ended()

    def take_handed_over(self) -> list[tuple[str, Secret]]:
        """Secrets for the operator alone, once: title and text of each."""
        taken, self._handed_over = self._handed_over, []
        return taken

    def take_log(self) -> list[str]:
        """Stray output, once; of very much only the last lines."""
        lines = list(self._log)
        self._log.clear()
        return lines

    def close(self) -> None:
        """End the process at once where it still runs: the console closes."""
        if self.end is None:
            self._process.kill()
            while self.end is None:
                self.pump()
                time.sleep(0.005)

    def _take(self, message: dict[str, Any]) -> None:
        match message["t"]:
            case "progress":
                self._follow(message["done"], message["total"])
            case "say":
                self.said = message["sentence"]
            case "secret":
                self._handed_over.append((message["title"], Secret(message["text"])))
            case "log":
                self._log.append(message["line"])
            case "end":
                self._report = message

    def _follow(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self._begun is None:
            self._begun = (now, done)
        since, at_first = self._begun
        each_s = (now - since) / (done - at_first) if done > at_first else None
        self.progress = OperationProgress(done, total, None if each_s is None else each_s * max(0, total - done))

    def _ended(self) -> OperationEnd:
        if self._report is None:
            if self.cancelled:
                return OperationEnd(
                    Outcome.CANCELLED, "Cancelled: it did not stop by itself, and its process was ended."
                )
            return OperationEnd(Outcome.FAILED, self._process.exit_reason())
        result = Result.from_json(self._report["result"])
        sentence: str = self._report["fault"] or result.text
        if self._report["stopped"]:
            return OperationEnd(Outcome.CANCELLED, sentence, result)
        return OperationEnd(Outcome.FAILED if self._report["failed"] else Outcome.DONE, sentence, result)
