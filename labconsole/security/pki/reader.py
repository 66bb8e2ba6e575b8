"""Reads the certificate database while other processes change it: for windows, and commands that list."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Self

from sqlalchemy import Connection

from labconsole.paths import pki_dir
from labconsole.security.pki.schema import FILE_NAME, PKI
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.tables import Tables
from labconsole.store.database_file import DatabaseReader


class PkiReader(DatabaseReader, Tables):
    """A read-only connection; threads may share it. Every method raises StoreError."""

    def __init__(self, directory: Path) -> None:
        """Open the database of `directory`. Raises MissingDatabaseError, StoreError: it is another file."""
        self.directory = directory
        self._last = Snapshot()
        self._last_version = -1
        super().__init__(directory / FILE_NAME, PKI)

    @classmethod
    def open(cls, directory: Path | None = None) -> Self:
        """Open the database of `directory` (the user's own where none is named); it is never created.

        Raises MissingDatabaseError, or StoreError: it is another file, or of another version.
        """
        return cls(directory or pki_dir())

    def snapshot(self) -> Snapshot:
        """All rows as they are at one moment; a few ms per 1,000, nothing where no process has changed them since."""
        with self.transaction():
            version = self.data_version()
            if version != self._last_version:
                self._last = self._snapshot(self._last)
                self._last_version = version
            return self._last

    def _transaction(self) -> AbstractContextManager[Connection]:
        return self.transaction()
