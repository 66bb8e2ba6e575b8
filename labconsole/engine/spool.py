"""Spool files: the records of a role, as hashed blocks that survive a kill of the role and of the worker.

A file is a magic line and blocks. A block is a header (kind, stream, sequence, rows, payload length), its payload, and
the SHA-256 over the digest before it, header and payload. Kinds: `D` declares a stream (JSON: series and role), `S`
holds samples (columns one after the other, little-endian; a column of `BYTES` as lengths, then values), `E` holds one
event, `R` a role that was started (JSON). `A` declares a stream that is an attachment (JSON: role, name, media type),
`P` holds a piece of it, and `Z` its end: the SHA-256 of all its bytes.
"""

from __future__ import annotations

import hashlib
import json
import platform
import struct
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labconsole.engine.protocol import event_from_json, event_to_json
from labconsole.errors import UserError
from labconsole.model.series import (
    BYTES,
    FILE_NAME,
    LENGTH,
    Column,
    Event,
    Origin,
    Series,
    byte_lengths,
    split_byte_values,
)

if TYPE_CHECKING:
    from labconsole.store.records import StoredRole


MAGIC = b"labconsole spool 1\n"
BLOCK_ROWS = 4096
BLOCK_BYTES = 1024 * 1024
"""The most bytes of an attachment, or of the values of columns of `BYTES`, in one block."""
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


@dataclass(frozen=True)
class AttachmentBlock:
    """Piece `seq` (from 0) of a file that `role` attaches, or no bytes: it was begun, or is complete with `sha256`."""

    role: str
    name: str
    media_type: str
    seq: int
    content: bytes
    sha256: bytes | None = None


Block = SampleBlock | EventBlock | RoleBlock | AttachmentBlock


class SpoolWriter:
    """Appends blocks to a new spool file, from any thread.

    Raises UserError when the disk is full; the file then ends with its last whole block, and accepts more once there is
    room.
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
        self._attached: set[str] = set()
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

    def attach(self, role: str, name: str, media_type: str) -> int:
        """Announce an attachment and return the number of its stream. Raises UserError for a name that is taken."""
        with self._turn:
            if name in self._attached:
                raise UserError(f"Role {role} has an attachment {name} already: give each a name of its own.")
            self._attached.add(name)
            stream = self._streams
            self._streams += 1
            about = {"role": role, "name": name, "media_type": media_type}
            self._block(b"A", stream, 0, 0, json.dumps(about).encode())
        return stream

    def piece(self, stream: int, seq: int, content: bytes) -> None:
        """Append piece `seq` of an attachment."""
        with self._turn:
            self._block(b"P", stream, seq, 0, content)

    def complete(self, stream: int, pieces: int, sha256: bytes) -> None:
        """Append the end of an attachment of so many pieces."""
        with self._turn:
            self._block(b"Z", stream, pieces, 0, sha256)

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
        place = f"{self.path.parent} on {platform.node()}"  # a role may run on another host
        return UserError(f"Samples cannot be written to {place}: {error.strerror}. Free space on that disk.")


class SpoolSeriesWriter:
    """`SeriesWriter` on a spool: preallocated columns of BLOCK_ROWS rows; a full block goes to the file.

    A block is also full with BLOCK_BYTES of the columns of `BYTES`.
    """

    def __init__(self, spool: SpoolWriter, role: str, series: Series) -> None:
        self._spool = spool
        self._stream = spool.declare(role, series)
        self._columns = {column.name: np.empty(BLOCK_ROWS, column.numpy_type) for column in series.columns}
        self._variable = [column.name for column in series.columns if column.dtype == BYTES]
        self._fill = 0
        self._held = 0
        """Bytes of the columns of `BYTES` that wait."""
        self._seq = 0

    def extend(self, **columns: ArrayLike | Sequence[bytes]) -> None:
        """Append rows: every column of the series, equal lengths. Raises ValueError otherwise."""
        arrays: dict[str, Any] = {
            name: [*map(_as_bytes, values)] if name in self._variable else np.asarray(values)  # type: ignore[arg-type]
            for name, values in columns.items()
        }
        lengths = {len(array) for array in arrays.values()}
        if arrays.keys() != self._columns.keys() or len(lengths) != 1:
            raise ValueError(
                f"columns {sorted(self._columns)} of one length are needed, not {sorted(arrays)} {lengths}"
            )
        total = lengths.pop()
        sizes = self._sizes(arrays) if self._variable else []
        taken = 0
        while taken < total:
            step = min(total - taken, BLOCK_ROWS - self._fill)
            if sizes:
                step = self._fitting(sizes[taken : taken + step])
            for name, array in arrays.items():
                self._columns[name][self._fill : self._fill + step] = array[taken : taken + step]
            self._fill += step
            taken += step
            if self._fill == BLOCK_ROWS or (sizes and taken < total):
                self.flush()

    def flush(self) -> None:
        """Write the waiting rows as a block."""
        if not self._fill:
            return
        payload = b"".join(
            _joined(column[: self._fill]) if name in self._variable else column[: self._fill].tobytes()
            for name, column in self._columns.items()
        )
        self._spool.samples(self._stream, self._seq, self._fill, payload)
        for name in self._variable:
            self._columns[name][: self._fill] = None
        self._seq += 1
        self._fill = 0
        self._held = 0

    def _sizes(self, arrays: Mapping[str, Any]) -> list[int]:
        """Bytes of the columns of `BYTES` in each row. Raises ValueError for a row that is larger than a block."""
        sizes = [sum(map(len, row)) for row in zip(*(arrays[name] for name in self._variable), strict=True)]
        if max(sizes, default=0) > BLOCK_BYTES:
            raise ValueError(f"a row has {max(sizes):,} bytes: {BLOCK_BYTES:,} is the most; use an attachment")
        return sizes

    def _fitting(self, sizes: Sequence[int]) -> int:
        """How many of the next rows, of these sizes, go into this block; they are counted as held."""
        for number, size in enumerate(sizes):
            if self._held + size > BLOCK_BYTES:
                return number
            self._held += size
        return len(sizes)


def _as_bytes(value: Any) -> bytes:
    """A value of a column of `BYTES`, as it is now. Raises TypeError for other types."""
    return value if type(value) is bytes else bytes(memoryview(value))


def _joined(values: NDArray[Any]) -> bytes:
    given = values.tolist()
    return byte_lengths(given).tobytes() + b"".join(given)


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
        self._attachments: dict[int, AttachmentBlock] = {}

    @property
    def position(self) -> int:
        """How many bytes of the file have been read."""
        return self._offset

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
            block = None
            try:
                if digest != data[end : end + _DIGEST]:
                    raise ValueError("its digest is wrong")
                block = self._decode(kind.rstrip(b"\0"), stream, seq, rows, data[position + _HEADER.size : end])
            except (ValueError, KeyError, TypeError):
                self.damage = f"{self.path} is damaged after byte {start + position}; the samples before it were kept."
                break
            if block is not None:
                blocks.append(block)
            self._digest = digest
            position = end + _DIGEST
        self._offset = start + position
        return blocks

    def _decode(self, kind: bytes, stream: int, seq: int, rows: int, payload: bytes) -> Block | None:
        """The content of a block. Raises ValueError, KeyError or TypeError for one that is malformed."""
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
        if kind == b"A":
            begun = self._attachments[stream] = AttachmentBlock(**json.loads(payload), seq=0, content=b"")
            return begun
        if kind == b"P":
            return replace(self._attachments[stream], seq=seq, content=payload)
        if kind == b"Z":
            return replace(self._attachments[stream], seq=seq, sha256=payload)
        role, series = self._streams[stream]
        return SampleBlock(role, series, seq, rows, _decoded(series.columns, rows, payload))


def _decoded(columns: Sequence[Column], rows: int, payload: bytes) -> dict[str, NDArray[Any]]:
    """The columns of a block of samples. Raises ValueError unless it holds so many rows of them, and nothing else."""
    arrays: dict[str, NDArray[Any]] = {}
    position = 0
    for column in columns:
        dtype = LENGTH if column.dtype == BYTES else column.numpy_type
        values = np.frombuffer(payload, dtype, rows, position)
        position += rows * dtype.itemsize
        if column.dtype == BYTES:
            values, position = split_byte_values(payload, position, values)
        arrays[column.name] = values
    if position != len(payload):
        raise ValueError(f"a block of {len(payload)} bytes has rows of {position}")
    return arrays


class SpoolAttachment:
    """`Attachment` on a spool: at most BLOCK_BYTES wait in memory."""

    def __init__(self, spool: SpoolWriter, role: str, name: str, media_type: str) -> None:
        if not FILE_NAME.fullmatch(name):
            raise UserError(f"{name!r} cannot name an attachment: use letters, digits and . _ - (100 at most).")
        self._name = name
        self._spool = spool
        self._stream = spool.attach(role, name, media_type)
        self._turn = threading.Lock()
        self._waiting = bytearray()
        self._pieces = 0
        self._sha256 = hashlib.sha256()
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether it is closed, with all bytes written."""
        return self._closed and not self._waiting

    def write(self, data: bytes | bytearray | memoryview) -> int:
        with memoryview(data).cast("B") as view, self._turn:
            if self._closed:
                raise ValueError(f"attachment {self._name} is closed")
            position = 0
            while position < len(view):
                taken = view[position : position + BLOCK_BYTES - len(self._waiting)]
                self._waiting += taken
                position += len(taken)
                if len(self._waiting) == BLOCK_BYTES:
                    self._write_piece()
            return len(view)

    def flush(self) -> None:
        """Write all waiting bytes to the spool."""
        with self._turn:
            self._write_piece()

    def close(self) -> None:
        with self._turn:
            if not self._closed:
                self._write_piece()
                self._closed = True
                self._spool.complete(self._stream, self._pieces, self._sha256.digest())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        self._closed = True

    def _write_piece(self) -> None:
        if not self._waiting:
            return
        try:
            self._spool.piece(self._stream, self._pieces, bytes(self._waiting))
        except UserError:
            self._closed = True  # the caller cannot know how much was written: later bytes would leave a gap
            raise
        self._sha256.update(self._waiting)
        self._waiting.clear()
        self._pieces += 1
