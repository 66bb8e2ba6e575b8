"""A broker as a server in the background: started, described in a state file, and ended with all its processes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import psutil

from labconsole.errors import UserError
from labconsole.processes import Owner, find_process, group_options, is_alive
from labconsole.security.private_files import write_private
from labconsole_amqp.link.connection import Endpoint, connect
from labconsole_amqp.link.queue_probe import try_attach
from processes import SetupError
from real_brokers.settings import HOST, BrokerSettings, Program, RealBroker

STATE_FILE = "state.json"
_START_S, _STOP_S, _KILL_S = 120.0, 60.0, 10.0
_POLL_S, _WATCH_S = 0.1, 1.0
"""Between two checks whether a broker is ready, which takes seconds, and whether it still runs, for hours."""
_SHOWN_LINES = 15


@dataclass(frozen=True)
class ServerState:
    """A broker that was started; its own process is the last one. Without `startup_s` it was not ready yet."""

    title: str
    version: str
    processes: tuple[Owner, ...]
    port: int
    tls_port: int
    queues: tuple[str, ...]
    addresses: tuple[str, ...]
    clients: tuple[str, ...]
    user: str | None
    started: str
    startup_s: float | None = None

    @property
    def pid(self) -> int:
        """The process id of the broker."""
        return self.processes[-1].pid

    @property
    def is_running(self) -> bool:
        """Whether the broker's process is alive."""
        return bool(self.processes) and is_alive(self.processes[-1])

    def memory(self) -> int:
        """Bytes of memory that its processes occupy now (resident set)."""
        total = 0
        for process in _with_children(self.processes):
            with suppress(psutil.Error):
                total += process.memory_info().rss
        return total


def read_state(folder: Path) -> ServerState | None:
    """What was started in `folder` and not stopped; None without it. Raises SetupError: the file is damaged."""
    path = folder / STATE_FILE
    try:
        values = json.loads(path.read_text("utf-8"))
        values["processes"] = tuple(Owner(**one) for one in values["processes"])
        for name in ("queues", "addresses", "clients"):
            values[name] = tuple(values[name])
        return ServerState(**values)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise SetupError(f"{path} is damaged: end the broker's processes yourself, and delete the file.") from error


def start(broker: RealBroker, settings: BrokerSettings, software: Path) -> ServerState:
    """Start a broker and wait until its queues can be attached to.

    Raises:
        SetupError: a port is in use, or the broker ends or does not serve in time; no process of it is left.
    """
    for option, port in (("--port", settings.port), ("--tls-port", settings.tls_port)):
        _require_free(option, port)
    for folder in (settings.configuration, settings.log, settings.data):
        folder.mkdir(exist_ok=True)
    programs = broker.configure(settings, software)
    output = settings.log / "output"
    began = time.monotonic()
    state = ServerState(
        broker.title,
        "",
        (),
        settings.port,
        settings.tls_port,
        settings.queues,
        tuple(map(broker.address, settings.queues)),
        settings.clients,
        settings.user,
        datetime.now(UTC).isoformat(timespec="seconds"),
    )
    try:
        with output.open("wb") as file:
            for program in programs:
                server = _run(program, settings, file.fileno())
                if (found := find_process(server.pid)) is not None:
                    state = replace(state, processes=(*state.processes, found))
                _write_state(settings.folder, state)
        _await_ready(settings, state, server, output)
        state = replace(state, version=broker.version(settings), startup_s=time.monotonic() - began)
        _write_state(settings.folder, state)
    except BaseException:
        end(settings.folder, state)
        raise
    return state


def end(folder: Path, state: ServerState) -> bool:
    """End all processes of a broker, in order and at last by force; returns whether it ended by itself."""
    family = _with_children(state.processes)
    orderly = True
    for owner in reversed(state.processes):
        if is_alive(owner):
            orderly &= _end_one(psutil.Process(owner.pid))
    for process in family:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(family, timeout=_KILL_S)
    (folder / STATE_FILE).unlink(missing_ok=True)
    return orderly


def wait(state: ServerState) -> None:
    """Wait until the broker's process ends."""
    while state.is_running:
        time.sleep(_WATCH_S)


def _run(program: Program, settings: BrokerSettings, output: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        program.command,
        env=dict(program.environment),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        cwd=settings.folder,
        **group_options(),
    )


def _write_state(folder: Path, state: ServerState) -> None:
    write_private(folder / STATE_FILE, json.dumps(asdict(state), indent=2).encode())


def _await_ready(settings: BrokerSettings, state: ServerState, server: subprocess.Popen[bytes], output: Path) -> None:
    plain = Endpoint(HOST, settings.port, username=settings.user, password=settings.password)
    deadline = time.monotonic() + _START_S
    while True:
        try:
            with connect(plain) as connection:
                for address in state.addresses:
                    try_attach(connection, address, "receiver")
            socket.create_connection((HOST, settings.tls_port), 5).close()
            return
        except (UserError, OSError) as error:
            if server.poll() is not None:
                reason = "it has ended"
            elif time.monotonic() > deadline:
                reason = f"it does not serve after {_START_S:.0f} s ({error})"
            else:
                time.sleep(_POLL_S)
                continue
            lines = "\n  ".join(_last_lines(output))
            raise SetupError(f"{state.title} did not start, {reason}. Its last lines:\n  {lines}") from error


def _last_lines(path: Path) -> Sequence[str]:
    return path.read_text("utf-8", errors="replace").splitlines()[-_SHOWN_LINES:]


def _require_free(option: str, port: int) -> None:
    """Raises SetupError: another program listens on the port, or may."""
    try:
        socket.create_server((HOST, port)).close()
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise SetupError(
            f"port {port} cannot be used ({reason}): choose another one by {option}, or 0 for any free port."
        ) from error


def _with_children(owners: Sequence[Owner]) -> list[psutil.Process]:
    """The processes of `owners` that are alive, and those that they started."""
    family: list[psutil.Process] = []
    for owner in owners:
        if is_alive(owner):
            with suppress(psutil.NoSuchProcess):
                process = psutil.Process(owner.pid)
                family += [process, *process.children(recursive=True)]
    return family


def _end_one(process: psutil.Process) -> bool:
    """Ask a process to end, and wait; whether it did."""
    with suppress(psutil.NoSuchProcess):
        process.terminate()
        try:
            process.wait(_STOP_S)
        except psutil.TimeoutExpired:
            return False
    return True
