"""Commands of the console as processes that are forked from one that has imported what they need.

An agent imports Dask for 2 s of CPU, and a series of tests starts dozens. A forked one differs from one of the terminal
in its imports and its command line alone: it has its own environment, session, signals, output, and exit code.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]


class ForkedProcess:
    """A forked process, to be used as `subprocess.Popen`; `stdout` has its errors, too."""

    def __init__(self, pid: int, output: int, exited: int, arguments: Sequence[str]) -> None:
        self.pid = pid
        self.args = [*arguments]
        self.stdout = open(output, encoding="utf-8")  # noqa: SIM115 - closed by its reader, as that of Popen
        self.returncode: int | None = None
        self._exited = exited

    def poll(self) -> int | None:
        """Its exit code; None: it is running."""
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, waited for. Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._exited], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            self.returncode = int(os.read(self._exited, 100))
            os.close(self._exited)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal unless it has exited."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to exit."""
        self.send_signal(signal.SIGTERM)


class ForkedConsole:
    """The process that others are forked from."""

    def __init__(self) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.helpers.forking_process", str(theirs.fileno())],
                cwd=_ROOT,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def start(self, arguments: Sequence[str], environment: Mapping[str, str], *, threads: bool) -> ForkedProcess:
        """Start `labconsole ARGUMENTS` with this environment, in a session of its own.

        `threads`: its runs and operations are threads of it.
        """
        (output, its_output), (exited, exits) = os.pipe(), os.pipe()
        request = {
            "arguments": [*arguments],
            "environment": dict(environment),
            "directory": str(Path.cwd()),
            "threads": threads,
        }
        try:
            socket.send_fds(self._requests, [json.dumps(request).encode()], [its_output, exits])
            pid = int(self._requests.recv(20))
        finally:
            os.close(its_output)
            os.close(exits)
        return ForkedProcess(pid, output, exited, arguments)

    def close(self) -> None:
        """End it, and those of its processes that are running."""
        self._requests.close()
        self._process.wait(60)


_current: ForkedConsole | None = None


def forked(arguments: Sequence[str], environment: Mapping[str, str], *, threads: bool = False) -> ForkedProcess | None:
    """Start a command of the console so; None: the tests do not use `forked_console`, or this system cannot fork."""
    return None if _current is None else _current.start(arguments, environment, threads=threads)


@contextmanager
def _forking() -> Iterator[None]:
    global _current
    with closing(ForkedConsole()) as _current:
        yield
        _current = None


@pytest.fixture(scope="session")
def forking(compiled_once: None, folder_resources: ExitStack) -> Callable[[], None]:
    """Lets commands that tests of this folder start from now on be forked, where the system can."""

    def start() -> None:
        if _current is None and hasattr(os, "fork"):
            folder_resources.enter_context(_forking())

    return start


@pytest.fixture(scope="module")
def forked_console(forking: Callable[[], None]) -> None:
    """Commands that tests of this module, and later ones of its folder, start are forked."""
    forking()
