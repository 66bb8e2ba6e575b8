"""The certificate database opened for changes: each is one durable transaction with its rows of the audit list."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from labconsole.paths import pki_dir
from labconsole.security.pki.audited_changes import AuditedOperation
from labconsole.security.pki.change import Change
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.schema import FILE_NAME, PKI
from labconsole.store.errors import explained
from labconsole.store.writer import Writer


class PkiStore(PkiReader):
    """A reader that can change the database too; threads and processes take turns. Methods raise StoreError."""

    def __init__(self, directory: Path, lock_timeout_s: float = 30.0) -> None:
        """Open the database of `directory`, made where needed: the file 0600, the directory 0700."""
        path = directory / FILE_NAME
        with explained(path, PKI.noun):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):
                path.touch(0o600, exist_ok=False)
        self.operation: AuditedOperation | None = None
        """What the next entry of the audit list belongs to; None once it is noted."""
        self._writer = Writer(path, PKI, lock_timeout_s)
        try:
            super().__init__(directory)
        except BaseException:
            self._writer.close()
            raise

    @classmethod
    def open(cls, directory: Path | None = None, *, lock_timeout_s: float = 30.0) -> Self:
        """Open the database of `directory` (the user's own where none is named), made where needed."""
        return cls(directory or pki_dir(), lock_timeout_s)

    def close(self) -> None:
        """Release the database; a second call does nothing."""
        super().close()
        self._writer.close()

    @contextmanager
    def change(self, who: str | None = None) -> Iterator[Change]:
        """One transaction: all of it is on disk when the block ends, nothing where it raises.

        `who` is the name in the audit list; not given: that of the operator's login. Other processes wait
        meanwhile: generate keys and ask for passphrases before. Raises StoreError.
        """
        with self._writer.transaction(durable=True) as connection:
            change = Change(connection, self.directory, self._last, who or _operator(), self.operation)
            yield change
        self.operation = change.operation


def _operator() -> str:
    """The name that the operator is logged in with."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):  # an account without a name, as containers have
        return "a user without a login name"
