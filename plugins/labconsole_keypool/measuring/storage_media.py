"""The storage of wrapped keys that is measured: a flat file or the key store's database (section 2.9.7)."""

from __future__ import annotations

import os
import shutil
import struct
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, Protocol

import psutil

from labconsole import paths
from labconsole.errors import UserError
from labconsole.security.token.mechanisms import KeyKind, WrapMechanism
from labconsole_keypool.store.key_records import ClaimedKey, NewKey
from labconsole_keypool.store.key_store import KeyStore

_LENGTHS = struct.Struct("<II")
_SCRATCH = "step-times-"


class Storage(StrEnum):
    """The two media that the source compares."""

    DATABASE = "database"
    FILE = "file"


class StorageMedium(Protocol):
    """Keeps wrapped keys of one kind, and gives each back once. Raises UserError: it cannot be written or read."""

    @property
    def wrapper(self) -> str:
        """Serial of the wrapper key under which keys are kept."""

    def save(self, keys: Sequence[NewKey]) -> None:
        """Keep these: they survive a loss of power once this returns."""

    def load(self, count: int) -> list[ClaimedKey]:
        """The next `count` keys, fewer where there are no more."""

    def close(self) -> None:
        """Let go of file or database."""


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """A directory for a medium that goes with the run, on the disk of the key stores (whose speed is measured).

    What a run left behind whose process was killed is removed first.
    """
    for left in paths.data_dir().glob(f"{_SCRATCH}*"):
        if not psutil.pid_exists(int(left.name.removeprefix(_SCRATCH).partition("-")[0])):
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{_SCRATCH}{os.getpid()}-", dir=paths.data_dir()) as directory:
        yield Path(directory)


def open_medium(
    storage: Storage, directory: Path, token_serial: str, kind: KeyKind, mechanism: WrapMechanism
) -> StorageMedium:
    """An empty medium in `directory`. Raises UserError: it cannot be made."""
    if storage is Storage.FILE:
        return FlatFile(directory / "keys.bin", kind, mechanism)
    return Database(directory / "keys.db", token_serial, kind, mechanism)


class FlatFile:
    """Keys one behind the other in a file: the lengths of both parts, the wrapped private key, the public key."""

    wrapper = "wrapper"

    def __init__(self, path: Path, kind: KeyKind, mechanism: WrapMechanism) -> None:
        self._kind = kind
        self._mechanism = mechanism
        self._loaded = 0
        with ExitStack() as opened:
            try:
                self._out: BinaryIO = opened.enter_context(path.open("wb"))
                self._in: BinaryIO = opened.enter_context(path.open("rb"))
            except OSError as error:
                raise UserError(f"The file of wrapped keys {path} cannot be created: {error.strerror}.") from error
            self._opened = opened.pop_all()

    def save(self, keys: Sequence[NewKey]) -> None:
        """Append keys, and wait until they are on the disk (fsync)."""
        try:
            for key in keys:
                self._out.write(_LENGTHS.pack(len(key.private), len(key.public)) + key.private + key.public)
            self._out.flush()
            os.fsync(self._out.fileno())
        except OSError as error:
            raise UserError(f"Wrapped keys cannot be written to {self._out.name}: {error.strerror}.") from error

    def load(self, count: int) -> list[ClaimedKey]:
        """The next keys of the file."""
        keys = []
        for _ in range(count):
            head = self._in.read(_LENGTHS.size)
            if not head:
                break
            private, public = (self._in.read(length) for length in _LENGTHS.unpack(head))
            self._loaded += 1
            keys.append(ClaimedKey(self._loaded, self._kind, private, public, self.wrapper, self._mechanism))
        return keys

    def close(self) -> None:
        """Close the file."""
        self._opened.close()


class Database:
    """The key store: each batch is one durable transaction, and what is loaded is claimed, as the pool does it."""

    def __init__(self, path: Path, token_serial: str, kind: KeyKind, mechanism: WrapMechanism) -> None:
        self._kind = kind
        self._store = KeyStore.open(path)
        self.wrapper = self._store.new_wrapper(token_serial, kind, mechanism, limit_keys=1_000_000).serial

    def save(self, keys: Sequence[NewKey]) -> None:
        """Add these in one transaction."""
        self._store.add(keys)

    def load(self, count: int) -> list[ClaimedKey]:
        """Claim the next keys."""
        return self._store.claim(self._kind, [self.wrapper], count)

    def close(self) -> None:
        """Close the database."""
        self._store.close()
