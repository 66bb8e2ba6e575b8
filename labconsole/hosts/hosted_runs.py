"""The roles that an agent runs on its host for a console, and what they record: kept until the console has brought it.

Everything but reading and hashing is done on the agent's own thread: it lives as long as the agent, and the kernel
kills a role when the thread that started it ends.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import queue
import re
import shutil
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labconsole.clock import AHEAD_VARIABLE, now_ns
from labconsole.engine.launcher import ChildRole, how_it_ended
from labconsole.engine.protocol import LIVE, encode_line
from labconsole.engine.spool import SpoolWriter
from labconsole.engine.usage import UsageMeter
from labconsole.errors import UserError
from labconsole.hosts.sample_summaries import Summaries, summaries_of_spools
from labconsole.model.series import FILE_NAME

_LOST_CONSOLE_S = 15.0
"""A console that does not ask for the lines of its roles for so long is gone: they are stopped, and drain."""
_USAGE_S = 0.5
_POLL_S = 0.2
_GRACE_S = 3.0
_LIVE_START = b'{"t":"%s"' % LIVE.encode(), b'{"t":"usage"'
_RUN = re.compile(r"[0-9a-f-]{32,36}")
_STOP = encode_line({"t": "stop"})


@dataclass(frozen=True)
class Lines:
    """Lines of a role's output; those after them begin at number `next`. `ended`: how, once there are no more."""

    next: int
    lines: tuple[bytes, ...]
    ended: str = ""


class HostedRole:
    """A role's process."""

    def __init__(self, name: str, task: Mapping[str, Any], ahead_ns: int) -> None:
        self._child = ChildRole(name, env={**os.environ, AHEAD_VARIABLE: str(ahead_ns)})
        self._loop = asyncio.get_running_loop()
        self.changed = asyncio.Event()
        self._turn = threading.Lock()
        self._lines: deque[tuple[int, bytes]] = deque()
        self._count = 0
        self._early: dict[int, bytes] = {}
        self._next = 0
        self._input: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=target, name=f"{name}-{what}", daemon=True)
            for target, what in ((self._read, "output"), (self._write, "input"))
        ]
        self._ended_s = 0.0
        self.asked_s = time.monotonic()
        """When the console last asked for lines (`time.monotonic`)."""
        for thread in self._threads:
            thread.start()
        self._input.put(encode_line(task))

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._child.pid

    @property
    def running(self) -> bool:
        """Whether its process has not ended."""
        return self._child.code is None

    def send(self, number: int, line: bytes) -> None:
        """Take line `number` (from 0) for its input: lines may arrive in another order, and more than once."""
        if number >= self._next:
            self._early[number] = line
        while self._next in self._early:
            self._input.put(self._early.pop(self._next))
            self._next += 1

    def say(self, line: bytes) -> None:
        """Add a line to its output; a live one replaces that which waits."""
        with self._turn:
            for start in _LIVE_START:
                if line.startswith(start):
                    self._lines = deque(kept for kept in self._lines if not kept[1].startswith(start))
            self._lines.append((self._count, line))
            self._count += 1
        self._loop.call_soon_threadsafe(self.changed.set)

    def taken(self, after: int) -> Lines | None:
        """The lines from number `after` on, those before being forgotten; None: there are none yet."""
        self.asked_s = time.monotonic()
        self.changed.clear()
        with self._turn:
            while self._lines and self._lines[0][0] < after:
                self._lines.popleft()
            waiting, following = tuple(line for _, line in self._lines), self._count
        if waiting:
            return Lines(following, waiting)
        code = self._child.code
        if code is None:
            return None
        self._ended_s = self._ended_s or time.monotonic()
        late = time.monotonic() - self._ended_s > 1.0  # a process that it left behind may hold its output open
        return Lines(following, (), how_it_ended(code)) if late or not self._threads[0].is_alive() else None

    def stop(self) -> None:
        """Ask it to stop and drain."""
        self._input.put(_STOP)

    def kill(self) -> None:
        """Kill it."""
        self._child.kill()

    def close(self) -> None:
        """Wait for its end, which is near, and release its pipes."""
        self._child.wait()
        self._input.put(None)
        for thread in self._threads:
            thread.join(1.0)

    def _read(self) -> None:
        for line in self._child.lines():
            self.say(line)
        self._loop.call_soon_threadsafe(self.changed.set)

    def _write(self) -> None:
        while (line := self._input.get()) is not None:
            self._child.send(line)
        self._child.close()


class HostedRun:
    """The roles of one run on this host; `ahead_ns`: this host's clock less the console's."""

    def __init__(self, directory: Path, host: str, ahead_ns: int) -> None:
        self.directory = directory
        self.ahead_ns = ahead_ns
        self.roles: dict[str, HostedRole] = {}
        self._spool = SpoolWriter(directory / f"usage-{host}.spool")
        self._usage = UsageMeter(self._spool, lambda: now_ns() - ahead_ns)
        self._stopping_s = 0.0

    def start(self, name: str, task: Mapping[str, Any], files: Mapping[str, tuple[str, str]]) -> None:
        """Start a role unless it was started: the call may come again. `files`: hash and own name by key."""
        if name in self.roles:
            return
        if not FILE_NAME.fullmatch(name):
            raise UserError(f"{name!r} cannot name a role.")
        for sha256, named in files.values():
            if sha256_of(self.directory / "files" / _hash(sha256)) != sha256:
                raise UserError(f"{named} did not arrive as it was sent: run it again.")
        here = {
            "files": {
                key: {"path": str(self.directory / "files" / sha256), "named": named}
                for key, (sha256, named) in files.items()
            },
            "spool": str(self.directory / f"{name}.spool"),
            "parent_pid": os.getpid(),
        }
        role = self.roles[name] = HostedRole(name, {**task, **here}, self.ahead_ns)
        self._usage.watch(name, role.pid)

    def look(self) -> None:
        """Measure the roles, and stop those whose console is gone."""
        with suppress(UserError):  # the disk is full: roles that cannot record report it, and the others continue
            self._usage.read()
        for name, usage in self._usage.latest.items():
            self.roles[name].say(encode_line({"t": "usage", "cpu": usage.cpu, "rss": usage.rss}))
        running = [role for role in self.roles.values() if role.running]
        now_s = time.monotonic()
        if self._stopping_s:
            if now_s - self._stopping_s > _GRACE_S:
                for role in running:
                    role.kill()
        elif running and now_s - max(role.asked_s for role in running) > _LOST_CONSOLE_S:
            self.stop()

    def stop(self) -> None:
        """Let all roles stop; `look` kills those that are late."""
        self._stopping_s = time.monotonic()
        for role in self.roles.values():
            role.stop()

    def close(self) -> None:
        """End what still runs."""
        for role in self.roles.values():
            role.kill()
            role.close()
        self._spool.close()


class HostedRuns:
    """All runs that have something on this host, in a directory of its own."""

    def __init__(self, directory: Path, host: str) -> None:
        self._directory = directory
        self._host = host
        self._runs: dict[str, HostedRun] = {}
        self._looked_s = 0.0

    def held(self) -> dict[str, list[str]]:
        """The runs that have left something here, each with its files of samples."""
        if not self._directory.is_dir():
            return {}
        return {path.name: [file.name for file in _spools(path)] for path in sorted(self._directory.iterdir())}

    def running(self) -> dict[str, list[str]]:
        """The roles in progress, by run."""
        found = {
            name: [role for role, hosted in run.roles.items() if hosted.running] for name, run in self._runs.items()
        }
        return {name: roles for name, roles in found.items() if roles}

    def put(self, run: str, sha256: str, offset: int, data: bytes) -> None:
        """Write a piece of a file that roles of a run read; `sha256` is its name. Raises UserError: a full disk."""
        flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0)
        with self._explained():
            folder = self._folder(run) / "files"
            folder.mkdir(exist_ok=True)
            with os.fdopen(os.open(folder / _hash(sha256), flags, 0o600), "r+b") as file:
                file.seek(offset)
                file.write(data)

    def start(
        self, run: str, name: str, task: Mapping[str, Any], files: Mapping[str, tuple[str, str]], ahead_ns: int
    ) -> None:
        """Start a role of a run."""
        with self._explained():
            if run not in self._runs:
                self._runs[run] = HostedRun(self._folder(run), self._host, ahead_ns)
            self._runs[run].start(name, task, files)

    def role(self, run: str, name: str) -> HostedRole:
        """A role that was started. Raises UserError: the agent was started again since."""
        hosted = self._runs.get(run)
        if hosted is None or name not in hosted.roles:
            raise UserError(f"{self._host} was started again, and role {name} ended with it.")
        return hosted.roles[name]

    async def lines(self, run: str, name: str, after: int, wait_s: float) -> Lines:
        """The lines of a role from number `after` on, waited for; an empty answer after `wait_s`."""
        role = self.role(run, name)
        deadline_s = time.monotonic() + wait_s
        while (found := role.taken(after)) is None:
            if time.monotonic() > deadline_s:
                return Lines(after, ())
            with suppress(TimeoutError):
                await asyncio.wait_for(role.changed.wait(), _POLL_S)
        return found

    def contents(self, run: str) -> dict[str, tuple[int, str]]:
        """What the roles of a run have recorded: size in bytes and SHA-256 by file name."""
        with self._explained():
            return {path.name: (path.stat().st_size, sha256_of(path)) for path in _spools(self._place(run))}

    def size(self, run: str) -> int:
        """The bytes of all of it."""
        with self._explained():
            return sum(path.stat().st_size for path in _spools(self._place(run)))

    def read(self, run: str, name: str, offset: int, size: int) -> bytes:
        """A piece of such a file."""
        if not FILE_NAME.fullmatch(name):
            raise UserError(f"{name!r} cannot name a file of samples.")
        with self._explained(), (self._place(run) / name).open("rb") as file:
            file.seek(offset)
            return file.read(size)

    def summaries(self, run: str) -> Summaries:
        """The summaries of the samples of a run. Raises UserError: roles run here, or a file is damaged."""
        if running := [role for roles in self.running().values() for role in roles]:
            raise UserError(f"{self._host} runs {', '.join(running)}: summarise its samples once they have ended.")
        if run not in self.held():
            raise UserError(f"{self._host} has no samples of run {run} any more: they were collected or removed.")
        with self._explained():
            return summaries_of_spools(self._place(run))

    def end(self, run: str) -> None:
        """End what still runs of a run, so that nothing is written any more."""
        if run in self._runs:
            self._runs.pop(run).close()

    def forget(self, run: str) -> None:
        """Remove what a run has left here: the console has stored it."""
        self.end(run)
        with self._explained():
            shutil.rmtree(self._folder(run))

    def look(self) -> None:
        """Call a few times a second."""
        if time.monotonic() - self._looked_s < _USAGE_S:
            return
        self._looked_s = time.monotonic()
        for run in self._runs.values():
            run.look()

    def close(self) -> None:
        """Stop all roles; returns when they have drained and ended, after a few seconds at most."""
        for run in self._runs.values():
            run.stop()
        deadline_s = time.monotonic() + _GRACE_S
        while self.running() and time.monotonic() < deadline_s:
            time.sleep(_POLL_S)
        for run in self._runs.values():
            run.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise UserError where files cannot be used in the block: the console takes an OSError for a lost host."""
        try:
            yield
        except OSError as error:
            raise UserError(
                f"{self._host} cannot work with {error.filename or self._directory} ({error.strerror or error}): check "
                "the disk of that host."
            ) from error

    def _place(self, run: str) -> Path:
        """The folder of a run, whether it is there or not."""
        if not _RUN.fullmatch(run):
            raise UserError(f"{run!r} cannot name a run.")
        return self._directory / run

    def _folder(self, run: str) -> Path:
        """The folder of a run, which is made if it is not there."""
        folder = self._place(run)
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def _spools(directory: Path) -> Iterator[Path]:
    yield from sorted(directory.glob("*.spool"))


def _hash(text: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{64}", text):
        raise UserError(f"{text!r} is not a SHA-256.")
    return text


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, hexadecimal. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
