"""Attachments: files of any size in hash-chained chunks, appended while a run is in progress, verified when read."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

from labconsole.store import chunks
from labconsole.store.encoding import to_json
from labconsole.store.errors import StoreError
from labconsole.store.records import StoredAttachment
from labconsole.store.samples import StoredChunk, verified
from labconsole.store.statements import first_record, insert, update

_BATCH = 8
_ATTACHMENT = "SELECT * FROM attachment WHERE run_id = ? AND role = ? AND name = ?"
_ATTACHMENTS = "SELECT role, name, media_type, size, sha256 FROM attachment WHERE run_id = ? ORDER BY role, name"
_CHUNKS = (
    "SELECT seq, size, sha256, payload FROM attachment_chunk "
    "WHERE attachment_id = ? AND seq >= ? AND seq < ? ORDER BY seq"
)


@dataclass(frozen=True)
class AttachmentPiece:
    """Piece `seq` (from 0) of a file that `role` attaches, or no bytes: it was begun, or is complete with `sha256`."""

    role: str
    name: str
    media_type: str
    seq: int
    content: bytes
    sha256: bytes | None = None


def first_link(run_uuid: str, role: str, name: str, media_type: str) -> bytes:
    """The start of the hash chain of an attachment: 32 bytes that bind it to its run, role and name."""
    return hashlib.sha256(to_json(["attachment", run_uuid, role, name, media_type]).encode()).digest()


def append_piece(connection: sqlite3.Connection, run: SimpleNamespace, piece: AttachmentPiece, payload: bytes) -> None:
    """Store a piece, packed as `payload`, unless it is there. Raises StoreError when one before it is missing."""
    stored = _attachment(connection, run, piece)
    if piece.seq < stored.chunks or stored.sha256 is not None:
        return
    if piece.seq > stored.chunks:
        raise StoreError(
            f"A part of attachment {piece.name} of run {run.id} is missing: piece {piece.seq} from {piece.role} came "
            f"after {stored.chunks} pieces."
        )
    changes: dict[str, Any] = {"sha256": piece.sha256}
    if piece.content:
        size = len(piece.content)
        link = chunks.next_link(stored.link, piece.seq, size, payload)
        values = {"attachment_id": stored.id, "seq": piece.seq, "size": size, "sha256": link, "payload": payload}
        insert(connection, "attachment_chunk", values)
        changes = {"chunks": stored.chunks + 1, "size": stored.size + size, "link": link}
    update(connection, "attachment", stored.id, changes)


def _attachment(connection: sqlite3.Connection, run: SimpleNamespace, piece: AttachmentPiece) -> SimpleNamespace:
    """The row of an attachment, inserted if it is missing."""
    wanted = (run.id, piece.role, piece.name)
    row = first_record(connection, _ATTACHMENT, *wanted)
    if row is None:
        values = {
            "run_id": run.id,
            "role": piece.role,
            "name": piece.name,
            "media_type": piece.media_type,
            "chunks": 0,
            "size": 0,
            "link": first_link(run.uuid, piece.role, piece.name, piece.media_type),
        }
        insert(connection, "attachment", values)
        row = first_record(connection, _ATTACHMENT, *wanted)
        assert row is not None
    return row


class StoredAttachments:
    """The attachments of one run, verified against their hash chains while they are read, in flat memory."""

    def __init__(
        self, snapshot: Callable[[], AbstractContextManager[sqlite3.Connection]], run_id: int, run_uuid: str
    ) -> None:
        self._snapshot = snapshot
        self._run_id = run_id
        self._run_uuid = run_uuid

    def all(self) -> list[StoredAttachment]:
        """The attachments by role and name, without their contents."""
        with self._snapshot() as connection:
            rows = connection.execute(_ATTACHMENTS, (self._run_id,)).fetchall()
        return [
            StoredAttachment(role, name, media_type, size, None if sha256 is None else sha256.hex())
            for role, name, media_type, size, sha256 in rows
        ]

    def content(self, role: str, name: str) -> Iterator[bytes]:
        """All bytes of one, in parts of about 1 MiB. Raises StoreError for one that is not there, or damaged."""
        row = self._row(role, name)
        sha256 = hashlib.sha256()
        for chunk in self._chunks(row):
            try:
                part = chunks.unpack(chunk.rows, chunk.payload)
            except chunks.ChunkError as error:
                raise self._damage(row, chunk.seq, str(error)) from error
            sha256.update(part)
            yield part
        if row.sha256 not in (None, sha256.digest()):
            raise self._damage(row, row.chunks - 1, "the hash of all its bytes is wrong")

    def chunks(self, role: str, name: str) -> Iterator[StoredChunk]:
        """The chunks of one as they are stored, `rows` being bytes. Raises StoreError as `content` does."""
        return self._chunks(self._row(role, name))

    def _row(self, role: str, name: str) -> SimpleNamespace:
        with self._snapshot() as connection:
            row = first_record(connection, _ATTACHMENT, self._run_id, role, name)
        if row is None:
            raise StoreError(f"Run {self._run_id} has no attachment {name} of role {role}.")
        return row

    def _chunks(self, row: SimpleNamespace) -> Iterator[StoredChunk]:
        def stored() -> Iterator[StoredChunk]:
            for first in range(0, row.chunks, _BATCH):
                wanted = (row.id, first, min(first + _BATCH, row.chunks))
                with self._snapshot() as connection:
                    batch = connection.execute(_CHUNKS, wanted).fetchall()
                yield from (StoredChunk(*fields) for fields in batch)

        link = first_link(self._run_uuid, row.role, row.name, row.media_type)
        return verified(stored(), link, row, row.size, partial(self._damage, row))

    def _damage(self, row: SimpleNamespace, seq: int, what: str) -> StoreError:
        return StoreError(
            f"Attachment {row.name} from {row.role} of run {self._run_id} is damaged in chunk {seq} ({what}): "
            "do not use it."
        )
