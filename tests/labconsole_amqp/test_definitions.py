"""Runs recorded with definitions 1 keep their figures when they are evaluated again; only their names
differ. `golden/definitions-1.db` was recorded by the console of version 0.1.0."""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from labconsole.analysis.answers import answers
from labconsole.analysis.comparison import Comparison, compare, group_repeats
from labconsole.analysis.findings import findings
from labconsole.cli.comparison_table import print_comparison
from labconsole.cli.terminal import output
from labconsole.model.trial import Direction
from labconsole.output.report.document import Tone
from labconsole.output.report.result_tables import comparison_tables
from labconsole.store.reader import Reader
from labconsole.store.run_store import Store
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial.amqp_trial import AmqpTrial
from labconsole_ui.views.comparison.comparison_rows import rows_of
from labconsole_ui.views.run.result_tables import metric_fields, metric_rows

GOLDEN = Path(__file__).parent / "golden" / "definitions-1.db"
CLOSED, ENCRYPTED, OPEN = 1, 2, 3


@pytest.fixture
def old_runs(tmp_path: Path) -> Path:
    """A database of version 3 with three runs, migrated to the current version."""
    path = tmp_path / "runs.db"
    shutil.copy(GOLDEN, path)
    Store.open(path).close()
    return path


def stored(path: Path, run_id: int) -> list[tuple[str, float, str, int]]:
    """The rows of metrics as the old console stored them."""
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


QUEUE_TIMES = ("Mean time in queue at full speed", "Time in queue at full speed")


@pytest.fixture
def repeated(old_runs: Path) -> Comparison:
    """Five repeats of each of two old closed loops, of which the second is slower beyond any doubt."""
    with Reader(old_runs) as reader:
        closed, encrypted = reader.comparable([CLOSED, ENCRYPTED])
    rows = [
        replace(
            row,
            id=10 * row.id + repeat,
            metrics={name: replace(one, value=one.value * (1 + repeat / 100)) for name, one in row.metrics.items()},
        )
        for row in (closed, encrypted)
        for repeat in range(5)
    ]
    return compare(group_repeats(rows), AmqpTrial())


def test_window_shows_the_time_in_queue_of_old_runs_without_arrow_and_colour(
    repeated: Comparison, old_runs: Path
) -> None:
    rows = {row.title: row for row in rows_of(repeated) if row.metric}
    assert {cell.tone for cell in rows["Message throughput"].cells} == {"", "bad"}, "others have one"
    shown = [row for title, row in rows.items() if title.startswith(QUEUE_TIMES)]
    assert len(shown) >= 5
    assert {(row.arrow, cell.tone, cell.mark) for row in shown for cell in row.cells} == {("", "", "")}
    with Reader(old_runs) as reader:
        alone = metric_rows(reader.run(CLOSED).metrics, AmqpTrial())
    better = next(field for field in metric_fields() if field.title == "Better")
    assert {better.text(row) for row in alone if row.title.startswith(QUEUE_TIMES)} <= {"", "not judged"}
    assert {better.text(row) for row in alone if row.title == "Sender message size"} == {"↓"}


def test_terminal_and_report_show_the_time_in_queue_of_old_runs_without_arrow_and_judgement(
    repeated: Comparison, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    print_comparison(output(bounded=True), repeated, AmqpTrial())
    lines = capsys.readouterr().out.splitlines()
    places = [place for place, line in enumerate(lines) if line.startswith(QUEUE_TIMES)]
    assert len(places) >= 5
    for place in places:
        shown = " ".join(lines[place : place + 3])
        assert not set("↑↓") & set(lines[place]) and "worse" not in shown.split("CPU")[0]
    [table] = comparison_tables(repeated)
    cells = [row for row in table.rows if row[0].text.startswith(QUEUE_TIMES)]
    assert len(cells) >= 5
    assert not any(set("↑↓") & set(row[1].text) for row in cells)
    assert {tone for row in cells for cell in row[2:] for _, tone in cell.details} == {Tone.MUTED}


def test_findings_and_cards_leave_out_the_time_in_queue_of_old_runs(repeated: Comparison) -> None:
    sentences = [finding.sentence for finding in findings(repeated, AmqpTrial())]
    sentences += [answer.question + answer.sentence for answer in answers(repeated, AmqpTrial())]
    assert any("throughput" in one for one in sentences)
    assert not [one for one in sentences if "latency" in one.lower() or "time in queue" in one.lower()]
