"""Programs of the console that tests start are forked from a process that has imported them: real ones, in 20 ms.

Importing takes 0.4 to 2 s of CPU, and the suite starts hundreds. A forked program has parent, arguments, environment,
handles, session, signals and exit code as a started one; its command line and environment as `ps` shows them, its first
memory and its imports differ. Where these are tested, and in the nightly set, programs are started
(`started_programs`).
"""

from __future__ import annotations

import inspect
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from _thread import start_new_thread
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import psutil

from labconsole.processes import prctl
from tests.helpers import lasting_processes

_ROOT = str(Path(__file__).parents[2])
_MOUNTING = ["-m", "sh", "-c"]
"""The first arguments of `unshare` for a program with file systems of its own (`small_disk`)."""
_READ_AT_START = ("LD_", "MALLOC_", "GLIBC_", "OPENSSL_", "LC_", "LANG", "TZ", "PYTHON")
"""What begins the names of variables that a program reads when it starts, or libraries when they are loaded."""
_READ_LATER = frozenset(
    {
        "LANGUAGE",  # by gettext, for each text
        "PYTHONPATH",  # given to the forked program
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONPYCACHEPREFIX",
        "PYTHONUNBUFFERED",
        "PYTHON_KEYRING_BACKEND",
    }
)
_COUNTER = str(Path(__file__).parent / "counted_starts")
_PR_SET_CHILD_SUBREAPER = 36
_START_TOLERANCE_S = 0.02
_SIGNATURE = inspect.signature(subprocess.Popen._execute_child)  # type: ignore[attr-defined]


class ForkServer:
    """The way to a process that programs are forked from."""

    def __init__(self, requests: socket.socket, pid: int) -> None:
        self.pid = pid
        self._requests = requests

    @classmethod
    def start(cls) -> ForkServer:
        """Start one, which imports while this process does something else."""
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        with theirs:
            command = [sys.executable, "-P", "-m", "tests.helpers.forking_process", str(theirs.fileno())]
            handles = (
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, theirs.fileno(), theirs.fileno()),  # which lets the program have it
            )
            pid = os.posix_spawn(sys.executable, command, environment, file_actions=handles)
        return cls(mine, pid)

    def fork(self, request: Mapping[str, Any], handles: Sequence[int]) -> int:
        """Have a program forked, which becomes a child of this process; returns its id.

        A process whose parent has exited becomes a child of the nearest ancestor that adopts such ones, which this
        process does in the meantime.
        """
        began_s, before = time.clock_gettime(time.CLOCK_BOOTTIME), _children(os.getpid())
        with _adopting():
            socket.send_fds(self._requests, [json.dumps(request).encode()], handles)
            try:
                pid = int(self._requests.recv(20))
            except BaseException:  # of a test that took too long: a later request would get this one's answer
                self.close()
                if ForkingPopen.server is self:
                    ForkingPopen.server = None
                raise
        for other in _children(os.getpid()) - before - {pid}:
            if _is_adopted(other, began_s):
                ForkingPopen.adopted.add(other)
                start_new_thread(_wait_for, (other,))  # of which `threading` does not know: it belongs to no test
        return pid

    def close(self) -> None:
        """End the process; programs that were forked are children of this one, and go on."""
        self._requests.close()
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


@contextmanager
def _adopting() -> Iterator[None]:
    """Processes whose parent exits in the block become children of this one."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        prctl(_PR_SET_CHILD_SUBREAPER, 0)


def _is_adopted(child: int, began_s: float) -> bool:
    """Whether others have started this child, which appeared after `began_s` (since boot; start times have 10 ms).

    It is older, or has a session of its own, as a daemon has: `ForkingPopen` starts none meanwhile, and what another
    thread has started otherwise is in this session.
    """
    with suppress(FileNotFoundError, ProcessLookupError):
        fields = Path(f"/proc/{child}/stat").read_bytes().rpartition(b")")[2].split()
        older = int(fields[19]) / os.sysconf("SC_CLK_TCK") < began_s - _START_TOLERANCE_S
        return older or int(fields[3]) != os.getsid(0)
    return False


def _wait_for(child: int) -> None:
    """Wait for the end of a process that this one has adopted: no other code of this process does."""
    with suppress(ChildProcessError):
        os.waitpid(child, 0)


def _children(pid: int) -> set[int]:
    """The children of a process, of all its threads; none once it has ended."""
    if sys.platform != "linux":
        with suppress(psutil.NoSuchProcess):
            return {child.pid for child in psutil.Process(pid).children()}
        return set()
    found = set()
    with suppress(FileNotFoundError, ProcessLookupError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - twice a test: a Path for each takes ten times as long
            try:
                with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:  # noqa: PTH123
                    found.update(map(int, file.read().split()))
            except (FileNotFoundError, ProcessLookupError):
                return _children(pid)  # another thread has the children of the one that has just ended
    return found


class ForkingPopen(subprocess.Popen[Any]):
    """`subprocess.Popen` that has the console's programs forked."""

    server: ClassVar[ForkServer | None] = None
    """Started when a first program is to be forked."""
    forks: ClassVar[bool] = True
    adopted: ClassVar[set[int]] = set()
    """The ids of processes that others have started, and that became children of this one while it had one forked."""
    _turn = threading.RLock()
    """One process is forked or started at a time."""
    at_start: ClassVar[Mapping[str, str]] = {}
    """The environment of the process that programs are forked from."""

    def _execute_child(self, *arguments: Any) -> None:
        call = _SIGNATURE.bind(self, *arguments).arguments
        request = _request(call) if self.forks else None
        if request is None:
            with self._turn:
                super()._execute_child(*arguments)  # type: ignore[misc]
            return
        ends = [call[name] for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")]
        handles = [number if end == -1 else end for number, end in enumerate((ends[0], ends[3], ends[5]))]
        with self._turn:
            if ForkingPopen.server is None:
                ForkingPopen.server = ForkServer.start()
            self.pid = ForkingPopen.server.fork(request, handles)
        self._child_created = True
        self._close_pipe_fds(*ends)  # type: ignore[attr-defined]


def _request(call: Mapping[str, Any]) -> dict[str, Any] | None:
    """The request for what a call of Popen starts; None: it has to be started."""
    unusual = call["executable"], call["preexec_fn"], call["shell"], call["pass_fds"]
    if any(unusual) or not isinstance(call["args"], list | tuple):
        return None
    mount, (program, *words) = _without_mount([*map(str, call["args"])])
    options = [*itertools.takewhile(("-P", "-u").__contains__, words)]
    if program != sys.executable or words[len(options) : len(options) + 1] != ["-m"]:
        return None
    module, *rest = words[len(options) + 1 :]
    environment = dict(os.environ if call["env"] is None else call["env"])
    if not module.startswith(("labconsole.", "tests.")) or _starts_otherwise(environment):
        return None
    if rest[:1] == ["gui"]:  # Qt is not imported before a fork
        return None
    return {
        "mount": mount,
        "module": module,
        "options": options,
        "arguments": rest,
        "environment": environment,
        "directory": os.fspath(call["cwd"] or Path.cwd()),
        "session": call["start_new_session"],
        "ignored": [number for number in signal.valid_signals() if signal.getsignal(number) is signal.SIG_IGN],
        "cores": [*os.sched_getaffinity(0)],
        "scheduler": os.sched_getscheduler(0),
        "priority": os.getpriority(os.PRIO_PROCESS, threading.get_native_id()),
    }


def _without_mount(command: list[str]) -> tuple[list[str], list[str]]:
    """The command that mounts the file systems which a program alone has, and the program; each may be empty."""
    name, *arguments = command
    if Path(name).name != "unshare" or arguments[:3] != _MOUNTING or sys.executable not in arguments:
        return [], command
    first = arguments.index(sys.executable)
    return [*arguments[1:first], "true"], arguments[first:]


def _starts_otherwise(environment: Mapping[str, str]) -> bool:
    """Whether a program with this environment would start in another way than those that are forked."""
    names = {name for name in {*environment, *os.environ} if name.startswith(_READ_AT_START)} - _READ_LATER
    if any(environment.get(name) != ForkingPopen.at_start.get(name) for name in names):
        return True
    paths = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path not in ("", _COUNTER, _ROOT)]
    return any(Path(path, name).exists() for path in paths for name in ("sitecustomize.py", "labconsole"))


def runs(process: psutil.Process, module: str) -> bool:
    """Whether a process, forked or started, runs this module of the console."""
    return module in process.cmdline() or process.name() == module.rpartition(".")[2][:15]


def own_children() -> set[int]:
    """The ids of all processes below this one.

    Not that which programs are forked from, what lasting ones start, and what this one has adopted.
    """
    found, parents = set[int](), {os.getpid()}
    while parents:
        children = set[int]().union(*map(_children, parents)) - found
        found |= children
        parents = children - lasting_processes.PIDS
    return found - ForkingPopen.adopted - ({ForkingPopen.server.pid} if ForkingPopen.server else set())


@contextmanager
def programs_forked() -> Iterator[None]:
    """Programs of the console that this process starts in the block are forked, where the system can (Linux)."""
    if sys.platform != "linux":
        yield
        return
    started, ForkingPopen.at_start = subprocess.Popen, dict(os.environ)
    subprocess.Popen = ForkingPopen  # type: ignore[misc]
    try:
        yield
    finally:
        subprocess.Popen = started  # type: ignore[misc]
        if ForkingPopen.server is not None:
            ForkingPopen.server.close()
            ForkingPopen.server = None


@contextmanager
def programs_started() -> Iterator[None]:
    """Programs of the console are started in the block."""
    before, ForkingPopen.forks = ForkingPopen.forks, False
    try:
        yield
    finally:
        ForkingPopen.forks = before
