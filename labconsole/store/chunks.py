"""Column chunks: rows of a series as one compressed blob, hash chained to the chunk before.

The payload is one zstd frame over the columns one after the other, each little-endian and byte-shuffled (first all
lowest bytes, then all second bytes, ...), which makes counters and times compress well. A column of `BYTES` is the
lengths of its values (4 bytes each, shuffled too) and then the values one after the other. The hash is the SHA-256 over
the hash before, a header (sequence, rows) and the payload; the chain of a series begins with the hash of its identity.

A piece of an attachment is the bytes themselves, or one zstd frame of them where that is shorter; its header has the
number of bytes as rows.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from labconsole.model.series import BYTES, LENGTH, Column, byte_lengths, split_byte_values
from labconsole.store.encoding import to_json

LARGEST_CHUNK = 64 * 1024 * 1024
"""The most bytes of a chunk with a column of `BYTES`, of a piece, and of any chunk that comes in a bundle: packed,
unpacked, and as values in memory."""
_LEVEL = 3
_HEADER = struct.Struct("<QQ")
_VALUE_BYTES = 64
"""Bytes in memory of a value of a column of `BYTES`, however short it is."""


class ChunkError(ValueError):
    """A chunk that does not fit its series."""


def row_bytes(columns: Sequence[Column]) -> int:
    """The least bytes of a row in memory."""
    return sum(_VALUE_BYTES if column.dtype == BYTES else column.numpy_type.itemsize for column in columns)


def first_link(run_uuid: str, role: str, series: str, columns: Sequence[Column]) -> bytes:
    """The start of the hash chain of a series: 32 bytes that bind it to its run, role and columns."""
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
    parts: list[bytes] = []
    for column in columns:
        if column.dtype == BYTES:
            parts += _value_parts(column, values[column.name])
        else:
            parts.append(_shuffled(np.ascontiguousarray(values[column.name], column.numpy_type)))
    if _variable(columns) and not _fits(columns, rows, sum(map(len, parts))):
        raise ChunkError(f"{rows} rows are more than the {LARGEST_CHUNK:,} bytes of a chunk")
    return zstandard.ZstdCompressor(level=_LEVEL).compress(b"".join(parts))


def decode(columns: Sequence[Column], rows: int, payload: bytes) -> dict[str, NDArray[Any]]:
    """The inverse of `encode`. Raises ChunkError when the payload is not `rows` rows of these columns."""
    widths = [LENGTH.itemsize if column.dtype == BYTES else column.numpy_type.itemsize for column in columns]
    expected = rows * sum(widths)
    try:
        size = zstandard.frame_content_size(payload)
        if _variable(columns):
            if size < expected or not _fits(columns, rows, size):
                raise ChunkError(f"the payload does not hold {rows} rows")
        elif size != expected:
            raise ChunkError(f"the payload does not hold {expected} bytes")
        raw = zstandard.ZstdDecompressor().decompress(payload, max_output_size=size)
    except zstandard.ZstdError as error:
        raise ChunkError(str(error)) from error
    values: dict[str, NDArray[Any]] = {}
    position = 0
    for column, width in zip(columns, widths, strict=True):
        end = position + rows * width
        if end > len(raw):
            raise ChunkError(f"column {column.name} is not whole")
        if column.dtype == BYTES:
            try:
                values[column.name], position = split_byte_values(raw, end, _unshuffled(raw, position, rows, LENGTH))
            except ValueError as error:
                raise ChunkError(f"column {column.name}: {error}") from error
        else:
            values[column.name] = _unshuffled(raw, position, rows, column.numpy_type)
            position = end
    if position != len(raw):
        raise ChunkError(f"the payload has {len(raw)} bytes, of which its rows are {position}")
    return values


def pack(content: bytes) -> bytes:
    """The payload of a piece: the shorter of the bytes themselves and a zstd frame of them."""
    packed = zstandard.ZstdCompressor(level=_LEVEL).compress(content)
    return packed if len(packed) < len(content) else content


def unpack(size: int, payload: bytes) -> bytes:
    """The inverse of `pack` for a piece of `size` bytes. Raises ChunkError when the payload does not hold them."""
    if len(payload) == size:
        return payload
    try:
        if size > LARGEST_CHUNK or zstandard.frame_content_size(payload) != size:
            raise ChunkError(f"the payload does not hold {size} bytes")
        return zstandard.ZstdDecompressor().decompress(payload, max_output_size=size)
    except zstandard.ZstdError as error:
        raise ChunkError(str(error)) from error


def _variable(columns: Sequence[Column]) -> bool:
    return any(column.dtype == BYTES for column in columns)


def _fits(columns: Sequence[Column], rows: int, size: int) -> bool:
    return size <= LARGEST_CHUNK and rows * row_bytes(columns) <= LARGEST_CHUNK


def _value_parts(column: Column, values: NDArray[Any]) -> tuple[bytes, bytes]:
    """Lengths and values of a column of `BYTES`. Raises ChunkError for a value that is not bytes."""
    given = values.tolist()
    try:
        joined = b"".join(given)
    except TypeError as error:
        raise ChunkError(f"column {column.name} holds values that are not bytes ({error})") from error
    return _shuffled(byte_lengths(given)), joined


def _shuffled(array: NDArray[Any]) -> bytes:
    return array.view(np.uint8).reshape(len(array), array.itemsize).T.tobytes()


def _unshuffled(raw: bytes, position: int, rows: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    planes = np.frombuffer(raw, np.uint8, rows * dtype.itemsize, position).reshape(dtype.itemsize, rows)
    array = np.empty((rows, dtype.itemsize), np.uint8)
    for place, plane in enumerate(planes):  # faster than copying the transposed planes at once
        array[:, place] = plane
    return array.view(dtype).reshape(rows)
