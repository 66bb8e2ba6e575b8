"""Reads a key store while other processes write it: counts, wrapper keys, the head of its chain."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, bindparam, func, select

from labconsole.security.token.mechanisms import KeyKind
from labconsole.store.database_file import DatabaseReader
from labconsole.store.errors import StoreError
from labconsole.store.rows import Prepared, Rows
from labconsole_keypool.store import key_schema as schema
from labconsole_keypool.store.key_links import end_of_chain
from labconsole_keypool.store.key_records import ClaimedKey, Counts, Head, KeyStatus, WrapperKey

WRAPPERS = Rows(WrapperKey, schema.wrapper_key, made_ns=schema.wrapper_key.c.made)
_KEYS = Rows(ClaimedKey, schema.key)
_BY_ID = Prepared(
    _KEYS.select.where(schema.key.c.id.in_(select(func.json_each(bindparam("ids")).table_valued("value").c.value)))
    .where(schema.key.c.private.is_not(None))
    .order_by(schema.key.c.id)
)


def keys_of(connection: Connection, ids: Sequence[int]) -> list[ClaimedKey]:
    """These keys by their ids, as far as they are not erased. Raises ValueError: one was changed."""
    return _KEYS.records(_BY_ID(connection, {"ids": json.dumps(ids)}).fetchall())


@contextmanager
def known_terms() -> Iterator[None]:
    """Turn the ValueError for a row that was changed into a StoreError."""
    try:
        yield
    except ValueError as error:
        raise StoreError(
            f"The key store names a value ({error}) as a kind of keys or a mechanism, and there is none: it was "
            "changed. Check what else is wrong (labconsole hsm verify-store), and use another key store."
        ) from error


class KeyReader(DatabaseReader):
    """A read-only connection to a key store; threads may share it. Every method raises StoreError."""

    def __init__(self, path: Path) -> None:
        """Open the store. Raises StoreError: there is none, or it is another file."""
        super().__init__(path, schema.KEY_STORE)

    def wrappers(self) -> list[WrapperKey]:
        """All wrapper keys that were not destroyed, oldest first."""
        with known_terms(), self.transaction() as connection:
            return WRAPPERS.find(connection, "id", destroyed=None)

    def spent_wrappers(self, token_serial: str) -> list[WrapperKey]:
        """Wrapper keys of the token that are full and whose pairs are all used or invalid: to be destroyed in it.

        With them goes what copies of the file may still hold of wrapped private keys.
        """
        wrapper, state = schema.wrapper_key.c, schema.key_state.c
        needed = select(state.wrapper).where(state.status.in_((KeyStatus.NEW, KeyStatus.IN_USE)))
        with known_terms(), self.transaction() as connection:
            full = WRAPPERS.select.where(wrapper.pairs == wrapper.limit_keys, wrapper.serial.not_in(needed))
            spent = full.where(wrapper.token == token_serial, wrapper.destroyed.is_(None)).order_by(wrapper.id)
            return WRAPPERS.records(connection.execute(spent).all())

    def sample_of(self, wrapper: str) -> ClaimedKey | None:
        """A new key under this wrapper key, only to be inspected: it is not claimed, and never to be signed with."""
        state = schema.key_state.c
        with known_terms(), self.transaction() as connection:
            found = connection.execute(select(state.id).where(schema.NEW, state.wrapper == wrapper).limit(1))
            keys = keys_of(connection, found.scalars().all())
        return keys[0] if keys else None

    def counts(self, kind: KeyKind | None = None) -> Counts:
        """How many keys (of one kind) have each status."""
        state = schema.key_state.c
        wanted = select(state.status, func.count().label("keys")).group_by(state.status)
        with self.transaction() as connection:
            rows = connection.execute(wanted if kind is None else wanted.where(state.kind == kind)).mappings()
            found = {row["status"]: row["keys"] for row in rows}
        return Counts(*(found.get(status, 0) for status in KeyStatus))

    def head(self) -> Head:
        """How far the chain of rows goes, to be kept elsewhere as evidence."""
        with self.transaction() as connection:
            rows, link = end_of_chain(connection)
        return Head(rows, link.hex())
