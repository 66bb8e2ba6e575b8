"""One RabbitMQ for all tests of a run, in whichever test process they are: to start it takes 10 s of CPU."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import psutil
from filelock import FileLock

from labconsole.security.identities import IdentityFiles
from labconsole_amqp.link.connection import Endpoint
from tests.labconsole_amqp.lab_pki import LabCa, identity_files, tls_of
from tests.labconsole_amqp.real_broker import RealBroker

SENDER, RECEIVER, UNKNOWN = "state-x", "state-y", "State X"
"""Common names of clients by certificate; the last one is not known to the broker."""
CLOCK_QUEUE = "times"
"""Its replies go to `times-reply`."""
_QUEUES = 80


class SharedRabbitmq:
    """The running broker; clients have encrypted keys. Each test has queues of its own."""

    def __init__(self, folder: Path) -> None:
        pki = folder / "pki"
        self.ca_file = pki / "ca.pem"
        self.sender, self.receiver, self.unknown = (identity_files(pki, name) for name in (SENDER, RECEIVER, UNKNOWN))
        self.broker = RealBroker(
            "rabbitmq",
            folder,
            queues=(*map(_queue, range(_QUEUES)), CLOCK_QUEUE, f"{CLOCK_QUEUE}-reply"),
            clients=(SENDER, RECEIVER),
            trust=self.ca_file,
            identity=identity_files(pki, "server"),
        )
        self._folder = folder

    @property
    def plain(self) -> Endpoint:
        """The port without TLS, as the user."""
        return self.broker.plain

    def secure(self, identity: IdentityFiles) -> Endpoint:
        """The port with TLS, as a client with this identity."""
        return self.broker.secure(tls_of(identity))

    def fresh_queue(self) -> str:
        """The address of a queue that no other test uses, in any process."""
        for number in count():
            with suppress(FileExistsError):
                (self._folder / f"used-{number}").touch(exist_ok=False)
                assert number < _QUEUES, "the broker has too few queues: raise _QUEUES"
                return self.broker.address(_queue(number))
        raise AssertionError

    def fresh_queues(self, number: int) -> list[str]:
        """As many of them."""
        return [self.fresh_queue() for _ in range(number)]


def _queue(number: int) -> str:
    return f"q{number}"


@contextmanager
def shared_rabbitmq(base: Path) -> Iterator[SharedRabbitmq]:
    """The broker in a folder that all test processes know: one starts it, and stops it when no other uses it."""
    base.mkdir(exist_ok=True)
    lock, running, own_mark = FileLock(base / "lock"), base / "running", base / f"user-{os.getpid()}"
    with lock:
        own_mark.touch()
        starts = not running.exists()
        if starts:
            folder = base / f"broker-{os.getpid()}"
            pki = LabCa(folder / "pki")
            pki.issue("server")
            for name in (SENDER, RECEIVER, UNKNOWN):
                pki.issue(name, encrypted=True, of_rsa=True)
            rabbitmq = SharedRabbitmq(folder)
            rabbitmq.broker.start()
            running.write_text(str(folder))
        else:
            rabbitmq = SharedRabbitmq(Path(running.read_text()))
            rabbitmq.broker.attach()
    try:
        yield rabbitmq
    finally:
        own_mark.unlink()
        while starts:
            with lock:
                if not any(psutil.pid_exists(int(mark.name.partition("-")[2])) for mark in base.glob("user-*")):
                    running.unlink()
                    rabbitmq.broker.stop()
                    break
            time.sleep(0.2)
