"""A command at a terminal of its own, as an operator has it: types answers, and keeps what is shown."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence

from tests.helpers.signals import interruptible

TIMEOUT_S = 60.0


class Terminal:
    """Starts `command` with a pseudo terminal for input and messages; standard output is a pipe."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._descriptor, child = os.openpty()
        self.shown = b""
        try:
            # A session of its own, so that the terminal of the tests is out of reach.
            with interruptible():
                self.process = subprocess.Popen(
                    command, stdin=child, stdout=subprocess.PIPE, stderr=child, env=environment, start_new_session=True
                )
        finally:
            os.close(child)

    def wait_for(self, question: str) -> None:
        """Wait until `question` is shown."""
        deadline = time.monotonic() + TIMEOUT_S
        while question.encode() not in self.shown:
            assert time.monotonic() < deadline and self.process.poll() is None, self.shown.decode()
            self.read(0.1)

    def answer(self, question: str, text: str) -> None:
        """Wait until `question` is shown, which comes when the echo is off, and type `text` and Enter."""
        self.wait_for(question)
        os.write(self._descriptor, f"{text}\n".encode())

    def read(self, patience_s: float = 0.0) -> None:
        """Read the output so far."""
        while select.select([self._descriptor], [], [], patience_s)[0]:
            try:
                data = os.read(self._descriptor, 65536)
            except OSError:  # the other end is closed
                return
            self.shown += data
            patience_s = 0.0

    def finish(self) -> tuple[int, bytes]:
        """Wait for the end: exit code and standard output."""
        deadline = time.monotonic() + TIMEOUT_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.shown.decode()
            self.read()
            time.sleep(0.05)
        out, _ = self.process.communicate()
        self.read()
        os.close(self._descriptor)
        return self.process.returncode, out
