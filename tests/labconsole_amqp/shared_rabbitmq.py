"""One RabbitMQ for all tests of a run, in whichever test process they are: to start it takes 10 s of CPU.

Its certificate is that of the lab, as without options; clients of a CA of the tests are accepted besides the lab's.
"""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import count
from pathlib import Path

import psutil
from filelock import FileLock

from labconsole.security.identities import IdentityFiles
from labconsole.security.lab_identities import STATE_A, STATE_B, lab_identities
from labconsole_amqp.link.connection import Endpoint
from tests.helpers import lasting_processes
from tests.helpers.suite_schedule import ENDS_LAST
from tests.labconsole_amqp.lab_pki import LabCa, identity_files, tls_of
from tests.labconsole_amqp.real_broker import RealBroker

SENDER, RECEIVER, UNKNOWN = "state-x", "state-y", "State X"
"""Common names of clients by certificate; the last one is not known to the broker."""
CLOCK_QUEUE = "times"
"""Its replies go to `times-reply`."""
NAMED_QUEUES = ("labconsole", "1", "2", "3", "4", "large")
"""Of the tests of each real broker (`trial/test_real_brokers.py`)."""
_QUEUES = 80


class SharedRabbitmq:
    """The running broker; clients have encrypted keys. Each test has queues of its own."""

    def __init__(self, folder: Path) -> None:
        pki = folder / "pki"
        self.ca_file = pki / "trust.pem"
        self.sender, self.receiver, self.unknown = (
            identity_files(pki, name).model_copy(update={"trust": self.ca_file}) for name in (SENDER, RECEIVER, UNKNOWN)
        )
        self.broker = RealBroker(
            "rabbitmq",
            folder,
            queues=(*map(_queue, range(_QUEUES)), CLOCK_QUEUE, f"{CLOCK_QUEUE}-reply", *NAMED_QUEUES),
            clients=(SENDER, RECEIVER, STATE_A, STATE_B),
            trust=self.ca_file,
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


class RabbitmqUse:
    """The use of the broker by this test process: the first one starts it, and stops it when no other uses it.

    `base` is a folder that all processes of a test run know; the home has the lab identities.
    """

    def __init__(self, base: Path) -> None:
        base.mkdir(exist_ok=True)
        self._base, self._lock, self._running = base, FileLock(base / "lock"), base / "running"
        self._mark = base / f"user-{os.getpid()}"
        with self._lock:
            self._mark.touch()
            self._must_stop = not self._running.exists()
            if self._must_stop:
                folder = base / f"broker-{os.getpid()}"
                _issue_identities(folder / "pki")
                self.rabbitmq = SharedRabbitmq(folder)
                self.rabbitmq.broker.start()
                lasting_processes.PIDS.add(self.rabbitmq.broker.pid)
                self._running.write_text(str(folder))
                (base.parent / ENDS_LAST).write_text(os.environ.get("PYTEST_XDIST_WORKER", ""))
            else:
                self.rabbitmq = SharedRabbitmq(Path(self._running.read_text()))
                self.rabbitmq.broker.attach()

    def end(self) -> None:
        """This process uses it no longer."""
        self._mark.unlink(missing_ok=True)

    def stop(self) -> bool:
        """Stop it, if that is for this process to do; False while another process uses it."""
        with self._lock:
            users = (int(mark.name.partition("-")[2]) for mark in self._base.glob("user-*"))
            if self._must_stop and not any(map(psutil.pid_exists, users)):
                self._running.unlink()
                self.rabbitmq.broker.stop()
                self._must_stop = False
        return not self._must_stop


def _issue_identities(folder: Path) -> None:
    pki = LabCa(folder)
    for name in (SENDER, RECEIVER, UNKNOWN):
        pki.issue(name, encrypted=True, of_rsa=True)
    (folder / "trust.pem").write_text(lab_identities().authority_file.read_text() + pki.ca_file.read_text())
