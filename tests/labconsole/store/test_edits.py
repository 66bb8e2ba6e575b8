"""Notes, tags, the baseline and the trash."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from labconsole.model.metrics import Evaluation, Metric
from labconsole.processes import this_process
from labconsole.store import edits
from labconsole.store.errors import StoreError
from labconsole.store.evidence.checking import verify
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, RunRow, RunStatus
from labconsole.store.run_store import Store


def ended(store: Store, run_ids: list[int], now: datetime) -> None:
    for run_id in run_ids:
        store.run_ended(run_id, RunStatus.CANCELLED, "Cancelled.", now)


def rows(database: Path, *, include_trashed: bool = False) -> dict[int, RunRow]:
    with Reader(database) as reader:
        return {row.id: row for row in reader.runs(include_trashed=include_trashed)}


def test_a_note_is_set_changed_and_removed(store: Store, new_runs: list[int], database: Path) -> None:
    run = new_runs[0]
    edits.set_note(store, run, "first")
    edits.set_note(store, run, "Größe\n✓ 'quoted'")
    assert rows(database)[run].note == "Größe\n✓ 'quoted'"
    edits.set_note(store, run, "  ")
    assert rows(database)[run].note == ""


def test_tags_are_a_set(store: Store, new_runs: list[int], database: Path) -> None:
    run = new_runs[0]
    edits.set_tags(store, run, ["b", " a ", "b", ""])
    assert rows(database)[run].tags == ("a", "b")
    edits.set_tags(store, run, ["c"])
    assert rows(database)[run].tags == ("c",)


def test_each_kind_of_trial_has_one_baseline_at_most(
    store: Store, campaign: NewCampaign, new_runs: list[int], database: Path, now: datetime
) -> None:
    other_kind = replace(campaign, scenarios=(replace(campaign.scenarios[0], kind="v2x"),), order=((0, 1),))
    other = store.add_campaign(other_kind, this_process(), now)
    ended(store, new_runs + other, now)
    for run in (new_runs[0], other[0], new_runs[2]):
        edits.pin_baseline(store, run)
    with Reader(database) as reader:
        assert reader.baselines() == {"swim": new_runs[2], "v2x": other[0]}
        assert [row.id for row in reader.runs() if row.pinned] == [other[0], new_runs[2]]
        assert reader.run(new_runs[2]).row.pinned
        edits.trash(store, [new_runs[2]])
        assert reader.baselines() == {"v2x": other[0]}
        edits.purge_trash(store)
        edits.unpin_baseline(store, "v2x")
        assert reader.baselines() == {}


def test_live_run_is_not_accepted_as_baseline(store: Store, new_runs: list[int]) -> None:
    with pytest.raises(StoreError, match=f"Run {new_runs[0]} is queued: wait"):
        edits.pin_baseline(store, new_runs[0])


def test_trashed_runs_are_hidden_until_restored(
    store: Store, new_runs: list[int], database: Path, now: datetime
) -> None:
    ended(store, new_runs, now)
    edits.trash(store, new_runs[:2])
    edits.trash(store, new_runs[:1])
    assert set(rows(database)) == set(new_runs[2:])
    assert [row.trashed for row in rows(database, include_trashed=True).values()] == [False, False, True, True]
    edits.restore(store, new_runs[:2])
    assert set(rows(database)) == set(new_runs)


def test_a_live_run_is_not_trashed_nor_its_companions(
    store: Store, new_runs: list[int], database: Path, now: datetime
) -> None:
    ended(store, new_runs[:1], now)
    with pytest.raises(StoreError, match=f"Run {new_runs[1]} is queued"):
        edits.trash(store, new_runs[:2])
    assert set(rows(database)) == set(new_runs)


def test_purging_removes_all_of_a_run_and_nothing_else(
    store: Store, campaign: NewCampaign, new_runs: list[int], database: Path, now: datetime
) -> None:
    kept = store.add_campaign(campaign, this_process(), now)
    for run in (new_runs[0], kept[0]):
        store.replace_evaluation(run, Evaluation((Metric("lost", 1.0, ""),)))
    ended(store, new_runs + kept, now)
    edits.set_note(store, new_runs[0], "gone soon")
    edits.trash(store, new_runs)
    assert edits.purge_trash(store) == 4
    assert set(rows(database, include_trashed=True)) == set(kept)
    with store.writer.transaction() as connection:
        for table, count in {"campaign": 1, "scenario": 2, "metric": 1, "note": 0, "trash": 0}.items():
            assert connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar() == count, table


def test_the_file_of_a_purged_database_shrinks(
    store: Store, new_runs: list[int], database: Path, now: datetime
) -> None:
    for number in range(20):
        store.add_artefact(new_runs[0], f"{number}.bin", "application/octet-stream", bytes(1_000_000))
    store.add_artefact(new_runs[1], "kept.txt", "text/plain", b"kept")
    ended(store, new_runs, now)
    edits.trash(store, new_runs[:1])
    with Reader(database) as reader:  # a window that looks on
        assert edits.purge_trash(store) == 1
        assert reader.artefact(new_runs[1], "kept.txt") == b"kept"
        assert verify(reader, new_runs[1]).ok
    assert database.stat().st_size < 1_000_000
    assert database.with_name("runs.db-wal").stat().st_size == 0


def test_the_number_of_a_purged_run_is_not_given_again(
    store: Store, campaign: NewCampaign, new_runs: list[int], now: datetime
) -> None:
    ended(store, new_runs, now)
    edits.trash(store, new_runs)
    edits.purge_trash(store)
    assert min(store.add_campaign(campaign, this_process(), now)) > max(new_runs)


def test_nothing_is_purged_while_a_run_is_live(
    store: Store, new_runs: list[int], database: Path, now: datetime
) -> None:
    ended(store, new_runs[:1], now)
    edits.trash(store, new_runs[:1])
    with pytest.raises(StoreError, match=f"Run {new_runs[1]} is queued or running"):
        edits.purge_trash(store)
    assert new_runs[0] in rows(database, include_trashed=True)


def test_editing_an_unknown_run_is_refused(store: Store) -> None:
    with pytest.raises(StoreError, match="There is no run 5"):
        edits.set_note(store, 5, "x")
    with pytest.raises(StoreError, match="There is no run 5"):
        edits.trash(store, [5])
