"""No orphans: a child process ends with its parent, and whole groups can be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil

from labconsole.store.records import Owner

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent_pid: int) -> None:
    """Let the kernel kill this process when its parent ends (Linux; elsewhere end of standard input does it).

    `parent_pid` is who started us: if it is gone already, this process ends at once.
    """
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent_pid:
        os._exit(1)


def group_options() -> dict[str, Any]:
    """Options for `subprocess.Popen` that make the child the leader of a process group of its own."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}


def kill_group(leader: subprocess.Popen[bytes]) -> None:
    """Kill the process group of `leader` and every process below it that is left."""
    if sys.platform == "win32":
        leader.kill()  # its job object takes the children along
        return
    try:
        os.killpg(leader.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def hold_children() -> object | None:
    """On Windows put this process into a job that kills all its children with it; keep the result alive."""
    if sys.platform == "win32":
        from labconsole.engine.windows_job import KillOnCloseJob

        return KillOnCloseJob()
    return None


def boot_id() -> str:
    """What tells one boot of this machine from another."""
    path = Path("/proc/sys/kernel/random/boot_id")
    if path.exists():
        return path.read_text().strip()
    return str(int(psutil.boot_time()))


def this_process() -> Owner:
    """The identity of this process, as stored with a run."""
    return Owner(os.getpid(), psutil.Process().create_time(), boot_id())


def is_alive(owner: Owner) -> bool:
    """Whether the process that `owner` names still runs (same pid, start time and boot)."""
    if owner.boot_id != boot_id():
        return False
    try:
        process = psutil.Process(owner.pid)
        return abs(process.create_time() - owner.started) < 0.02 and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
