"""The key store: wrapped key pairs in a file, each claimed at most once, also when processes are killed.

A key goes from new to in use to used, or to invalid. A claim is durable before any caller sees the key; a key claimed
by a process that ended without using it becomes invalid and is never claimed again. The wrapped private key is erased
once its key is used or invalid.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from sqlalchemy import bindparam, insert, select, update

from labconsole.paths import key_stores_dir
from labconsole.processes import this_process
from labconsole.security.token.mechanisms import KeyKind, WrapMechanism
from labconsole.store.errors import StoreError, explained
from labconsole.store.rows import Prepared, Rows
from labconsole.store.writer import Writer
from labconsole_keypool.store import key_schema as schema
from labconsole_keypool.store.key_changes import Changes
from labconsole_keypool.store.key_links import ORIGIN, Chain, KeyEvent, ids_as_text
from labconsole_keypool.store.key_reader import WRAPPERS, KeyReader, keys_of, known_terms
from labconsole_keypool.store.key_records import ClaimedKey, NewKey, SignatureRow, WrapperKey

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SIGNATURES = Rows(SignatureRow, schema.signature)
_NEW_KEYS = Rows(
    NewKey,
    schema.key,
    generate_start_ns=schema.key.c.generate_start,
    generate_end_ns=schema.key.c.generate_end,
    generate_duration_ns=schema.key.c.generate_duration,
)
_WRAPPER = schema.wrapper_key.c
_RESERVE = Prepared(
    update(schema.wrapper_key)
    .where(_WRAPPER.serial == bindparam("of_serial"), _WRAPPER.pairs + bindparam("more") <= _WRAPPER.limit_keys)
    .values(pairs=_WRAPPER.pairs + bindparam("more"))
)
_KEY = schema.key.c
_FOLLOW = Prepared(
    insert(schema.key_state).from_select(
        ["id", "kind", "wrapper"],
        select(_KEY.id, _KEY.kind, _KEY.wrapper).where(_KEY.id >= bindparam("first"), _KEY.id < bindparam("beyond")),
    )
)
"""The states of new keys: that they are new."""


def store_path(name: str, home: Path | None = None) -> Path:
    """The file of the key store `name`: `<data dir>/key-stores/<name>.db`. Raises StoreError: no name for a file."""
    if not _NAME.fullmatch(name):
        raise StoreError(f"{name!r} cannot name a key store: take letters, digits, dots and dashes, up to 64.")
    return key_stores_dir(home) / f"{name}.db"


class KeyStore(KeyReader):
    """A key store opened for writing; threads may share it. Every method raises StoreError, with nothing written."""

    def __init__(self, path: Path, run: str, lock_timeout_s: float) -> None:
        """Open the store as a new claimant; use `open`."""
        with explained(path, schema.KEY_STORE.noun), suppress(FileExistsError, FileNotFoundError):
            path.touch(0o600, exist_ok=False)
        self._writer = Writer(path, schema.KEY_STORE, lock_timeout_s)
        try:
            self._claimant = self._new_claimant(run)
            super().__init__(path)
        except BaseException:
            self._writer.close()
            raise
        self._open = True

    @classmethod
    def open(cls, path: Path, *, run: str = "", lock_timeout_s: float = 30.0) -> Self:
        """Open the store, created where needed, as a claimant of its own for the run `run` (its uuid).

        Keys that processes had claimed which are dead now become invalid.
        """
        return cls(path, run, lock_timeout_s)

    def close(self) -> None:
        """Release the store. What this opening had claimed and not used becomes invalid. A second call does nothing."""
        if not self._open:
            return
        self._open = False
        try:
            with self._changes() as changes:
                changes.release(self._claimant, "not used before the store was closed")
            self._writer.checkpoint()  # erased keys are to go from the log too, whatever reads the store
        finally:
            super().close()
            self._writer.close()

    def add(self, keys: Sequence[NewKey]) -> None:
        """Store key pairs, all or none, safe from a power cut. Their wrapper keys are rows already, and have room."""
        hashes = [hashlib.sha256(key.private).digest() for key in keys]
        rows = _NEW_KEYS.rows(keys, private_sha256=hashes, stored=time.time_ns())
        with self._changes() as changes:
            for serial, pairs in Counter(key.wrapper for key in keys).items():
                if _RESERVE(changes.connection, {"of_serial": serial, "more": pairs}).rowcount != 1:
                    raise StoreError(
                        f"The wrapper key {serial} has no room for {pairs} more key pairs in {self.path}: make another."
                    )
            ids = changes.chain.append(schema.key, rows)
            _FOLLOW(changes.connection, {"first": ids.start, "beyond": ids.stop})

    def claim(self, kind: KeyKind, wrappers: Sequence[str], count: int) -> list[ClaimedKey]:
        """Take up to `count` of the oldest new keys under these wrapper keys (serials); no other claim gets them."""
        with known_terms(), self._changes() as changes:
            return keys_of(changes.connection, changes.claim(kind, wrappers, count))

    def used(self, ids: Sequence[int], signatures: Sequence[SignatureRow]) -> None:
        """Claimed keys are used: their wrapped private keys are erased, the signatures stored."""
        with self._changes() as changes:
            if not changes.use(ids, {row.key: row.got_key for row in signatures}):
                raise StoreError(_not_claimed(self.path, ids))
            changes.chain.append(schema.signature, _SIGNATURES.rows(signatures))

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
            changes.chain.append(schema.wrapper_key, WRAPPERS.rows([made], owner=self._claimant))
        return made

    def wrapper_for(self, token_serial: str, kind: KeyKind) -> WrapperKey | None:
        """The newest wrapper key of the token with room, for this opening alone until it closes; None if there is none.

        With `pairs` 0 it may not be in the token yet: its maker was killed before. A token that was initialised has
        lost those made before.
        """
        free = _WRAPPER.owner.is_(None) | (_WRAPPER.owner == self._claimant)
        newest = (
            select(_WRAPPER.id)
            .where(_WRAPPER.token == token_serial, _WRAPPER.kind == kind, _WRAPPER.destroyed.is_(None), free)
            .where(_WRAPPER.pairs < _WRAPPER.limit_keys)
            .order_by(_WRAPPER.id.desc())
            .limit(1)
        )
        taking = update(schema.wrapper_key).where(_WRAPPER.id == newest.scalar_subquery()).values(owner=self._claimant)
        with known_terms(), self._changes() as changes:
            taken = changes.connection.execute(taking.returning(*WRAPPERS.select.selected_columns)).all()
            return next(iter(WRAPPERS.records(taken)), None)

    def wrapper_destroyed(self, serial: str) -> None:
        """A wrapper key was destroyed in its token."""
        with self._changes() as changes:
            at = changes.log(KeyEvent.WRAPPER_DESTROYED, (), wrapper=serial)
            destroyed = update(schema.wrapper_key).where(_WRAPPER.serial == serial).values(destroyed=at)
            changes.connection.execute(destroyed)

    @contextmanager
    def _changes(self) -> Iterator[Changes]:
        """A durable transaction, so that a head kept elsewhere never goes further than the store after a power cut."""
        with self._writer.transaction(durable=True) as connection:
            chain = Chain(connection)
            yield Changes(connection, chain, self._claimant)
            chain.close()

    def _new_claimant(self, run: str) -> int:
        """Make this process a claimant, and invalidate what dead ones hold; returns its number."""
        owner = this_process()
        row = {"pid": owner.pid, "started": owner.started, "boot_id": owner.boot_id, "run": run}
        with self._writer.transaction(durable=True) as connection:
            if connection.execute(select(schema.claimant.c.id).limit(1)).first() is None:
                connection.execute(insert(schema.head).values(id=1, rows=0, link=ORIGIN))
            chain = Chain(connection)
            [claimant] = chain.append(schema.claimant, [row | {"since": time.time_ns()}])
            changes = Changes(connection, chain, claimant)
            for dead in changes.dead():
                changes.release(dead, "its process ended without using it")
            chain.close()
        return claimant


def _not_claimed(path: Path, ids: Sequence[int]) -> str:
    return (
        f"Of the keys {ids_as_text(ids)} in {path} not all are claimed by this process: "
        "this is a fault of the console, report it."
    )
