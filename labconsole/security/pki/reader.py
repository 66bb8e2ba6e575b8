"""A look into the certificate database while others change it: read-only, for windows and commands that list."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from labconsole.paths import pki_dir
from labconsole.security.pki.schema import FILE_NAME, PKI
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.tables import Tables
from labconsole.store.errors import explained
from labconsole.store.opening import connect_for_reading


class PkiReader(Tables):
    """A read-only connection; threads may share it. Every method raises StoreError."""

    def __init__(self, directory: Path) -> None:
        """Open the database of `directory`. Raises MissingDatabaseError, StoreError: it is another file."""
        self.directory = directory
        self.path = directory / FILE_NAME
        self._turn = threading.RLock()
        self._last = Snapshot()
        self._last_version = -1
        with explained(self.path, PKI.noun):
            self._raw = connect_for_reading(self.path, PKI)

    @classmethod
    def open(cls, directory: Path | None = None) -> Self:
        """Open the database of `directory` (the user's own where none is named); it is never made.

        Raises MissingDatabaseError, or StoreError: it is another file, or of another version.
        """
        return cls(directory or pki_dir())

    def close(self) -> None:
        """Release the file; a second call does nothing."""
        with self._turn:
            self._raw.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def snapshot(self) -> Snapshot:
        """All rows as they are at one moment; a few ms per 1,000, nothing while nobody changes the database."""
        with self._reading() as raw:
            version = self.data_version()
            if version != self._last_version:
                raw.execute("BEGIN")
                try:
                    self._last = self._snapshot(self._last)
                finally:
                    raw.execute("ROLLBACK")
                self._last_version = version
            return self._last

    def data_version(self) -> int:
        """A number that differs from the last one when anybody else has changed the database; cheap."""
        return int(self._rows("PRAGMA data_version")[0][0])

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._reading() as raw:
            return raw.execute(statement, values).fetchall()

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._turn, explained(self.path, PKI.noun):
            yield self._raw
