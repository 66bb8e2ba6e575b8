"""The capture of a run as a file, also while the run is in progress. No Qt."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

from labconsole.store.reader import Reader

CAPTURE_NAME = "capture.pcapng"
_HEAD = struct.Struct("<2I")


def write_run_capture(database: Path, run_id: int | None, kind: str, folder: Path) -> tuple[int | None, Path | None]:
    """Write the capture of a run, or of the newest one of its kind, into `folder`, up to its last whole block.

    Returns the run, None where none has begun, and the file, None where it has kept no capture. Raises StoreError.
    """
    with Reader(database) as reader:
        if run_id is None:
            run_id = next((row.id for row in reader.runs(kind=kind, metrics=()) if row.started is not None), None)
        if run_id is None:
            return None, None
        stored = reader.attachments(run_id)
        role = next((one.role for one in stored.all() if one.name == CAPTURE_NAME), None)
        if role is None:
            return run_id, None
        path = folder / f"run-{run_id}-{role}.pcapng"
        with path.open("wb") as file:
            rest = b""
            for part in stored.content(role, CAPTURE_NAME):
                rest = _write_blocks(file, rest + part)
    return run_id, path


def _write_blocks(file: BinaryIO, octets: bytes) -> bytes:
    """Write the whole blocks of a pcapng file (little-endian, as this console writes it); returns what is left."""
    end = 0
    while end + _HEAD.size <= len(octets):
        _, length = _HEAD.unpack_from(octets, end)
        if end + length > len(octets) or length < 12:
            break
        end += length
    file.write(octets[:end])
    return octets[end:]
