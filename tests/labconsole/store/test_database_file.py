"""New, old, newer, foreign and damaged databases."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from labconsole.clock import wall_now
from labconsole.model.metrics import VerdictKind
from labconsole.processes import this_process
from labconsole.store import schema
from labconsole.store.errors import StoreError
from labconsole.store.evidence.checking import verify
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, RunStatus
from labconsole.store.run_store import Store

GOLDEN = Path(__file__).parent / "golden"
ADDED_COLUMNS = {
    *(("run", "definitions"), ("metric", "not_judged"), ("verdict", "kind")),
    *(("scenario", "placement"), ("metric", "uncertainty")),
}
"""Columns that versions 4, 7 and 8 added to tables of earlier versions."""


@pytest.fixture
def old(database: Path) -> Path:
    """A copy of the database that version 1 of the schema wrote."""
    shutil.copy(GOLDEN / "v1.db", database)
    return database


@pytest.fixture
def second(database: Path) -> Path:
    """A copy of the database that version 2 of the schema wrote."""
    shutil.copy(GOLDEN / "v2.db", database)
    return database


def dump(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table, without the columns that versions 4, 7 and 8 added."""
    with closing(sqlite3.connect(path)) as raw:
        names = [name for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: sorted(raw.execute(f"SELECT {_columns(raw, name)} FROM {name}"), key=repr) for name in names}


def _columns(raw: sqlite3.Connection, table: str) -> str:
    names = [row[1] for row in raw.execute(f"PRAGMA table_info({table})")]
    return ", ".join(f'"{name}"' for name in names if (table, name) not in ADDED_COLUMNS)


def layout(path: Path) -> set[tuple[object, ...]]:
    """Every column and index of every table."""
    with closing(sqlite3.connect(path)) as raw:
        return set(
            raw.execute(
                'SELECT t.name, c.name, c.type, c."notnull", c.dflt_value, c.pk, t.wr, t.strict '
                "FROM pragma_table_list AS t, pragma_table_info(t.name) AS c WHERE t.schema = 'main' "
                "AND t.name NOT LIKE 'sqlite_%'"
            )
        ) | set(raw.execute("SELECT tbl_name, name, sql FROM sqlite_master WHERE type = 'index'"))


def backups(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.v*"))


def test_new_database_has_the_application_id(store: Store, database: Path) -> None:
    with closing(sqlite3.connect(database)) as raw:
        assert raw.execute("PRAGMA application_id").fetchone() == (schema.APPLICATION_ID,)
        assert raw.execute("PRAGMA user_version").fetchone() == (schema.VERSION,)
        assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert backups(database) == []


def test_an_old_database_keeps_every_row(old: Path) -> None:
    before = dump(old)
    Store.open(old).close()
    after = dump(old)
    warnings = [row[-1] for row in after["run"]]
    assert warnings == ['["closed loop: latency includes queueing"]', "[]", "[]", "[]"]
    without = [row[:14] for row in after.pop("run")]
    assert without == [row[:14] for row in before.pop("run")]
    assert {name: after[name] for name in before if name != "run"} == {k: v for k, v in before.items() if k != "run"}


def test_a_database_of_version_2_keeps_every_row_and_its_runs_are_sealed(second: Path) -> None:
    before, began = dump(second), wall_now()
    Store.open(second).close()
    after = dump(second)
    assert {name: after[name] for name in before} == before
    assert (after["artefact"], after["baseline"]) == ([], [])
    with Reader(second) as reader:
        status = {row.id: row.status for row in reader.runs(include_trashed=True)}
        assert set(status.values()) == set(RunStatus) - {RunStatus.FAILED}
        for run_id in status:
            verification = verify(reader, run_id)
            if status[run_id].final:
                assert verification.ok, verification.faults
                assert verification.sealed is not None
                assert began <= verification.sealed <= wall_now()
            else:
                assert verification.digest_stored is None


def test_a_database_of_version_3_keeps_its_digests_and_its_definitions(database: Path) -> None:
    shutil.copy(GOLDEN / "v3.db", database)
    before = dump(database)
    Store.open(database).close()
    after = dump(database)
    assert {name: after[name] for name in before} == before  # among them the digests, as version 3 sealed them
    assert (after["role"], after["role_file"], after["attachment"], after["attachment_chunk"]) == ([], [], [], [])
    with Reader(database) as reader:
        for run_id in (1, 2):
            assert verify(reader, run_id).ok
        detail = reader.run(1)
        assert reader.samples(1).definitions == 1
    assert [metric.not_judged for metric in detail.metrics] == ["", ""]
    assert [verdict.kind for verdict in detail.verdicts] == [VerdictKind.FINDING]


def test_an_old_database_reads_as_it_was_written(old: Path) -> None:
    Store.open(old).close()
    with Reader(old) as reader:
        rows = reader.runs(include_trashed=True)
        detail = reader.run(1)
        table = reader.samples(1).table("messages", "receiver")
    assert [(row.id, row.status, row.trashed) for row in rows] == [
        (4, RunStatus.CANCELLED, True),
        (3, RunStatus.RUNNING, False),
        (2, RunStatus.FAILED, False),
        (1, RunStatus.FINISHED, False),
    ]
    assert detail.warnings == ("closed loop: latency includes queueing",)
    assert detail.provenance == {"console": "0.1.0", "seed": 0}
    assert (detail.row.note, detail.row.tags) == ("first light ✓", ("baseline", "demo"))
    assert [metric.value for metric in detail.metrics] == [1234.5, 3.0]
    assert [event.data for event in detail.events] == [{"port": 5671}, {"port": 5671}, {"port": 5672}, {"port": 5672}]
    np.testing.assert_array_equal(table["latency"], np.arange(400) ** 2 + 7)


def test_a_database_of_version_4_keeps_every_row_and_its_digests(database: Path) -> None:
    shutil.copy(GOLDEN / "v4.db", database)
    before = dump(database)
    Store.open(database).close()
    after = dump(database)
    assert {name: after[name] for name in before} == before
    assert (after["attachment"], after["attachment_chunk"]) == ([], [])
    with Reader(database) as reader:
        assert all(verify(reader, run_id).ok for run_id in (1, 2, 3, 4))
        assert reader.attachments(1).all() == []


@pytest.mark.parametrize("version", ["v6", "v7"])
def test_a_database_of_version_6_or_7_keeps_every_row_and_its_digests(version: str, database: Path) -> None:
    shutil.copy(GOLDEN / f"{version}.db", database)
    before = dump(database)
    Store.open(database).close()
    assert dump(database) == before
    with Reader(database) as reader:
        assert all(verify(reader, run_id).ok for run_id in (1, 2, 3, 4))
        assert [row.placement for row in reader.runs()] == [{}] * 4, "it asks for no hosts"
        assert {metric.uncertainty for metric in reader.run(1).metrics} == {0.0}
        assert reader.attachments(1).all() != [], "it has what version 6 added"


@pytest.mark.parametrize("version", ["v1", "v2", "v3", "v4", "v6", "v7"])
def test_a_migrated_database_is_laid_out_as_a_new_one(version: str, database: Path, tmp_path: Path) -> None:
    shutil.copy(GOLDEN / f"{version}.db", database)
    Store.open(database).close()
    Store.open(tmp_path / "new.db").close()
    assert layout(database) == layout(tmp_path / "new.db")


def test_migration_keeps_the_old_database_as_a_backup(old: Path) -> None:
    before = dump(old)
    Store.open(old).close()
    Store.open(old).close()
    (backup,) = backups(old)
    assert backup.name.startswith("runs.db.v1-backup-2")
    assert dump(backup) == before
    with closing(sqlite3.connect(backup)) as raw:
        assert raw.execute("PRAGMA user_version").fetchone() == (1,)


def test_a_migration_that_fails_changes_nothing(old: Path) -> None:
    with closing(sqlite3.connect(old)) as raw:
        raw.execute("ALTER TABLE run ADD COLUMN warnings TEXT")
    before = dump(old)
    with pytest.raises(StoreError, match="duplicate column name"):
        Store.open(old)
    assert dump(old) == before
    with closing(sqlite3.connect(old)) as raw:
        assert raw.execute("PRAGMA user_version").fetchone() == (1,)


def test_database_with_a_live_run_is_not_migrated(old: Path) -> None:
    owner = this_process()
    with closing(sqlite3.connect(old)) as raw:
        changes = "UPDATE run SET owner_pid = ?, owner_started = ?, owner_boot = ? WHERE status = 'running'"
        raw.execute(changes, (owner.pid, owner.started, owner.boot_id))
        raw.commit()
    before = dump(old)
    with pytest.raises(StoreError, match=r"Run 3 in .* is still in progress"):
        Store.open(old)
    assert dump(old) == before
    assert backups(old) == []


def test_an_old_database_is_not_read_before_it_is_migrated(old: Path) -> None:
    with pytest.raises(StoreError, match="older version"):
        Reader(old)


def test_a_newer_database_is_refused_untouched(store: Store, database: Path) -> None:
    store.close()
    with closing(sqlite3.connect(database)) as raw:
        raw.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = database.read_bytes()
    for opening in (Store.open, Reader):
        with pytest.raises(StoreError, match=r"newer lab console .* update the console"):
            opening(database)
    assert database.read_bytes() == before


def test_a_database_of_another_program_is_refused_untouched(database: Path) -> None:
    with closing(sqlite3.connect(database)) as raw:
        raw.execute("CREATE TABLE contacts (name TEXT)")
    before = database.read_bytes()
    for opening in (Store.open, Reader):
        with pytest.raises(StoreError, match="another program"):
            opening(database)
    assert database.read_bytes() == before


def test_file_that_is_not_a_database_is_refused_unchanged(database: Path) -> None:
    database.write_bytes(b"%PDF-1.7 and so on" * 100)
    for opening in (Store.open, Reader):
        with pytest.raises(StoreError, match="not a database of the lab console"):
            opening(database)
    assert database.read_bytes() == b"%PDF-1.7 and so on" * 100


def test_an_empty_file_becomes_a_database(database: Path) -> None:
    database.touch()
    with pytest.raises(StoreError, match="There is no database"):
        Reader(database)
    Store.open(database).close()
    with Reader(database) as reader:
        assert reader.runs() == []


def test_a_damaged_database_is_named(store: Store, new_runs: list[int], database: Path) -> None:
    store.close()
    content = bytearray(database.read_bytes())
    content[4096:] = bytes(len(content) - 4096)
    database.write_bytes(content)
    with pytest.raises(StoreError, match="is damaged"), Reader(database) as reader:
        reader.runs()


def test_a_name_with_special_characters_is_a_name(tmp_path: Path) -> None:
    path = tmp_path / "my runs?mode=memory#1 %20.db"
    Store.open(path).close()
    assert path.is_file()
    with Reader(path) as reader:
        assert reader.runs() == []


def test_a_missing_database_is_not_made_by_reading(database: Path) -> None:
    with pytest.raises(StoreError, match="There is no database"):
        Reader(database)
    assert not database.exists()


@pytest.mark.parametrize("use", [Reader, Store.open])
def test_a_directory_in_place_of_a_database_is_named(tmp_path: Path, use: Callable[[Path], object]) -> None:
    with pytest.raises(StoreError, match="is a directory, not a database"):
        use(tmp_path)


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"There is no directory .*nowhere"):
        Store.open(tmp_path / "nowhere" / "runs.db")


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A directory of an ordinary user, who this process is during the test (root may write anywhere)."""
    if not hasattr(os, "geteuid"):
        pytest.skip("needs POSIX rights")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        before = os.geteuid()
        if before == 0:
            os.chown(directory, 65534, 65534)
            os.seteuid(65534)
        try:
            yield directory
        finally:
            os.seteuid(before)


def test_a_read_only_file_is_named(unprivileged: Path, campaign: NewCampaign, now: datetime) -> None:
    path = unprivileged / "runs.db"
    Store.open(path).close()
    path.chmod(0o444)
    with Store.open(path) as store, pytest.raises(StoreError, match="cannot be written"):
        store.add_campaign(campaign, this_process(), now)


def test_a_read_only_directory_is_named(unprivileged: Path) -> None:
    path = unprivileged / "runs.db"
    unprivileged.chmod(0o555)
    with pytest.raises(StoreError, match="check the directory and its rights"):
        Store.open(path)
    assert not path.exists()
