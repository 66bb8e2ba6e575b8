"""The process that commands of the console are forked from: `forked_console` starts it, and requests them."""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import signal
import socket
import sys
import threading
from contextlib import suppress
from importlib import import_module, invalidate_caches
from types import FrameType
from typing import Any

from labconsole.clock import SHIFT_VARIABLE

MESSAGE_BYTES = 200_000
"""The most of a request: its environment is in it."""
_IMPORTED = (
    "labconsole.cli.arguments",
    "labconsole.cli.main",
    "labconsole.cli.operation_command",
    "labconsole.hosts.serving",
    "labconsole.operations.agent",
    "labconsole.operations.hosts",
)


class _Forks:
    """Forks processes on request, and reports their exits."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._exits: dict[int, int] = {}
        """Where the exit code of a process is written, by its id."""
        self._woken, wakes = socket.socketpair()
        for one in (self._woken, wakes):
            one.setblocking(False)
        self._wakes = wakes
        signal.signal(signal.SIGCHLD, _note)
        signal.set_wakeup_fd(wakes.fileno())

    def next_command(self) -> list[str] | None:
        """The arguments of a command, in its process; None: in this one, once no more are requested."""
        while True:
            readable, _, _ = select.select([self._requests, self._woken], [], [])
            if self._woken in readable:
                self._woken.recv(1000)
                self._report()
            if self._requests in readable:
                message, handles, _, _ = socket.recv_fds(self._requests, MESSAGE_BYTES, 2)
                if not message:
                    return self._end()
                request = json.loads(message)
                assert threading.active_count() == 1, "a forked process would have one of them"
                pid = os.fork()
                if not pid:
                    self._enter(request, *handles)
                    return list(request["arguments"])
                os.close(handles[0])
                self._exits[pid] = handles[1]
                self._requests.send(str(pid).encode())

    def _report(self) -> None:
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = found
                with suppress(BrokenPipeError):
                    os.write(self._exits[pid], str(os.waitstatus_to_exitcode(status)).encode())
                os.close(self._exits.pop(pid))

    def _end(self) -> None:
        for pid in self._exits:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)

    def _enter(self, request: dict[str, Any], output: int, exits: int) -> None:
        """Become the process of a command."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.setsid()
        for handle in (1, 2):
            os.dup2(output, handle)
        for handle in (output, exits, *self._exits.values()):
            os.close(handle)
        for end in (self._requests, self._woken, self._wakes):
            end.close()
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(request["directory"])
        paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        sys.path[:0] = [path for path in paths if path and path not in sys.path]
        invalidate_caches()
        if os.environ.get(SHIFT_VARIABLE):  # which the module of the clock has read when it was imported
            for module in [name for name in sys.modules if name.partition(".")[0] == "labconsole"]:
                del sys.modules[module]
        if request["threads"]:
            _work_in_threads()


def _work_in_threads() -> None:
    """Runs and operations of this process are threads of it."""
    from labconsole.engine.operation_process import OperationProcess
    from labconsole.engine.queue import RunQueue
    from tests.helpers.worker_threads import OperationThread, WorkerThread

    RunQueue.worker = WorkerThread
    OperationProcess.worker = OperationThread


def _note(_number: int, _frame: FrameType | None) -> None:
    """A child has exited: the loop is woken."""


class _Exit:
    """Exits with `code` once all other exit handlers have run.

    Taking the interpreter apart would copy the pages of all that was imported, and costs 0.07 s of CPU a command.
    """

    code: int | None = None

    def __call__(self) -> None:
        """The exit handler: it is to be registered as the first."""
        if self.code is not None:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self.code)


def _serve() -> int:
    atexit.register(leave := _Exit())
    for module in _IMPORTED:
        import_module(module)
    gc.collect()
    gc.freeze()
    forks = _Forks(socket.socket(fileno=int(sys.argv[1])))
    arguments = forks.next_command()
    if arguments is None:
        return 0
    from labconsole.cli.main import main

    sys.argv[1:] = arguments
    leave.code = main()
    return leave.code


if __name__ == "__main__":
    raise SystemExit(_serve())
