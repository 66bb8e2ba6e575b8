"""Workers of runs and operations in threads of the test process: all is real but the processes; they start at once."""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest

from labconsole.engine.launcher import Launcher, LocalLauncher
from labconsole.engine.operation import perform_operation
from labconsole.engine.operation_process import OperationProcess
from labconsole.engine.protocol import encode_line
from labconsole.engine.queue import RunQueue
from labconsole.engine.supervisor import Worker, WorkerProcess
from labconsole.engine.worker import perform_task
from labconsole.errors import UserError
from labconsole.security.secrets import Secret
from tests.helpers.role_threads import RoleThreads

CONSOLE_IN_THREADS = (sys.executable, "-m", "tests.helpers.console_in_threads")
"""Start of the command line of a console whose workers, operations and roles are threads of its one process."""


class WorkerThread(Worker):
    """`RunQueue.worker` where its process is not what is tested. It cannot be killed, nor can its roles.

    Trials and roles that end their process (`os._exit`), fork, or print for the log need processes.
    """

    roles: ClassVar[Callable[[], Launcher]] = RoleThreads

    def __init__(
        self,
        task: Mapping[str, Any],
        wake: Callable[[], None],
        secrets: Mapping[str, Secret] | None = None,
        program: str = "",
    ) -> None:
        super().__init__(wake)
        revealed = {key: secret.reveal() for key, secret in (secrets or {}).items()}
        line = encode_line({**task, "secrets": revealed})
        self._turn = threading.RLock()
        self._kept: list[dict[str, Any]] = []
        self._taker: Callable[[dict[str, Any]], None] | None = None
        self._thread = threading.Thread(target=self._perform, args=(json.loads(line),), name="worker")
        self._thread.start()

    @property
    def pid(self) -> int:
        """That of the tests."""
        return os.getpid()

    def send(self, message: Mapping[str, Any]) -> None:
        """Give it a message, which waits until the worker listens; it is JSON on its way, as between processes."""
        with self._turn:
            self._kept.append(json.loads(encode_line(message)))
            self._deliver()

    def escalate(self) -> bool:
        """Whether it has ended."""
        return not self._thread.is_alive()

    def exit_reason(self) -> str:
        """It reports the end of each run, unless it has a fault, which is printed."""
        return "The worker thread ended by a fault; see the output."

    def kill(self) -> None:
        """Ask it to end."""
        self.cancel()

    def close(self) -> None:
        """Wait for its end."""
        self._thread.join()

    def _perform(self, task: dict[str, Any]) -> None:
        channel = _Channel(self)
        try:
            self._perform_task(task, channel)
        except UserError as error:
            channel.send({"t": "error", "sentence": str(error)})
        except Exception:  # noqa: BLE001 - as a process that ends by it: the run is then recovered
            traceback.print_exc()
        self._wake()

    def _perform_task(self, task: Mapping[str, Any], channel: _Channel) -> None:
        perform_task(task, channel, self.roles)

    def listen(self, taker: Callable[[dict[str, Any]], None]) -> None:
        """Let `taker` have the messages, those that were kept first."""
        with self._turn:
            self._taker = taker
            self._deliver()

    def _deliver(self) -> None:
        while self._taker is not None and self._kept:
            self._taker(self._kept.pop(0))


class WorkerThreadOfProcesses(WorkerThread):
    """Its roles are processes: those that load a PKCS#11 module, or whose use of the computer is shown."""

    roles = LocalLauncher


class OperationThread(WorkerThread):
    """`OperationProcess.worker` where its process is not what is tested.

    What an operation prints is not in its log. One that loads a PKCS#11 module has the only token that is open.
    """

    def _perform_task(self, task: Mapping[str, Any], channel: _Channel) -> None:
        perform_operation(task, channel)


class QueueInThreads(RunQueue):
    """A queue whose runs are threads of this process."""

    worker = WorkerThread


class _Channel:
    """The way from the worker to the queue."""

    def __init__(self, worker: WorkerThread) -> None:
        self._worker = worker

    def send(self, message: Mapping[str, Any]) -> None:
        self._worker.receive(encode_line(message))

    def listen(self, on_message: Callable[[dict[str, Any]], None]) -> None:
        self._worker.listen(on_message)


@contextmanager
def workers_in_threads(worker: type[WorkerThread] = WorkerThread) -> Iterator[None]:
    """Runs of all queues of this process are conducted by threads of it in the block."""
    with _replaced_worker(RunQueue, worker):
        yield


@contextmanager
def operations_in_threads() -> Iterator[None]:
    """Operations that this process starts in the block are performed by threads of it."""
    with _replaced_worker(OperationProcess, OperationThread):
        yield


@contextmanager
def operations_in_processes() -> Iterator[None]:
    """Operations that this process starts in the block, which is in one of threads, are processes again."""
    with _replaced_worker(OperationProcess, WorkerProcess):
        yield


@contextmanager
def _replaced_worker(owner: type[RunQueue | OperationProcess], worker: type[Worker]) -> Iterator[None]:
    """The class's `worker` in the block.

    A replacement that ends later than one around it would bring back that one's worker, for all later tests.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, "worker", worker)
        yield
        assert owner.worker is worker, f"{owner.__name__}.worker is still replaced by another fixture"
