"""Plain SQL of the statements that a worker runs, by the driver alone.

A worker writes and reads its own run by few, fixed statements. Without SQLAlchemy its process starts in half the CPU
time; `labconsole.store.schema` stays the one description of the tables.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any


def records(connection: sqlite3.Connection, statement: str, *values: Any) -> list[SimpleNamespace]:
    """The rows of a query, each column by its name. Raises sqlite3.Error."""
    cursor = connection.execute(statement, values)
    names = [column for column, *_ in cursor.description]
    return [SimpleNamespace(**dict(zip(names, row, strict=True))) for row in cursor]


def first_record(connection: sqlite3.Connection, statement: str, *values: Any) -> SimpleNamespace | None:
    """The first row of a query, or None. Raises sqlite3.Error."""
    return next(iter(records(connection, statement, *values)), None)


def insert(connection: sqlite3.Connection, table: str, values: Mapping[str, Any]) -> int:
    """Insert a row; returns the id that the database gave it. Raises sqlite3.Error."""
    number = connection.execute(_insert(table, tuple(values)), values).lastrowid
    assert number is not None
    return number


def insert_each(
    connection: sqlite3.Connection, table: str, rows: Iterable[Mapping[str, Any]], conflict: str = ""
) -> int:
    """Insert rows of the same columns, with a clause `ON CONFLICT`; returns how many. Raises sqlite3.Error."""
    of_rows = list(rows)
    if not of_rows:
        return 0
    return connection.executemany(f"{_insert(table, tuple(of_rows[0]))} {conflict}", of_rows).rowcount


def update(connection: sqlite3.Connection, table: str, number: int, values: Mapping[str, Any]) -> None:
    """Set these columns of the row with the id `number`. Raises sqlite3.Error."""
    connection.execute(_update(table, tuple(values)), {**values, "of_row": number})


@cache
def _insert(table: str, columns: tuple[str, ...]) -> str:
    names = ", ".join(f'"{name}"' for name in columns)
    return f'INSERT INTO "{table}" ({names}) VALUES ({", ".join(f":{name}" for name in columns)})'


@cache
def _update(table: str, columns: tuple[str, ...]) -> str:
    changes = ", ".join(f'"{name}" = :{name}' for name in columns)
    return f'UPDATE "{table}" SET {changes} WHERE id = :of_row'
