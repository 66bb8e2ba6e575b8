"""The one writer: every transaction, checkpoint and close holds the exclusive lock `<database>.lock`.

SQLite before 3.51.3 can lose a checkpoint when two connections reset the write-ahead log at the same time; hence no
automatic checkpoints, and no checkpoint or close without the lock.
"""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from labconsole.store.database_file import (
    DatabaseKind,
    bring_up_to_date,
    connect,
    core_connection,
    plain_transaction,
)
from labconsole.store.errors import StoreError, explained

if TYPE_CHECKING:
    from sqlalchemy import Connection

_WAL_LIMIT = 4 * 1024 * 1024
_LOCK_POLL_S = 0.001  # a process that writes again and again leaves others only moments
_CHECKPOINT_WAIT_MS = 100
_WORTH_RECLAIMING = 16 * 1024 * 1024
_MOST_KEPT = 2 * 1024**3


class Writer:
    """A writing connection. Threads take turns; processes take turns by the lock file."""

    def __init__(self, path: Path, kind: DatabaseKind, lock_timeout_s: float) -> None:
        if not path.absolute().parent.is_dir():
            raise StoreError(
                f"There is no directory {path.absolute().parent} for {path.name}: make it or name another."
            )
        self.path = path
        self._kind = kind
        self._turn = threading.Lock()
        self._lock = FileLock(
            path.with_name(path.name + ".lock"), timeout=lock_timeout_s, thread_local=False, poll_interval=_LOCK_POLL_S
        )
        with self._exclusive():
            bring_up_to_date(path, kind)
            self._raw = connect(path, "rw", lock_timeout_s)
            self._raw.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT}")
            if kind.secure_delete:
                self._raw.execute("PRAGMA secure_delete = ON").fetchall()
        self._open = True

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[Connection]:
        """A transaction: committed at the end of the block, rolled back if the block raises.

        What was committed survives a kill of this process; with `durable` it also survives a power cut. The
        checkpoint comes before it, so that an error always means: nothing was written. Raises StoreError.
        """
        with self._exclusive():
            self._prepare_transaction(durable)
            with self._connection.begin():
                yield self._connection

    @contextmanager
    def plain_transaction(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """The same for plain SQL, which a worker uses alone: SQLAlchemy takes it longer to import than all else."""
        with self._exclusive():
            self._prepare_transaction(durable)
            with plain_transaction(self._raw, "BEGIN IMMEDIATE"):
                yield self._raw

    def reclaim(self, unless: str) -> None:
        """Return the space of deleted rows to the disk, where it is much of the file. Raises StoreError.

        Nothing is done while the query `unless` finds a row, without room for the copy that this needs, or where so
        much stays that other consoles would wait too long. Later rows use the space that is not returned.
        """
        with self._exclusive():
            free, pages, page_size = (
                self._raw.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("freelist_count", "page_count", "page_size")
            )
            kept = (pages - free) * page_size
            much = free * page_size > _WORTH_RECLAIMING and free * 4 > pages and kept < _MOST_KEPT
            room = self._free_bytes() > 2 * kept
            if much and room and self._raw.execute(unless).fetchone() is None:
                self._raw.execute("VACUUM")
                self._checkpoint()

    def checkpoint(self) -> None:
        """Empty the write-ahead log, unless another connection is reading it. Raises StoreError."""
        with self._exclusive():
            self._checkpoint()

    def close(self) -> None:
        """Close the connection; the last one to close empties the write-ahead log. A second call does nothing."""
        with self._exclusive():
            if self._open:
                self._open = False
                if "_connection" in self.__dict__:
                    self._connection.close()
                self._raw.close()

    @cached_property
    def _connection(self) -> Connection:
        return core_connection(self._raw, "BEGIN IMMEDIATE")

    def _prepare_transaction(self, durable: bool) -> None:
        self._checkpoint_when_long()
        self._raw.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        with self._turn, explained(self.path, self._kind.noun):
            try:
                self._lock.acquire()
            except Timeout as error:
                raise StoreError(
                    f"{self.path} has been locked by another lab console for over {self._lock.timeout:.0f} s: "
                    f"close that console or choose another {self._kind.noun}."
                ) from error
            try:
                yield
            finally:
                self._lock.release()

    def _checkpoint_when_long(self) -> None:
        """Empty a long log, unless the disk may be full before that is done: its last room is for the transaction."""
        log = self.path.with_name(self.path.name + "-wal")
        size = log.stat().st_size if log.exists() else 0
        if size > _WAL_LIMIT and size < self._free_bytes():
            self._checkpoint()

    def _free_bytes(self) -> int:
        return shutil.disk_usage(self.path.absolute().parent).free

    def _checkpoint(self) -> None:
        timeout_ms = self._raw.execute("PRAGMA busy_timeout").fetchone()[0]
        self._raw.execute(f"PRAGMA busy_timeout = {_CHECKPOINT_WAIT_MS}")  # another connection reads it: next time
        try:
            self._raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            self._raw.execute(f"PRAGMA busy_timeout = {timeout_ms}")
