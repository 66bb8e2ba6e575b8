"""A process of its own for a PKCS#11 module, which may crash or hang: one question, one answer, as JSON lines.

Questions contain PINs: they are sent over standard input, never in arguments or the environment.
"""

from __future__ import annotations

import faulthandler
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self, TextIO

from labconsole.errors import UserError
from labconsole.processes import die_with_parent, group_options, kill_group, own_program
from labconsole.security.token.errors import TokenError


def ask(program: str, question: Mapping[str, Any], timeout_s: float, what: str) -> dict[str, Any]:
    """The answer of `python -m program`, which calls `answer`, to `question`.

    `what` names the module in messages.

    Raises:
        TokenError: the child refused (with its sentence), crashed, or gave no answer in `timeout_s`.
    """
    line = json.dumps({"parent_pid": os.getpid(), "last_s": 2 * timeout_s, "question": question}).encode() + b"\n"
    child = subprocess.Popen(
        own_program(program),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **group_options(),
    )
    with child:
        try:
            reply, complaints = child.communicate(line, timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            raise TokenError(
                f"{what} did not answer within {timeout_s:g} s: check its device or network, or name another module."
            ) from error
        finally:
            if child.poll() is None:
                kill_group(child)
    if child.returncode != 0 or not reply:
        raise TokenError(exit_description(what, child.returncode, complaints.decode(errors="replace")))
    return answer_in(reply)


def answer(respond: Callable[[dict[str, Any]], dict[str, Any]]) -> int:
    """The child's side: answer the question with `respond`, or with the sentence of the UserError that it raises.

    Output of the module goes to standard error. A process that hangs exits long after its parent stopped waiting: only
    Linux kills it with its parent. Returns the exit code.
    """
    with kept_output() as out:
        out.write(reply_to(sys.stdin.readline(), respond))
    return 0


def kept_output() -> TextIO:
    """The child's standard output, from now on for answers only: output of the module goes to standard error."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return out


def reply_to(line: str, respond: Callable[[dict[str, Any]], dict[str, Any]], *, exits_late: bool = True) -> str:
    """The child's reply to one line of JSON.

    With `exits_late` the process exits once the line's time is over, unless `faulthandler` cancels that before.
    """
    task = json.loads(line)
    die_with_parent(task["parent_pid"])
    if exits_late:
        faulthandler.dump_traceback_later(task["last_s"], exit=True)
    try:
        return json.dumps({"answer": respond(task["question"])})
    except UserError as refusal:
        return json.dumps({"refusal": str(refusal)})


def answer_in(reply: bytes) -> dict[str, Any]:
    """The child's answer in its reply. Raises TokenError: it refused, with its sentence."""
    content = json.loads(reply)
    if "refusal" in content:
        raise TokenError(content["refusal"])
    answered: dict[str, Any] = content["answer"]
    return answered


def exit_description(what: str, code: int, complaints: str) -> str:
    """The sentence for a process that crashed, with the last line of its standard error."""
    lines = complaints.strip().splitlines()
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    last = f", saying: {lines[-1]}" if lines else ""
    return f"{what} ended its process ({how}{last}): name another module, or ask its maker for a newer one."


_CLOSING_TIMEOUT_S = 10.0
_WATCH_S = 0.5
_COMPLAINT_BYTES = 4096


class Conversation:
    """Questions to one process, `python -m program`, which calls `answer_questions`; threads may share it.

    On Linux the child also exits with the thread that created this: keep that thread until `close`.
    """

    def __init__(self, program: str, timeout_s: float, what: str) -> None:
        """`what` names the module in messages; the child is killed if an answer takes longer than `timeout_s`."""
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
        self._closed = threading.Event()
        self._late = False
        self._deadline = math.inf
        """When the answer is late (`time.monotonic`)."""
        # One thread that looks now and then: a timer for each question would be a thread for each signature.
        self._watch = threading.Thread(target=self._end_when_late, name="module-watch", daemon=True)
        self._watch.start()

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """The child's answer to `question`.

        Raises:
            TokenError: the child refused (with its sentence), crashed, gave no answer in time, or has exited.
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
            self._closed.set()
            self._watch.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _exchange(self, task: dict[str, Any]) -> bytes:
        """The reply to one line; the child is killed if it takes too long. Raises TokenError."""
        assert self._child.stdin is not None and self._child.stdout is not None
        self._deadline = time.monotonic() + self._timeout_s
        try:
            self._child.stdin.write(json.dumps(task).encode() + b"\n")
            self._child.stdin.flush()
            line = bytes(self._child.stdout.readline())
        except BrokenPipeError:
            line = b""
        finally:
            self._deadline = math.inf
        if self._late:
            raise TokenError(
                f"{self._what} did not answer within {self._timeout_s:g} s: check its device or network, or name"
                " another module."
            )
        if not line.endswith(b"\n"):
            raise TokenError(exit_description(self._what, self._child.wait(), self._last_output()))
        return line

    def _end_when_late(self) -> None:
        """Kill the child once an answer is late."""
        while not self._closed.wait(min(_WATCH_S, self._timeout_s)):
            if time.monotonic() > self._deadline:
                self._late = True
                kill_group(self._child)
                return

    def _last_output(self) -> str:
        self._complaints.seek(0, os.SEEK_END)
        self._complaints.seek(max(0, self._complaints.tell() - _COMPLAINT_BYTES))
        return self._complaints.read().decode(errors="replace")


def answer_questions(respond: Callable[[dict[str, Any]], dict[str, Any]]) -> int:
    """The child's side: answer each question with `respond`, or with the sentence of the UserError that it raises.

    Exits when the questions end. Output of the module goes to standard error. One that hangs exits with its parent, or,
    where the kernel does not see to that, long after its parent stopped waiting. Returns the exit code.
    """
    exits_late = sys.platform != "linux"
    with kept_output() as out:
        for line in sys.stdin:
            reply = reply_to(line, respond, exits_late=exits_late)
            faulthandler.cancel_dump_traceback_later()
            out.write(f"{reply}\n")
            out.flush()
    return 0
