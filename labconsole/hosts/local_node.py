"""A process of a cluster on this computer alone, scheduler or host: it ends when its standard input is closed."""

from __future__ import annotations

import sys
import threading

from labconsole.errors import UserError
from labconsole.security.secrets import Secret

SCHEDULER = "scheduler"
"""The name of the one that is the scheduler."""
READY = b"ready "
"""Before the address in the line that it prints once it serves."""
_ADDRESS = "127.0.0.1"


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
            sys.stdout.buffer.write(READY + place.encode() + b"\n")
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
    """Entry of a node. It reads what member of the cluster it is, and a host then the scheduler's address."""
    lines = sys.stdin.buffer
    if not (line := lines.readline()).endswith(b"\n"):
        return 1  # the console has ended meanwhile
    # Not before: Dask takes 2 s, in which a console can end.
    from labconsole.hosts.cluster_tls import Member
    from labconsole.hosts.serving import serve_agent, serve_scheduler

    member = Member.handed_over(line)
    try:
        if member.name == SCHEDULER:
            serve_scheduler(member, _ADDRESS, 0, _Served())
        elif scheduler := lines.readline().decode().strip():
            serve_agent(member, scheduler, _ADDRESS, ("local",), _Served())
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
