"""The embedded broker for tests: in a thread, to read its state, in a process, to stop and kill it, or as a command."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue

from labconsole_amqp.broker.embedded_broker import Broker, BrokerSettings, Ports
from labconsole_amqp.link.connection import Endpoint
from labconsole_amqp.link.tls import TlsSettings
from tests.helpers.signals import interruptible

_PROCESS = """
from labconsole_amqp.broker.embedded_broker import Broker, BrokerSettings
from labconsole_amqp.link.server_handshake import Access
settings = BrokerSettings(queues=("q",), access=Access(users={"user": "password"}))
broker = Broker(settings, on_refused=lambda reason: None)
print(broker.listen().plain, flush=True)
broker.serve(lambda: False, lambda: None)
"""

_COMMAND = [sys.executable, "-m", "labconsole.cli.main", "broker"]


@dataclass(frozen=True)
class RunningBroker:
    """A broker in a thread; read its state only when nothing moves."""

    broker: Broker
    ports: Ports
    refused: Counter[str]
    """Clients that were refused, by reason."""
    settings: SimpleQueue[TlsSettings]
    """TLS settings that the broker's thread is to use next."""

    def use(self, tls: TlsSettings) -> None:
        """Have the broker use other TLS settings, and wait until it does."""
        self.settings.put(tls)
        while not self.settings.empty():
            time.sleep(0.01)

    @property
    def plain(self) -> Endpoint:
        """The plain port, without user."""
        assert self.ports.plain is not None
        return Endpoint("127.0.0.1", self.ports.plain)


@contextmanager
def serving(settings: BrokerSettings) -> Iterator[RunningBroker]:
    """Serve in a thread until the block ends."""
    refused: Counter[str] = Counter()
    broker = Broker(settings, lambda reason: refused.update([reason]))
    ports = broker.listen()
    enough = threading.Event()
    wanted: SimpleQueue[TlsSettings] = SimpleQueue()

    def tick() -> None:
        if not wanted.empty():
            broker.use(wanted.get())

    thread = threading.Thread(target=broker.serve, args=(enough.is_set, tick))
    thread.start()
    try:
        yield RunningBroker(broker, ports, refused, wanted)
    finally:
        enough.set()
        thread.join()
        broker.close()


@contextmanager
def broker_process() -> Iterator[tuple[subprocess.Popen[str], Endpoint]]:
    """A broker with queue `q` and user `user` in a process, killed at the end if it still runs."""
    process = subprocess.Popen([sys.executable, "-c", _PROCESS], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process, Endpoint("127.0.0.1", int(process.stdout.readline()), connect_timeout_s=30)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@contextmanager
def broker_command(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, int]]]:
    """The command, and its ports by scheme; killed at the end if it still runs."""
    with interruptible():
        process = subprocess.Popen([*_COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        ports = {}
        for _ in range(1 + ("--tls" in arguments and "--port" in arguments)):
            ready = re.fullmatch(r"Ready: (amqps?)://127\.0\.0\.1:(\d+), queues: .*\n", process.stdout.readline())
            assert ready
            ports[ready[1]] = int(ready[2])
        yield process, ports
    finally:
        process.kill()
        process.communicate()
