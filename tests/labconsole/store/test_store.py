"""What is written into the store is read from it, once, and by its own rules."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from labconsole.model.metrics import Direction, Evaluation, Metric, Verdict
from labconsole.model.series import Column, Event, Level, Origin, Series
from labconsole.processes import Owner, this_process
from labconsole.store import edits
from labconsole.store.errors import StoreError
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, RunStatus
from labconsole.store.run_store import EventRecord, SampleChunk, Store

MakeChunk = Callable[..., SampleChunk]


def event(seq: int, message: str = "The sender is connected.") -> EventRecord:
    return EventRecord("sender", seq, Event(1000 - seq, "sender", Level.INFO, "connected", message, {"port": 5671}))


def test_a_campaign_becomes_queued_runs_in_its_order(
    store: Store, campaign: NewCampaign, database: Path, now: datetime
) -> None:
    ids = store.add_campaign(campaign, this_process(), now)
    with Reader(database) as reader:
        rows = reader.runs()
    assert [row.id for row in rows] == ids[::-1]
    oldest = rows[::-1]
    assert [(row.scenario, row.repeat, row.position) for row in oldest] == [
        ("Test 1", 1, 0),
        ("Test 2", 1, 1),
        ("Test 1", 2, 2),
        ("Test 2", 2, 3),
    ]
    first = oldest[0]
    assert (first.profile, first.campaign, first.kind) == ("demo", "Demo campaign", "swim")
    assert first.parameters == {"messages": 10, "tls": False}
    assert (first.status, first.created, first.started, first.owner) == (RunStatus.QUEUED, now, None, this_process())


def test_repeats_have_different_seeds_and_the_same_campaign_has_the_same_ones(
    store: Store, campaign: NewCampaign, database: Path, now: datetime
) -> None:
    for _ in range(2):
        store.add_campaign(campaign, this_process(), now)
    with Reader(database) as reader:
        seeds = [row.seed for row in reader.runs()]
    assert len(set(seeds)) == 4
    assert seeds[:4] == seeds[4:]


def test_run_is_read_with_all_that_was_written(
    store: Store, new_runs: list[int], database: Path, now: datetime
) -> None:
    run = new_runs[0]
    worker = Owner(4711, 12.5, "boot")
    store.run_started(run, worker, {"cpu": "i7", "seed": 1}, ["closed loop"], now)
    store.run_ended(run, RunStatus.FAILED, "The broker went away.", now + timedelta(seconds=3))
    with Reader(database) as reader:
        detail = reader.run(run)
    assert (detail.row.status, detail.row.reason) == (RunStatus.FAILED, "The broker went away.")
    assert (detail.row.owner, detail.row.duration_s) == (worker, 3.0)
    assert detail.provenance == {"cpu": "i7", "seed": 1}
    assert detail.warnings == ("closed loop",)
    assert detail.thresholds == {"throughput": {"min": 100.0}}
    assert detail.sites == ({"name": "State A"},)


def test_a_run_is_started_once_and_ended_once(store: Store, new_runs: list[int], now: datetime) -> None:
    run = new_runs[0]
    store.run_started(run, this_process(), {}, [], now)
    with pytest.raises(StoreError, match=f"Run {run} is running already"):
        store.run_started(run, this_process(), {}, [], now)
    store.run_ended(run, RunStatus.FINISHED, "", now)
    with pytest.raises(StoreError, match=f"Run {run} is finished already and cannot become failed"):
        store.run_ended(run, RunStatus.FAILED, "late", now)


def test_only_one_console_marks_a_dead_run(store: Store, new_runs: list[int], database: Path, now: datetime) -> None:
    store.run_started(new_runs[1], Owner(1, 2.0, "old boot"), {}, [], now)
    dead = next(run for run in store.live_runs() if run.id == new_runs[1])
    assert store.mark_ended([dead.id], dead.status, RunStatus.INTERRUPTED, "The worker died.", now) == 1
    assert store.mark_ended([dead.id], dead.status, RunStatus.INTERRUPTED, "The worker died again.", now) == 0
    assert [run.id for run in store.live_runs()] == [new_runs[0], *new_runs[2:]]
    with Reader(database) as reader:
        assert reader.run(new_runs[1]).row.reason == "The worker died."


def test_a_run_that_got_a_new_owner_is_not_marked(store: Store, new_runs: list[int], now: datetime) -> None:
    seen = store.live_runs()[0]
    store.run_started(seen.id, Owner(99, 1.0, "b"), {}, [], now)
    assert store.mark_ended([seen.id], seen.status, RunStatus.INTERRUPTED, "The launcher died.", now) == 0


def test_many_runs_are_marked_at_once_and_only_those_that_still_wait(
    store: Store, new_runs: list[int], database: Path, now: datetime
) -> None:
    store.run_started(new_runs[1], Owner(99, 1.0, "b"), {}, [], now)
    assert store.mark_ended(new_runs, RunStatus.QUEUED, RunStatus.CANCELLED, "Gone.", now) == len(new_runs) - 1
    assert store.mark_ended([], RunStatus.QUEUED, RunStatus.CANCELLED, "Gone.", now) == 0
    with Reader(database) as reader:
        rows = {row.id: (row.status, row.reason, row.ended) for row in reader.runs()}
    assert rows.pop(new_runs[1]) == (RunStatus.RUNNING, "", None)
    assert set(rows.values()) == {(RunStatus.CANCELLED, "Gone.", now)}


def test_provenance_grows_and_forgets_nothing(store: Store, new_runs: list[int], database: Path, now: datetime) -> None:
    store.run_started(new_runs[0], this_process(), {"cpu": "i7", "live_view_hz": 8.0}, [], now)
    store.amend_provenance(new_runs[0], live_view_hz_later=[0.0, 4.0])
    with Reader(database) as reader:
        provenance = reader.run(new_runs[0]).provenance
    assert provenance == {"cpu": "i7", "live_view_hz": 8.0, "live_view_hz_later": [0.0, 4.0]}


def test_another_repeat_comes_last_with_a_seed_of_its_own(
    store: Store, new_runs: list[int], database: Path, now: datetime
) -> None:
    extra = store.add_repeat(new_runs[1], this_process(), now)
    with Reader(database) as reader:
        rows = reader.runs()
    assert (rows[0].id, rows[0].scenario, rows[0].repeat, rows[0].position) == (extra, "Test 2", 3, 4)
    assert len({row.seed for row in rows}) == 5


def test_samples_come_back_by_series_and_role(
    store: Store, new_runs: list[int], chunk: MakeChunk, database: Path
) -> None:
    run = new_runs[0]
    store.append(run, [chunk(0), chunk(0, "receiver"), chunk(1)])
    with Reader(database) as reader:
        samples = reader.samples(run)
        assert samples.roles("messages") == ["receiver", "sender"]
        assert samples.roles("nothing") == []
        table = samples.table("messages", "sender")
        described = {(series.role, series.rows) for series in reader.run(run).series}
    np.testing.assert_array_equal(table["sequence"], np.arange(200, dtype="u4"))
    np.testing.assert_array_equal(table["latency"], -(np.arange(200) ** 3))
    np.testing.assert_array_equal(table["cpu"], np.arange(200) / 7)
    assert table["kind"].dtype == np.dtype("u1")
    assert described == {("sender", 200), ("receiver", 100)}


def _empty(series: Series, role: str = "sender") -> SampleChunk:
    return SampleChunk(role, series, 0, 0, {column.name: np.empty(0, column.dtype) for column in series.columns})


def test_a_series_without_rows_has_empty_columns(
    store: Store, new_runs: list[int], messages: Series, database: Path
) -> None:
    store.append(new_runs[0], [_empty(messages)])
    with Reader(database) as reader:
        table = reader.samples(new_runs[0]).table("messages", "sender")
    assert {name: len(values) for name, values in table.items()} == {"sequence": 0, "latency": 0, "cpu": 0, "kind": 0}


def test_importing_a_spool_again_changes_nothing(
    store: Store, new_runs: list[int], chunk: MakeChunk, database: Path
) -> None:
    run = new_runs[0]
    store.append(run, [chunk(0), chunk(1)], [event(0), event(1)])
    store.append(run, [chunk(0), chunk(1), chunk(2)], [event(0, "other"), event(1, "other"), event(2)])
    with Reader(database) as reader:
        assert len(reader.samples(run).table("messages", "sender")["kind"]) == 300
        events = reader.run(run).events
    assert [item.t_ns for item in events] == [998, 999, 1000]
    assert {item.message for item in events} == {"The sender is connected."}
    assert events[0] == event(2).event


def test_threads_share_a_store(store: Store, new_runs: list[int], chunk: MakeChunk, database: Path) -> None:
    def fill(run_id: int) -> None:
        for seq in range(10):
            store.append(run_id, [chunk(seq)])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(fill, new_runs))
    with Reader(database) as reader:
        rows = [len(reader.samples(run_id).table("messages", "sender")["kind"]) for run_id in new_runs]
    assert rows == [1000] * 4


def test_values_that_json_cannot_encode_do_not_lose_samples(
    store: Store, new_runs: list[int], chunk: MakeChunk, database: Path
) -> None:
    data = {"rate": float("nan"), "sizes": (1, 2.5), "when": Path("x"), "ok": True}
    odd = Event(1, "sender", Level.INFO, "odd", "Odd data.", data)
    store.append(new_runs[0], [chunk(0)], [EventRecord("sender", 0, odd)])
    with Reader(database) as reader:
        (event,) = reader.run(new_runs[0]).events
    assert event.data == {"rate": "nan", "sizes": [1, 2.5], "when": "x", "ok": True}


def test_text_that_utf_8_cannot_have_does_not_lose_samples(
    store: Store, new_runs: list[int], chunk: MakeChunk, database: Path
) -> None:
    odd = Event(1, "sender", Level.INFO, "odd", "With \ud800.", {"host": "\udfff"})
    store.append(new_runs[0], [chunk(0)], [EventRecord("sender", 0, odd)])
    with Reader(database) as reader:
        (event,) = reader.run(new_runs[0]).events
    assert (event.message, event.data) == ("With ?.", {"host": "?"})


def test_a_gap_in_the_chunks_is_refused_with_nothing_of_the_batch_written(
    store: Store, new_runs: list[int], chunk: MakeChunk, database: Path
) -> None:
    run = new_runs[0]
    with pytest.raises(StoreError, match="chunk 2 of messages from sender came after 1 chunks"):
        store.append(run, [chunk(0), chunk(2)], [event(0)])
    with Reader(database) as reader:
        assert reader.run(run).series == ()
        assert reader.run(run).events == ()


def test_a_series_with_other_columns_is_refused(store: Store, new_runs: list[int], messages: Series) -> None:
    store.append(new_runs[0], [_empty(messages)])
    other = Series("messages", "Messages", (Column("sequence", "u4", "", "Sequence"),))
    with pytest.raises(StoreError, match="has other columns in role receiver"):
        store.append(new_runs[0], [_empty(other, "receiver")])


def test_samples_that_do_not_fit_are_refused(store: Store, new_runs: list[int], messages: Series) -> None:
    with pytest.raises(StoreError, match="do not fit their series"):
        store.append(new_runs[0], [SampleChunk("sender", messages, 0, 5, {"sequence": np.arange(5)})])


def test_new_evaluation_replaces_the_previous_one(store: Store, new_runs: list[int], database: Path) -> None:
    run = new_runs[0]
    store.replace_evaluation(run, Evaluation((Metric("old", 1.0, ""),), (Verdict("old", "fail", "x"),)))
    throughput = Metric("throughput", 0.1 + 0.2, "msg/s", Direction.HIGHER, 400, {}, Origin.EMULATED)
    lost = Metric("lost", 3.0, "", Direction.LOWER, 400, {"reason": "expired"})
    verdict = Verdict("complete", "pass", "All arrived.", {"lost": 0})
    store.replace_evaluation(run, Evaluation((throughput, lost), (verdict,)))
    with Reader(database) as reader:
        detail = reader.run(run)
        row = next(row for row in reader.runs() if row.id == run)
    assert detail.metrics == (throughput, lost)
    assert detail.verdicts == (verdict,)
    assert dict(row.metrics) == {"throughput": throughput}


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_metric_without_a_finite_value_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="latency_p99"):
        Evaluation((Metric("latency_p99", value, "ns"),))


def test_metrics_are_readable_with_any_sqlite_tool(store: Store, new_runs: list[int], database: Path) -> None:
    store.replace_evaluation(new_runs[0], Evaluation((Metric("lost", 3.0, "msg", labels={"reason": "late"}),)))
    with closing(sqlite3.connect(database)) as plain:
        found = plain.execute("SELECT name, value, unit, labels->>'reason' FROM metric JOIN run ON run.id = run_id")
        assert found.fetchall() == [("lost", 3.0, "msg", "late")]


def test_an_unknown_run_is_named(store: Store, database: Path, chunk: MakeChunk, now: datetime) -> None:
    with Reader(database) as reader:
        for ask in (reader.run, reader.samples):
            with pytest.raises(StoreError, match="There is no run 99"):
                ask(99)
    with pytest.raises(StoreError, match="There is no run 99"):
        store.append(99, [chunk(0)])
    with pytest.raises(StoreError, match="There is no run 99"):
        store.run_ended(99, RunStatus.FAILED, "", now)


def test_an_unknown_series_is_named(store: Store, new_runs: list[int], database: Path) -> None:
    with Reader(database) as reader, pytest.raises(StoreError, match="no series messages of role sender"):
        reader.samples(new_runs[0]).table("messages", "sender")


def test_the_data_version_changes_with_each_write_of_others(store: Store, new_runs: list[int], database: Path) -> None:
    with Reader(database) as reader:
        before = reader.data_version()
        reader.runs()
        assert reader.data_version() == before
        store.replace_evaluation(new_runs[0], Evaluation((Metric("lost", 1.0, ""),)))
        assert reader.data_version() != before


def test_the_runs_of_one_campaign_can_be_asked_for(
    store: Store, campaign: NewCampaign, database: Path, now: datetime
) -> None:
    first = store.add_campaign(campaign, this_process(), now)
    second = store.add_campaign(campaign, this_process(), now)
    store.replace_evaluation(first[0], Evaluation((Metric("lost", 1.0, ""),)))
    store.replace_evaluation(second[0], Evaluation((Metric("lost", 2.0, ""),)))
    with Reader(database) as reader:
        of_second = reader.run(second[0]).row.campaign_id
        rows = reader.runs(campaign_id=of_second)
        kind = rows[0].kind
        assert reader.runs(kind=kind) == reader.runs() and reader.runs(kind="another.trial") == []
    assert [row.id for row in rows] == second[::-1]
    assert rows[-1].metrics["lost"].value == 2.0


def test_the_newest_runs_and_some_of_their_figures_can_be_asked_for(
    store: Store, campaign: NewCampaign, database: Path, now: datetime
) -> None:
    run_ids = store.add_campaign(campaign, this_process(), now) + store.add_campaign(campaign, this_process(), now)
    for run_id in run_ids:
        figures = (Metric("lost", float(run_id), ""), Metric("throughput", 9.0, "msg/s"))
        store.replace_evaluation(run_id, Evaluation(figures))
    edits.set_tags(store, run_ids[-1], ["night"])
    with Reader(database) as reader:
        newest = reader.runs(limit=2, metrics=["lost", "unheard of"])
        without = reader.runs(metrics=())
    assert [row.id for row in newest] == run_ids[:-3:-1]
    assert [{name: metric.value for name, metric in row.metrics.items()} for row in newest] == [
        {"lost": float(row.id)} for row in newest
    ]
    assert newest[0].tags == ("night",)
    assert [(row.id, dict(row.metrics)) for row in without] == [(run_id, {}) for run_id in run_ids[::-1]]


def test_a_reader_holds_no_transaction(store: Store, new_runs: list[int], chunk: MakeChunk, database: Path) -> None:
    store.append(new_runs[0], [chunk(0)])
    with Reader(database) as reader:
        parts = reader.samples(new_runs[0]).parts("messages", "sender")
        next(parts)
        reader.runs()
        with store.writer.transaction():
            pass
        with closing(sqlite3.connect(database, isolation_level=None)) as other:
            busy, log, done = other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert (busy, log, done) == (0, 0, 0)


def test_a_reader_sees_the_rows_of_a_dead_writer_and_leaves_the_log_to_writers(
    new_runs: list[int], tmp_path: Path, now: datetime
) -> None:
    left = tmp_path / "left"
    left.mkdir()
    for name in ("runs.db", "runs.db-wal"):
        shutil.copy(tmp_path / name, left)
    log = (left / "runs.db-wal").read_bytes()
    with Reader(left / "runs.db") as reader:
        assert len(reader.runs()) == len(new_runs)
    assert (left / "runs.db-wal").read_bytes() == log
    with Store.open(left / "runs.db") as after:
        after.add_repeat(new_runs[0], this_process(), now)
    assert not (left / "runs.db-wal").exists()


def test_the_log_is_kept_short(store: Store, new_runs: list[int], messages: Series, database: Path) -> None:
    rows = 4096
    random = np.random.default_rng(1)
    log = database.with_name("runs.db-wal")
    longest = 0
    for seq in range(160):
        columns = {
            "sequence": random.integers(0, 2**32, rows),
            "latency": random.integers(0, 2**62, rows),
            "cpu": random.random(rows),
            "kind": random.integers(0, 256, rows),
        }
        store.append(new_runs[0], [SampleChunk("sender", messages, seq, rows, columns)])
        longest = max(longest, log.stat().st_size)
    assert 4_000_000 < longest < 5_000_000
    assert database.stat().st_size > 8_000_000


def test_closing_twice_is_harmless(store: Store, database: Path) -> None:
    reader = Reader(database)
    reader.close()
    reader.close()
    store.close()
    store.close()
