"""Runs recorded with definitions 1 keep their figures when they are evaluated again; only what they are called today
differs. `golden/definitions-1.db` was recorded by the console of version 0.1.0."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from labconsole.analysis.comparison import compare, group_repeats
from labconsole.store.reader import Reader
from labconsole.store.store import Store
from labconsole.trial import Direction
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial import AmqpTrial

GOLDEN = Path(__file__).parent / "golden" / "definitions-1.db"
CLOSED, ENCRYPTED, OPEN = 1, 2, 3


@pytest.fixture
def old_runs(tmp_path: Path) -> Path:
    """A database of version 3 with three runs, brought to today's version."""
    path = tmp_path / "runs.db"
    shutil.copy(GOLDEN, path)
    Store.open(path).close()
    return path


def stored(path: Path, run_id: int) -> list[tuple[str, float, str, int]]:
    """The rows of metrics as they were stored by the old console."""
    with sqlite3.connect(path) as database:
        rows = database.execute(
            "SELECT name, value, direction, samples FROM metric WHERE run_id = ? ORDER BY position", (run_id,)
        )
        return rows.fetchall()


@pytest.mark.parametrize("run_id", (CLOSED, ENCRYPTED, OPEN))
def test_an_old_run_that_is_evaluated_again_gives_the_figures_that_were_stored(old_runs: Path, run_id: int) -> None:
    with Reader(old_runs) as reader:
        detail, samples = reader.run(run_id), reader.samples(run_id)
        assert detail.row.definitions == samples.definitions == 1
        parameters = AmqpParameters.model_validate(dict(detail.row.parameters))
        evaluation = AmqpTrial().evaluate(parameters, samples, detail.events)
    again = [(one.name, one.value, str(one.direction), one.samples) for one in evaluation.metrics]
    assert again == stored(old_runs, run_id)
    assert not any(one.not_judged for one in evaluation.metrics)


def test_times_of_cryptography_of_an_old_run_are_read_from_their_32_bits(old_runs: Path) -> None:
    with Reader(old_runs) as reader:
        assert reader.samples(ENCRYPTED).table("sent", "sender-0")["sign_ns"].dtype == "<i4"
        assert reader.run(ENCRYPTED).row.metrics["sign_time"].samples == 35


def test_the_latency_of_an_old_closed_loop_is_shown_as_time_in_queue_and_never_judged(old_runs: Path) -> None:
    with Reader(old_runs) as reader:
        rows = reader.comparable([CLOSED, ENCRYPTED, OPEN])
        for row in (rows[0], reader.run(CLOSED).row, reader.runs(metrics=["queue_time_mean"])[-1]):
            assert row.metrics["queue_time_mean"].direction is Direction.NEUTRAL
            assert "latency_mean" not in row.metrics
        names = {one.name for one in reader.run(CLOSED).metrics}
        assert {"queue_time_mean", "queue_time_p99"} <= names and "latency_mean" not in names
        assert "latency_mean" in rows[2].metrics
    lines = {one.name: one for one in compare(group_repeats(rows), AmqpTrial()).metrics}
    assert [cell.value is None for cell in lines["latency_mean"].cells] == [True, True, False]
    change = lines["queue_time_mean"].cells[1].change
    assert change is not None
    assert "neither way is better" in change.notes
    assert lines["queue_time_mean"].kind.title == "Mean time in queue at full speed"
