"""The console's side of the process of a run or an operation: start, messages, and the steps of a cancel.

The steps: a message, terminate, kill.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any

from labconsole.engine.protocol import LIVE, LiveFrame, decode_line, encode_line
from labconsole.processes import group_options, kill_group, own_program
from labconsole.security.secret_value import Secret

TERMINATE_AFTER_S = 8.0
KILL_AFTER_S = 10.0
LOG_LINES_WAITING = 2000
"""The most lines of stray output that wait to be read; further ones are only counted."""


class Worker(ABC):
    """What performs a task for the console: its messages in order, its newest live frame, and a cancel.

    `wake` is called, from any thread, whenever there is a new message.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._messages: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._frame: LiveFrame | None = None
        self._cancelled = False
        self._ladder_since: float | None = None

    @property
    @abstractmethod
    def pid(self) -> int:
        """Process id of the worker, and of its process group."""

    @abstractmethod
    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message; it is dropped once the worker has exited."""

    @abstractmethod
    def escalate(self) -> bool:
        """Take the next step of the cancel ladder if it is due. True once the worker has exited and all its messages
        are read."""

    @abstractmethod
    def exit_reason(self) -> str:
        """One sentence on the exit of a worker that did not report it."""

    @abstractmethod
    def kill(self) -> None:
        """End the worker at once: for work that can be done again."""

    @abstractmethod
    def close(self) -> None:
        """Release a worker that has exited."""

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancelled

    def cancel(self) -> None:
        """Ask the worker to end; `escalate` does the rest of the ladder."""
        self._cancelled = True
        if self._ladder_since is None:
            self._ladder_since = time.monotonic()
            self.send({"t": "cancel"})

    def stop_escalation(self) -> None:
        """Leave the ladder: the worker has ended the trial and only stores and evaluates."""
        self._ladder_since = None

    def take_messages(self, limit: int) -> list[dict[str, Any]]:
        """The next messages in order, `limit` at most; stray output comes as `{"t": "log", "line": ..}`."""
        return list(islice(self._waiting(), limit))

    def take_frame(self) -> LiveFrame | None:
        """The newest live frame, once."""
        frame, self._frame = self._frame, None
        return frame

    def receive(self, line: bytes) -> None:
        """Keep a line of the worker: a message, or stray output."""
        message = decode_line(line)
        if message is None:
            self._log(line)
        elif message["t"] == LIVE:
            self._frame = LiveFrame.from_json(message)
        else:
            self._messages.put(message)
        self._wake()

    def _waiting(self) -> Iterator[dict[str, Any]]:
        try:
            while True:
                yield self._messages.get_nowait()
        except Empty:
            return

    def _log(self, line: bytes) -> None:
        self._messages.put({"t": "log", "line": line.decode(errors="replace").rstrip()})
        self._wake()


class WorkerProcess(Worker):
    """A worker process; `wake` is called from its reader threads.

    `secrets` go to the worker over its standard input, and are not kept here. `program` is the module that it runs.
    """

    def __init__(
        self,
        task: Mapping[str, Any],
        wake: Callable[[], None],
        secrets: Mapping[str, Secret] | None = None,
        program: str = "labconsole.engine.worker",
    ) -> None:
        super().__init__(wake)
        self._what = program.rpartition(".")[2]
        self._swept = False
        self._process = subprocess.Popen(
            own_program(program),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **group_options(),
        )
        self._threads = [
            threading.Thread(target=self._read_messages, name="worker-messages", daemon=True),
            threading.Thread(target=self._read_log, name="worker-log", daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        revealed = {key: secret.reveal() for key, secret in (secrets or {}).items()}
        self.send({**task, "secrets": revealed, "parent_pid": os.getpid()})

    @property
    def pid(self) -> int:
        return self._process.pid

    def escalate(self) -> bool:
        if self._process.poll() is not None:
            if not self._swept:
                self._swept = True
                kill_group(self._process)  # one that is left may hold our pipes open
            return not any(thread.is_alive() for thread in self._threads)
        if self._ladder_since is not None:
            waited = time.monotonic() - self._ladder_since
            if waited > KILL_AFTER_S:
                kill_group(self._process)
            elif waited > TERMINATE_AFTER_S:
                self._process.terminate()
        return False

    def exit_reason(self) -> str:
        code = self._process.returncode
        if code < 0:
            return f"The {self._what} process was killed by signal {-code}."
        return f"The {self._what} process ended with exit code {code}; see the log."

    def send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(encode_line(message))
            self._process.stdin.flush()
        except (OSError, ValueError):
            return

    def kill(self) -> None:
        self._cancelled = True
        kill_group(self._process)

    def close(self) -> None:
        for thread in self._threads:
            thread.join()
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except OSError:
            return

    def _read_messages(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stream:
            for line in stream:
                self.receive(line)
        self._process.wait()
        self._wake()

    def _read_log(self) -> None:
        assert self._process.stderr is not None
        left_out = 0
        with self._process.stderr as stream:
            for line in stream:
                if self._messages.qsize() >= LOG_LINES_WAITING:
                    left_out += 1
                    continue
                if left_out:
                    self._log(f"({left_out} lines of output were left out here.)".encode())
                    left_out = 0
                self._log(line)
        if left_out:
            self._log(f"({left_out} lines of output were left out here.)".encode())
        self._wake()
