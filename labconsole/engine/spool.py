"""Spool files: what a role recorded, as hashed blocks that survive a kill of the role and of the worker.

A file is a magic line and blocks. A block is a header (kind, stream, sequence, rows, payload length), its payload, and
the SHA-256 over the digest before it, header and payload. Kinds: `D` declares a stream (JSON: series and role), `S`
holds samples (columns one after the other, little-endian), `E` holds one event, `R` a role that was started (JSON).
"""

from __future__ import annotations

import hashlib
import json
import struct
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labconsole.engine.protocol import event_from_json, event_to_json
from labconsole.errors import UserError
from labconsole.series import Column, Event, Origin, Series

if TYPE_CHECKING:
    from labconsole.store.records import StoredRole

MAGIC = b"labconsole spool 1\n"
BLOCK_ROWS = 4096
READ_SIZE = 16 * 1024 * 1024
"""How much of a file is read at once: far more than one block."""
_HEADER = struct.Struct("<4sHHIII")
_DIGEST = 32


@dataclass(frozen=True)
class SampleBlock:
    """Rows of one stream; `seq` counts the blocks of this stream from 0."""

    role: str
    series: Series
    seq: int
    rows: int
    columns: dict[str, NDArray[Any]]


@dataclass(frozen=True)
class EventBlock:
    """One event; `seq` counts the events of this file from 0."""

    seq: int
    event: Event


@dataclass(frozen=True)
class RoleBlock:
    """A role that was started; `described` are the fields of its `StoredRole` as plain JSON."""

    described: dict[str, Any]


Block = SampleBlock | EventBlock | RoleBlock


def _numpy_type(column: Column) -> np.dtype[Any]:
    return np.dtype(column.dtype).newbyteorder("<")


class SpoolWriter:
    """Appends blocks to a new spool file, from any thread.

    Raises UserError when the disk is full; the file then ends with its last whole block, and takes more when it can.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._turn = threading.Lock()
        try:
            self._file = path.open("xb", buffering=0)
        except OSError as error:
            raise self._refused(error) from error
        self._digest = hashlib.sha256(MAGIC).digest()
        self._streams = 0
        self._events = 0
        self._whole = 0
        self._write(MAGIC)

    def declare(self, role: str, series: Series) -> int:
        """Announce a stream and return its number."""
        with self._turn:
            stream = self._streams
            self._streams += 1
            self._block(b"D", stream, 0, 0, json.dumps({"role": role, "series": asdict(series)}).encode())
        return stream

    def samples(self, stream: int, seq: int, rows: int, payload: bytes) -> None:
        """Append one block of samples."""
        with self._turn:
            self._block(b"S", stream, seq, rows, payload)

    def event(self, event: Event) -> None:
        """Append one event."""
        with self._turn:
            self._block(b"E", 0, self._events, 1, json.dumps(event_to_json(event), default=str).encode())
            self._events += 1

    def role(self, role: StoredRole) -> None:
        """Append a role that was started."""
        with self._turn:
            self._block(b"R", 0, 0, 1, json.dumps(asdict(role)).encode())

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self._file.close()

    def _block(self, kind: bytes, stream: int, seq: int, rows: int, payload: bytes) -> None:
        header = _HEADER.pack(kind, stream, 0, seq, rows, len(payload))
        digest = hashlib.sha256(self._digest + header + payload).digest()
        self._write(header + payload + digest)
        self._digest = digest

    def _write(self, data: bytes) -> None:
        try:
            view = memoryview(data)
            try:
                while view:
                    written = self._file.write(view)
                    view = view[written:]
            except OSError:
                self._file.seek(self._whole)  # a part of a block would spoil every block after it
                self._file.truncate()
                raise
        except OSError as error:
            raise self._refused(error) from error
        self._whole += len(data)

    def _refused(self, error: OSError) -> UserError:
        return UserError(
            f"Samples cannot be written to {self.path.parent}: {error.strerror}. "
            "Free space on that disk, or choose another database with --db."
        )


class SpoolSeriesWriter:
    """`SeriesWriter` on a spool: preallocated columns of BLOCK_ROWS rows; a full block goes to the file."""

    def __init__(self, spool: SpoolWriter, role: str, series: Series) -> None:
        self._spool = spool
        self._stream = spool.declare(role, series)
        self._columns = {column.name: np.empty(BLOCK_ROWS, _numpy_type(column)) for column in series.columns}
        self._fill = 0
        self._seq = 0

    def extend(self, **columns: ArrayLike) -> None:
        """Append rows: every column of the series, equal lengths. Raises ValueError otherwise."""
        arrays = {name: np.asarray(values) for name, values in columns.items()}
        lengths = {len(array) for array in arrays.values()}
        if arrays.keys() != self._columns.keys() or len(lengths) != 1:
            raise ValueError(
                f"columns {sorted(self._columns)} of one length are needed, not {sorted(arrays)} {lengths}"
            )
        total = lengths.pop()
        taken = 0
        while taken < total:
            step = min(total - taken, BLOCK_ROWS - self._fill)
            for name, array in arrays.items():
                self._columns[name][self._fill : self._fill + step] = array[taken : taken + step]
            self._fill += step
            taken += step
            if self._fill == BLOCK_ROWS:
                self.flush()

    def flush(self) -> None:
        """Write what there is as a block."""
        if not self._fill:
            return
        payload = b"".join(column[: self._fill].tobytes() for column in self._columns.values())
        self._spool.samples(self._stream, self._seq, self._fill, payload)
        self._seq += 1
        self._fill = 0


class SpoolReader:
    """Reads a spool file while it grows: complete blocks only, each checked against the digest chain.

    `damage` is one sentence once a block is found that was changed: nothing is read from there on.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damage: str | None = None
        self._offset = 0
        self._digest = hashlib.sha256(MAGIC).digest()
        self._streams: dict[int, tuple[str, Series]] = {}

    def read_new(self) -> list[Block]:
        """Blocks that were completed since the last call, READ_SIZE bytes of them at most; none at the end."""
        if self.damage is not None:
            return []
        with self.path.open("rb") as file:
            file.seek(self._offset)
            data = file.read(READ_SIZE)
        position = 0
        if self._offset == 0:
            if len(data) < len(MAGIC):
                return []
            if not data.startswith(MAGIC):
                self.damage = f"{self.path} is not a spool file of this console."
                return []
            position = len(MAGIC)
        return self._blocks(data, position)

    def _blocks(self, data: bytes, position: int) -> list[Block]:
        blocks: list[Block] = []
        start = self._offset
        while position + _HEADER.size <= len(data):
            kind, stream, _, seq, rows, length = _HEADER.unpack_from(data, position)
            end = position + _HEADER.size + length
            if end + _DIGEST > len(data) and length < READ_SIZE // 2:
                break
            digest = hashlib.sha256(self._digest + data[position:end]).digest()
            if digest != data[end : end + _DIGEST]:
                self.damage = f"{self.path} is damaged after byte {start + position}; the samples before it were kept."
                break
            block = self._decode(kind.rstrip(b"\0"), stream, seq, rows, data[position + _HEADER.size : end])
            if block is not None:
                blocks.append(block)
            self._digest = digest
            position = end + _DIGEST
        self._offset = start + position
        return blocks

    def _decode(self, kind: bytes, stream: int, seq: int, rows: int, payload: bytes) -> Block | None:
        if kind == b"D":
            declared = json.loads(payload)
            fields = declared["series"]
            columns = tuple(Column(**column) for column in fields["columns"])
            series = Series(fields["name"], fields["title"], columns, Origin(fields["origin"]))
            self._streams[stream] = (declared["role"], series)
            return None
        if kind == b"R":
            return RoleBlock(json.loads(payload))
        if kind == b"E":
            return EventBlock(seq, event_from_json(json.loads(payload)))
        role, series = self._streams[stream]
        arrays: dict[str, NDArray[Any]] = {}
        position = 0
        for column in series.columns:
            dtype = _numpy_type(column)
            arrays[column.name] = np.frombuffer(payload, dtype, rows, position)
            position += rows * dtype.itemsize
        return SampleBlock(role, series, seq, rows, arrays)
