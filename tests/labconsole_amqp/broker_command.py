"""`labconsole broker` in a process."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.helpers.signals import interruptible

_COMMAND = [sys.executable, "-m", "labconsole.cli.main", "broker"]


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
