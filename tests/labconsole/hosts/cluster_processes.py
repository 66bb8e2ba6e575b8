"""A cluster for tests: scheduler and agents as processes of the terminal, on loopback or in network namespaces."""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from labconsole.clock import SHIFT_VARIABLE
from labconsole.hosts.cluster_certificates import console_files, enrol
from labconsole.hosts.cluster_tls import Member
from labconsole.paths import HOME_VARIABLE
from tests.helpers.host_network import Loopback, Network
from tests.helpers.signals import interruptible
from tests.helpers.worker_threads import CONSOLE_IN_THREADS

_START_S = 120.0
CONSOLE = [sys.executable, "-m", "labconsole.cli.main"]


class Served:
    """A command that serves; its output is read to the end.

    `within`: a command that starts it. Its runs and operations are threads of it if `threads`.
    """

    def __init__(
        self,
        home: Path,
        *arguments: str,
        clock_shift: str = "",
        within: Sequence[str] = (),
        threads: bool = False,
    ) -> None:
        environment = {**os.environ, HOME_VARIABLE: str(home), **({SHIFT_VARIABLE: clock_shift} if clock_shift else {})}
        self.arguments, self.within = arguments, within
        self.process = _started([*within, *(CONSOLE_IN_THREADS if threads else CONSOLE), *arguments], environment)
        self._said: list[str] = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    @property
    def said(self) -> str:
        """All of its output so far."""
        return "".join(self._said)

    def waits_for(self, pattern: str) -> re.Match[str]:
        """The first match in its output, waited for."""
        with self._changed:
            found = self._changed.wait_for(
                lambda: re.search(pattern, self.said) or not self._reader.is_alive(), _START_S
            )
        match = re.search(pattern, self.said)
        if match is None and self.process.poll() is None:
            self.kill()  # no fixture knows it yet
        assert found and match is not None, self.said
        return match

    def end(self) -> int:
        """Stop it as Ctrl+C does, and return its exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.ended()

    def ended(self) -> int:
        """Wait until it has ended by itself; returns its exit code."""
        try:
            code = self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        self._reader.join()
        return code

    def kill(self) -> None:
        """Kill it and what it has started, and read the rest."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(20)
        self._reader.join()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as stream:
            for line in stream:
                with self._changed:
                    self._said.append(line)
                    self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()


def _started(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[str]:
    with interruptible():
        return subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )


class ClusterProcesses:
    """A scheduler, and the agents that a test starts; `home` is the console's, `network` that of the hosts."""

    def __init__(self, home: Path, network: Network) -> None:
        self.home = home
        self._network = network
        self._port = str(_free_port())
        self.agents: list[Served] = []
        self.start_scheduler()

    def start_scheduler(self) -> None:
        """Start the scheduler, where it was before if it was lost."""
        arguments = ("scheduler", "--host", self._network.console, "--port", self._port)
        self.scheduler = Served(self.home, *arguments)
        self.address = self.scheduler.waits_for(r"tls://\S+:\d+").group()

    def member(self) -> Member:
        """The console."""
        return Member.of_console(console_files(self.home / "pki"))

    def enrolled(self, name: str, folder: Path, home: Path | None = None) -> tuple[Path, Path]:
        """The enrolment of a host by the console of `home` (None: this one), and the file with its passphrase."""
        folder.mkdir(exist_ok=True)
        made = enrol(name, (home or self.home) / "pki")
        files = folder / f"{name}.pem", folder / f"{name}.passphrase"
        for file, content in zip(files, (made.pem, made.passphrase.reveal().encode()), strict=True):
            file.touch(0o600)
            file.write_bytes(content)
        return files

    def starts(
        self, enrolment: tuple[Path, Path], *arguments: str, clock_shift: str = "", within: Sequence[str] = ()
    ) -> Served:
        """The agent of an enrolled host, which may not have joined yet."""
        file, passphrase = map(str, enrolment)
        given = ("agent", file, "--passphrase-file", passphrase, "--scheduler", self.address, *arguments)
        within = *self._network.within(enrolment[0].stem), *within
        self.agents.append(Served(self.home / "agent", *given, clock_shift=clock_shift, within=within))
        return self.agents[-1]

    def joins(
        self, name: str, folder: Path, *arguments: str, clock_shift: str = "", within: Sequence[str] = ()
    ) -> Served:
        """An agent that has joined; `within`: a command that starts it."""
        agent = self.starts(self.enrolled(name, folder), *arguments, clock_shift=clock_shift, within=within)
        agent.waits_for("has joined")
        return agent

    def starts_again(self, agent: Served) -> None:
        """Start an agent that has ended, with the same arguments."""
        self.agents.append(Served(self.home / "agent", *agent.arguments, within=agent.within))

    def agent(self, host: str) -> Served:
        """The running agent of a host (in a shared cluster, a test may have had another one refused), or the last."""
        of_host = [agent for agent in self.agents if f"{host}.pem" in " ".join(agent.arguments)]
        return next((agent for agent in reversed(of_host) if agent.process.poll() is None), of_host[-1])

    def close(self) -> None:
        """End every process."""
        for served in (*self.agents, self.scheduler):
            if served.process.poll() is None:
                served.kill()
            else:
                served.ended()


def _free_port() -> int:
    """A port below those that systems give to connections: an agent that calls it in vain must not take it."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@contextmanager
def cluster(home: Path, network: Network | None = None) -> Iterator[ClusterProcesses]:
    """A cluster that ends with the block; None: on loopback."""
    running = ClusterProcesses(home, network or Loopback())
    try:
        yield running
    finally:
        running.close()
