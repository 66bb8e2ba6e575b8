"""Grey pictures of pages as arrays and as small PNG files (8 bit, not filtered), without any imaging library."""

from __future__ import annotations

import re
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Grey = NDArray[np.uint8]
_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def read_pgm(data: bytes) -> Grey:
    """A picture as `pdftoppm -gray` writes it (binary PGM): rows x columns."""
    found = re.match(rb"P5\s+(\d+)\s+(\d+)\s+255\s", data)
    assert found is not None, "no binary PGM"
    width, height = int(found[1]), int(found[2])
    return np.frombuffer(data, np.uint8, width * height, found.end()).reshape(height, width)


def write_png(path: Path, picture: Grey) -> None:
    """Write rows x columns."""
    height, width = picture.shape
    rows = np.hstack((np.zeros((height, 1), np.uint8), picture)).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows, 9)) + _chunk(b"IEND", b"")
    path.write_bytes(_SIGNATURE + chunks)


def read_png(path: Path) -> Grey:
    """Read what `write_png` wrote: rows x columns."""
    data = path.read_bytes()
    width, height = struct.unpack(">II", data[16:24])
    length = struct.unpack(">I", data[33:37])[0]
    rows = np.frombuffer(zlib.decompress(data[41 : 41 + length]), np.uint8)
    return rows.reshape(height, width + 1)[:, 1:]


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
