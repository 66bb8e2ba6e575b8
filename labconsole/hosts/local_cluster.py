"""A cluster on this computer alone: a scheduler and some hosts as processes that end with the one that starts them."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from labconsole.engine.role_handle import CancelledError
from labconsole.errors import UserError
from labconsole.hosts.cluster_certificates import console_files
from labconsole.hosts.cluster_tls import Member
from labconsole.hosts.local_node import READY, SCHEDULER
from labconsole.hosts.samples.collected import LOCAL
from labconsole.processes import own_program

_END_S = 10.0
_POLL_S = 0.02


@contextmanager
def local_cluster(hosts: int, cancelled: Callable[[], bool] = lambda: False) -> Iterator[str]:
    """Start a scheduler and so many hosts, local-1 and so on; its address.

    Raises UserError: one does not start; CancelledError: `cancelled`, which is asked until they serve.
    """
    member = Member.of_console(console_files())
    with ExitStack() as started:
        scheduler = started.enter_context(_process(SCHEDULER, member))
        # At once: they import Dask while the scheduler does.
        agents = [started.enter_context(_process(f"{LOCAL}{number}", member)) for number in range(1, hosts + 1)]
        address = scheduler.ready(cancelled)
        for agent in agents:
            agent.join(address)
        for agent in agents:
            agent.ready(cancelled)
        yield address


class _Process:
    """A node of the cluster; it ends when its standard input is closed."""

    def __init__(self, name: str, member: Member) -> None:
        self._name = name
        self.process = subprocess.Popen(
            own_program("labconsole.hosts.local_node"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._write(member.hand_over(name))
        self._serves = ""
        self._reader = threading.Thread(target=self._read, name=f"{name}-starts", daemon=True)
        self._reader.start()

    def join(self, scheduler: str) -> None:
        """Let an agent join the cluster of this scheduler."""
        self._write(f"{scheduler}\n".encode())

    def ready(self, cancelled: Callable[[], bool]) -> str:
        """Wait until it serves; returns where. Raises UserError: it has ended; CancelledError."""
        while self._reader.is_alive():
            if cancelled():
                raise CancelledError("Cancelled while hosts on this computer were started.")
            self._reader.join(_POLL_S)
        if not self._serves:
            raise UserError(f"{self._name} could not be started on this computer: read the log.")
        return self._serves

    def _write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        with suppress(OSError):  # it has ended, which `ready` reports
            self.process.stdin.write(line)
            self.process.stdin.flush()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(READY):
                self._serves = line.removeprefix(READY).decode().strip()
                return


@contextmanager
def _process(name: str, member: Member) -> Iterator[_Process]:
    started = _Process(name, member)
    with started.process as process:
        try:
            yield started
        except CancelledError:
            process.kill()  # it may still be starting, and has recorded nothing
            raise
        finally:
            assert process.stdin is not None and process.stdout is not None
            with suppress(OSError):  # it had ended before all was written to it
                process.stdin.close()
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
