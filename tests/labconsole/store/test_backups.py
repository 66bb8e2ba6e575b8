"""A backup is made next to a database; a damaged one is reported and not changed, and its backup can be restored."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from labconsole.processes import Owner, this_process
from labconsole.store import edits
from labconsole.store.backup_files import backups_of
from labconsole.store.backups import back_up, restored_copy
from labconsole.store.errors import DamagedDatabaseError, StoreError
from labconsole.store.evidence.checking import verify
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus
from labconsole.store.run_store import SampleChunk, Store


@pytest.fixture
def filled(store: Store, new_runs: list[int], chunk: Callable[..., SampleChunk], now: datetime, database: Path) -> Path:
    """A closed database with runs that have ended."""
    for run_id in new_runs:
        store.append(run_id, [chunk(seq) for seq in range(4)])
        store.run_ended(run_id, RunStatus.FINISHED, "", now)
    store.close()
    return database


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def runs(path: Path) -> list[int]:
    with Reader(path) as reader:
        rows = reader.runs()
        assert all(verify(reader, row.id).ok for row in rows)
    return [row.id for row in rows]


def files_next_to(path: Path) -> set[str]:
    """Files but those that SQLite and locks keep there."""
    kept = (".lock", "-wal", "-shm")
    return {file.name for file in path.parent.iterdir() if file.is_file() and not file.name.endswith(kept)}


def test_a_backup_is_a_whole_database(filled: Path) -> None:
    before = sha256(filled)
    backup = back_up(filled)
    assert backup is not None
    assert runs(backup) == runs(filled)
    assert sha256(filled) == before
    assert backup.stat().st_mode == filled.stat().st_mode
    (found,) = backups_of(filled)
    assert (found.path, found.runs) == (backup, 4)
    assert files_next_to(filled) == {filled.name, backup.name}


def test_nothing_is_copied_while_nothing_changes(filled: Path) -> None:
    assert back_up(filled) is not None
    assert runs(filled)
    assert back_up(filled) is None
    with Store.open(filled) as store:
        edits.set_note(store, 1, "new")
    assert back_up(filled) is not None
    with Reader(filled.with_name("runs.db.backup")) as reader:
        assert reader.run(1).row.note == "new"


def test_backup_includes_the_wal_while_others_write(filled: Path) -> None:
    with Store.open(filled) as store:
        over = threading.Event()
        edits.set_note(store, 1, "0")

        def write() -> None:
            number = 0
            while not over.is_set():
                number += 1
                edits.set_note(store, 1, str(number))

        thread = threading.Thread(target=write)
        thread.start()
        try:
            for number in range(5):
                edits.set_note(store, 2, str(number))
                backup = back_up(filled)
                assert backup is not None
                with Reader(backup) as reader:
                    assert reader.run(2).row.note == str(number)
        finally:
            over.set()
            thread.join()


def test_backup_does_not_disturb_a_live_run(store: Store, new_runs: list[int], database: Path, now: datetime) -> None:
    store.run_started(new_runs[0], this_process(), {}, [], now)
    assert back_up(database) is None
    assert not database.with_name("runs.db.backup").exists()
    store.run_started(new_runs[1], Owner(2**22 + 1, 1.0, "another boot"), {}, [], now)
    store.run_ended(new_runs[0], RunStatus.FINISHED, "", now)
    assert back_up(database) is not None


def test_a_backup_that_fails_leaves_the_one_before(filled: Path) -> None:
    assert back_up(filled) is not None
    before = sha256(filled.with_name("runs.db.backup"))
    with closing(sqlite3.connect(filled)) as raw:
        (page,) = raw.execute("SELECT rootpage FROM sqlite_master WHERE name = 'verdict'").fetchone()
    _flip(filled, *range((page - 1) * 4096, page * 4096))
    with pytest.raises(DamagedDatabaseError) as caught:  # where copying does not look
        back_up(filled)
    assert [backup.runs for backup in caught.value.backups] == [4]
    assert sha256(filled.with_name("runs.db.backup")) == before
    assert files_next_to(filled) == {"runs.db", "runs.db.backup"}


def test_only_backups_that_can_be_opened_are_offered(filled: Path) -> None:
    backup = back_up(filled)
    assert backup is not None
    filled.with_name("runs.db.v1-backup-20260101T000000Z").write_bytes(b"nothing")
    filled.with_name("runs.db.v2-backup-20260102T000000Z.partial").write_bytes(backup.read_bytes())
    other = filled.with_name("runs.db.v2-backup-20260103T000000Z")
    other.write_bytes(backup.read_bytes())
    newer = filled.with_name("runs.db.v9-backup-20260104T000000Z")
    newer.write_bytes(backup.read_bytes())
    with closing(sqlite3.connect(newer)) as raw:
        raw.execute("PRAGMA user_version = 99")
    filled.with_name("other.db.backup").write_bytes(backup.read_bytes())
    assert [found.path for found in backups_of(filled)] == [other, backup]


def test_a_relative_path_has_the_same_backups(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert back_up(filled) is not None
    monkeypatch.chdir(filled.parent)
    assert [backup.runs for backup in backups_of(Path(filled.name))] == [4]


def _zero(path: Path, begin: int) -> None:
    content = bytearray(path.read_bytes())
    content[begin:] = bytes(len(content) - begin)
    path.write_bytes(content)


def _flip(path: Path, *places: int) -> None:
    content = bytearray(path.read_bytes())
    for place in places:
        content[place] ^= 0xFF
    path.write_bytes(content)


DAMAGE: dict[str, Callable[[Path], None]] = {
    "magic": lambda path: _flip(path, 0),
    "page size": lambda path: _flip(path, 16, 17),
    "application": lambda path: _flip(path, 69),
    "all of the header": lambda path: _flip(path, *range(100)),
    "first table": lambda path: _flip(path, 100, 101, 103, 104),
    "pages": lambda path: _zero(path, 4096),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:10_000]),
    "empty": lambda path: path.write_bytes(b""),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_database_names_its_backup_and_is_not_touched(filled: Path, name: str) -> None:
    assert back_up(filled) is not None
    DAMAGE[name](filled)
    before = sha256(filled)
    for opening in (Store.open, Reader):
        with pytest.raises(DamagedDatabaseError, match=r"labconsole restore --db .*runs\.db`") as caught:
            _use(opening(filled))
        assert caught.value.path == filled
        assert [backup.path.name for backup in caught.value.backups] == ["runs.db.backup"]
    assert sha256(filled) == before


def _use(opened: Store | Reader) -> None:
    with opened:
        if isinstance(opened, Store):
            opened.live_runs()
            opened.close()
            with Reader(opened.path) as reader:
                reader.runs()
        else:
            opened.runs()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE scenario SET parameters = substr(parameters, 2)",
        "UPDATE run SET created = 'yesterday'",
        "UPDATE run SET reason = CAST(x'ff41' AS TEXT)",
    ],
)
def test_malformed_texts_are_damage(filled: Path, damage: str) -> None:
    with closing(sqlite3.connect(filled)) as raw, raw:
        raw.execute(damage)
    with Reader(filled) as reader, pytest.raises(DamagedDatabaseError, match="There is no backup next to it"):
        reader.runs()


def test_restored_backup_is_used_as_a_new_database(
    filled: Path, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labconsole.store.backups.wall_now", lambda: now)
    expected = runs(filled)
    backup = back_up(filled)
    assert backup is not None
    _zero(filled, 0)
    before = sha256(filled), sha256(backup)
    (found,) = backups_of(filled)
    restored = restored_copy(filled, found)
    with pytest.raises(StoreError, match="is there already"):
        restored_copy(filled, found)
    assert restored.name.startswith("runs-restored-2") and restored.suffix == ".db"
    assert runs(restored) == expected
    with Store.open(restored) as store:
        edits.set_note(store, 1, "gone on")
    assert (sha256(filled), sha256(backup)) == before


def test_missing_database_is_not_backed_up(database: Path) -> None:
    with pytest.raises(StoreError):
        back_up(database)
    assert backups_of(database) == ()
    assert backups_of(database.parent / "nowhere" / "runs.db") == ()


def test_missing_database_with_a_backup_is_not_created_again(filled: Path) -> None:
    expected = runs(filled)
    assert back_up(filled) is not None
    for file in filled.parent.glob(f"{filled.name}*"):
        if "backup" not in file.name:
            file.unlink()
    with pytest.raises(DamagedDatabaseError, match="it is missing") as caught:
        Store.open(filled)
    assert not filled.exists()
    assert runs(restored_copy(filled, caught.value.backups[0])) == expected
