"""Processes: the console's own programs, children that end with their parent, groups, and owners that are alive."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess  # imported late: a role's process does not need it

_PR_SET_PDEATHSIG, _PR_SET_TIMERSLACK = 1, 29
_START_TOLERANCE_S = 0.02
_STEPS_BEHIND = 5
"""Of nice values: a third of the processor time of others that compete for a core."""


@dataclass(frozen=True)
class Owner:
    """The process that owns a live run: it is dead once no process has this pid, start time and boot id."""

    pid: int
    started: float
    boot_id: str


@dataclass(frozen=True)
class Console:
    """A console as an operator finds it: the host and the process id."""

    host: str
    pid: int


def own_program(module: str, *arguments: str) -> list[str]:
    """Return the command line of `python -m module` with these arguments.

    `-P` keeps the current directory off the import path: these processes hold passphrases and PINs, and a `numpy.py` in
    a directory where the console was started must not be executed in them.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def die_with_parent(parent_pid: int) -> None:
    """Let the kernel kill this process when its parent ends (Linux; elsewhere end of standard input does it).

    `parent_pid` is the process that started this one: if that has exited already, this process exits at once.
    """
    if sys.platform != "linux":
        return
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        os._exit(1)


def work_behind_others() -> None:
    """Let the scheduler prefer other work to this thread's (Linux; elsewhere a priority is that of a whole process)."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, min(19, os.getpriority(os.PRIO_PROCESS, thread) + _STEPS_BEHIND))


def work_when_idle() -> None:
    """Let this thread work while a core has nothing else to do, and hardly else (Linux, for good; elsewhere nothing
    changes)."""
    if sys.platform == "linux":
        try:
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        except OSError:  # a container may forbid it
            work_behind_others()


def own_cores() -> frozenset[int]:
    """The cores on which this thread may run (Linux; elsewhere none are known)."""
    return frozenset(os.sched_getaffinity(0)) if sys.platform == "linux" else frozenset()


def stay_on(cores: Collection[int]) -> None:
    """Let this thread, and threads that it starts, run on some of `own_cores` only; with none given nothing changes."""
    if cores and sys.platform == "linux":
        with suppress(OSError):  # a container may forbid it, or have lost a core: it works on others then
            os.sched_setaffinity(0, cores)


def wait_exactly() -> None:
    """Let the waits of this thread, and of threads that it starts, end as they are due (Linux; 50 us later else)."""
    if sys.platform == "linux":
        prctl(_PR_SET_TIMERSLACK, 1)


def prctl(option: int, value: int | bytes) -> None:
    """Set an attribute of this process or thread (Linux, prctl(2))."""
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def group_options() -> dict[str, Any]:
    """Options for `subprocess.Popen` that make the child the leader of a process group of its own."""
    if sys.platform == "win32":
        import subprocess

        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}


def kill_group(leader: subprocess.Popen[bytes]) -> None:
    """Kill the process group of `leader` and every process below it that is left.

    Once the leader was reaped, at most once: later its number may be another group's.
    """
    if sys.platform == "win32":
        leader.kill()  # its job object takes the children along
        return
    try:
        os.killpg(leader.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # the group is empty; macOS raises the second for a group of zombies


def create_child_job() -> object | None:
    """On Windows put this process into a job that kills all its children with it; keep the result alive."""
    if sys.platform == "win32":
        return _KillOnCloseJob()
    return None


def boot_id() -> str:
    """An id of this boot of the machine; empty where start times of processes differ between boots anyway."""
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text().strip() if path.exists() else ""


def this_process() -> Owner:
    """The identity of this process, as stored with a run."""
    found = find_process(os.getpid())
    assert found is not None
    return found


def find_process(pid: int) -> Owner | None:
    """The identity of the process `pid`, by which `is_alive` recognises it; None if there is none or it is a zombie."""
    started = _started(pid)
    return None if started is None else Owner(pid, started, boot_id())


def is_alive(owner: Owner) -> bool:
    """Whether the process that `owner` names still runs (same pid, start time and boot)."""
    if owner.boot_id != boot_id():
        return False
    started = _started(owner.pid)
    return started is not None and abs(started - owner.started) < _START_TOLERANCE_S


def parent_of(pid: int) -> int:
    """The process that started `pid`; `pid` itself where that is no longer known."""
    import psutil

    try:
        return psutil.Process(pid).ppid()
    except psutil.Error:
        return pid


def _started(pid: int) -> float | None:
    """When the process `pid` began, None if there is none or it is a zombie.

    On Linux in seconds since boot, which a step of the wall clock does not move; elsewhere in Unix time.
    """
    if sys.platform == "linux":
        try:
            stat = Path(f"/proc/{pid}/stat").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            return None
        state, *fields = stat.rpartition(b")")[2].split()  # the name before it may hold spaces and parentheses
        return None if state in (b"Z", b"X") else int(fields[18]) / os.sysconf("SC_CLK_TCK")
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.NoSuchProcess:
        return None


if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    _EXTENDED_LIMIT_INFORMATION = 9
    _KILL_ON_JOB_CLOSE = 0x2000

    class _BasicLimits(ctypes.Structure):
        _fields_ = (
            ("PerProcessUserTimeLimit", wintypes.LARGE_INTEGER),
            ("PerJobUserTimeLimit", wintypes.LARGE_INTEGER),
            ("LimitFlags", wintypes.DWORD),
            ("MinimumWorkingSetSize", ctypes.c_size_t),
            ("MaximumWorkingSetSize", ctypes.c_size_t),
            ("ActiveProcessLimit", wintypes.DWORD),
            ("Affinity", ctypes.c_size_t),
            ("PriorityClass", wintypes.DWORD),
            ("SchedulingClass", wintypes.DWORD),
        )

    class _ExtendedLimits(ctypes.Structure):
        _fields_ = (
            ("BasicLimitInformation", _BasicLimits),
            ("IoInfo", ctypes.c_ulonglong * 6),
            ("ProcessMemoryLimit", ctypes.c_size_t),
            ("JobMemoryLimit", ctypes.c_size_t),
            ("PeakProcessMemoryUsed", ctypes.c_size_t),
            ("PeakJobMemoryUsed", ctypes.c_size_t),
        )

    class _KillOnCloseJob:
        """Holds the job's only handle: when this process ends, Windows closes it and kills all its members."""

        def __init__(self) -> None:
            kernel = ctypes.WinDLL("kernel32", use_last_error=True)
            kernel.CreateJobObjectW.restype = wintypes.HANDLE
            kernel.GetCurrentProcess.restype = wintypes.HANDLE
            self._handle = wintypes.HANDLE(kernel.CreateJobObjectW(None, None))
            limits = _ExtendedLimits()
            limits.BasicLimitInformation.LimitFlags = _KILL_ON_JOB_CLOSE
            done = kernel.SetInformationJobObject(
                self._handle, _EXTENDED_LIMIT_INFORMATION, ctypes.byref(limits), ctypes.sizeof(limits)
            ) and kernel.AssignProcessToJobObject(self._handle, wintypes.HANDLE(kernel.GetCurrentProcess()))
            if not done:
                raise ctypes.WinError(ctypes.get_last_error())
