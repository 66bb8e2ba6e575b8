"""Writing an attachment: a file of any size that goes into the role's spool in blocks while it is written."""

from __future__ import annotations

import hashlib
import threading
from types import TracebackType
from typing import Self

from labconsole.engine.spool import BLOCK_BYTES, SpoolWriter
from labconsole.errors import UserError
from labconsole.model.series import FILE_NAME


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
        """Whether nothing more can be written, and nothing waits."""
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
        """Write what waits to the spool."""
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
            self._closed = True  # the caller cannot know how much was taken: what comes later would leave a gap
            raise
        self._sha256.update(self._waiting)
        self._waiting.clear()
        self._pieces += 1
