"""The stored samples of one run, verified against their hash chain while they are read."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.model.series import Column
from labconsole.store import chunks
from labconsole.store.errors import StoreError
from labconsole.store.statements import first_record

_BATCH = 64
_SERIES = "SELECT * FROM series WHERE run_id = ? AND name = ? AND role = ?"
_ROLES = "SELECT role FROM series WHERE run_id = ? AND name = ? ORDER BY role"
_CHUNKS = "SELECT seq, rows, sha256, payload FROM chunk WHERE series_id = ? AND seq >= ? AND seq < ? ORDER BY seq"
_PICKED = """
SELECT stored.seq, stored.rows, stored.sha256, stored.payload, previous.sha256
FROM chunk AS stored
LEFT JOIN chunk AS previous ON previous.series_id = stored.series_id AND previous.seq = stored.seq - 1
WHERE stored.series_id = ? AND stored.seq IN ({}) ORDER BY stored.seq
"""


@dataclass(frozen=True)
class StoredChunk:
    """Chunk `seq` of a series: its payload as `labconsole.store.chunks` makes it, and its hash in the chain."""

    seq: int
    rows: int
    sha256: bytes
    payload: bytes


def verified(
    stored: Iterable[StoredChunk],
    link: bytes,
    declared: SimpleNamespace,
    rows: int,
    damage: Callable[[int, str], StoreError],
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
        snapshot: Callable[[], AbstractContextManager[sqlite3.Connection]],
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
            return [role for (role,) in connection.execute(_ROLES, (self._run_id, series))]

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

    def _row(self, series: str, role: str) -> SimpleNamespace:
        with self._snapshot() as connection:
            row = first_record(connection, _SERIES, self._run_id, series, role)
        if row is None:
            raise StoreError(f"Run {self._run_id} has no series {series} of role {role}.")
        return row

    def _decoded(
        self, row: SimpleNamespace, columns: tuple[Column, ...], wanted: Iterator[StoredChunk]
    ) -> Iterator[dict[str, NDArray[Any]]]:
        for chunk in wanted:
            try:
                yield chunks.decode(columns, chunk.rows, chunk.payload)
            except chunks.ChunkError as error:
                raise self._damage(row, chunk.seq, str(error)) from error

    def _chunks(self, row: SimpleNamespace, columns: tuple[Column, ...]) -> Iterator[StoredChunk]:
        def stored() -> Iterator[StoredChunk]:
            for first in range(0, row.chunks, _BATCH):
                wanted = (row.id, first, min(first + _BATCH, row.chunks))
                with self._snapshot() as connection:
                    batch = connection.execute(_CHUNKS, wanted).fetchall()
                yield from (StoredChunk(*fields) for fields in batch)

        link = chunks.first_link(self._run_uuid, row.role, row.name, columns)
        return verified(stored(), link, row, row.rows, partial(self._damage, row))

    def _picked(
        self, row: SimpleNamespace, columns: tuple[Column, ...], numbers: Collection[int]
    ) -> Iterator[StoredChunk]:
        """These chunks, each verified against the hash of the one before it."""
        first_link = chunks.first_link(self._run_uuid, row.role, row.name, columns)
        ordered = sorted(set(numbers))
        for first in range(0, len(ordered), _BATCH):
            picked = ordered[first : first + _BATCH]
            with self._snapshot() as connection:
                statement = _PICKED.format(", ".join("?" * len(picked)))
                batch = connection.execute(statement, (row.id, *picked)).fetchall()
            if len(batch) < len(picked):
                raise self._damage(row, picked[-1], "it is not there")
            for *fields, link in batch:
                chunk = StoredChunk(*fields)
                if chunks.next_link(link or first_link, chunk.seq, chunk.rows, chunk.payload) != chunk.sha256:
                    raise self._damage(row, chunk.seq, "its hash is wrong")
                yield chunk

    def _damage(self, row: SimpleNamespace, seq: int, what: str) -> StoreError:
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
