"""The capture of a run as a file, also while the run is in progress. No Qt."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from labconsole.store.reader import Reader
from labconsole_v2x.stations.capture import ENHANCED_PACKET

CAPTURE_NAME = "capture.pcapng"
_HEAD = struct.Struct("<2I")


@dataclass(frozen=True)
class RunCapture:
    """The packets of a run: `run_id` is None where no run has begun, `path` where none of its packets is stored.

    `awaited`: the run is still in progress and keeps a capture.
    """

    run_id: int | None = None
    path: Path | None = None
    awaited: bool = False


def write_run_capture(database: Path, run_id: int | None, kind: str, folder: Path) -> RunCapture:
    """Write the capture of a run, or of the newest one of its kind, into `folder`, up to its last whole block.

    Raises StoreError.
    """
    with Reader(database) as reader:
        if run_id is None:
            run_id = next((row.id for row in reader.runs(kind=kind, metrics=()) if row.started is not None), None)
        if run_id is None:
            return RunCapture()
        row, stored = reader.run(run_id).row, reader.attachments(run_id)
        awaited = not row.status.final and bool(row.parameters.get("capture", True))
        role = next((one.role for one in stored.all() if one.name == CAPTURE_NAME), None)
        if role is None:
            return RunCapture(run_id, None, awaited)
        path = folder / f"run-{run_id}-{role}.pcapng"
        packets = 0
        with path.open("wb") as file:
            rest = b""
            for part in stored.content(role, CAPTURE_NAME):
                rest, more = _write_blocks(file, rest + part)
                packets += more
    return RunCapture(run_id, path if packets else None, awaited)


def _write_blocks(file: BinaryIO, octets: bytes) -> tuple[bytes, int]:
    """Write the whole blocks of a pcapng file (little-endian, as this console writes it).

    Returns what is left, and the number of packets.
    """
    end = packets = 0
    while end + _HEAD.size <= len(octets):
        kind, length = _HEAD.unpack_from(octets, end)
        if end + length > len(octets) or length < 12:
            break
        end += length
        packets += kind == ENHANCED_PACKET
    file.write(octets[:end])
    return octets[end:], packets
