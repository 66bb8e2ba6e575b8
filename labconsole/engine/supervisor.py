"""The console's side of a worker process: start it, hear it, and end it by a ladder: message, terminate, kill."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from typing import Any

from labconsole.engine.channel import LIVE
from labconsole.engine.containment import group_options, kill_group
from labconsole.engine.protocol import LiveFrame, encode_line

TERMINATE_AFTER_S = 8.0
KILL_AFTER_S = 10.0


class WorkerProcess:
    """A worker process and what it says. `wake` is called from reader threads whenever there is something to take."""

    def __init__(self, task: Mapping[str, Any], wake: Callable[[], None]) -> None:
        self._wake = wake
        self._messages: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._frame: LiveFrame | None = None
        self._cancelled_at: float | None = None
        self._process = subprocess.Popen(
            [sys.executable, "-m", "labconsole.engine.worker"],
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
        self.send({**task, "parent_pid": os.getpid()})

    @property
    def pid(self) -> int:
        """Process id of the worker, and of its process group."""
        return self._process.pid

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancelled_at is not None

    @property
    def ended(self) -> bool:
        """Whether the process is gone and all it said can be taken."""
        return self._process.poll() is not None and not any(thread.is_alive() for thread in self._threads)

    def how_it_ended(self) -> str:
        """One sentence on the end of a process that said nothing about it."""
        code = self._process.returncode
        if code < 0:
            return f"The worker process was killed by signal {-code}."
        return f"The worker process ended with exit code {code}; the log tells more."

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message; one that comes too late is dropped."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(encode_line(message))
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            return

    def cancel(self) -> None:
        """Ask the worker to end; `climb` does the rest of the ladder."""
        if self._cancelled_at is None:
            self._cancelled_at = time.monotonic()
            self.send({"t": "cancel"})

    def climb(self) -> None:
        """Take the next step of the cancel ladder when it is due."""
        if self._cancelled_at is None or self._process.poll() is not None:
            return
        waited = time.monotonic() - self._cancelled_at
        if waited > KILL_AFTER_S:
            kill_group(self._process)
        elif waited > TERMINATE_AFTER_S:
            self._process.terminate()

    def take_messages(self) -> list[dict[str, Any]]:
        """What the worker said since the last call, in order; stray output comes as `{"t": "log", "line": ..}`."""
        messages: list[dict[str, Any]] = []
        try:
            while True:
                messages.append(self._messages.get_nowait())
        except Empty:
            return messages

    def take_frame(self) -> LiveFrame | None:
        """The newest live frame, once."""
        frame, self._frame = self._frame, None
        return frame

    def close(self) -> None:
        """Release a process that has ended, and whatever is left of its group."""
        kill_group(self._process)
        self._process.wait()
        for thread in self._threads:
            thread.join()
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            return

    def _read_messages(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stream:
            for line in stream:
                message = json.loads(line)
                if message["t"] == LIVE:
                    self._frame = LiveFrame.from_json(message)
                else:
                    self._messages.put(message)
                self._wake()
        self._process.wait()
        self._wake()

    def _read_log(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as stream:
            for line in stream:
                self._messages.put({"t": "log", "line": line.decode(errors="replace").rstrip()})
                self._wake()
        self._wake()
