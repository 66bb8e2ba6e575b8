"""A look into a key store while others write it: counts, wrapper keys, the head of its chain."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from labconsole.security.token.mechanisms import KeyKind, WrapMechanism
from labconsole.store.errors import StoreError, explained
from labconsole.store.opening import connect_for_reading
from labconsole_keypool.store.key_links import end_of_chain
from labconsole_keypool.store.key_records import ClaimedKey, Counts, Head, KeyStatus, WrapperKey
from labconsole_keypool.store.key_schema import KEY_STORE

WRAPPER_COLUMNS = "serial, token, kind, mechanism, made, limit_keys, pairs"
"""Of the table `wrapper_key`, as `wrapper_key_of` takes them."""

_KINDS = {str(kind): kind for kind in KeyKind}


def wrapper_key_of(row: Sequence[Any]) -> WrapperKey:
    """A row of `WRAPPER_COLUMNS` as a record. Raises StoreError: it was changed."""
    serial, token, kind, mechanism, made, limit_keys, pairs = row
    with _known_terms():
        return WrapperKey(serial, token, _KINDS[kind], _mechanism(mechanism), made, limit_keys, pairs)


def keys_of(raw: sqlite3.Connection, ids: Sequence[int]) -> list[ClaimedKey]:
    """These keys, by their ids, as far as they are not erased. Raises sqlite3.Error; StoreError: one was changed."""
    rows = raw.execute(
        "SELECT key.id, key.kind, private, public, wrapper, mechanism FROM json_each(?) CROSS JOIN key "
        "ON key.id = value WHERE private IS NOT NULL",
        (json.dumps(ids),),
    )
    with _known_terms():
        return [
            ClaimedKey(number, _KINDS[kind], private, public, wrapper, _mechanism(mechanism))
            for number, kind, private, public, wrapper, mechanism in rows.fetchall()
        ]


def _mechanism(number: int) -> WrapMechanism:
    """Raises KeyError: there is none of that number."""
    try:
        return WrapMechanism(number)
    except ValueError as error:
        raise KeyError(number) from error


@contextmanager
def _known_terms() -> Iterator[None]:
    try:
        yield
    except KeyError as error:
        raise StoreError(
            f"The key store names {error.args[0]!r} as a kind of keys or a mechanism, and there is none: it was "
            "changed. Look what else is wrong (labconsole hsm verify-store), and take another key store."
        ) from error


class KeyReader:
    """A read-only connection to a key store; threads may share it. Every method raises StoreError."""

    def __init__(self, path: Path) -> None:
        """Open the store. Raises StoreError: there is none, or it is another file."""
        self.path = path
        self._turn = threading.Lock()
        with explained(path, KEY_STORE.noun):
            self._raw = connect_for_reading(path, KEY_STORE)

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

    def wrappers(self) -> list[WrapperKey]:
        """All wrapper keys that were not destroyed, oldest first."""
        rows = self._rows(f"SELECT {WRAPPER_COLUMNS} FROM wrapper_key WHERE destroyed IS NULL ORDER BY id")
        return [wrapper_key_of(row) for row in rows]

    def spent_wrappers(self, token_serial: str) -> list[WrapperKey]:
        """Wrapper keys of the token that are full and whose pairs are all used or invalid: they can be destroyed."""
        rows = self._rows(
            f"SELECT {WRAPPER_COLUMNS} FROM wrapper_key WHERE token = ? AND destroyed IS NULL AND pairs = limit_keys "
            "AND serial NOT IN (SELECT wrapper FROM key_state WHERE status IN (?, ?)) ORDER BY id",
            (token_serial, KeyStatus.NEW, KeyStatus.IN_USE),
        )
        return [wrapper_key_of(row) for row in rows]

    def sample_of(self, wrapper: str) -> ClaimedKey | None:
        """A new key under this wrapper key, only to be looked at: it is not claimed, and never to be signed with."""
        with self._reading() as raw:
            found = raw.execute(
                f"SELECT id FROM key_state WHERE status = {KeyStatus.NEW:d} AND wrapper = ? LIMIT 1", (wrapper,)
            ).fetchone()
            keys = keys_of(raw, found) if found else []
        return keys[0] if keys else None

    def counts(self, kind: KeyKind | None = None) -> Counts:
        """How many keys (of one kind) have each status."""
        condition, values = ("", ()) if kind is None else ("WHERE kind = ?", (kind,))
        found = dict(self._rows(f"SELECT status, count(*) FROM key_state {condition} GROUP BY status", values))
        return Counts(*(found.get(status, 0) for status in KeyStatus))

    def head(self) -> Head:
        """How far the chain of rows goes, to be kept elsewhere as evidence."""
        with self._reading() as raw:
            rows, link = end_of_chain(raw)
        return Head(rows, link.hex())

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._reading() as raw:
            return raw.execute(statement, values).fetchall()

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._turn, explained(self.path, KEY_STORE.noun):
            yield self._raw
