"""Resources of every process of a run: CPU and memory, as live values and as the series `resources`."""

from __future__ import annotations

import psutil

from labconsole.clock import now_ns
from labconsole.engine.protocol import Usage
from labconsole.engine.spool import SpoolSeriesWriter, SpoolWriter
from labconsole.model.trial import Column, Series

RESOURCES = Series(
    "resources",
    "CPU and memory of each process",
    (
        Column("t_ns", "i8", "ns", "Time"),
        Column("cpu", "f4", "%", "CPU (100 % = one core)"),
        Column("rss", "i8", "B", "Resident memory"),
    ),
)


class UsageMeter:
    """Reads CPU and memory of processes by name; a process that ended is forgotten."""

    def __init__(self, spool: SpoolWriter) -> None:
        self._spool = spool
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
            if usage is None or not usage.rss:  # one that is exiting has no memory any more: that is not a reading
                del self._processes[name]
                continue
            latest[name] = usage
            writer = self._writers.get(name)
            if writer is None:
                writer = self._writers[name] = SpoolSeriesWriter(self._spool, name, RESOURCES)
            writer.extend(t_ns=[now_ns()], cpu=[usage.cpu], rss=[usage.rss])
            writer.flush()
        self.latest = latest
