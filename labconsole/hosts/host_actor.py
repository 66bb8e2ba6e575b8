"""What runs on a host for a console: a Dask actor in the agent's process.

An actor and never a task: a task would wait for ever for a host that is gone, or silently run again on another one.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import Any

from distributed import get_worker

from labconsole.clock import clock_domain, now_ns
from labconsole.engine.provenance import surroundings


@dataclass(frozen=True)
class Capabilities:
    """What an agent says of its host besides what can be measured; `directory` is where it keeps files."""

    tags: tuple[str, ...]
    directory: str


class HostActor:
    """Answers a console. Methods that are coroutines answer at once, whatever else the actor does."""

    def __init__(self) -> None:
        agent: Any = get_worker()
        self._capabilities: Capabilities = agent.capabilities

    async def clock(self) -> int:
        """The host's `clock.now_ns`."""
        return now_ns()

    def describe(self) -> dict[str, Any]:
        """The host's surroundings, clock domain and tags, and the free disk space where samples are kept, bytes."""
        return {
            **surroundings(),
            "clock_domain": clock_domain(),
            "tags": list(self._capabilities.tags),
            "free_bytes": shutil.disk_usage(self._capabilities.directory).free,
        }
