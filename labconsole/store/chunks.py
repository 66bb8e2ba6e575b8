"""Column chunks: rows of a series as one compressed blob, hash chained to the chunk before.

The payload is one zstd frame over the columns one after the other, each little-endian and byte-shuffled (first all
lowest bytes, then all second bytes, ...), which makes counters and times compress well. The hash is the SHA-256 over
the hash before, a header (sequence, rows) and the payload; the chain of a series begins with the hash of its identity.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from labconsole.store.encoding import to_json
from labconsole.trial import Column

_LEVEL = 3
_HEADER = struct.Struct("<QQ")


class ChunkError(ValueError):
    """A chunk does not hold what its series says."""


def storage_type(column: Column) -> np.dtype[Any]:
    """The dtype in which a column is stored: always little-endian."""
    return np.dtype(column.dtype).newbyteorder("<")


def first_link(run_uuid: str, role: str, series: str, columns: Sequence[Column]) -> bytes:
    """Where the hash chain of a series begins: 32 bytes that bind it to its run, role and columns."""
    names = [[column.name, column.dtype, column.unit] for column in columns]
    return hashlib.sha256(to_json([run_uuid, role, series, names]).encode()).digest()


def next_link(link: bytes, seq: int, rows: int, payload: bytes) -> bytes:
    """The hash of chunk `seq`, chained to the `link` before it: 32 bytes."""
    digest = hashlib.sha256(link)
    digest.update(_HEADER.pack(seq, rows))
    digest.update(payload)
    return digest.digest()


def encode(columns: Sequence[Column], rows: int, values: Mapping[str, NDArray[Any]]) -> bytes:
    """The payload of one chunk. Raises ChunkError unless `values` has each column with `rows` rows."""
    if values.keys() != {column.name for column in columns} or any(len(array) != rows for array in values.values()):
        lengths = {name: len(array) for name, array in values.items()}
        raise ChunkError(f"{rows} rows of {[column.name for column in columns]} are needed, not {lengths}")
    parts = []
    for column in columns:
        array = np.ascontiguousarray(values[column.name], storage_type(column))
        parts.append(array.view(np.uint8).reshape(rows, array.itemsize).T.tobytes())
    return zstandard.ZstdCompressor(level=_LEVEL).compress(b"".join(parts))


def decode(columns: Sequence[Column], rows: int, payload: bytes) -> dict[str, NDArray[Any]]:
    """The inverse of `encode`. Raises ChunkError when the payload is not `rows` rows of these columns."""
    types = [storage_type(column) for column in columns]
    expected = rows * sum(dtype.itemsize for dtype in types)
    try:
        if zstandard.frame_content_size(payload) != expected:
            raise ChunkError(f"the payload does not hold {expected} bytes")
        raw = zstandard.ZstdDecompressor().decompress(payload, max_output_size=expected)
    except zstandard.ZstdError as error:
        raise ChunkError(str(error)) from error
    values = {}
    position = 0
    for column, dtype in zip(columns, types, strict=True):
        planes = np.frombuffer(raw, np.uint8, rows * dtype.itemsize, position).reshape(dtype.itemsize, rows)
        array = np.empty((rows, dtype.itemsize), np.uint8)
        for place, plane in enumerate(planes):  # faster than copying the transposed planes at once
            array[:, place] = plane
        values[column.name] = array.view(dtype).reshape(rows)
        position += rows * dtype.itemsize
    return values
