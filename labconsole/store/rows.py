"""One mapper between rows and records for every database, made from a table's columns and a dataclass's fields.

What a value is in a row follows from its column and its type; None is NULL:

| in the record | in the row |
| --- | --- |
| datetime, aware | UTC as ISO 8601 (text column), Unix time in µs (integer column) |
| Enum, bool | its value, 0 or 1 |
| int, in a text column | hexadecimal: it may have more than 8 bytes |
| str, in a column of bytes | hexadecimal in the record, bytes in the row |
| Mapping, tuple, pydantic model | JSON; a tuple in a column of `Words`: its texts, one blank between them |
| dataclass | its fields in columns of their own |
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cache, cached_property, partial
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Generic, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from sqlalchemy import (
    ClauseElement,
    Column,
    ColumnElement,
    Connection,
    Float,
    FromClause,
    Integer,
    LargeBinary,
    Numeric,
    Select,
    Table,
    Text,
    bindparam,
    insert,
    select,
    update,
)
from sqlalchemy.dialects.sqlite import dialect

from labconsole.store.database_file import driver
from labconsole.store.encoding import time_from_text, time_to_text, to_json

R = TypeVar("R")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Words(Text):
    """A text column of texts without blanks, one blank between them: a tuple in records."""


class Rows(Generic[R]):
    """The rows of `table` as records of one type, a dataclass or a NamedTuple.

    A field is stored in the column of its name, or in what `columns` says: another column or expression (of `source`,
    where that is a join); for a dataclass as many as it has fields, for one of several dataclasses those of each in
    turn, the first of which is NULL in all but one. Fields without a column are given to `records`.
    """

    def __init__(
        self,
        record: type[R],
        table: Table,
        source: FromClause | None = None,
        /,
        **columns: ColumnElement[Any] | tuple[ColumnElement[Any], ...],
    ) -> None:
        self._record = record
        self._table = table
        self._source = table if source is None else source
        self._columns = columns
        self._found_by: dict[tuple[Any, ...], Prepared] = {}

    @cached_property
    def select(self) -> Select[Any]:
        """All rows, with the columns that `records` takes, each with the name of its field."""
        columns = [
            column if field.nested else column.label(name)
            for name, field in self._fields.items()
            for column in field.columns
        ]
        return select(*columns).select_from(self._source)

    def records(self, rows: Sequence[Sequence[Any]], **others: Sequence[Any]) -> list[R]:
        """Records of rows of `select`; `others` has the values of fields without a column, one for each row.

        More columns after those of `select` are left out. What rows have in common (JSON, say) is parsed once. Raises
        ValueError for a value that the console never writes.
        """
        if not rows:
            return []
        values = [
            column if decode is None else _each_once(decode, column)
            for decode, column in zip(self._decoders, zip(*rows, strict=True), strict=False)
        ]
        for index, field in self._nested:
            end = index + len(field.columns)
            values[index:end] = [[field.joined(row) for row in zip(*values[index:end], strict=True)]]
        if len(values) == len(self._hints):
            return list(map(self._record, *values))
        names = (*self._fields, *others)
        return [
            self._record(**dict(zip(names, one, strict=True))) for one in zip(*values, *others.values(), strict=True)
        ]

    def find(self, connection: Connection, *order: str, **equal: Any) -> list[R]:
        """The records that have these values in fields or columns, ordered by `order`, or by their first field."""
        key = (order, *((name, value is None) for name, value in equal.items()))
        if key not in self._found_by:
            matches = (
                self._column(name).is_(None) if value is None else self._column(name) == bindparam(f"of_{name}")
                for name, value in equal.items()
            )
            by = map(self._column, order or tuple(self._fields)[:1])
            self._found_by[key] = Prepared(self.select.where(*matches).order_by(*by))
        values = {f"of_{name}": stored(self._column(name), one) for name, one in equal.items() if one is not None}
        return self.records(self._found_by[key](connection, values).fetchall())

    def rows(self, records: Sequence[R], **others: Any) -> list[dict[str, Any]]:
        """Rows of records, by the columns of the table.

        `others` has columns besides or instead, as they are stored: a list with a value for each row, or a value for
        all of them.
        """
        columns: dict[str, Sequence[Any]] = {}
        for name, field in self._own.items():
            if name not in others:
                columns |= field.encoded(list(map(attrgetter(name), records)))
        for name, value in others.items():
            columns[name] = value if isinstance(value, list) else [value] * len(records)
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def insert(self, connection: Connection, **fields: Any) -> int:
        """Insert a row with these fields or columns inside a transaction; returns the id that the database gave it."""
        return inserted(connection, self._table, self._row(fields))

    def update(self, connection: Connection, number: int, **fields: Any) -> None:
        """Set these fields or columns of the row with the id `number`."""
        row = self._row(fields)
        updating(self._table, tuple(row))(connection, {"of_row": number, **row})

    def _row(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        row: dict[str, Any] = {}
        for name, value in fields.items():
            field = self._own.get(name)
            if field is not None and field.nested:
                row |= {column: one for column, (one,) in field.encoded([value]).items()}
            else:
                column = self._table.c[name] if field is None else field.columns[0]
                row[str(column.key)] = stored(column, value)
        return row

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return get_type_hints(self._record)

    @cached_property
    def _fields(self) -> dict[str, _Field]:
        """The fields that have columns, in the order of the record."""
        found = {}
        for name, hint in self._hints.items():
            columns = self._columns.get(name, self._table.c.get(name))
            if columns is not None:
                found[name] = _Field(columns if isinstance(columns, tuple) else (columns,), hint)
        return found

    @cached_property
    def _decoders(self) -> tuple[Callable[[Any], Any] | None, ...]:
        return tuple(decoder for field in self._fields.values() for decoder in field.decoders)

    @cached_property
    def _nested(self) -> tuple[tuple[int, _Field], ...]:
        """Fields that are dataclasses, each with its place in the record."""
        return tuple((index, field) for index, field in enumerate(self._fields.values()) if field.nested)

    @cached_property
    def _own(self) -> dict[str, _Field]:
        """The fields in columns of the table itself, which can be written."""
        return {
            name: field
            for name, field in self._fields.items()
            if all(isinstance(column, Column) and column.table is self._table for column in field.columns)
        }

    def _column(self, name: str) -> ColumnElement[Any]:
        return self._fields[name].columns[0] if name in self._fields else self._table.c[name]


class Prepared:
    """A statement, compiled once and run by the driver, for use inside a transaction.

    That takes some 3 µs, where SQLAlchemy takes 40 to 200 to find that it compiled the statement before, and one
    for each value. Values are as they are stored, and results as well.
    """

    def __init__(self, statement: ClauseElement, columns: Sequence[str] | None = None) -> None:
        """Run `statement`; `columns` are those that an INSERT or UPDATE sets."""
        self._statement = statement
        self._columns = columns

    @cached_property
    def _compiled(self) -> tuple[str, Mapping[str, Any]]:
        """Its text, and the values that are in it already."""
        compiled = self._statement.compile(dialect=dialect(paramstyle="named"), column_keys=self._columns)
        return str(compiled), compiled.params

    def __call__(self, connection: Connection | sqlite3.Connection, values: Mapping[str, Any]) -> sqlite3.Cursor:
        """Run it with these values. Raises sqlite3.Error."""
        text, known = self._compiled
        return driver(connection).execute(text, {**known, **values})

    def each(self, connection: Connection, rows: Iterable[Mapping[str, Any]]) -> sqlite3.Cursor:
        """Run it once for each row of values, all of them. Raises sqlite3.Error."""
        return driver(connection).executemany(self._compiled[0], rows)


@cache
def inserting(table: Table, columns: tuple[str, ...]) -> Prepared:
    """Inserts a row of these columns."""
    return Prepared(insert(table), columns)


def inserted(connection: Connection, table: Table, values: Mapping[str, Any]) -> int:
    """Insert a row inside a transaction, and return the id that the database gave it."""
    key = inserting(table, tuple(values))(connection, values).lastrowid
    assert key is not None
    return key


def stored(column: ColumnElement[Any], value: Any) -> Any:
    """A value as the column holds it: a number of any kind becomes one that SQLite knows."""
    match value:
        case None:
            return None
        case Enum():
            return value.value
        case datetime():
            return (value - _EPOCH) // _MICROSECOND if isinstance(column.type, Integer) else time_to_text(value)
        case BaseModel():
            return value.model_dump_json()
        case tuple() if isinstance(column.type, Words):
            return " ".join(value)
        case Mapping() | tuple():
            return to_json(value)
    if isinstance(column.type, Integer):
        return int(value)
    if isinstance(column.type, Numeric | Float):
        return float(value)
    if isinstance(column.type, LargeBinary):
        return bytes.fromhex(value) if isinstance(value, str) else value
    return f"{value:x}" if isinstance(value, int) else value


class _Field:
    """The columns that hold a field of a record, and what becomes of their values."""

    def __init__(self, columns: tuple[ColumnElement[Any], ...], hint: Any) -> None:
        self.columns = columns
        self._types = _alternatives(hint)
        self._optional = NoneType in get_args(hint)
        self.nested = is_dataclass(self._types[0])
        """Whether it is a dataclass, in columns of its own."""
        hints = [inner for one in self._types for inner in _hints(one).values()] if self.nested else [hint]
        self.decoders = [_decoder(column, inner) for column, inner in zip(columns, hints, strict=True)]
        self._encoders = [_encoder(column, inner) for column, inner in zip(columns, hints, strict=True)]

    def encoded(self, values: Sequence[Any]) -> dict[str, Sequence[Any]]:
        """The values of its columns in each row, from the field of each record."""
        parts = zip(*map(self._parted, values), strict=True) if self.nested else [values]
        return {
            str(column.key): part if encode is None else [None if one is None else encode(one) for one in part]
            for column, encode, part in zip(self.columns, self._encoders, parts, strict=True)
        }

    def joined(self, values: Sequence[Any]) -> Any:
        """The dataclass of a row from the values of its fields; None where they are NULL, if it may be that."""
        start = 0
        for one in self._types:
            end = start + len(_hints(one))
            if values[start] is not None or (one is self._types[-1] and not self._optional):
                return one(*values[start:end])
            start = end
        return None

    def _parted(self, value: Any) -> list[Any]:
        return [getattr(value, name) if isinstance(value, one) else None for one in self._types for name in _hints(one)]


@cache
def updating(table: Table, columns: tuple[str, ...]) -> Prepared:
    """Sets these columns of the row with the id `of_row`."""
    return Prepared(update(table).where(table.c.id == bindparam("of_row")), columns)


@cache
def _hints(record: Any) -> dict[str, Any]:
    return get_type_hints(record)


def _alternatives(hint: Any) -> tuple[Any, ...]:
    """The types of a union but None, or the one type."""
    hints = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return tuple(one for one in hints if one is not NoneType)


def _each_once(decode: Callable[[Any], Any], column: Sequence[Any]) -> list[Any]:
    """Decoded values, equal ones once; None stays."""
    known = {value: None if value is None else decode(value) for value in set(column)}
    return list(map(known.__getitem__, column))


def _decoder(column: ColumnElement[Any], hint: Any) -> Callable[[Any], Any] | None:
    """What makes a value of this type of what the column holds; None: it is that."""
    [hint, *_] = _alternatives(hint)
    kind = get_origin(hint) or hint
    if not isinstance(kind, type):  # Any
        return None
    if kind is tuple:
        return _from_words if isinstance(column.type, Words) else _tuple_from_json
    if kind is datetime:
        return _time_from_number if isinstance(column.type, Integer) else time_from_text
    if kind is int and isinstance(column.type, Text):
        return partial(int, base=16)
    if kind is str and isinstance(column.type, LargeBinary):
        return bytes.hex
    if issubclass(kind, BaseModel):
        return kind.model_validate_json
    if issubclass(kind, Mapping):
        return json.loads
    return kind if kind is bool or issubclass(kind, Enum) else None


def _encoder(column: ColumnElement[Any], hint: Any) -> Callable[[Any], Any] | None:
    """What makes what the column holds of a value of this type; None: it is that."""
    if (hint is str and isinstance(column.type, Text)) or (hint is bytes and isinstance(column.type, LargeBinary)):
        return None
    if (hint is int and isinstance(column.type, Integer)) or (
        hint is float and isinstance(column.type, Numeric | Float)
    ):
        return cast(type, hint)
    return attrgetter("value") if isinstance(hint, type) and issubclass(hint, Enum) else partial(stored, column)


def _time_from_number(number: int) -> datetime:
    return _EPOCH + number * _MICROSECOND


def _from_words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _tuple_from_json(text: str) -> tuple[Any, ...]:
    return tuple(json.loads(text))
