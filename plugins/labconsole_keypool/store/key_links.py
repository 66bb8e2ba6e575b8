"""The chain of a key store: every row is numbered, and its link is a hash over it and the link of the row before.

The link of a row is the SHA-256 over the link before and the row's canonical form: the name of its table, its number
and its values that never change (`key_schema.LINKED`), each with its type and length. A wrapped private key is in it by
its own SHA-256, so that the key can be erased and its row still be verified.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Sequence
from enum import IntEnum
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Table, select, update

from labconsole.store.errors import StoreError
from labconsole.store.rows import Prepared, inserting
from labconsole_keypool.store.key_schema import LINKED, head

ORIGIN = hashlib.sha256(b"labconsole key store 1").digest()
"""What the first row is linked to."""

_END = Prepared(select(head.c.rows, head.c.link))
_MOVE_END = Prepared(update(head), ("rows", "link"))


class KeyEvent(IntEnum):
    """What a row of the table `event` says; the status of a key follows from its events."""

    CLAIMED = 1
    USED = 2
    INVALID = 3
    WRAPPER_DESTROYED = 4


def link(previous: bytes, table: str, number: int, values: Iterable[Any]) -> bytes:
    """The link of row `number` after the link `previous`: 32 bytes. `values` are those of `LINKED[table]`."""
    parts = [previous, b"%b %d;" % (table.encode(), number)]
    for value in values:
        if value is None:
            parts.append(b"n")
        elif isinstance(value, int):
            parts.append(b"i%d;" % value)
        elif isinstance(value, bytes):
            parts += (b"b%d:" % len(value), value)
        elif isinstance(value, str):
            text = value.encode()
            parts += (b"t%d:" % len(text), text)
        else:
            parts.append(b"r%b" % struct.pack("<d", value))
    return hashlib.sha256(b"".join(parts)).digest()


def end_of_chain(connection: Connection) -> tuple[int, bytes]:
    """Number and link of the last row. Raises StoreError: the row that says so was removed."""
    found: tuple[int, bytes] | None = _END(connection, {}).fetchone()
    if found is None:
        raise StoreError(
            "The key store does not say any more where its chain of rows ends: it was changed. Look what else is wrong "
            "(labconsole hsm verify-store), and take another key store."
        )
    return found


class Chain:
    """Appends rows within one transaction; `close` it before that ends."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._rows, self._link = end_of_chain(connection)

    def append(self, table: Table, rows: Sequence[dict[str, Any]]) -> range:
        """Insert rows, all with the same columns, those of `LINKED` among them; returns their numbers.

        Each row gets its number and its link as `id` and `link`.
        """
        if not rows:
            return range(0)
        linked = itemgetter(*LINKED[table.name])
        numbers = range(self._rows + 1, self._rows + len(rows) + 1)
        for number, row in zip(numbers, rows, strict=True):
            self._link = link(self._link, table.name, number, linked(row))
            row["id"], row["link"] = number, self._link
        inserting(table, tuple(rows[0])).each(self._connection, rows)
        self._rows += len(rows)
        return numbers

    def close(self) -> None:
        """Store how far the chain goes now."""
        _MOVE_END(self._connection, {"rows": self._rows, "link": self._link})


def ids_as_text(ids: Iterable[int]) -> str:
    """Ids as ranges, such as "17-191,195", ascending."""
    ranges: list[list[int]] = []
    for number in sorted(ids):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(f"{first}-{last}" if last > first else f"{first}" for first, last in ranges)


def ids_of_text(text: str, before: int) -> list[int]:
    """The inverse of `ids_as_text`. Raises ValueError: it is not such a text, or an id is not below `before`."""
    ids: list[int] = []
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        wanted = range(int(first), int(last or first) + 1)
        if not wanted or wanted[0] <= (ids[-1] if ids else 0) or wanted[-1] >= before:
            raise ValueError(f"{part} are no ids of earlier rows in rising order")
        ids += wanted
    return ids
