"""Attachments in the store: appended piece by piece, each once and without a gap; every change is found."""

from __future__ import annotations

import hashlib
import random
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from labconsole.processes import this_process
from labconsole.store import edits
from labconsole.store.attachments import AttachmentPiece
from labconsole.store.errors import StoreError
from labconsole.store.evidence.checking import verify
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus, StoredAttachment
from labconsole.store.run_store import Store

ROLE, NAME, TYPE = "tap", "capture.pcapng", "application/x-pcapng"
PARTS = (random.Random(1).randbytes(30_000), b"zeros:" + bytes(30_000), b"the end")
WHOLE = b"".join(PARTS)
SHA256 = hashlib.sha256(WHOLE)


def piece(seq: int, content: bytes = b"", sha256: bytes | None = None) -> AttachmentPiece:
    return AttachmentPiece(ROLE, NAME, TYPE, seq, content, sha256)


PIECES = (piece(0), *(piece(seq, content) for seq, content in enumerate(PARTS)), piece(3, sha256=SHA256.digest()))


@pytest.fixture
def begun(store: Store, new_runs: list[int], now: datetime) -> int:
    """A run that is in progress."""
    store.run_started(new_runs[0], this_process(), {}, [], now)
    return new_runs[0]


@pytest.fixture
def sealed(store: Store, begun: int, now: datetime) -> int:
    """A run that has ended, with that attachment and one that was cut."""
    store.append(begun, [], pieces=PIECES)
    store.append(begun, [], pieces=[AttachmentPiece(ROLE, "log.txt", "text/plain", 0, b"Half a lin")])
    store.run_ended(begun, RunStatus.FINISHED, "", now)
    return begun


def read(database: Path, run_id: int, name: str = NAME) -> bytes:
    with Reader(database) as reader:
        return b"".join(reader.attachments(run_id).content(ROLE, name))


def test_an_attachment_is_read_as_it_was_written(sealed: int, database: Path) -> None:
    assert read(database, sealed) == WHOLE
    with Reader(database) as reader:
        assert reader.attachments(sealed).all() == [
            StoredAttachment(ROLE, NAME, TYPE, len(WHOLE), SHA256.hexdigest()),
            StoredAttachment(ROLE, "log.txt", "text/plain", 10, None),
        ]
        assert verify(reader, sealed).ok
        with pytest.raises(StoreError, match="has no attachment other of role tap"):
            b"".join(reader.attachments(sealed).content(ROLE, "other"))
    with closing(sqlite3.connect(database)) as raw:
        packed = [size for (size,) in raw.execute("SELECT length(payload) FROM attachment_chunk WHERE size > 10")]
    assert packed[0] == len(PARTS[0]) and packed[1] < 100, "compressed where that helps"


def test_pieces_that_come_again_are_stored_once(store: Store, begun: int, database: Path) -> None:
    for count in range(1, len(PIECES) + 1):
        store.append(begun, [], pieces=PIECES[:count])
        store.append(begun, [], pieces=PIECES[:count])
    assert read(database, begun) == WHOLE
    store.append(begun, [], pieces=[piece(3, b"more")])
    assert read(database, begun) == WHOLE


@pytest.mark.parametrize("late", [piece(1, PARTS[1]), piece(3, sha256=SHA256.digest())])
def test_a_gap_is_refused_with_nothing_written(store: Store, begun: int, database: Path, late: AttachmentPiece) -> None:
    with pytest.raises(StoreError, match=f"piece {late.seq} from tap came after 0 pieces"):
        store.append(begun, [], pieces=[piece(0), late])
    with Reader(database) as reader:
        assert reader.attachments(begun).all() == []


def test_samples_stored_after_the_end_are_sealed_with_the_run(store: Store, sealed: int, database: Path) -> None:
    store.append(sealed, [], pieces=[AttachmentPiece(ROLE, "log.txt", "text/plain", 1, b"e.\n")])
    assert read(database, sealed, "log.txt") == b"Half a line.\n"
    with Reader(database) as reader:
        assert verify(reader, sealed).ok


TAMPERING: dict[str, tuple[str, str]] = {
    "a chunk changed": (
        "UPDATE attachment_chunk SET payload = zeroblob(30000) WHERE attachment_id = 1 AND seq = 0",
        "damaged in chunk 0 (its hash is wrong",
    ),
    "chunks swapped": (
        "UPDATE attachment_chunk SET seq = CASE seq WHEN 0 THEN -1 ELSE -2 END WHERE seq < 2 AND attachment_id = 1; "
        "UPDATE attachment_chunk SET seq = seq + 2 WHERE seq < 0 AND attachment_id = 1; ",
        "damaged in chunk 0 (its hash is wrong",
    ),
    "the last chunk removed": (
        "DELETE FROM attachment_chunk WHERE seq = 2",
        "60013 rows are declared, 60006 are there",
    ),
    "a chunk added": (
        "INSERT INTO attachment_chunk VALUES (1, 3, 1, zeroblob(32), x'78')",
        "has 4 chunks, not 3",
    ),
    "cut as if it had been so": (
        "DELETE FROM attachment_chunk WHERE attachment_id = 1 AND seq = 2; UPDATE attachment SET chunks = 2, "
        "size = 60006, sha256 = NULL, link = (SELECT sha256 FROM attachment_chunk WHERE attachment_id = 1 AND seq = 1) "
        "WHERE id = 1",
        "not as it was sealed",
    ),
    "a cut one made complete": (
        "UPDATE attachment SET sha256 = zeroblob(32) WHERE name = 'log.txt'",
        "the hash of all its bytes is wrong",
    ),
    "a name changed": ("UPDATE attachment SET name = 'other' WHERE id = 1", "damaged in chunk 0"),
    "a type changed": ("UPDATE attachment SET media_type = 'text/html' WHERE id = 1", "damaged in chunk 0"),
    "removed": ("DELETE FROM attachment WHERE id = 1", "not as it was sealed"),
}


@pytest.mark.parametrize("name", TAMPERING)
def test_tampering_is_found(name: str, sealed: int, database: Path) -> None:
    statement, sentence = TAMPERING[name]
    with closing(sqlite3.connect(database, isolation_level=None)) as raw:
        raw.execute("PRAGMA foreign_keys = ON")
        raw.executescript(statement)
    with Reader(database) as reader:
        faults = verify(reader, sealed).faults
    assert any(sentence in fault for fault in faults), faults


def test_a_damaged_attachment_is_not_read(sealed: int, database: Path) -> None:
    with closing(sqlite3.connect(database)) as raw, raw:
        raw.execute("UPDATE attachment_chunk SET payload = zeroblob(9) WHERE attachment_id = 1 AND seq = 1")
    with pytest.raises(StoreError, match=r"Attachment capture.pcapng from tap of run \d+ is damaged in chunk 1"):
        read(database, sealed)


def test_attachments_go_with_their_run(
    store: Store, new_runs: list[int], sealed: int, database: Path, now: datetime
) -> None:
    store.mark_ended(new_runs, RunStatus.QUEUED, RunStatus.CANCELLED, "Removed.", now)
    edits.trash(store, [sealed])
    assert edits.purge_trash(store) == 1
    with closing(sqlite3.connect(database)) as raw:
        assert raw.execute("SELECT count(*) FROM attachment_chunk").fetchone() == (0,)
