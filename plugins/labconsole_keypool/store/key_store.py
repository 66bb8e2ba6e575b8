"""The key store: wrapped key pairs in a file, each given out at most once, also when processes are killed.

A key goes from new to in use to used, or to invalid. A claim is durable before anybody sees the key; a key claimed by a
process that ended without using it becomes invalid and is never given out again. The wrapped private key is erased
once its key is used or invalid.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple
from pathlib import Path
from types import TracebackType
from typing import Self, cast

from labconsole.paths import key_stores_dir
from labconsole.processes import this_process
from labconsole.security.token.mechanisms import KeyKind, WrapMechanism
from labconsole.store.errors import StoreError, explained
from labconsole.store.writer import Writer
from labconsole_keypool.store.key_changes import Changes
from labconsole_keypool.store.key_links import ORIGIN, Chain, KeyEvent, ids_as_text
from labconsole_keypool.store.key_reader import WRAPPER_COLUMNS, KeyReader, keys_of, wrapper_key_of
from labconsole_keypool.store.key_records import ClaimedKey, Counts, Head, NewKey, SignatureRow, WrapperKey
from labconsole_keypool.store.key_schema import KEY_STORE

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def store_path(name: str, home: Path | None = None) -> Path:
    """Where the key store `name` lies: `<data dir>/key-stores/<name>.db`. Raises StoreError: no name for a file."""
    if not _NAME.fullmatch(name):
        raise StoreError(f"{name!r} cannot name a key store: take letters, digits, dots and dashes, up to 64.")
    return key_stores_dir(home) / f"{name}.db"


class KeyStore:
    """A key store opened for writing; threads may share it. Every method raises StoreError, with nothing written."""

    def __init__(self, writer: Writer, run: str) -> None:
        """Take `writer` as a new claimant; use `open`."""
        self._writer = writer
        self._open = True
        owner = this_process()
        with writer.transaction(durable=True) as connection:
            raw = cast(sqlite3.Connection, connection.connection.driver_connection)
            raw.execute("INSERT INTO head SELECT 1, 0, ? WHERE NOT EXISTS (SELECT 1 FROM claimant)", (ORIGIN,))
            chain = Chain(raw)
            row = (owner.pid, owner.started, owner.boot_id, run, time.time_ns())
            [self._claimant] = chain.append("claimant", [row])
            changes = Changes(raw, chain, self._claimant)
            for dead in changes.dead():
                changes.release(dead, "its process ended without using it")
            chain.close()
        self._reader = KeyReader(writer.path)

    @classmethod
    def open(cls, path: Path, *, run: str = "", lock_timeout_s: float = 30.0) -> Self:
        """Open the store, made where needed, as a claimant of its own for the run `run` (its uuid).

        Keys that processes had claimed which are dead now become invalid.
        """
        with explained(path, KEY_STORE.noun), suppress(FileExistsError, FileNotFoundError):
            path.touch(0o600, exist_ok=False)
        writer = Writer(path, KEY_STORE, lock_timeout_s)
        try:
            return cls(writer, run)
        except BaseException:
            writer.close()
            raise

    @property
    def path(self) -> Path:
        """The file."""
        return self._writer.path

    def close(self) -> None:
        """Release the store. What this opening had claimed and not used becomes invalid. A second call does nothing."""
        if not self._open:
            return
        self._open = False
        try:
            with self._changes() as changes:
                changes.release(self._claimant, "not used before the store was closed")
            self._writer.checkpoint()  # erased keys are to go from the log too, whoever looks on
        finally:
            self._reader.close()
            self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add(self, keys: Sequence[NewKey]) -> None:
        """Store key pairs, all or none, safe from a power cut. Their wrapper keys are rows already, and have room."""
        stored = time.time_ns()
        rows = [
            (
                key.kind,
                hashlib.sha256(key.private).digest(),
                key.public,
                key.wrapper,
                key.mechanism,
                key.generate_start_ns,
                key.generate_end_ns,
                key.generate_duration_ns,
                stored,
            )
            for key in keys
        ]
        with self._changes() as changes:
            for serial, pairs in Counter(key.wrapper for key in keys).items():
                found = changes.raw.execute(
                    "UPDATE wrapper_key SET pairs = pairs + ? WHERE serial = ? AND pairs + ? <= limit_keys",
                    (pairs, serial, pairs),
                )
                if found.rowcount != 1:
                    raise StoreError(
                        f"The wrapper key {serial} has no room for {pairs} more key pairs in {self.path}: make another."
                    )
            ids = changes.chain.append("key", rows, {"private": [key.private for key in keys]})
            states = [(number, key.kind, key.wrapper) for number, key in zip(ids, keys, strict=True)]
            changes.raw.executemany("INSERT INTO key_state (id, kind, wrapper) VALUES (?, ?, ?)", states)

    def claim(self, kind: KeyKind, wrappers: Sequence[str], count: int) -> list[ClaimedKey]:
        """Take up to `count` of the oldest new keys under these wrapper keys (serials); nobody else ever gets them."""
        with self._changes() as changes:
            return keys_of(changes.raw, changes.claim(kind, wrappers, count))

    def used(self, ids: Sequence[int], signatures: Sequence[SignatureRow]) -> None:
        """Claimed keys are used: their wrapped private keys are erased, the signatures stored."""
        with self._changes() as changes:
            if not changes.use(ids, {row.key: row.got_key for row in signatures}):
                raise StoreError(_not_claimed(self.path, ids))
            changes.chain.append("signature", [astuple(row) for row in signatures])

    def invalid(self, ids: Sequence[int], reason: str) -> None:
        """Claimed keys will not be used: their wrapped private keys are erased."""
        with self._changes() as changes:
            if not set(ids) <= set(changes.held_by(self._claimant)):
                raise StoreError(_not_claimed(self.path, ids))
            changes.invalidate(ids, reason)

    def purge(self, kind: KeyKind | None = None) -> int:
        """Make all new keys (of one kind) invalid and erase their wrapped private keys; returns how many there were."""
        with self._changes() as changes:
            ids = changes.new_keys(kind)
            changes.invalidate(ids, "purged")
        return len(ids)

    def new_wrapper(self, token_serial: str, kind: KeyKind, mechanism: WrapMechanism, limit_keys: int) -> WrapperKey:
        """A new wrapper key's row; its serial is the label to be given to the key in the token, made after this.

        It is for this opening alone until that closes.
        """
        made = WrapperKey(
            f"pool-{secrets.token_hex(6)}", token_serial, kind, mechanism, time.time_ns(), limit_keys, pairs=0
        )
        with self._changes() as changes:
            changes.chain.append("wrapper_key", [astuple(made)[:-1]], {"owner": [self._claimant]})
        return made

    def wrapper_for(self, token_serial: str, kind: KeyKind) -> WrapperKey | None:
        """The newest wrapper key of the token with room, for this opening alone until it closes; None if there is none.

        With `pairs` 0 it may not be in the token yet: its maker was killed before. A token that was initialised has
        lost those made before.
        """
        with self._changes() as changes:
            row = changes.raw.execute(
                "UPDATE wrapper_key SET owner = ? WHERE id = (SELECT id FROM wrapper_key WHERE token = ? AND kind = ? "
                "AND destroyed IS NULL AND pairs < limit_keys AND coalesce(owner, ?) = ? ORDER BY id DESC LIMIT 1) "
                f"RETURNING {WRAPPER_COLUMNS}",
                (self._claimant, token_serial, kind, self._claimant, self._claimant),
            ).fetchall()
        return wrapper_key_of(row[0]) if row else None

    def spent_wrappers(self, token_serial: str) -> list[WrapperKey]:
        """Wrapper keys that are full and whose pairs are all used or invalid: to be destroyed in the token.

        With them goes what copies of the file may still hold of wrapped private keys.
        """
        return self._reader.spent_wrappers(token_serial)

    def wrapper_destroyed(self, serial: str) -> None:
        """A wrapper key is in its token no more."""
        with self._changes() as changes:
            at = changes.tell(KeyEvent.WRAPPER_DESTROYED, (), wrapper=serial)
            changes.raw.execute("UPDATE wrapper_key SET destroyed = ? WHERE serial = ?", (at, serial))

    def wrappers(self) -> list[WrapperKey]:
        """All wrapper keys that were not destroyed, oldest first."""
        return self._reader.wrappers()

    def sample_of(self, wrapper: str) -> ClaimedKey | None:
        """A new key under this wrapper key, only to be looked at: it is not claimed, and never to be signed with."""
        return self._reader.sample_of(wrapper)

    def counts(self, kind: KeyKind | None = None) -> Counts:
        """How many keys (of one kind) have each status."""
        return self._reader.counts(kind)

    def head(self) -> Head:
        """How far the chain of rows goes, to be kept elsewhere as evidence."""
        return self._reader.head()

    @contextmanager
    def _changes(self) -> Iterator[Changes]:
        """A durable transaction, so that a head kept elsewhere never goes further than the store after a power cut."""
        with self._writer.transaction(durable=True) as connection:
            raw = cast(sqlite3.Connection, connection.connection.driver_connection)
            chain = Chain(raw)
            yield Changes(raw, chain, self._claimant)
            chain.close()


def _not_claimed(path: Path, ids: Sequence[int]) -> str:
    return (
        f"Of the keys {ids_as_text(ids)} in {path} not all are claimed by this process: "
        "this is a fault of the console, report it."
    )
