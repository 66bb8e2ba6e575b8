"""A launcher whose roles are threads of the test process: all is real but the process, and a start takes no time."""

from __future__ import annotations

import json
import os
import platform
import threading
from collections.abc import Iterator, Mapping
from queue import SimpleQueue
from types import MappingProxyType
from typing import Any

from labconsole.clock import clock_domain
from labconsole.engine.launcher import THIS_MACHINE, RoleStart, role_task
from labconsole.engine.protocol import encode_line
from labconsole.engine.role import RoleProcess, conduct_role

_END_S = 10


class RoleThread:
    """`LaunchedRole` of a thread. It cannot be killed: one that does not end fails the test."""

    pid = None

    def __init__(self, start: RoleStart) -> None:
        self.host, self.clock_domain = platform.node(), clock_domain()
        self.ended = False
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        files = {key: {"path": str(file.copy), "named": str(file.named)} for key, file in start.files.items()}
        files |= {key: {"path": str(path), "named": str(path)} for key, path in start.private_files.items()}
        here = {"files": files, "spool": str(start.spool), "parent_pid": os.getpid()}
        task = json.loads(encode_line(role_task(start, start.given, THIS_MACHINE) | here))
        self._role = RoleProcess(_Channel(self._lines), task)
        self._well = False
        self._thread = threading.Thread(target=self._conduct, args=(start.target,), name=start.name)
        self._thread.start()

    def _conduct(self, target: str) -> None:
        try:
            self._well = conduct_role(_Channel(self._lines), self._role, target)
        finally:
            self._lines.put(None)

    def send(self, line: bytes) -> None:
        """Process a message of the worker, as the reader thread of a role's process does."""
        self._role.on_message(json.loads(line))

    def lines(self) -> Iterator[bytes]:
        """What the role sends, until it has ended."""
        return iter(self._lines.get, None)

    def wait(self) -> str:
        """Wait for the end; returns how it ended."""
        self._thread.join()
        self.ended = True
        return f"ended with exit code {0 if self._well else 1}"

    def kill(self) -> None:
        """Wait a last time; fails the test if the role is still running."""
        self._thread.join(_END_S)
        assert not self._thread.is_alive(), f"{self._thread.name} did not end"

    def close(self) -> None:
        """Nothing is open."""


class _Channel:
    """From the role to the worker: each message is JSON on its way, as between processes."""

    def __init__(self, lines: SimpleQueue[bytes | None]) -> None:
        self._lines = lines

    def send(self, message: Mapping[str, Any]) -> None:
        self._lines.put(encode_line(message))


class RoleThreads:
    """The `Launcher`, for a `TrialLab` whose roles import nothing that they leave changed."""

    lead_ns = 0
    clock_uncertainty_ns = 0
    hosts: Mapping[str, Mapping[str, Any]] = MappingProxyType({})

    def launch(self, start: RoleStart, host: str | None = None) -> RoleThread:
        """Start the role."""
        assert host is None, "a role in a thread is here"
        return RoleThread(start)

    def finish(self) -> None:
        """Spools are on this disk."""
