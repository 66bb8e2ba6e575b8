"""Resources of every process of a run: CPU and memory, as live values and as the series `resources`."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Final

import psutil

from labconsole.clock import now_ns
from labconsole.engine.protocol import Usage
from labconsole.engine.spool import SpoolSeriesWriter, SpoolWriter
from labconsole.model.series import MACHINE, RESOURCES


class UsageMeter:
    """Reads CPU and memory of processes by name; a process that exited is dropped."""

    def __init__(self, spool: SpoolWriter, clock: Callable[[], int] = now_ns) -> None:
        """`clock` gives the times of the readings."""
        self._spool = spool
        self._clock = clock
        self._processes: dict[str, psutil.Process] = {}
        self._writers: dict[str, SpoolSeriesWriter] = {}
        self.latest: dict[str, Usage] = {}

    def watch(self, name: str, pid: int) -> None:
        """Start to measure a process; its first reading covers the time from now on. May be called on any thread."""
        try:
            process = psutil.Process(pid)
            process.cpu_percent(None)
        except psutil.NoSuchProcess:
            return  # it has ended already: nothing to measure
        self._processes[name] = process

    def read(self) -> None:
        """Take one reading of every process and write it."""
        latest: dict[str, Usage] = {}
        for name, process in list(self._processes.items()):
            try:
                with process.oneshot():
                    usage = Usage(process.cpu_percent(None), process.memory_info().rss)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                usage = None
            if usage is None or not usage.rss:  # one that is exiting has no memory left: not a reading
                del self._processes[name]
                continue
            latest[name] = usage
            writer = self._writers.get(name)
            if writer is None:
                writer = self._writers[name] = SpoolSeriesWriter(self._spool, name, RESOURCES)
            writer.extend(t_ns=[self._clock()], cpu=[usage.cpu], rss=[usage.rss])
            writer.flush()
        self.latest = latest


INTERVAL_S: Final = 0.1
_WRITTEN_EVERY: Final = 5
_NOT_BUSY: Final = frozenset({"idle", "iowait", "steal"})
_COUNTED_TWICE: Final = frozenset({"guest", "guest_nice"})
"""Linux has them in user time, too."""


class MachineMeter:
    """Reads the CPU time of all cores and of the run's own processes; one that ended keeps its last reading.

    Nothing is recorded where the system has no such times (and on Windows, where a process of a virtual environment
    works in a child process that is unknown here): then no figure is marked as disturbed.
    """

    def __init__(self, spool: SpoolWriter, clock: Callable[[], int] = now_ns, role: str = "worker") -> None:
        """`clock` gives the times of the readings, `role` says which computer it is: as `MACHINE`."""
        self._spool = spool
        self._clock = clock
        self._role = role
        self._writer: SpoolSeriesWriter | None = None
        self._works = os.name != "nt"
        self._processes: dict[int, psutil.Process] = {}
        self._own_s: dict[int, float] = {}
        """CPU seconds of each, since it was watched."""
        self._before_s: dict[int, float] = {}
        self._turn = threading.Lock()
        self._begin: dict[str, float] = {}
        self._readings = 0

    def watch(self, pid: int) -> None:
        """Count a process as the run's own. May be called on any thread."""
        try:
            process = psutil.Process(pid)
            before_s = _spent(process)
        except psutil.Error:
            return  # it has ended already
        with self._turn:
            self._processes[pid], self._before_s[pid] = process, before_s

    def watch_children(self) -> None:
        """Count what the run's processes have started as its own, too: a process with a PKCS#11 module, say.

        Takes some ms.
        """
        for process in psutil.Process().children(recursive=True):
            if process.pid not in self._processes:
                self.watch(process.pid)

    def read(self) -> None:
        """Take one reading and write it."""
        with self._turn:
            if not self._works:
                return
            try:
                now = {**_computer(), "own": self._own()}
            except OSError:
                self._works = False
                return
            if self._writer is None:
                self._writer, self._begin = SpoolSeriesWriter(self._spool, self._role, MACHINE), now
            since = {f"{name}_ns": [round((value - self._begin[name]) * 1e9)] for name, value in now.items()}
            self._writer.extend(t_ns=[self._clock()], **since)
            self._readings += 1
            if self._readings % _WRITTEN_EVERY == 0:
                self._writer.flush()

    def flush(self) -> None:
        """Write the last reading."""
        with self._turn:
            if self._writer is not None:
                self._writer.flush()

    def _own(self) -> float:
        """CPU seconds of all processes of the run since each was watched."""
        for pid, process in list(self._processes.items()):
            try:
                self._own_s[pid] = _spent(process) - self._before_s[pid]
            except psutil.Error:
                del self._processes[pid]
        return sum(self._own_s.values())


def _spent(process: psutil.Process) -> float:
    """CPU seconds of a process. Raises psutil.Error."""
    times = process.cpu_times()
    return float(times.user + times.system)


def _computer() -> dict[str, float]:
    """Seconds of all cores since the computer's start: all, busy, and given to others by a hypervisor."""
    times = {name: seconds for name, seconds in psutil.cpu_times()._asdict().items() if name not in _COUNTED_TWICE}
    busy = sum(seconds for name, seconds in times.items() if name not in _NOT_BUSY)
    return {"all": sum(times.values()), "busy": busy, "steal": times.get("steal", 0.0)}
