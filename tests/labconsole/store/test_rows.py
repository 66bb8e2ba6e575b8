"""One mapper between rows and records: what each type is in a row, joins, records in records, and damaged rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, timezone
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple

import numpy as np
import pytest
from pydantic import BaseModel
from sqlalchemy import REAL, Column, Connection, ForeignKey, Integer, LargeBinary, MetaData, Table, Text, insert, select

from labconsole.store.database_file import core_connection
from labconsole.store.rows import Rows, Words, stored

NOON = datetime(2026, 11, 20, 12, 0, 0, 5, tzinfo=UTC)


class Colour(StrEnum):
    RED = "red"


class Step(IntEnum):
    FIRST = 1


class Source(BaseModel):
    name: str


@dataclass(frozen=True)
class Place:
    file: str
    source: Source


@dataclass(frozen=True)
class Token:
    token: str
    label: str


@dataclass(frozen=True)
class Thing:
    id: int
    made: datetime
    seen: datetime | None
    colour: Colour | None
    step: Step
    open: bool
    path: str
    serial: int
    sha256: str
    content: bytes
    share: float
    labels: Mapping[str, str]
    words: tuple[str, ...]
    numbers: tuple[int, ...]
    where: Place | Token | None
    note: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Without a column."""


class Pair(NamedTuple):
    id: int
    text: str


metadata = MetaData()
thing = Table(
    "thing",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("made", Integer, nullable=False),
    Column("seen", Text),
    Column("colour", Text),
    Column("step", Integer, nullable=False),
    Column("open", Integer, nullable=False),
    Column("path", Text, nullable=False),
    Column("serial", Text, nullable=False),
    Column("sha256", LargeBinary, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("share", REAL, nullable=False),
    Column("labels", Text, nullable=False),
    Column("words", Words, nullable=False),
    Column("numbers", Text, nullable=False),
    Column("file", Text),
    Column("source", Text),
    Column("token", Text),
    Column("label", Text),
    Column("remark", Text, nullable=False),
    Column("hidden", Integer),
    sqlite_strict=True,
)
part = Table(
    "part",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("thing", Integer, ForeignKey("thing.id"), nullable=False),
    sqlite_strict=True,
)
THINGS = Rows(Thing, thing, where=(thing.c.file, thing.c.source, thing.c.token, thing.c.label), note=thing.c.remark)
PARTS = Rows(Pair, part, part.join(thing), text=thing.c.path)
ONE = Thing(
    id=1,
    made=NOON,
    seen=NOON,
    colour=Colour.RED,
    step=Step.FIRST,
    open=True,
    path="a/b",
    serial=2**80,
    sha256="00ff",
    content=b"\x00",
    share=0.5,
    labels={"role": "sender"},
    words=("aa", "bb"),
    numbers=(3, 1),
    where=Place("key.pem", Source(name="prompt")),
    note="noted",
)


@pytest.fixture
def connection() -> Iterator[Connection]:
    raw = sqlite3.connect(":memory:", isolation_level=None)
    with closing(raw), closing(core_connection(raw, "BEGIN")) as opened, opened.begin():
        metadata.create_all(opened)
        yield opened


def add(connection: Connection, *records: Thing) -> None:
    connection.execute(insert(thing), THINGS.rows(records))


def test_a_record_is_read_as_it_was_written(connection: Connection) -> None:
    for number, where in enumerate((ONE.where, Token("lab", "signer"), None), start=1):
        record = replace(
            ONE, id=number, where=where, seen=NOON if where else None, colour=Colour.RED if where else None
        )
        add(connection, record)
        assert THINGS.find(connection, id=number) == [record]


def test_what_a_value_is_in_a_row(connection: Connection) -> None:
    add(connection, ONE)
    [row] = connection.execute(select(thing)).mappings()
    assert dict(row) == {
        "id": 1,
        "made": 1_795_176_000_000_005,
        "seen": "2026-11-20T12:00:00.000005Z",
        "colour": "red",
        "step": 1,
        "open": 1,
        "path": "a/b",
        "serial": f"1{'0' * 20}",
        "sha256": b"\x00\xff",
        "content": b"\x00",
        "share": 0.5,
        "labels": '{"role":"sender"}',
        "words": "aa bb",
        "numbers": "[3,1]",
        "file": "key.pem",
        "source": '{"name":"prompt"}',
        "token": None,
        "label": None,
        "remark": "noted",
        "hidden": None,
    }


def test_numbers_of_numpy_and_times_of_other_zones_are_written_too(connection: Connection) -> None:
    singapore = NOON.astimezone(timezone(timedelta(hours=8)))
    given: Any = {"id": np.int64(1), "share": np.float64(0.5), "made": singapore, "seen": singapore}
    add(connection, replace(ONE, **given))
    assert THINGS.find(connection) == [ONE]
    THINGS.update(connection, 1, share=12000)
    [row] = connection.execute(select(thing.c.share))
    assert (row.share, type(row.share)) == (12000.0, float)
    add(connection, replace(ONE, id=2, **{"share": 12000}))
    assert THINGS.find(connection, id=2)[0].share == 12000.0


def test_values_besides_a_record_win_and_columns_without_a_field_are_written(connection: Connection) -> None:
    first, second = THINGS.rows([ONE, ONE], labels="{}", hidden=[1, 2])
    assert (first["labels"], first["hidden"], second["labels"], second["hidden"]) == ("{}", 1, "{}", 2)
    assert "extra" not in first


def test_one_row_is_changed_in_the_fields_that_are_given(connection: Connection) -> None:
    add(connection, ONE, replace(ONE, id=2))
    THINGS.update(connection, 2, where=Token("lab", "signer"), seen=None, serial=255)
    first, second = THINGS.find(connection)
    assert first == ONE
    assert second == replace(ONE, id=2, where=Token("lab", "signer"), seen=None, serial=255)


def test_records_are_found_by_values_by_null_and_in_order(connection: Connection) -> None:
    for number, seen, note in ((1, None, "b"), (2, NOON, "a"), (3, None, "a")):
        add(connection, replace(ONE, id=number, seen=seen, note=note))

    def ids(*order: str, **equal: Any) -> list[int]:
        return [record.id for record in THINGS.find(connection, *order, **equal)]

    assert ids() == [1, 2, 3]
    assert ids("note", "id") == [2, 3, 1]
    assert ids(seen=None) == [1, 3]
    assert ids(seen=NOON) == [2]
    assert ids(seen=None, note="a") == [3]
    assert ids(note="c") == []
    assert ids(hidden=None, colour=Colour.RED) == [1, 2, 3]


def test_a_join_gives_fields_from_both_tables_and_only_its_own_are_written(connection: Connection) -> None:
    add(connection, ONE)
    assert PARTS.insert(connection, thing=1) == 1
    assert PARTS.find(connection) == [Pair(1, "a/b")]
    assert PARTS.rows([Pair(2, "elsewhere")]) == [{"id": 2}]


def test_fields_without_a_column_come_from_the_caller_and_equal_json_is_parsed_once(connection: Connection) -> None:
    add(connection, ONE, replace(ONE, id=2))
    rows = connection.execute(THINGS.select.add_columns(thing.c.hidden)).all()
    first, second = THINGS.records(rows, extra=[{"n": row.id} for row in rows])
    assert (first.extra, second.extra) == ({"n": 1}, {"n": 2})
    assert first.labels is second.labels


@pytest.mark.parametrize(
    "change", ["colour = 'the moon'", "labels = '{'", "serial = 'g'", "seen = 'noon'", "source = '{}'", "step = 7"]
)
def test_a_row_that_another_program_changed_raises_value_error(connection: Connection, change: str) -> None:
    add(connection, ONE)
    connection.exec_driver_sql(f"UPDATE thing SET {change}")
    with pytest.raises(ValueError):
        THINGS.find(connection)


def test_an_unknown_field_is_refused(connection: Connection) -> None:
    for use in (lambda: THINGS.insert(connection, size=1), lambda: THINGS.find(connection, size=1)):
        with pytest.raises(KeyError):
            use()


def test_a_value_alone_is_stored_as_its_column_holds_it() -> None:
    assert stored(thing.c.made, NOON) == 1_795_176_000_000_005
    assert stored(thing.c.seen, None) is None
