"""Launchers start the process of a role; the one here does it on this machine."""

from __future__ import annotations

import hashlib
import os
import platform
import stat
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from labconsole.clock import clock_domain
from labconsole.engine.protocol import encode_line
from labconsole.errors import UserError
from labconsole.processes import own_program
from labconsole.security.private_files import PRIVATE_KEY_MARK
from labconsole.security.secret_value import Secret

if TYPE_CHECKING:
    from labconsole.security.secrets import SecretRequest

_READ_SIZE = 1024 * 1024


@dataclass(frozen=True)
class RunFile:
    """A file as it was when its run first named it.

    Attributes:
        named: Its path as the trial gave it.
        copy: Where its content is kept as long as the run is in progress; the name is its hash.
        size: Bytes.
        sha256: Of its content, hexadecimal.
    """

    named: Path
    copy: Path
    size: int
    sha256: str


class RunFiles:
    """The files of one run, in a directory of its spool. A file that is edited later stays as it was."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._kept: dict[Path, RunFile] = {}

    def keep(self, named: Path) -> RunFile:
        """Copy the file `named` unless the run has it already.

        Raises UserError: it cannot be read or copied, is not a regular file, or holds a private key in PEM, which must
        not be copied.
        """
        place = named.absolute()
        if place not in self._kept:
            self._kept[place] = self._copied(named)
        return self._kept[place]

    def _copied(self, named: Path) -> RunFile:
        partial = self._directory / "partial"
        try:
            size, sha256 = _copy(named, partial)
            copy = self._directory / sha256
            partial.replace(copy)
        finally:
            partial.unlink(missing_ok=True)
        return RunFile(named, copy, size, sha256)


def _copy(named: Path, target: Path) -> tuple[int, str]:
    """Copy a file to `target` (0600); returns size in bytes and SHA-256. Raises UserError as `RunFiles.keep`."""
    try:
        if not stat.S_ISREG(named.stat().st_mode):  # opening a pipe would wait for its other end
            raise UserError(f"{named} is not a regular file: name a file.")
        source = named.open("rb", buffering=0)
    except OSError as error:
        raise UserError(f"The file {named} cannot be read ({error.strerror}): check its name.") from error
    found, size, before = hashlib.sha256(), 0, b""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        target.parent.mkdir(exist_ok=True)
        with source, os.fdopen(os.open(target, flags, 0o600), "wb") as copy:
            while data := source.read(_READ_SIZE):
                seam = before + data
                if PRIVATE_KEY_MARK in seam:
                    raise UserError(
                        f"{named} holds a private key, and the files of a role travel with the run: name a file "
                        "without the key."
                    )
                before = seam[-len(PRIVATE_KEY_MARK) :]
                found.update(data)
                size += copy.write(data)
    except OSError as error:
        raise UserError(
            f"The file {named} cannot be copied to {target.parent} ({error.strerror}): check that disk, or choose "
            "another database with --db."
        ) from error
    return size, found.hexdigest()


@dataclass(frozen=True)
class RoleStart:
    """All that a launcher needs to start a role, with the files that the role must be able to read.

    Attributes:
        name: The role's name, unique in the run.
        target: Its class, `package.module:Class`.
        settings: Plain JSON.
        requests: The secrets that it may ask for.
        given: Those of them that the operator was asked for, by key; a launcher reveals them to the role's process
            alone.
        files: The files that it may ask for, by key.
        private_files: Files with encrypted keys that it may ask for, by key: never copied on a disk.
        spool: Where a local role records; for a remote role, the place that its samples are copied to.
        live_hz: Live reports per second; 0: one a second.
    """

    name: str
    target: str
    settings: Mapping[str, Any]
    requests: tuple[SecretRequest, ...]
    given: Mapping[str, Secret]
    files: Mapping[str, RunFile]
    private_files: Mapping[str, Path]
    spool: Path
    live_hz: float


def role_task(start: RoleStart, secrets: Mapping[str, Secret], address: str) -> dict[str, Any]:
    """What the first line for a role's process says wherever that is; where it records and what it reads are added.

    It holds the secrets in the clear: it goes into the process's standard input, and nowhere else.
    """
    return {
        "name": start.name,
        "target": start.target,
        "settings": dict(start.settings),
        "secrets": {key: secret.reveal() for key, secret in secrets.items()},
        "address": address,
        "live_hz": start.live_hz,
    }


class LaunchedRole(Protocol):
    """The process of a role, wherever it is: lines of JSON in, lines of JSON out, and its end."""

    @property
    def host(self) -> str:
        """The name of the machine that it runs on."""

    @property
    def clock_domain(self) -> str:
        """Which clock its times are of (`labconsole.clock.clock_domain`)."""

    @property
    def pid(self) -> int | None:
        """Its process id if it runs on this machine."""

    @property
    def ended(self) -> bool:
        """Whether its end is known: `wait` has returned."""

    def send(self, line: bytes) -> None:
        """Write a line to its standard input; does nothing once it has ended."""

    def lines(self) -> Iterator[bytes]:
        """The lines of its standard output until that is closed."""

    def wait(self) -> str:
        """Wait for its end; returns how it ended, as in "was killed by signal 9"."""

    def kill(self) -> None:
        """Kill it."""

    def close(self) -> None:
        """Release its resources once it has exited."""


class Launcher(Protocol):
    """Starts roles in processes of their own, and brings what they record into the spool of the run."""

    @property
    def lead_ns(self) -> int:
        """How much longer than on this machine it takes until each role of the run knows a time that it is sent."""

    @property
    def clock_uncertainty_ns(self) -> int:
        """By how much a time between any two hosts with roles may be wrong."""

    @property
    def hosts(self) -> Mapping[str, Mapping[str, Any]]:
        """The other hosts with roles of the run, each with its surroundings (`provenance.surroundings`)."""

    def launch(self, start: RoleStart, host: str | None = None) -> LaunchedRole:
        """Start a role, without waiting for it, on `host` (None: as the scenario says). Raises UserError: it cannot."""

    def finish(self) -> None:
        """All roles have ended: bring what they recorded elsewhere. Raises UserError: some of it is still there."""


THIS_MACHINE = "127.0.0.1"
"""The address of roles that only roles of the same machine reach."""


class LocalLauncher:
    """Starts roles as children of this process."""

    lead_ns = 0
    clock_uncertainty_ns = 0
    hosts: Mapping[str, Mapping[str, Any]] = MappingProxyType({})

    def __init__(self, address: str = THIS_MACHINE) -> None:
        """`address`: where other roles of the run reach those of this machine."""
        self._address = address

    def launch(self, start: RoleStart, host: str | None = None) -> LaunchedRole:
        """Start a child that ends with this process; it reads the copies of its files. Raises UserError for a host."""
        if host is not None:
            raise UserError(f"Role {start.name} cannot be started on {host}: the scenario of this run names no hosts.")
        role = ChildRole(start.name)
        paths = {key: (file.copy, file.named) for key, file in start.files.items()}
        paths |= {key: (path, path) for key, path in start.private_files.items()}
        here = {
            "files": {key: {"path": str(path), "named": str(named)} for key, (path, named) in paths.items()},
            "spool": str(start.spool),
            "parent_pid": os.getpid(),
        }
        role.send(encode_line(role_task(start, start.given, self._address) | here))
        return role

    def finish(self) -> None:
        """Nothing is elsewhere."""


def how_it_ended(code: int) -> str:
    """What an exit code of a process says, as a part of a sentence."""
    return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"


class ChildRole:
    """`LaunchedRole` of a child process."""

    def __init__(self, name: str, **options: Any) -> None:
        """`options` as for `subprocess.Popen`."""
        self.host = platform.node()
        self.clock_domain = clock_domain()
        self._process = subprocess.Popen(
            own_program("labconsole.engine.role", name),  # its argument is a label, for `ps`
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            **options,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def code(self) -> int | None:
        """Its exit code as in `subprocess.Popen`, None while it runs."""
        return self._process.poll()

    @property
    def ended(self) -> bool:
        return self._process.returncode is not None

    def send(self, line: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except (OSError, ValueError):
            return  # it has ended, which `wait` reports

    def lines(self) -> Iterator[bytes]:
        assert self._process.stdout is not None
        with self._process.stdout as stream:
            yield from stream

    def wait(self) -> str:
        return how_it_ended(self._process.wait())

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except OSError:
            return  # it ended before it read its last message
