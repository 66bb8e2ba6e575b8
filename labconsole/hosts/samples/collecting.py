"""Brings what the roles of a run have recorded on a host, in pieces: continues where it was broken, and checks it."""

from __future__ import annotations

from pathlib import Path

from labconsole.errors import UserError
from labconsole.hosts.agent.hosted_runs import sha256_of
from labconsole.hosts.cluster import ANSWER_S, Cluster
from labconsole.model.series import FILE_NAME

PIECE, PIECE_S = 1024 * 1024, 30.0
"""Bytes that are sent at once, and how long they may take: links of 2 Mbit/s are slow, and several hosts share one."""
_READ_PER_S = 10_000_000
"""Bytes of its samples that the slowest host reads, and hashes or summarises, in a second."""


def reading_s(cluster: Cluster, host: str, run: str) -> float:
    """How long a host may take to read all that it has of a run. Raises UserError."""
    return ANSWER_S + float(cluster.call(host, "size", run)) / _READ_PER_S


def bring(cluster: Cluster, host: str, run: str, folder: Path) -> int:
    """Copy the files of a run from a host into `folder`, after ending what still runs of it there. Returns the bytes.

    Raises UserError: the host does not answer, the disk is full, or a file did not arrive as it was sent.
    """
    cluster.call(host, "end", run)
    longest_s = reading_s(cluster, host, run)
    contents: dict[str, tuple[int, str]] = cluster.call(host, "contents", run, timeout_s=longest_s)
    for name, (size, sha256) in contents.items():
        if not FILE_NAME.fullmatch(name):
            raise UserError(f"{host} has a file {name!r}, which cannot be one of samples: check that host.")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _bring_file(cluster, host, run, folder / name, size)
            arrived = sha256_of(folder / name)
        except OSError as error:
            raise UserError(
                f"Samples of {host} cannot be written to {folder} ({error.strerror}): free space on that disk."
            ) from error
        if arrived != sha256:
            (folder / name).unlink()
            raise UserError(f"{name} did not arrive from {host} as it was sent: collect it again.")
    return sum(size for size, _ in contents.values())


def _bring_file(cluster: Cluster, host: str, run: str, target: Path, size: int) -> None:
    with target.open("ab") as file:
        while (position := file.tell()) < size:
            data = cluster.call(host, "read", run, target.name, position, PIECE, timeout_s=PIECE_S)
            if not data:
                raise UserError(f"{target.name} became shorter on {host} while it was brought: check its disk.")
            file.write(data)
