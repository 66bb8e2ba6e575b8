"""A cluster on this computer alone: a scheduler and some hosts as processes that end with the one that starts them."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace

from labconsole.engine.role_handle import CancelledError
from labconsole.errors import UserError
from labconsole.hosts.cluster_certificates import console_files
from labconsole.hosts.cluster_tls import Member
from labconsole.hosts.samples.collected import LOCAL
from labconsole.hosts.serving import serve_agent, serve_scheduler
from labconsole.processes import own_program
from labconsole.security.secrets import Secret

_ADDRESS = "127.0.0.1"
_SCHEDULER = "scheduler"
_READY = b"ready "
_END_S = 10.0
_POLL_S = 0.02


@contextmanager
def local_cluster(hosts: int, cancelled: Callable[[], bool] = lambda: False) -> Iterator[str]:
    """Start a scheduler and so many hosts, local-1 and so on; its address.

    Raises UserError: one does not start; CancelledError: `cancelled`, which is asked until they serve.
    """
    console_files()  # made before its processes need it
    with ExitStack() as started:
        scheduler = started.enter_context(_process(_SCHEDULER))
        # At once: they import Dask while the scheduler does.
        agents = [started.enter_context(_process(f"{LOCAL}{number}")) for number in range(1, hosts + 1)]
        address = scheduler.ready(cancelled)
        for agent in agents:
            agent.join(address)
        for agent in agents:
            agent.ready(cancelled)
        yield address


class _Process:
    """A node of the cluster; it ends when its standard input is closed."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.process = subprocess.Popen(
            own_program("labconsole.hosts.local_cluster", name), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._serves = ""
        self._reader = threading.Thread(target=self._read, name=f"{name}-starts", daemon=True)
        self._reader.start()

    def join(self, scheduler: str) -> None:
        """Let an agent join the cluster of this scheduler."""
        assert self.process.stdin is not None
        with suppress(OSError):  # it has ended, which `ready` reports
            self.process.stdin.write(f"{scheduler}\n".encode())
            self.process.stdin.flush()

    def ready(self, cancelled: Callable[[], bool]) -> str:
        """Wait until it serves; returns where. Raises UserError: it has ended; CancelledError."""
        while self._reader.is_alive():
            if cancelled():
                raise CancelledError("Cancelled while hosts on this computer were started.")
            self._reader.join(_POLL_S)
        if not self._serves:
            raise UserError(f"{self._name} could not be started on this computer: read the log.")
        return self._serves

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(_READY):
                self._serves = line.removeprefix(_READY).decode().strip()
                return


@contextmanager
def _process(name: str) -> Iterator[_Process]:
    started = _Process(name)
    with started.process as process:
        try:
            yield started
        except CancelledError:
            process.kill()  # it may still be starting, and has recorded nothing
            raise
        finally:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.close()
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()


class _Served:
    """The `OperationContext` of a node: it serves until standard input is closed, and says where it listens."""

    typed = ""

    def __init__(self) -> None:
        self._over = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def stop_requested(self) -> bool:
        return self._over.is_set()

    def say(self, sentence: str) -> None:
        """Print where it listens, once it does."""
        if "listens on" in sentence:
            place = sentence.rstrip(".").rpartition(" ")[2]
            sys.stdout.buffer.write(_READY + place.encode() + b"\n")
            sys.stdout.flush()

    def progress(self, done: int, total: int) -> None:
        """Nothing is counted."""

    def secret(self, key: str) -> Secret | None:
        return None

    def hand_over(self, title: str, secret: Secret) -> None:
        """There is no secret."""

    def _read(self) -> None:
        sys.stdin.buffer.read()
        self._over.set()


def main() -> int:
    """Entry of a node: `scheduler`, or the name of a host, which gets the scheduler's address on standard input."""
    (name,) = sys.argv[1:]
    member = Member.of_console()
    try:
        if name == _SCHEDULER:
            serve_scheduler(member, _ADDRESS, 0, _Served())
        elif scheduler := sys.stdin.buffer.readline().decode().strip():
            serve_agent(replace(member, name=name), scheduler, _ADDRESS, ("local",), _Served())
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
