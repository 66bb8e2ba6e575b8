"""Runs whose roles are on other hosts: processes with a disk, a home and an address of their own."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from labconsole.engine.launcher import ChildRole, RoleStart, role_task
from labconsole.engine.protocol import encode_line
from tests.helpers.forked_programs import programs_started

NOWHERE = "/the-console-is-elsewhere"
"""It replaces each of the console's folders, so that a role that opens a path of the console finds nothing."""
_KEYRING = """
import os
from pathlib import Path
from keyring.backend import KeyringBackend

class Keyring(KeyringBackend):
    priority = 9

    def get_password(self, service, entry):
        Path(os.environ["ASKED_FOR"]).open("a").write(f"{entry}\\n")
        return None
"""


class HostRole(ChildRole):
    """`LaunchedRole` of a process on a host; what could betray a secret is read while it runs, if it is `inspected`."""

    def __init__(self, start: RoleStart, folder: Path, address: str, console: Sequence[Path], inspected: bool) -> None:
        folder.mkdir()
        self.folder, self._console, self._address = folder, console, address
        self.secrets = {request.key: start.given.get(request.key) or request.resolve() for request in start.requests}
        (folder / "host_keyring.py").write_text(_KEYRING)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("LABCONSOLE", "XDG"))}
        environment |= {
            "HOME": str(folder),
            "LABCONSOLE_HOME": str(folder / "home"),
            "PYTHONPATH": os.pathsep.join((os.environ.get("PYTHONPATH", ""), str(folder))),
            "PYTHON_KEYRING_BACKEND": "host_keyring.Keyring",
            "ASKED_FOR": str(self.asked_for),
        }
        with programs_started() if inspected else nullcontext():
            super().__init__(start.name, cwd=folder, env=environment)
        self.host = self.clock_domain = "elsewhere"
        self.send(encode_line(self._task(start)))

    def _task(self, start: RoleStart) -> dict[str, Any]:
        """The first line, without any path of the console's disk."""
        files = {}
        for key, file in start.files.items():
            copy = self.folder / file.sha256
            shutil.copy(file.copy, copy)
            files[key] = {"path": str(copy), "named": str(file.named)}
        keys = {key: {"text": path.read_text(), "named": str(path)} for key, path in start.private_files.items()}
        task = role_task(start, self.secrets, self._address)
        text = json.dumps(task | {"files": files})
        for folder in self._console:
            text = text.replace(str(folder), NOWHERE)
        here = {"spool": str(start.spool), "parent_pid": os.getpid(), "private_files": keys}
        found: dict[str, Any] = json.loads(text) | here
        return found

    @property
    def asked_for(self) -> Path:
        """Where the entries are that were looked for in the host's keyring."""
        return self.folder / "asked-for"

    def shown(self) -> bytes:
        """What the system shows of the process to others, if it is `inspected`: environment and command line."""
        return b"".join(Path(f"/proc/{self.pid}/{name}").read_bytes() for name in ("environ", "cmdline"))


class OtherHosts:
    """A `Launcher` that starts each role on a host of its own; `console` are folders that no host has.

    `addresses` are those of hosts, by the beginning of the names of their roles. Roles that are `inspected` are
    started: the system shows environment and command line of a forked one as those of the process it is forked from.
    """

    lead_ns = 50_000_000
    clock_uncertainty_ns = 0

    def __init__(
        self, folder: Path, addresses: Mapping[str, str], console: Sequence[Path] = (), *, inspected: bool = False
    ) -> None:
        folder.mkdir(parents=True)
        self.folder, self._addresses, self._console, self._inspected = folder, addresses, console, inspected
        self.roles: dict[str, HostRole] = {}

    def launch(self, start: RoleStart, host: str | None = None) -> HostRole:
        address = self._addresses[start.name.partition("-")[0]]
        role = HostRole(start, self.folder / start.name, address, self._console, self._inspected)
        self.roles[start.name] = role
        return role

    def finish(self) -> None:
        """Spools are on this disk."""
