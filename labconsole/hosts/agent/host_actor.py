"""What runs on a host for a console: a Dask actor in the agent's process.

An actor and never a task: a task would wait for ever for a host that is gone, or silently run again on another one.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import Any

import psutil
from distributed import get_worker

from labconsole.clock import clock_domain, now_ns
from labconsole.engine.provenance import surroundings
from labconsole.hosts.agent.capabilities import capabilities
from labconsole.hosts.agent.hosted_role import Lines
from labconsole.hosts.agent.hosted_runs import HostedRuns
from labconsole.hosts.samples.sample_summaries import Summaries
from labconsole.paths import hosts_dir


class HostActor:
    """Answers a console. Methods that are coroutines answer at once, on the agent's thread; the others one by one.

    Any call may come twice: Dask repeats one whose connection was lost.
    """

    def __init__(self) -> None:
        agent: Any = get_worker()
        self._tags: tuple[str, ...] = agent.tags
        self._runs: HostedRuns = agent.runs

    async def clock(self) -> int:
        """The host's `clock.now_ns`."""
        return now_ns()

    def describe(self) -> dict[str, Any]:
        """The host's surroundings, clock domain, tags and capabilities, and the free disk space for samples, bytes."""
        return {
            **surroundings(),
            "clock_domain": clock_domain(),
            "tags": list(self._tags),
            "capabilities": capabilities(),
            "interfaces": sorted(psutil.net_if_addrs()),
            "free_bytes": shutil.disk_usage(hosts_dir()).free,
            "running": self._runs.running(),
            "finishing": self._runs.finishing(),
            "held": self._runs.held(),
        }

    def put(self, run: str, sha256: str, offset: int, data: bytes) -> None:
        """As `HostedRuns.put`."""
        self._runs.put(run, sha256, offset, data)

    async def start(
        self,
        run: str,
        name: str,
        task: Mapping[str, Any],
        files: Mapping[str, tuple[str, str]],
        options: Mapping[str, Any],
    ) -> None:
        """As `HostedRuns.start`."""
        self._runs.start(run, name, task, files, **options)

    async def lines(self, run: str, name: str, after: int, wait_s: float) -> Lines:
        """As `HostedRuns.lines`."""
        return await self._runs.lines(run, name, after, wait_s)

    async def send(self, run: str, name: str, number: int, line: bytes) -> None:
        """As `HostedRole.send`."""
        self._runs.role(run, name).send(number, line)

    async def kill(self, run: str, name: str) -> None:
        """Kill a role."""
        self._runs.role(run, name).kill()

    async def end(self, run: str) -> None:
        """As `HostedRuns.end`."""
        await self._runs.end(run)

    def contents(self, run: str) -> dict[str, tuple[int, str]]:
        """As `HostedRuns.contents`."""
        return self._runs.contents(run)

    def size(self, run: str) -> int:
        """As `HostedRuns.size`."""
        return self._runs.size(run)

    def read(self, run: str, name: str, offset: int, size: int) -> bytes:
        """As `HostedRuns.read`."""
        return self._runs.read(run, name, offset, size)

    def summaries(self, run: str) -> Summaries:
        """As `HostedRuns.summaries`."""
        return self._runs.summaries(run)

    async def forget(self, run: str) -> None:
        """As `HostedRuns.forget`."""
        await self._runs.forget(run)
