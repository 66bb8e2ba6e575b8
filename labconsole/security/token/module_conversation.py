"""A process of its own for a PKCS#11 module that stays: one question after the other, as JSON lines.

Like `module_process`, for a child that holds a token open. Questions hold PINs: they travel over standard input.
"""

from __future__ import annotations

import faulthandler
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from labconsole.processes import group_options, kill_group, own_program
from labconsole.security.token.errors import TokenError
from labconsole.security.token.module_process import answer_in, how_it_ended, kept_output, reply_to

_CLOSING_TIMEOUT_S = 10.0
_COMPLAINT_BYTES = 4096


class Conversation:
    """Questions to `python -m program`, which calls `converse`. Threads may share it; each waits for its turn.

    On Linux the child also ends with the thread that made this: that one stays until `close`.
    """

    def __init__(self, program: str, timeout_s: float, what: str) -> None:
        """`what` names the module in messages; an answer that takes longer than `timeout_s` ends the child."""
        self._timeout_s = timeout_s
        self._what = what
        self._lock = threading.Lock()
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._child = subprocess.Popen(
            own_program(program),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            **group_options(),
        )
        self._open = True

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """The child's answer to `question`.

        Raises:
            TokenError: the child refused (with its sentence), crashed, gave no answer in time, or was ended before.
        """
        with self._lock:
            if not self._open:
                raise TokenError(f"{self._what} is closed: open its key again.")
            line = self._exchange({"parent_pid": os.getpid(), "last_s": 2 * self._timeout_s, "question": question})
        return answer_in(line)

    def close(self) -> None:
        """End the child, which closes its token. Twice does nothing."""
        with self._lock:
            if not self._open:
                return
            self._open = False
            assert self._child.stdin is not None and self._child.stdout is not None
            try:
                self._child.stdin.close()
                self._child.wait(_CLOSING_TIMEOUT_S)
            except (subprocess.TimeoutExpired, BrokenPipeError):
                kill_group(self._child)
                self._child.wait()
            self._child.stdout.close()
            self._complaints.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _exchange(self, task: dict[str, Any]) -> bytes:
        """Send one line, wait for one; who takes too long is ended. Raises TokenError."""
        assert self._child.stdin is not None and self._child.stdout is not None
        late = threading.Event()

        def end() -> None:
            late.set()
            kill_group(self._child)

        timer = threading.Timer(self._timeout_s, end)
        timer.start()
        try:
            self._child.stdin.write(json.dumps(task).encode() + b"\n")
            self._child.stdin.flush()
            line = bytes(self._child.stdout.readline())
        except BrokenPipeError:
            line = b""
        finally:
            timer.cancel()
            timer.join()
        if late.is_set():
            raise TokenError(
                f"{self._what} did not answer within {self._timeout_s:g} s: check its device or network, or name"
                " another module."
            )
        if not line.endswith(b"\n"):
            raise TokenError(how_it_ended(self._what, self._child.wait(), self._last_words()))
        return line

    def _last_words(self) -> str:
        self._complaints.seek(0, os.SEEK_END)
        self._complaints.seek(max(0, self._complaints.tell() - _COMPLAINT_BYTES))
        return self._complaints.read().decode(errors="replace")


def converse(respond: Callable[[dict[str, Any]], dict[str, Any]]) -> int:
    """The child's side: answer each question with `respond`, or with the sentence of the UserError that it raises.

    Ends when nobody asks any more. What the module prints goes to standard error. Returns the exit code.
    """
    with kept_output() as out:
        for line in sys.stdin:
            reply = reply_to(line, respond)
            faulthandler.cancel_dump_traceback_later()
            out.write(f"{reply}\n")
            out.flush()
    return 0
