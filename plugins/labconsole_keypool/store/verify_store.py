"""Checks a key store against its links: what was changed, removed, re-dated or inserted since it was written?"""

from __future__ import annotations

import hashlib
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from sqlalchemy import select

from labconsole.store.database_file import DatabaseReader
from labconsole.store.rows import Prepared
from labconsole_keypool.store import key_schema as schema
from labconsole_keypool.store.key_links import ORIGIN, KeyEvent, ids_of_text, link
from labconsole_keypool.store.key_records import Head, KeyStatus
from labconsole_keypool.store.key_schema import LINKED


def _select_rows(table: str) -> Prepared:
    columns = schema.metadata.tables[table].c
    return Prepared(select(*(columns[name] for name in ("id", "link", *LINKED[table]))).order_by(columns.id))


_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"
_HEAD = Prepared(select(schema.head.c.rows, schema.head.c.link))
_ROWS = {table: _select_rows(table) for table in LINKED}
_STATES = Prepared(select(*(schema.key_state.c[name] for name in ("id", "kind", "wrapper", "status", "owner", "used"))))
_BLOBS = Prepared(select(schema.key.c.id, schema.key.c.private).order_by(schema.key.c.id))
_WRAPPERS = Prepared(select(*(schema.wrapper_key.c[name] for name in ("id", "serial", "pairs", "destroyed"))))


class Fault(StrEnum):
    """What is wrong with a row."""

    CHANGED = "changed"
    """It does not fit its link: a value in it, a date as well, is not what was written."""
    REMOVED = "removed"
    INSERTED = "inserted"
    STATUS = "status"
    """It says of a key or wrapper key what no linked event says."""
    BLOB = "blob"
    """A wrapped private key is another one than was stored, is gone, or is still there though it should be erased."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong; `row` is its number in the chain, `message` a sentence for the operator."""

    fault: Fault
    row: int
    message: str


def verify_store(path: Path, known_head: Head | None = None) -> tuple[Finding, ...]:
    """Everything that is wrong: first the chain, then what keys are said to be; empty if all is as it was written.

    With `known_head`, kept elsewhere since, rows cut off at the end or a store rewritten as a whole are found too.
    Other processes may write meanwhile: one moment is checked. A store of 20,000 keys takes about 0.5 s.
    Raises StoreError: the store cannot be read.
    """
    with DatabaseReader(path, schema.KEY_STORE) as reader, reader.plain_transaction() as connection:
        if gone := schema.metadata.tables.keys() - {name for (name,) in connection.execute(_TABLES)}:
            return tuple(Finding(Fault.REMOVED, 0, f"The table {name} is missing: removed.") for name in sorted(gone))
        history = _History()
        return (*_wrong_links(connection, history, known_head), *history.wrong_states(connection))


def _wrong_links(connection: sqlite3.Connection, history: _History, known_head: Head | None) -> Iterator[Finding]:
    """Walk along the chain; `history` gets every row that belongs to it."""
    head = _HEAD(connection, {}).fetchone()
    if head is None:
        yield Finding(Fault.REMOVED, 0, "The row that says where the chain ends is missing: removed.")
    rows, end = head or (sys.maxsize, b"")
    all_rows = merge(*(_rows(connection, table) for table in LINKED), key=itemgetter(0))
    last = 0
    previous: bytes | None = ORIGIN
    for number, group in groupby(all_rows, key=itemgetter(0)):
        found = list(group)
        if number < 1 or number > rows:
            yield from (_inserted(number, table) for _, table, *_ in found)
            continue
        if number > last + 1:
            yield _removed(last + 1, number - 1, f"before {_name_of_row(found[0][1], number)}")
            previous = None
        last = number
        fits = [previous is None or link(previous, table, number, values) == own for _, table, own, values in found]
        kept = fits.index(True) if True in fits else 0
        for index, (_, table, _, values) in enumerate(found):
            if index != kept:
                yield _inserted(number, table)
                continue
            if not fits[index]:
                yield Finding(
                    Fault.CHANGED,
                    number,
                    f"{_name_of_row(table, number)} does not fit its link: a value or a date of it was changed, "
                    "or the row before was exchanged.",
                )
            history.add(number, table, values)
        previous = found[kept][2]
        if known_head and number == known_head.rows and previous.hex() != known_head.link:
            yield Finding(
                Fault.CHANGED,
                number,
                f"Row {number} has another link than when the head was noted: it, or rows before it, were rewritten.",
            )
    if head is None:
        rows = last
    elif last < rows:
        yield _removed(last + 1, rows, "at the end")
    elif previous != end:
        yield Finding(Fault.CHANGED, last, f"Row {last} is not the one that was written last: it was exchanged.")
    if known_head and known_head.rows > max(last, rows):
        yield _removed(max(last, rows) + 1, known_head.rows, "which were there when the head was noted")


def _rows(connection: sqlite3.Connection, table: str) -> Iterator[tuple[int, str, bytes, tuple[Any, ...]]]:
    """Number, table, link and linked values of every row of a table, by number."""
    for number, own, *values in _ROWS[table](connection, {}):
        yield number, table, own, tuple(values)


def _inserted(number: int, table: str) -> Finding:
    return Finding(
        Fault.INSERTED, number, f"{_name_of_row(table, number)} was inserted: the chain has no row of its own for it."
    )


def _removed(first: int, last: int, where: str) -> Finding:
    what = f"Row {first} is" if first == last else f"Rows {first} to {last} are"
    return Finding(Fault.REMOVED, first, f"{what} missing {where}: removed.")


@dataclass(slots=True)
class _KeyHistory:
    """What the chain says of a key."""

    kind: str
    wrapper: str
    sha256: bytes
    status: KeyStatus = KeyStatus.NEW
    owner: int | None = None
    used: int | None = None


class _History:
    """What the rows of the chain say, added in their order, to be compared with what changes in the store."""

    def __init__(self) -> None:
        self._keys: dict[int, _KeyHistory] = {}
        self._wrappers: dict[str, int | None] = {}
        self._just_used: set[int] = set()
        """By the row before, or by those before the signatures that came with them."""
        self._findings: list[Finding] = []

    def add(self, number: int, table: str, values: tuple[Any, ...]) -> None:
        """A row of the chain: its number, and the values of `LINKED[table]`."""
        row = dict(zip(LINKED[table], values, strict=True))
        if table != "signature":
            self._just_used = set()
        if table == "key":
            self._keys[number] = _KeyHistory(row["kind"], row["wrapper"], row["private_sha256"])
        elif table == "wrapper_key":
            self._wrappers[row["serial"]] = None
        elif table == "event":
            self._event(number, row)
        elif table == "signature" and row["key"] in self._just_used:
            self._keys[row["key"]].used = row["got_key"]

    def _event(self, number: int, row: dict[str, Any]) -> None:
        if row["event"] == KeyEvent.WRAPPER_DESTROYED:
            self._wrappers[row["wrapper"]] = row["at"]
            return
        try:
            ids = ids_of_text(row["keys"], before=number)
        except ValueError as error:
            self._findings.append(Finding(Fault.STATUS, number, f"Event {number} names no keys: {error}."))
            return
        known = [key for key in ids if key in self._keys]
        for key in known:
            self._apply(number, self._keys[key], row)
        if row["event"] == KeyEvent.USED:
            self._just_used = set(known)

    def _apply(self, number: int, key: _KeyHistory, row: dict[str, Any]) -> None:
        event, before = row["event"], key.status
        if event == KeyEvent.CLAIMED and before is KeyStatus.NEW:
            key.status, key.owner = KeyStatus.IN_USE, row["claimant"]
        elif event == KeyEvent.USED and before is KeyStatus.IN_USE and key.owner == row["claimant"]:
            key.status, key.used = KeyStatus.USED, row["at"]
        elif event == KeyEvent.INVALID and before in (KeyStatus.NEW, KeyStatus.IN_USE):
            key.status = KeyStatus.INVALID
        else:
            self._findings.append(
                Finding(Fault.STATUS, number, f"Event {number} says of a key what cannot be: it was {_said(before)}.")
            )

    def wrong_states(self, connection: sqlite3.Connection) -> Iterator[Finding]:
        """Where the status of keys and wrapper keys is not what the chain says."""
        yield from self._findings
        states = {number: rest for number, *rest in _STATES(connection, {})}
        for number, private in _BLOBS(connection, {}):
            if number in self._keys:
                yield from _wrong_state(number, self._keys[number], states.pop(number, None))
                yield from _wrong_blob(number, self._keys[number], private)
        for number in states.keys() - self._keys.keys():
            yield Finding(Fault.INSERTED, number, f"There is a state of key {number}, and no such key.")
        yield from self._wrong_wrappers(connection)

    def _wrong_wrappers(self, connection: sqlite3.Connection) -> Iterator[Finding]:
        pairs = Counter(key.wrapper for key in self._keys.values())
        for number, serial, said, destroyed in _WRAPPERS(connection, {}):
            if said != pairs[serial]:
                message = (
                    f"The wrapper key {serial} is said to have wrapped {said} key pairs: {pairs[serial]} are stored."
                )
                yield Finding(Fault.STATUS, number, message)
            if destroyed != self._wrappers.get(serial):
                message = f"When the wrapper key {serial} was destroyed is not what its event says."
                yield Finding(Fault.STATUS, number, message)


def _wrong_state(number: int, history: _KeyHistory, state: list[Any] | None) -> Iterator[Finding]:
    if state is None:
        yield Finding(Fault.REMOVED, number, f"Key {number} has no state: it was removed.")
        return
    kind, wrapper, status, owner, used = state
    if status != history.status:
        yield Finding(
            Fault.STATUS, number, f"Key {number} is said to be {_said(status)}: its events say {_said(history.status)}."
        )
    elif owner != history.owner or (kind, wrapper) != (history.kind, history.wrapper):
        yield Finding(Fault.STATUS, number, f"Who has claimed key {number}, or its kind, is not what the chain says.")
    if used != history.used:
        yield Finding(Fault.CHANGED, number, f"The time at which key {number} was used was changed.")


def _wrong_blob(number: int, history: _KeyHistory, private: bytes | None) -> Iterator[Finding]:
    if history.status in (KeyStatus.NEW, KeyStatus.IN_USE):
        if private is None:
            yield Finding(Fault.BLOB, number, f"The wrapped private key of key {number} is gone.")
        elif hashlib.sha256(private).digest() != history.sha256:
            yield Finding(
                Fault.BLOB, number, f"The wrapped private key of key {number} is not the one that was stored."
            )
    elif private is not None:
        yield Finding(
            Fault.BLOB, number, f"Key {number} is {_said(history.status)}, and its wrapped private key is there."
        )


def _said(status: int) -> str:
    return KeyStatus(status).name.lower().replace("_", " ") if status in list(KeyStatus) else f"status {status}"


def _name_of_row(table: str, number: int) -> str:
    """A row as a finding names it, such as "Wrapper key 2"."""
    return f"{table.replace('_', ' ').capitalize()} {number}"
