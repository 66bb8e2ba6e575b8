"""A real broker for a test, on loopback: started and stopped by `installer/brokers.py`, as an operator does."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from labconsole.security.identities import IdentityFiles
from labconsole_amqp.link.connection import Endpoint
from labconsole_amqp.link.tls import TlsSettings

SCRIPT = Path(__file__).parents[2] / "installer" / "brokers.py"
RABBITMQ = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
HOST, USER, PASSWORD = "127.0.0.1", "lab", "lab password"
_START_S, _STOP_S = 150.0, 90.0
# Should the test run itself be killed, the command stops the broker.
_WITH_US = ("setpriv", "--pdeathsig", "TERM")


def missing(kind: str) -> str | None:
    """Why a broker of this kind cannot be tested here; None if it can."""
    if kind == "rabbitmq":
        there = RABBITMQ.exists() and shutil.which("epmd") is not None
        return None if there else "rabbitmq-server is not installed (Debian: rabbitmq-server)"
    programs = [name for name in ("java", "mvn") if shutil.which(name) is None]
    return f"{' and '.join(programs)} missing (Debian: default-jre-headless, maven)" if programs else None


class RealBroker:
    """A broker of one kind in a folder; `USER` with `PASSWORD` may log in without TLS, unless `anonymous`.

    `identity` is its TLS identity, and `trust` the file of its clients' authorities, else the lab's; `clients` are
    the common names of certificates that are accepted, else the lab's.
    """

    def __init__(
        self,
        kind: str,
        folder: Path,
        *,
        queues: Sequence[str] = ("q",),
        clients: Sequence[str] = (),
        trust: Path | None = None,
        identity: IdentityFiles | None = None,
        anonymous: bool = False,
    ) -> None:
        self.kind, self.anonymous = kind, anonymous
        self.host, self.port, self.tls_port = HOST, 0, 0
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder / kind
        self.password_file = folder / "password"
        self.password_file.touch(0o600)
        self.password_file.write_text(PASSWORD)
        self._options = [f"--queue={name}" for name in queues] + [f"--client={name}" for name in clients]
        if trust is not None:
            self._options.append(f"--trust={trust}")
        if identity is not None:
            self._options += [f"--certificate={identity.certificate}", f"--key={identity.key}"]
        if not anonymous:
            self._options += [f"--user={USER}", f"--password-file={self.password_file}"]
        self._process: subprocess.Popen[str] | None = None

    def address(self, queue: str) -> str:
        """The AMQP 1.0 address of a queue."""
        return f"/amq/queue/{queue}" if self.kind == "rabbitmq" else queue

    @property
    def plain(self) -> Endpoint:
        """The port without TLS, as the user."""
        return Endpoint(HOST, self.port, username=USER, password=PASSWORD)

    def secure(self, tls: TlsSettings) -> Endpoint:
        """The port with TLS."""
        return Endpoint(HOST, self.tls_port, tls)

    def start(self) -> None:
        """Start it and wait until it serves; at a later start its ports are those of the first."""
        ports = [f"--port={self.port}", f"--tls-port={self.tls_port}"]
        command = [sys.executable, str(SCRIPT), self.kind, f"--dir={self.folder}", "start", "--foreground"]
        within = _WITH_US if shutil.which(_WITH_US[0]) else ()
        state_file, deadline = self.folder / "state.json", time.monotonic() + _START_S
        killed = state_file.read_text() if state_file.is_file() else None
        with (self.folder.parent / "command.log").open("a") as log:
            self._process = subprocess.Popen([*within, *command, *ports, *self._options], stdout=log, stderr=log)
        while True:
            text = state_file.read_text() if state_file.is_file() else killed
            state = {} if text is None or text == killed else json.loads(text)
            if state.get("startup_s") is not None:
                break
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError((self.folder.parent / "command.log").read_text())
            time.sleep(0.05)
        self.attach()

    @property
    def pid(self) -> int:
        """The process below which all of it is, where this object has started it."""
        assert self._process is not None
        return self._process.pid

    def attach(self) -> None:
        """Use the broker that another process has started in this folder."""
        state = json.loads((self.folder / "state.json").read_text())
        self.port, self.tls_port = state["port"], state["tls_port"]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_raised: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop it; its messages stay."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(_STOP_S)
            self._process = None
