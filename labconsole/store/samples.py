"""The stored samples of one run, verified against their hash chain while they are read."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Row, bindparam, select

from labconsole.model.series import Column
from labconsole.store import chunks, schema
from labconsole.store.errors import StoreError

_BATCH = 64

# Built once: building such a statement takes as long as running it, and a comparison runs hundreds of them.
_SERIES = select(schema.series).where(
    schema.series.c.run_id == bindparam("of_run"),
    schema.series.c.name == bindparam("of_name"),
    schema.series.c.role == bindparam("of_role"),
)
_ROLES = select(schema.series.c.role).where(
    schema.series.c.run_id == bindparam("of_run"), schema.series.c.name == bindparam("of_name")
)
_CHUNKS = (
    select(schema.chunk.c.seq, schema.chunk.c.rows, schema.chunk.c.sha256, schema.chunk.c.payload)
    .where(
        schema.chunk.c.series_id == bindparam("of_series"),
        schema.chunk.c.seq >= bindparam("first"),
        schema.chunk.c.seq < bindparam("beyond"),
    )
    .order_by(schema.chunk.c.seq)
)


@dataclass(frozen=True)
class StoredChunk:
    """Chunk `seq` of a series: its payload as `labconsole.store.chunks` makes it, and its hash in the chain."""

    seq: int
    rows: int
    sha256: bytes
    payload: bytes


def verified(
    stored: Iterable[StoredChunk], link: bytes, declared: Row[Any], rows: int, damage: Callable[[int, str], StoreError]
) -> Iterator[StoredChunk]:
    """These chunks, each verified by its hash, from `link` to that of the series or attachment that is `declared`.

    `rows` are those of all chunks; `damage` returns the error to raise, for the number of a chunk and the fault.
    """
    found, last = 0, declared.chunks - 1
    for chunk in stored:
        link = chunks.next_link(link, chunk.seq, chunk.rows, chunk.payload)
        if link != chunk.sha256:
            raise damage(chunk.seq, "its hash is wrong")
        yield chunk
        found += chunk.rows
    if found != rows:
        raise damage(last, f"{rows} rows are declared, {found} are there")
    if link != declared.link:
        raise damage(last, "its hash is not the one that the chain ends with")


class StoredSamples:
    """`labconsole.model.trial.Samples` of one run; rows appended after the call of a method are not in its result."""

    def __init__(
        self,
        snapshot: Callable[[], AbstractContextManager[Connection]],
        run_id: int,
        run_uuid: str,
        definitions: int,
    ) -> None:
        self._snapshot = snapshot
        self._run_id = run_id
        self._run_uuid = run_uuid
        self._definitions = definitions

    @property
    def definitions(self) -> int:
        """Version of the metric definitions by which the run is evaluated."""
        return self._definitions

    def roles(self, series: str) -> list[str]:
        """Names of the roles that recorded `series`, sorted."""
        with self._snapshot() as connection:
            return sorted(connection.execute(_ROLES, {"of_run": self._run_id, "of_name": series}).scalars())

    def table(self, series: str, role: str) -> dict[str, NDArray[Any]]:
        """All rows: column name -> array of equal lengths, empty without rows. Raises StoreError."""
        row = self._row(series, role)
        columns = series_columns(row.columns)
        table = {column.name: np.zeros(row.rows, column.numpy_type) for column in columns}
        position = 0
        for part in self._decoded(row, columns, self._chunks(row, columns)):
            rows = len(part[columns[0].name])
            for name, values in part.items():
                if values.dtype.hasobject or values.any():  # else the zeros that are there take no memory
                    table[name][position : position + rows] = values
            position += rows
        return table

    def parts(
        self, series: str, role: str, numbers: Collection[int] | None = None
    ) -> Iterator[dict[str, NDArray[Any]]]:
        """The same rows as `table`, chunk by chunk, in flat memory; with `numbers` only these chunks, in their order.

        Raises StoreError.
        """
        row = self._row(series, role)
        columns = series_columns(row.columns)
        wanted = self._chunks(row, columns) if numbers is None else self._picked(row, columns, numbers)
        return self._decoded(row, columns, wanted)

    def chunks(self, series: str, role: str) -> Iterator[StoredChunk]:
        """The chunks as they are stored, each verified against the hash chain. Raises StoreError."""
        row = self._row(series, role)
        return self._chunks(row, series_columns(row.columns))

    def _row(self, series: str, role: str) -> Row[Any]:
        with self._snapshot() as connection:
            row = connection.execute(_SERIES, {"of_run": self._run_id, "of_name": series, "of_role": role}).first()
        if row is None:
            raise StoreError(f"Run {self._run_id} has no series {series} of role {role}.")
        return row

    def _decoded(
        self, row: Row[Any], columns: tuple[Column, ...], wanted: Iterator[StoredChunk]
    ) -> Iterator[dict[str, NDArray[Any]]]:
        for chunk in wanted:
            try:
                yield chunks.decode(columns, chunk.rows, chunk.payload)
            except chunks.ChunkError as error:
                raise self._damage(row, chunk.seq, str(error)) from error

    def _chunks(self, row: Row[Any], columns: tuple[Column, ...]) -> Iterator[StoredChunk]:
        def stored() -> Iterator[StoredChunk]:
            for first in range(0, row.chunks, _BATCH):
                wanted = {"of_series": row.id, "first": first, "beyond": min(first + _BATCH, row.chunks)}
                with self._snapshot() as connection:
                    batch = connection.execute(_CHUNKS, wanted).all()
                yield from (StoredChunk(*fields) for fields in batch)

        link = chunks.first_link(self._run_uuid, row.role, row.name, columns)
        return verified(stored(), link, row, row.rows, partial(self._damage, row))

    def _picked(self, row: Row[Any], columns: tuple[Column, ...], numbers: Collection[int]) -> Iterator[StoredChunk]:
        """These chunks, each verified against the hash of the one before it."""
        stored, before = schema.chunk, schema.chunk.alias()
        previous = (before.c.series_id == stored.c.series_id) & (before.c.seq == stored.c.seq - 1)
        statement = (
            select(stored.c.seq, stored.c.rows, stored.c.sha256, stored.c.payload, before.c.sha256)
            .select_from(stored.outerjoin(before, previous))
            .where(stored.c.series_id == row.id)
            .order_by(stored.c.seq)
        )
        first_link = chunks.first_link(self._run_uuid, row.role, row.name, columns)
        ordered = sorted(set(numbers))
        for first in range(0, len(ordered), _BATCH):
            picked = ordered[first : first + _BATCH]
            with self._snapshot() as connection:
                batch = connection.execute(statement.where(stored.c.seq.in_(picked))).all()
            if len(batch) < len(picked):
                raise self._damage(row, picked[-1], "it is not there")
            for *fields, link in batch:
                chunk = StoredChunk(*fields)
                if chunks.next_link(link or first_link, chunk.seq, chunk.rows, chunk.payload) != chunk.sha256:
                    raise self._damage(row, chunk.seq, "its hash is wrong")
                yield chunk

    def _damage(self, row: Row[Any], seq: int, what: str) -> StoreError:
        return StoreError(
            f"Samples of run {self._run_id} are damaged in chunk {seq} of series {row.name} from {row.role} ({what}): "
            "do not use its figures."
        )


def series_columns(text: str) -> tuple[Column, ...]:
    """The columns as the `series` table describes them. Raises StoreError if the text is damaged."""
    try:
        return tuple(Column(*fields) for fields in json.loads(text))
    except (ValueError, TypeError, RecursionError) as error:
        raise StoreError(f"The columns of a series are damaged ({error}): do not use its figures.") from error
