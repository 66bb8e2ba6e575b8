"""One digest covers all of a run: it is valid as long as nothing is changed, and every change is found."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from labconsole.model.metrics import Direction, Evaluation, Metric, Verdict
from labconsole.model.series import Event, Level
from labconsole.processes import this_process
from labconsole.store import edits
from labconsole.store.errors import DamagedDatabaseError, StoreError
from labconsole.store.evidence.checking import Verification, verify
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus, StoredFile, StoredRole
from labconsole.store.run_store import EventRecord, SampleChunk, Store

CERTIFICATE = b"-----BEGIN CERTIFICATE-----\n"
SENDER = StoredRole("sender", "lab-1", "boot-1", (StoredFile("payload", "plan.txt", 237, "ab" * 32),))


@pytest.fixture
def sealed(store: Store, new_runs: list[int], chunk: Callable[..., SampleChunk], now: datetime) -> int:
    """A run that finished, with something in every table."""
    run_id = new_runs[0]
    store.run_started(run_id, this_process(), {"console": "0.1.0", "seed": 7}, ["Closed loop."], now)
    store.append(run_id, [chunk(seq) for seq in range(3)], [_event(0)], [SENDER])
    store.add_artefact(run_id, "trust.pem", "application/x-pem-file", CERTIFICATE)
    store.replace_evaluation(run_id, _evaluation(12.5))
    store.run_ended(run_id, RunStatus.FINISHED, "", now)
    return run_id


def _event(seq: int) -> EventRecord:
    return EventRecord("sender", seq, Event(1000, "sender", Level.INFO, "connected", "Connected.", {"port": 5671}))


def _evaluation(throughput: float) -> Evaluation:
    metrics = (Metric("throughput", throughput, "msg/s", Direction.HIGHER, 400, {"role": "sender"}),)
    return Evaluation(metrics, (Verdict("limit", "pass", "12.5 is enough", {"min": 10}),))


def check(database: Path, run_id: int) -> Verification:
    with Reader(database) as reader:
        return verify(reader, run_id)


def test_a_run_is_sealed_when_it_ends(store: Store, sealed: int, database: Path) -> None:
    verification = check(database, sealed)
    assert verification.ok, verification.faults
    assert verification.digest_stored == verification.digest_now
    with Reader(database) as reader:
        evidence = reader.evidence(sealed)
    assert evidence is not None
    assert (evidence.digest, evidence.sealed) == (verification.digest_stored, verification.sealed)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE metric SET value = 9e999",
        "UPDATE metric SET uncertainty = 9e999",
        "UPDATE metric SET uncertainty = -1",
        "UPDATE evidence SET sealed = 'yesterday'",
    ],
)
def test_unreadable_figures_and_seals_are_damage(store: Store, sealed: int, database: Path, damage: str) -> None:
    with closing(sqlite3.connect(database)) as raw, raw:
        assert raw.execute(damage).rowcount == 1
    with Reader(database) as reader, pytest.raises(DamagedDatabaseError):
        reader.comparable([sealed])
        reader.evidence(sealed)


def test_the_digest_of_a_run_is_its_own(store: Store, new_runs: list[int], database: Path, now: datetime) -> None:
    assert store.mark_ended(new_runs, RunStatus.QUEUED, RunStatus.CANCELLED, "Removed.", now) == len(new_runs)
    checks = [check(database, run_id) for run_id in new_runs]
    assert all(each.ok for each in checks)
    assert len({each.digest_now for each in checks}) == len(new_runs)


def test_notes_and_tags_are_not_part_of_the_evidence(store: Store, sealed: int, database: Path) -> None:
    before = check(database, sealed).digest_now
    edits.set_note(store, sealed, "fine")
    edits.set_tags(store, sealed, ["shown"])
    edits.pin_baseline(store, sealed)
    edits.trash(store, [sealed])
    assert check(database, sealed) == check(database, sealed)
    assert (check(database, sealed).ok, check(database, sealed).digest_now) == (True, before)


def test_live_run_has_no_evidence(store: Store, new_runs: list[int], database: Path) -> None:
    verification = check(database, new_runs[1])
    assert (verification.ok, verification.digest_stored) == (False, None)
    assert verification.faults == (f"Run {new_runs[1]} has no evidence: it is queued, and sealed when it ends.",)


def test_missing_evidence_of_a_run_is_reported(store: Store, sealed: int, database: Path) -> None:
    with store.writer.transaction() as connection:
        connection.exec_driver_sql("DELETE FROM evidence")
    assert check(database, sealed).faults == (f"Run {sealed} has no evidence: it was removed.",)


def test_samples_stored_after_the_end_are_sealed_with_the_run(
    store: Store, sealed: int, chunk: Callable[..., SampleChunk], database: Path
) -> None:
    """As after a crash: the spool of an ended run is stored, and the run is evaluated again."""
    steps = (
        lambda: store.append(sealed, [chunk(3)], [_event(1)]),
        lambda: store.amend_provenance(sealed, live_view_hz_later=[8.0]),
        lambda: store.replace_evaluation(sealed, _evaluation(13.0)),
    )
    digests = {check(database, sealed).digest_now}
    for step in steps:
        step()
        assert check(database, sealed).ok
        digests.add(check(database, sealed).digest_now)
    assert len(digests) == 4
    steps[2]()
    assert check(database, sealed).digest_now in digests


def test_an_unknown_run_is_named(store: Store, database: Path) -> None:
    with pytest.raises(StoreError, match="There is no run 5"):
        check(database, 5)


_NOT_EVIDENCE = {
    **dict.fromkeys([("run", "id"), ("run", "scenario_id"), ("series", "id"), ("series", "run_id")], "numbers of rows"),
    **dict.fromkeys([("scenario", "id"), ("scenario", "campaign_id"), ("scenario", "position")], "numbers of rows"),
    **dict.fromkeys([("campaign", "id"), ("chunk", "series_id"), ("event", "run_id")], "numbers of rows"),
    **dict.fromkeys([("metric", "run_id"), ("verdict", "run_id"), ("artefact", "run_id")], "numbers of rows"),
    **dict.fromkeys([("role", "run_id"), ("role_file", "run_id")], "numbers of rows"),
    **dict.fromkeys([("evidence", "run_id"), ("evidence", "sealed")], "a label"),
    **dict.fromkeys([("run", "owner_pid"), ("run", "owner_started"), ("run", "owner_boot")], "who wrote it"),
}
_TABLES = ("run", "scenario", "campaign", "series", "chunk", "event", "metric", "verdict", "artefact", "evidence")
_TABLES += ("role", "role_file")
_WITHOUT_ROWID = ("event", "metric", "verdict")


def test_a_flipped_bit_in_any_value_is_found(store: Store, sealed: int, database: Path, tmp_path: Path) -> None:
    """In each column of each table: at the begin, in the middle and at the end of texts and blobs."""
    store.close()
    flips = 0
    for table in _TABLES:
        first = "" if table in _WITHOUT_ROWID else f" WHERE rowid = (SELECT min(rowid) FROM {table})"
        with closing(sqlite3.connect(database)) as raw:
            names = [name for (name,) in raw.execute("SELECT name FROM pragma_table_info(?)", (table,))]
            values = dict(zip(names, raw.execute(f"SELECT * FROM {table}{first}").fetchone(), strict=True))
        for name in [name for name in names if (table, name) not in _NOT_EVIDENCE]:
            for flipped in _flipped(values[name]):
                damaged = tmp_path / "damaged.db"
                shutil.copy(database, damaged)
                with closing(sqlite3.connect(damaged)) as raw, raw:
                    raw.execute("PRAGMA ignore_check_constraints = ON")
                    raw.execute(f'UPDATE {table} SET "{name}" = ?{first}', (flipped,))
                assert not check(damaged, sealed).ok, f"{table}.{name}: {values[name]!r} became {flipped!r}"
                flips += 1
    assert flips > 100
    assert check(database, sealed).ok


def _flipped(value: str | bytes | float | None) -> list[str | bytes | float]:
    match value:
        case bytes():
            return [
                value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :] for at in {0, len(value) // 2, len(value) - 1}
            ]
        case str() if value:
            return [
                value[:at] + chr(ord(value[at]) ^ 1) + value[at + 1 :] for at in {0, len(value) // 2, len(value) - 1}
            ]
        case int():
            return [value ^ 8]
        case float():
            return [value + 2**-40]
    return ["x"]


@pytest.mark.parametrize(
    "gone",
    ["chunk WHERE seq = 2", "chunk", "event", "metric", "verdict", "artefact", "series", "evidence", "role"],
)
def test_missing_row_is_found(store: Store, sealed: int, database: Path, gone: str) -> None:
    with store.writer.transaction() as connection:
        connection.exec_driver_sql(f"DELETE FROM {gone}")
    assert not check(database, sealed).ok


def test_extra_chunk_is_found(store: Store, sealed: int, database: Path) -> None:
    with store.writer.transaction() as connection:
        connection.exec_driver_sql(
            "INSERT INTO chunk SELECT series_id, seq + 1, rows, sha256, payload FROM chunk ORDER BY seq DESC LIMIT 1"
        )
    assert check(database, sealed).faults == ("Series messages from sender has 4 chunks, not 3.",)


def test_artefacts_are_kept_as_they_were_given(store: Store, sealed: int, database: Path) -> None:
    with Reader(database) as reader:
        (artefact,) = reader.artefacts(sealed)
        assert (artefact.name, artefact.size) == ("trust.pem", len(CERTIFICATE))
        assert reader.artefact(sealed, "trust.pem") == CERTIFICATE
        with pytest.raises(StoreError, match=r"has no artefact other\.pem"):
            reader.artefact(sealed, "other.pem")
        with store.writer.transaction() as connection:
            connection.exec_driver_sql("UPDATE artefact SET content = zeroblob(5)")
        with pytest.raises(StoreError, match=r"Artefact trust\.pem of run \d+ is damaged"):
            reader.artefact(sealed, "trust.pem")


@pytest.mark.parametrize(
    ("name", "size", "sentence"),
    [
        ("a" * 101, 1, "cannot name an artefact"),
        ("../trust.pem", 1, "cannot name an artefact"),
        ("", 1, "cannot name an artefact"),
        ("large.bin", 1_000_001, "1,000,000 is the most"),
        ("there.pem", 1, r"an artefact there\.pem already"),
    ],
)
def test_an_artefact_that_does_not_fit_is_refused(
    store: Store, new_runs: list[int], database: Path, name: str, size: int, sentence: str
) -> None:
    store.add_artefact(new_runs[1], "there.pem", "application/x-pem-file", CERTIFICATE)
    with pytest.raises(StoreError, match=sentence):
        store.add_artefact(new_runs[1], name, "text/plain", bytes(size))
    with Reader(database) as reader:
        assert [artefact.name for artefact in reader.artefacts(new_runs[1])] == ["there.pem"]


def test_an_artefact_after_the_end_is_refused(store: Store, sealed: int) -> None:
    with pytest.raises(StoreError, match="comes too late"):
        store.add_artefact(sealed, "late.txt", "text/plain", b"late")
