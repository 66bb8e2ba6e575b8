"""The roles that an agent runs on its host for a console, and what they record: kept until the console has brought it.

Everything but reading and hashing is done on the agent's own thread: it lives as long as the agent, and the kernel
kills a role when the thread that started it ends.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from labconsole.clock import now_ns
from labconsole.engine.protocol import encode_line
from labconsole.engine.spool import SpoolWriter
from labconsole.engine.usage import MachineMeter, UsageMeter
from labconsole.errors import UserError
from labconsole.hosts.agent.hosted_role import GRACE_S, LOST_CONSOLE_S, HostedRole, Lines
from labconsole.hosts.samples.sample_summaries import Summaries, summaries_of_spools
from labconsole.model.series import FILE_NAME, MACHINE_OF_HOST

_USAGE_S = 0.5
_POLL_S = 0.2
_ENDS_S = 0.02
_KNOWN_S = 1.0
"""How long an agent that is stopped still answers consoles: they ask all the time."""
_RUN = re.compile(r"[0-9a-f-]{32,36}")


class HostedRun:
    """The roles of one run on this host; `ahead_ns`: this host's clock less the console's.

    `finishes`: roles whose console is lost finish their work. `shared`: this is the console's computer, which measures
    its load itself.
    """

    def __init__(
        self, directory: Path, host: str, ahead_ns: int, *, finishes: bool = False, shared: bool = True
    ) -> None:
        self.directory = directory
        self.ahead_ns = ahead_ns
        self.roles: dict[str, HostedRole] = {}
        self._spool = SpoolWriter(directory / f"usage-{host}.spool")
        self._usage = UsageMeter(self._spool, lambda: now_ns() - ahead_ns)
        self._machine = (
            None if shared else MachineMeter(self._spool, lambda: now_ns() - ahead_ns, MACHINE_OF_HOST + host)
        )
        if self._machine is not None:
            self._machine.watch(os.getpid())
        self._finishes = finishes
        self.finishing = False
        """Whether roles finish their work, now or should their console be lost; those that only serve are left out."""

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
        if self._machine is not None:
            self._machine.watch(role.pid)

    def measure(self) -> None:
        """Measure the load of this host while roles run, and somewhat longer: not until samples are collected."""
        in_use = any(role.running or role.silent_s < LOST_CONSOLE_S for role in self.roles.values())
        with suppress(UserError):  # a full disk, as below
            if self._machine is not None and in_use:
                self._machine.read()

    def look(self) -> None:
        """Measure the roles, and stop those whose console is gone."""
        with suppress(UserError):  # the disk is full: roles that cannot record report it, and the others continue
            self._usage.read()
        for name, usage in self._usage.latest.items():
            self.roles[name].say(encode_line({"t": "usage", "cpu": usage.cpu, "rss": usage.rss}))
        running = [role for role in self.roles.values() if role.running]
        silent_s = min((role.silent_s for role in running), default=0.0)
        lost = silent_s > LOST_CONSOLE_S
        working = [role for role in running if self._finishes and role.has_work(silent_s)]
        self.finishing = any(role.counts for role in working)
        for role in running:
            if lost and role not in working:
                role.stop()

    def stop(self) -> None:
        """Let all roles stop; called again, kill those that are late."""
        for role in self.roles.values():
            role.stop()

    def close(self) -> None:
        """End what still runs."""
        for role in self.roles.values():
            role.kill()
            role.close()
        with suppress(UserError):
            if self._machine is not None:
                self._machine.flush()
        self._spool.close()


class HostedRuns:
    """All runs that have something on this host, in a directory of its own."""

    def __init__(self, directory: Path, host: str) -> None:
        self._directory = directory
        self._host = host
        self._runs: dict[str, HostedRun] = {}
        self._looked_s = 0.0
        self._stopping = False

    def held(self) -> dict[str, list[str]]:
        """The runs that have left something here, each with its files of samples."""
        if not self._directory.is_dir():
            return {}
        with self._explained():
            return {
                path.name: [file.name for file in _spools(path)]
                for path in sorted(self._directory.iterdir())
                if _RUN.fullmatch(path.name) and path.is_dir()
            }

    def running(self) -> dict[str, list[str]]:
        """The roles in progress, by run."""
        found = {
            name: [role for role, hosted in run.roles.items() if hosted.running] for name, run in self._runs.items()
        }
        return {name: roles for name, roles in found.items() if roles}

    def finishing(self) -> list[str]:
        """The runs whose roles finish their work, also without their console."""
        return [name for name in self.running() if self._runs[name].finishing]

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
        self,
        run: str,
        name: str,
        task: Mapping[str, Any],
        files: Mapping[str, tuple[str, str]],
        **options: Any,
    ) -> None:
        """Start a role of a run; `options` as for `HostedRun`."""
        with self._explained():
            if run not in self._runs:
                self._runs[run] = HostedRun(self._folder(run), self._host, **options)
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
        while not self._stopping:
            if (found := role.taken(after)) is not None:
                return found
            if time.monotonic() > deadline_s:
                return role.none(after)
            with suppress(TimeoutError):
                await asyncio.wait_for(role.changed.wait(), _POLL_S)
        # Not what it says of its end: it was stopped, and has not done its work.
        return role.none(after, f"was stopped with the agent of its host {self._host}")

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

    async def end(self, run: str) -> None:
        """Stop what still runs of a run, a broker that serves on, say; nothing is written when this returns."""
        if (ending := self._runs.get(run)) is not None:
            ending.stop()
            deadline_s = time.monotonic() + GRACE_S
            while any(role.running for role in ending.roles.values()) and time.monotonic() < deadline_s:
                await asyncio.sleep(_ENDS_S)
            if self._runs.pop(run, None) is not None:  # not by a second call meanwhile
                ending.close()

    async def forget(self, run: str) -> None:
        """Remove what a run has left here: the console has stored it."""
        await self.end(run)
        with self._explained():
            shutil.rmtree(self._folder(run))

    def look(self) -> None:
        """Call a few times a second."""
        for run in self._runs.values():
            run.measure()
        if time.monotonic() - self._looked_s < _USAGE_S:
            return
        self._looked_s = time.monotonic()
        for run in self._runs.values():
            run.look()

    async def close(self) -> None:
        """Stop all roles and let their consoles know; returns when they have drained and ended, after a few seconds."""
        self._stopping = bool(self.running())
        for run in self._runs.values():
            run.stop()
        since_s = time.monotonic()
        while self._stopping and (time.monotonic() - since_s < _KNOWN_S or self.running()):
            await asyncio.sleep(_POLL_S)
            if time.monotonic() - since_s > GRACE_S:
                break
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
    """The files of samples in a folder, which may be missing. Raises OSError, unlike `Path.glob`: it cannot be read."""
    with suppress(FileNotFoundError):
        yield from sorted(path for path in directory.iterdir() if path.suffix == ".spool")


def _hash(text: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{64}", text):
        raise UserError(f"{text!r} is not a SHA-256.")
    return text


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, hexadecimal. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
