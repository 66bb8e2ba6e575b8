"""Spool files and the recorder: growth, torn ends, damage, repetition, and writes that fail."""

from __future__ import annotations

import hashlib
import random
import signal
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from labconsole.clock import wall_now
from labconsole.engine import spool as spool_module
from labconsole.engine.recorder import Recorder, make_spool, spool_directory
from labconsole.engine.spool import (
    BLOCK_BYTES,
    BLOCK_ROWS,
    AttachmentBlock,
    Block,
    EventBlock,
    SampleBlock,
    SpoolAttachment,
    SpoolReader,
    SpoolSeriesWriter,
    SpoolWriter,
)
from labconsole.errors import UserError
from labconsole.model.series import BYTES, Column, Event, Level, Series
from labconsole.processes import this_process
from labconsole.store.errors import StoreError
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, NewScenario
from labconsole.store.run_store import Store

SERIES = Series("numbers", "Numbers", (Column("n", "i8", "", "N"), Column("half", "f4", "s", "Half")))


def _write(writer: SpoolSeriesWriter, first: int, count: int) -> None:
    numbers = np.arange(first, first + count)
    writer.extend(n=numbers, half=numbers / 2)


def _numbers(blocks: list[Block]) -> list[int]:
    return [int(n) for block in blocks if isinstance(block, SampleBlock) for n in block.columns["n"]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "role.spool"


def test_what_was_written_is_read_in_blocks(path: Path) -> None:
    spool = SpoolWriter(path)
    writer = SpoolSeriesWriter(spool, "role", SERIES)
    _write(writer, 0, BLOCK_ROWS + 10)
    spool.event(Event(5, "role", Level.WARNING, "odd", "Something odd.", {"n": 3}))
    writer.flush()
    writer.flush()
    spool.close()
    spool.close()
    blocks = SpoolReader(path).read_new()
    assert _numbers(blocks) == list(range(BLOCK_ROWS + 10))
    samples = [block for block in blocks if isinstance(block, SampleBlock)]
    assert [(block.seq, block.rows, block.role, block.series) for block in samples] == [
        (0, BLOCK_ROWS, "role", SERIES),
        (1, 10, "role", SERIES),
    ]
    assert samples[0].columns["half"].dtype == np.float32
    [event] = [block.event for block in blocks if isinstance(block, EventBlock)]
    assert event == Event(5, "role", Level.WARNING, "odd", "Something odd.", {"n": 3})


def test_a_growing_file_gives_each_block_once_and_only_when_it_is_complete(path: Path, tmp_path: Path) -> None:
    """At every length at which a kill may cut it."""
    spool = SpoolWriter(path)
    writer = SpoolSeriesWriter(spool, "role", SERIES)
    ends = []
    for first in range(0, 30, 10):
        _write(writer, first, 10)
        writer.flush()
        ends.append(path.stat().st_size)
    spool.close()
    whole = path.read_bytes()
    grown = tmp_path / "grown.spool"
    reader = SpoolReader(grown)
    seen: list[int] = []
    for length in range(len(whole) + 1):
        grown.write_bytes(whole[:length])
        seen += _numbers(reader.read_new())
        assert len(seen) == 10 * sum(length >= end for end in ends)
    assert seen == list(range(30)) and reader.damage is None


def test_spool_damage_is_reported_and_blocks_before_it_are_kept(path: Path) -> None:
    spool = SpoolWriter(path)
    writer = SpoolSeriesWriter(spool, "role", SERIES)
    for first in (0, 10, 20):
        _write(writer, first, 10)
        writer.flush()
    spool.close()
    data = bytearray(path.read_bytes())
    data[-60] ^= 1
    path.write_bytes(data)
    reader = SpoolReader(path)
    assert _numbers(reader.read_new()) == list(range(20))
    assert reader.damage is not None and "the samples before it were kept" in reader.damage
    assert reader.read_new() == []


def test_file_that_is_not_a_spool_is_reported(path: Path) -> None:
    path.write_bytes(b"this is not a spool file at all")
    reader = SpoolReader(path)
    assert reader.read_new() == []
    assert reader.damage == f"{path} is not a spool file of this console."


def test_a_long_file_is_read_in_pieces(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_module, "READ_SIZE", 4096)
    spool = SpoolWriter(path)
    writer = SpoolSeriesWriter(spool, "role", SERIES)
    for first in range(0, 1000, 50):
        _write(writer, first, 50)
        writer.flush()
    spool.close()
    reader, seen, pieces = SpoolReader(path), list[int](), 0
    while blocks := reader.read_new():
        seen += _numbers(blocks)
        pieces += 1
    assert seen == list(range(1000)) and pieces > 3 and reader.damage is None


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_a_block_that_fits_only_in_part_spoils_none_after_it(path: Path) -> None:
    """A disk that is full in the middle of a block, and free again later: every row once, no damage."""
    spool = SpoolWriter(path)
    writer = SpoolSeriesWriter(spool, "role", SERIES)
    _write(writer, 0, 100)
    writer.flush()
    whole = path.stat().st_size
    with _file_size_limit(whole + 50):
        _write(writer, 100, 100)
        with pytest.raises(UserError, match="Free space on that disk"):
            writer.flush()
        with pytest.raises(UserError, match="Free space on that disk"):
            spool.event(Event(1, "role", Level.INFO, "late", "Said while the disk was full."))
        assert path.stat().st_size == whole
    spool.event(Event(2, "role", Level.INFO, "again", "Said when it was not."))
    writer.flush()
    spool.close()
    reader = SpoolReader(path)
    blocks = reader.read_new()
    assert _numbers(blocks) == list(range(200)) and reader.damage is None
    assert [block.event.name for block in blocks if isinstance(block, EventBlock)] == ["again"]


@contextmanager
def _file_size_limit(size: int) -> Iterator[None]:
    """Let the kernel write no file of this process beyond `size` bytes: the bytes before are written, as on a disk."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def test_rows_must_have_every_column_and_one_length(path: Path) -> None:
    spool = SpoolWriter(path)
    writer = SpoolSeriesWriter(spool, "role", SERIES)
    with pytest.raises(ValueError, match="columns"):
        writer.extend(n=[1])
    with pytest.raises(ValueError, match="columns"):
        writer.extend(n=[1], half=[1.0, 2.0])
    spool.close()


def test_a_spool_is_never_written_over(path: Path) -> None:
    SpoolWriter(path).close()
    with pytest.raises(UserError, match="File exists"):
        SpoolWriter(path)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def _new_run(store: Store) -> tuple[int, Path]:
    campaign = NewCampaign("c", "C", "", 1, (NewScenario("s", "k", {}),), ((0, 1),))
    [run_id] = store.add_campaign(campaign, this_process(), wall_now())
    with Reader(store.path) as reader:
        directory = spool_directory(store.path, reader.run(run_id).row.uuid)
    make_spool(directory)
    return run_id, directory


def test_recording_twice_or_in_pieces_stores_each_row_once(database: Path) -> None:
    with Store.open(database) as store:
        run_id, directory = _new_run(store)
        spool = SpoolWriter(directory / "role.spool")
        writer = SpoolSeriesWriter(spool, "role", SERIES)
        recorder = Recorder(store, run_id, directory)
        for first in (0, 10, 20):
            _write(writer, first, 10)
            writer.flush()
            spool.event(Event(first, "role", Level.INFO, "ten", "Ten more."))
            recorder.poll()
        spool.close()
        Recorder(store, run_id, directory).finish()
        recorder.finish()
        recorder.discard_spool()
        Recorder(store, run_id, directory).discard_spool()
    assert not directory.exists()
    with Reader(database) as reader:
        assert reader.samples(run_id).table("numbers", "role")["n"].tolist() == list(range(30))
        assert [event.t_ns for event in reader.run(run_id).events] == [0, 10, 20]


def test_after_a_write_that_failed_nothing_is_missing(database: Path) -> None:
    """What was read from the spool but not stored is read again: no gap, no row twice."""
    with Store.open(database, lock_timeout_s=0.2) as store:
        run_id, directory = _new_run(store)
        spool = SpoolWriter(directory / "role.spool")
        writer = SpoolSeriesWriter(spool, "role", SERIES)
        recorder = Recorder(store, run_id, directory)
        _write(writer, 0, 10)
        writer.flush()
        recorder.poll()
        _write(writer, 10, 10)
        writer.flush()
        other = sqlite3.connect(database, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked by another program"):
            recorder.poll()
        other.execute("ROLLBACK")
        other.close()
        _write(writer, 20, 10)
        writer.flush()
        recorder.poll()
        spool.close()
    with Reader(database) as reader:
        assert reader.samples(run_id).table("numbers", "role")["n"].tolist() == list(range(30))


def test_a_digest_binds_each_block_to_those_before_it(path: Path) -> None:
    """A block taken out of the middle is damage, though each block on its own is intact."""
    spool = SpoolWriter(path)
    sizes = []
    for n in range(3):
        sizes.append(path.stat().st_size)
        spool.event(Event(n, "role", Level.INFO, "n", "N."))
    spool.close()
    data = path.read_bytes()
    path.write_bytes(data[: sizes[1]] + data[sizes[2] :])
    reader = SpoolReader(path)
    assert len(reader.read_new()) == 1 and reader.damage is not None


PACKETS = Series("packets", "Packets", (Column("n", "i8", "", "N"), Column("packet", BYTES, "", "Packet")))


def _packets(path: Path) -> list[list[bytes]]:
    """The packets in each block."""
    reader, found = SpoolReader(path), []
    while blocks := reader.read_new():
        found += [block.columns["packet"].tolist() for block in blocks if isinstance(block, SampleBlock)]
    assert reader.damage is None
    return found


def test_values_of_any_length_are_read_as_they_were_when_they_were_given(path: Path) -> None:
    spool = SpoolWriter(path)
    writer = SpoolSeriesWriter(spool, "role", PACKETS)
    changing = bytearray(b"first\0")
    writer.extend(n=range(3), packet=[b"", changing, memoryview(b"\xff\0\0")])
    changing[:] = b"second"
    writer.extend(n=[3], packet=[changing])
    writer.flush()
    spool.close()
    assert _packets(path) == [[b"", b"first\0", b"\xff\0\0", b"second"]]


def test_a_block_is_full_with_rows_or_with_bytes(path: Path) -> None:
    given = [bytes([number % 251]) * size for number, size in enumerate([BLOCK_BYTES, 400_000, 700_000, 0, 5])]
    given += [b"x"] * (BLOCK_ROWS + 10)
    spool = SpoolWriter(path)
    writer = SpoolSeriesWriter(spool, "role", PACKETS)
    writer.extend(n=range(len(given)), packet=given)
    writer.flush()
    spool.close()
    blocks = _packets(path)
    assert [packet for block in blocks for packet in block] == given
    assert [len(block) for block in blocks] == [1, 1, BLOCK_ROWS, 13]
    assert all(sum(map(len, block)) <= BLOCK_BYTES for block in blocks)


def test_a_row_that_no_block_holds_or_that_is_not_bytes_is_refused(path: Path) -> None:
    spool = SpoolWriter(path)
    writer = SpoolSeriesWriter(spool, "role", PACKETS)
    with pytest.raises(ValueError, match=r"1,048,577 bytes: 1,048,576 is the most; use an attachment"):
        writer.extend(n=range(2), packet=[b"small", bytes(BLOCK_BYTES + 1)])
    for wrong in (["text"], [5], b"x", [None]):
        with pytest.raises(TypeError):
            writer.extend(n=[1], packet=wrong)  # type: ignore[arg-type]
    writer.extend(n=[1], packet=[b"good"])
    writer.flush()
    spool.close()
    assert _packets(path) == [[b"good"]]


@pytest.mark.parametrize("payload", [bytes(8), bytes(8) + b"\x05\0\0\0abc", bytes(8) + b"\x01\0\0\0abc"])
def test_a_block_that_does_not_hold_its_rows_is_damage(path: Path, payload: bytes) -> None:
    """Written by something else, with its digest in order."""
    spool = SpoolWriter(path)
    stream = spool.declare("role", PACKETS)
    spool.samples(stream, 0, 1, bytes(8) + b"\x03\0\0\0abc")
    spool.samples(stream, 1, 1, payload)
    spool.event(Event(1, "role", Level.INFO, "late", "After it."))
    spool.close()
    reader = SpoolReader(path)
    [block] = reader.read_new()
    assert isinstance(block, SampleBlock) and block.columns["packet"].tolist() == [b"abc"]
    assert reader.damage is not None and "the samples before it were kept" in reader.damage


def _attached(blocks: list[Block]) -> list[AttachmentBlock]:
    return [block for block in blocks if isinstance(block, AttachmentBlock)]


def test_an_attachment_goes_to_the_file_in_blocks_of_a_mebibyte(path: Path) -> None:
    spool = SpoolWriter(path)
    content = random.Random(1).randbytes(2 * BLOCK_BYTES + 100_000)
    with SpoolAttachment(spool, "role", "a.bin", "x/y") as file:
        file.write(content[:10])
        file.flush()
        assert file.write(memoryview(content)[10:]) == len(content) - 10
    with pytest.raises(ValueError, match="is closed"):
        file.write(b"more")
    file.close()
    spool.close()
    begun, *pieces, end = _attached(SpoolReader(path).read_new())
    assert begun == AttachmentBlock("role", "a.bin", "x/y", 0, b"", None)
    assert b"".join(piece.content for piece in pieces) == content
    assert [piece.seq for piece in pieces] == [0, 1, 2, 3]
    assert [len(piece.content) for piece in pieces] == [10, BLOCK_BYTES, BLOCK_BYTES, 99_990]
    assert (end.seq, end.content, end.sha256) == (4, b"", hashlib.sha256(content).digest())


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_an_attachment_that_a_full_disk_cut_stays_cut(path: Path) -> None:
    """What was written is kept without a gap; what the caller writes later, when the disk has room, is refused."""
    spool = SpoolWriter(path)
    file = SpoolAttachment(spool, "role", "a.bin", "x/y")
    file.write(b"a" * BLOCK_BYTES)
    with _file_size_limit(path.stat().st_size + 1000), pytest.raises(UserError, match="Free space on that disk"):
        file.write(b"b" * BLOCK_BYTES)
    with pytest.raises(ValueError, match="is closed"):
        file.write(b"c")
    file.close()
    file.flush()
    spool.close()
    _, *pieces = _attached(SpoolReader(path).read_new())
    assert [piece.content for piece in pieces] == [b"a" * BLOCK_BYTES, b"b" * BLOCK_BYTES]
    assert [piece.sha256 for piece in pieces] == [None, None]
