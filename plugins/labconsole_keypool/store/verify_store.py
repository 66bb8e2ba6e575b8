"""Checks a key store against its links: what was changed, removed, re-dated or inserted since it was written?"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from labconsole.store.errors import explained
from labconsole.store.opening import connect_for_reading
from labconsole_keypool.store.key_history import History
from labconsole_keypool.store.key_links import ORIGIN, link
from labconsole_keypool.store.key_records import Head
from labconsole_keypool.store.key_schema import KEY_STORE, LINKED
from labconsole_keypool.store.store_findings import Fault, Finding, name_of_row


def verify_store(path: Path, known_head: Head | None = None) -> tuple[Finding, ...]:
    """Everything that is wrong: first the chain, then what keys are said to be; empty if all is as it was written.

    With `known_head`, kept elsewhere since, rows cut off at the end or a store rewritten as a whole are found too.
    Others may write meanwhile: one moment is looked at. A store of 20,000 keys takes about 0.5 s.
    Raises StoreError: the store cannot be read.
    """
    with explained(path, KEY_STORE.noun), closing(connect_for_reading(path, KEY_STORE)) as raw:
        raw.execute("BEGIN")
        tables = {name for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if gone := KEY_STORE.metadata.tables.keys() - tables:
            return tuple(Finding(Fault.REMOVED, 0, f"The table {name} is missing: removed.") for name in sorted(gone))
        history = History()
        return (*_wrong_links(raw, history, known_head), *history.wrong_states(raw))


def _wrong_links(raw: sqlite3.Connection, history: History, known_head: Head | None) -> Iterator[Finding]:
    """Walk along the chain; `history` is told of every row that belongs to it."""
    head = raw.execute("SELECT rows, link FROM head").fetchone()
    if head is None:
        yield Finding(Fault.REMOVED, 0, "The row that says where the chain ends is missing: removed.")
    rows, end = head or (sys.maxsize, b"")
    all_rows = merge(*(_rows(raw, table) for table in LINKED), key=itemgetter(0))
    last = 0
    previous: bytes | None = ORIGIN
    for number, group in groupby(all_rows, key=itemgetter(0)):
        found = list(group)
        if number < 1 or number > rows:
            yield from (_inserted(number, table) for _, table, *_ in found)
            continue
        if number > last + 1:
            yield _removed(last + 1, number - 1, f"before {name_of_row(found[0][1], number)}")
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
                    f"{name_of_row(table, number)} does not fit its link: a value or a date of it was changed, "
                    "or the row before was exchanged.",
                )
            history.tell(number, table, values)
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


def _rows(raw: sqlite3.Connection, table: str) -> Iterator[tuple[int, str, bytes, tuple[Any, ...]]]:
    """Number, table, link and linked values of every row of a table, by number."""
    for number, own, *values in raw.execute(f"SELECT id, link, {', '.join(LINKED[table])} FROM {table} ORDER BY id"):
        yield number, table, own, tuple(values)


def _inserted(number: int, table: str) -> Finding:
    return Finding(
        Fault.INSERTED, number, f"{name_of_row(table, number)} was inserted: the chain has no row of its own for it."
    )


def _removed(first: int, last: int, where: str) -> Finding:
    what = f"Row {first} is" if first == last else f"Rows {first} to {last} are"
    return Finding(Fault.REMOVED, first, f"{what} missing {where}: removed.")
