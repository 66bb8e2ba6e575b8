"""The process that the console's programs are forked from: it has imported them; `forked_programs` requests them."""

from __future__ import annotations

import atexit
import ctypes
import gc
import io
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from importlib import import_module, invalidate_caches
from typing import Any

from labconsole.clock import AHEAD_VARIABLE, SHIFT_VARIABLE
from labconsole.processes import prctl
from tests.helpers.forked_programs import ForkingPopen, ForkServer

MESSAGE_BYTES = 200_000
"""The most of a request: its environment is in it."""
_PACKAGES = ("labconsole", "labconsole_amqp", "labconsole_certificates", "labconsole_keypool", "labconsole_v2x")
_FEW_NEED = ("labconsole.output.report.signing",)
"""Modules that few programs import, 0.9 s of CPU for each process that programs are forked from."""
_STARTS_NONE = frozenset({"labconsole.engine.role", "labconsole.security.os_keyring"})
"""Programs that start none of the console's: they need no process to fork from."""
_PR_SET_NAME = 15
_CLONE_NEWNS = 0x20000
_INSTALLED = (*sys.path,)
"""Of this process, which is started without PYTHONPATH."""


class _Exit:
    """Exits with `code` once all other exit handlers have run.

    Taking the interpreter apart would copy the pages of all that was imported, and costs 0.07 s of CPU a program.
    """

    def __init__(self) -> None:
        self.code: int | None = None
        self.server: ForkServer | None = None

    def __call__(self) -> None:
        """The exit handler: it is to be registered as the first."""
        if self.server is not None:
            self.server.close()
        if self.code is not None:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self.code)


def _next_program(requests: socket.socket) -> tuple[dict[str, Any], Sequence[int]] | None:
    """Fork a program for each request. Returns the request in its process; None: no more are requested.

    Its parent exits, so that the process which requested it becomes its parent (`ForkServer.fork`). It reports its id
    itself, once a signal finds it as one that was started.
    """
    while True:
        message, handles, _, _ = socket.recv_fds(requests, MESSAGE_BYTES, 3)
        if not message:
            return None
        assert threading.active_count() == 1, "a forked process would have one of them"
        parent = os.fork()
        if not parent:
            parent = os.getpid()
            if os.fork():
                os._exit(0)
            while os.getppid() == parent:
                time.sleep(0.0002)
            return json.loads(message), handles
        for handle in handles:
            os.close(handle)
        os.waitpid(parent, 0)


def _own_server() -> tuple[socket.socket, ForkServer | None]:
    """A process like this one, for what the program starts: in it, where requests come from; else the way to it."""
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid:
        theirs.close()
        return mine, ForkServer(mine, pid)
    mine.close()
    return theirs, None


def _mount(command: Sequence[str]) -> None:
    """Have file systems that no other process sees, as `unshare -m` does."""
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "no namespace for file systems")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(command, check=True)


def _become(request: dict[str, Any], handles: Sequence[int]) -> None:
    """Take the standard handles, the environment and the rest of what a started program has from its parent."""
    for number, handle in enumerate(handles):
        os.dup2(handle, number)
    for handle in handles:
        os.close(handle)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in request["ignored"]:
        signal.signal(number, signal.SIG_IGN)
    os.sched_setscheduler(0, request["scheduler"], os.sched_param(0))
    os.setpriority(os.PRIO_PROCESS, 0, request["priority"])
    os.sched_setaffinity(0, request["cores"])
    os.chdir(request["directory"])
    prctl(_PR_SET_NAME, request["module"].rpartition(".")[2].encode())
    _set_streams(unbuffered="-u" in request["options"])
    _set_path(request)
    if request["environment"].keys() & {SHIFT_VARIABLE, AHEAD_VARIABLE}:  # which the clock has read at its import
        for module in [name for name in sys.modules if name.partition(".")[0] in _PACKAGES]:
            del sys.modules[module]
    # As where it is the first to be imported, so that its classes are those of `__main__` and not of another copy.
    sys.modules.pop(request["module"], None)


def _set_streams(*, unbuffered: bool) -> None:
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    for number, name, errors in ((1, "stdout", "strict"), (2, "stderr", "backslashreplace")):
        raw = open(number, "wb", buffering=0 if unbuffered else -1, closefd=False)  # noqa: SIM115 - as long as the process
        by_line = name == "stderr" or os.isatty(number)
        text = io.TextIOWrapper(raw, "utf-8", errors, line_buffering=by_line, write_through=unbuffered)
        setattr(sys, name, text)
        setattr(sys, f"__{name}__", text)


def _set_path(request: dict[str, Any]) -> None:
    os.environ.clear()
    os.environ.update(request["environment"])
    first = [] if "-P" in request["options"] else [request["directory"]]
    named = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:] = [*first, *named, *_INSTALLED]
    sys.argv[:] = [request["module"], *request["arguments"]]
    sys.orig_argv[:] = [sys.executable, *request["options"], "-m", *sys.argv]
    invalidate_caches()


def _import_all() -> None:
    """Import all that programs of the console may need: no window's part, and nothing that a start would do."""
    for package in map(import_module, _PACKAGES):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".panel" not in module.name and module.name not in _FEW_NEED:
                import_module(module.name)


def _serve() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    atexit.register(leave := _Exit())
    ForkingPopen.at_start = dict(os.environ)
    _import_all()
    gc.collect()
    gc.freeze()
    requests = socket.socket(fileno=int(sys.argv[1]))
    while True:
        program = _next_program(requests)
        if program is None:
            os._exit(0)
        request, handles = program
        if request["session"]:
            os.setsid()
        if request["mount"]:
            _mount(request["mount"])
        if request["module"] not in _STARTS_NONE:
            own_requests, leave.server = _own_server()
            if leave.server is None:
                for handle in (*handles, requests.detach()):
                    os.close(handle)
                requests = own_requests
                continue
            ForkingPopen.server, subprocess.Popen = leave.server, ForkingPopen  # type: ignore[misc]
        _become(request, handles)
        requests.send(str(os.getpid()).encode())
        requests.close()
        try:
            runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
            leave.code = 0
        except SystemExit as end:
            if end.code is not None and not isinstance(end.code, int):
                raise
            leave.code = end.code or 0
        return


if __name__ == "__main__":
    _serve()
