"""`labconsole compare` on runs of a stored campaign: the table, its exports, and one sentence for each mistake."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from labconsole.analysis.number_format import format_difference
from labconsole.cli.main import main
from labconsole.model.metrics import Direction, Evaluation, Metric
from labconsole.model.plugin import Plugins
from labconsole.output.report.document import Paragraph, Table
from labconsole.output.report.report_builder import build_report
from labconsole.output.report.report_request import ReportKind, ReportRequest
from labconsole.processes import this_process
from labconsole.profiles.profile import campaign_of, load_profile
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, NewScenario, RunStatus
from labconsole.store.run_store import Store
from labconsole_amqp.parameters import AmqpParameters

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
KIND = "amqp.messaging"
THROUGHPUT = {1: 1000.0, 2: 990.0, 3: 250.0}
PUBLISHED = "swim-within-malaysia-small"

Compare = Callable[..., tuple[int, str, str]]


class Filled:
    """A database with runs that have figures, but no samples."""

    def __init__(self, path: Path) -> None:
        self.store = Store.open(path)

    def campaign(
        self,
        repeats: int,
        *tests: int,
        kind: str = KIND,
        end: RunStatus = RunStatus.FINISHED,
        not_judged: Sequence[str] = ("",),
    ) -> list[int]:
        """Ended runs of these tests, in interleaved order; each repeat is a little faster. Their throughput is not
        judged for these reasons, by turns."""
        order = tuple((index, repeat) for repeat in range(1, repeats + 1) for index in range(len(tests)))
        scenarios = tuple(NewScenario(f"Test {test}", kind, parameters(test)) for test in tests)
        run_ids = self.queued(NewCampaign("demo", "Demo", "", 7, scenarios, order))
        for run_id, (index, repeat) in zip(run_ids, order, strict=True):
            self.store.run_started(run_id, this_process(), {}, ["Closed loop: latency includes queueing."], NOW)
            rate, why = THROUGHPUT[tests[index]] + 2 * repeat, not_judged[repeat % len(not_judged)]
            throughput = Metric("throughput", rate, "msg/s", Direction.HIGHER, 500, not_judged=why)
            cpu = Metric("cpu_per_message", 40.0 + repeat, "us", Direction.LOWER, 500, {"role": "sender"})
            self.store.replace_evaluation(run_id, Evaluation((throughput, cpu)))
            self.store.run_ended(run_id, end, "", NOW)
        return run_ids

    def queued(self, campaign: NewCampaign) -> list[int]:
        """Runs that this process owns, and that have not begun."""
        return self.store.add_campaign(campaign, this_process(), NOW)


def parameters(test: int) -> Mapping[str, Any]:
    values: Mapping[str, Any] = AmqpParameters.model_validate({"test": test, "payload": "small"}).model_dump(
        mode="json"
    )
    return values


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Filled]:
    database = Filled(tmp_path / "runs.db")
    yield database
    database.store.close()


@pytest.fixture
def compare(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Compare:
    """Runs the command in this process on a wide terminal; gives exit code, output, messages."""
    monkeypatch.setenv("COLUMNS", "220")

    def command(*arguments: object) -> tuple[int, str, str]:
        code = main(["compare", *map(str, arguments), "--db", str(tmp_path / "runs.db")])
        return (code, *capsys.readouterr())

    return command


def test_repeats_form_columns_with_differences_intervals_and_findings(filled: Filled, compare: Compare) -> None:
    run_ids = filled.campaign(5, 1, 2, 3)
    code, shown, errors = compare(*run_ids, "--baseline", run_ids[0])
    assert (code, errors) == (0, "")
    lines = shown.splitlines()
    answers, table = lines[: lines.index(head := next(line for line in lines if "Differs" in line))], shown
    assert head.split() == ["Differs", "Unit", "Test", "1", "Test", "2", "Test", "3"]
    assert any("Signing leaves 26 of 100 messages a second" in line for line in answers), "the answers come first"
    assert ["Test", "1", "2", "3"] in [line.split() for line in lines], "the parameter in which they differ"
    [throughput] = [place for place, line in enumerate(lines) if line.startswith("Message throughput ↑")]
    assert lines[throughput].split()[-3:] == ["1,006", "996.0", "256.0"]
    assert lines[throughput + 1].endswith(" -74.6 % [-74.9, -74.2]") and lines[throughput + 2].endswith(" worse")
    assert "CPU per message (role" in table
    assert "- Signing against TLS: message throughput is lower by a factor 3.89 (" in table
    assert "Closed loop: latency includes queueing (all columns)." in table
    assert "Holm's correction over" in " ".join(table.split())


def test_what_is_not_judged_is_one_line_until_all_is_asked_for(filled: Filled, compare: Compare) -> None:
    reasons = [f"the computer was busy (other processes took {share}% of its CPU time)" for share in (20, 30, 40, 50)]
    run_ids = filled.campaign(5, 1, 2, 3, not_judged=[*reasons, f"{reasons[0]}; the sender was late (p99 3 ms)"])
    _, shown, _ = compare(*run_ids)
    lines = shown.splitlines()
    assert (
        "Not judged: 1 metric and 3 findings (the computer was busy, the sender was late). `--all` shows them." in lines
    )
    [place] = [place for place, line in enumerate(lines) if line.startswith("Message throughput ↑")]
    assert lines[place + 1].startswith("not judged ") and "busy" not in lines[place + 1]
    assert not [line for line in lines if line.startswith("- ") and "throughput" in line]
    assert any("Not judged: the computer was busy; the sender was late" in line for line in lines), "on the cards"
    _, everything, _ = compare(*run_ids, "--all")
    assert "- Signing against TLS: message throughput is not judged: the computer was busy; the sender" in everything
    assert "1 metric and" not in everything and "not judged, the computer was" in everything
    judged = filled.campaign(5, 1, 2, 3)
    assert "Not judged" not in compare(*judged)[1], "there is nothing to fold"


def test_published_figures_are_shown_next_to_the_runs(filled: Filled, compare: Compare) -> None:
    code, shown, _ = compare(*filled.campaign(5, 1, 2), "--published", PUBLISHED)
    lines = shown.splitlines()
    [heads] = [line for line in lines if line.startswith("Metric")]
    assert heads.split()[2:] == [*["5", "runs,", "mean", "published"] * 2, *["published"] * 2], "theirs right of ours"
    [throughput] = [place for place, line in enumerate(lines) if line.startswith("Message throughput ↑")]
    assert lines[throughput].split()[-6:] == ["1,006", "1,425*", "996.0", "1,521*", "263.8*", "141.1*"]
    assert lines[throughput + 1].split()[:5] == ["ours", "-29.4", "%", "[-29.7,", "-29.1]"]
    assert "outside" in lines[throughput + 2]
    assert [line.startswith("* Published by the source") for line in lines].index(True) < lines.index(heads)
    assert shown.count("* Published by the source") == 1 and code == 0
    assert "hold 0 of 2 published figures" in shown


@pytest.mark.parametrize("columns", [80, 120])
def test_a_comparison_is_at_most_as_wide_as_the_terminal(
    filled: Filled, compare: Compare, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    run_ids = filled.campaign(5, 1, 2, 3)
    _, shown, _ = compare(*run_ids, "--published", PUBLISHED)
    widths = {len(line) for line in shown.splitlines()}
    assert columns - 25 < max(widths) <= columns
    for title in ("Test 1", "Test 2", "Test 3", "TLS/Digital"):
        assert title in shown


def test_published_column_named_twice_appears_once(filled: Filled, compare: Compare) -> None:
    run_ids = filled.campaign(1, 1)
    _, printed, _ = compare(*run_ids, "--published", PUBLISHED, "--published", f"{PUBLISHED}/test-1", "--json")
    assert [column.get("published") for column in json.loads(printed)["columns"]] == [
        None,
        *(f"{PUBLISHED}/test-{test}" for test in range(1, 5)),
    ]


def test_an_interrupted_run_is_compared_and_marked(filled: Filled, compare: Compare) -> None:
    first, second = filled.campaign(1, 1, 2, end=RunStatus.INTERRUPTED)
    code, shown, _ = compare(first, second)
    assert code == 0
    assert ["Metric", "Unit", "interrupted", "interrupted"] in [line.split() for line in shown.splitlines()]
    assert f"Run {second} of Test 2 is interrupted: its figures cover what was sampled until then." in shown


def test_a_baseline_that_is_not_among_the_runs_becomes_the_first_column(filled: Filled, compare: Compare) -> None:
    first = filled.campaign(1, 1, 2)
    code, printed, _ = compare(first[1], "--baseline", first[0], "--json")
    found = json.loads(printed)
    assert (code, found["baseline"]) == (0, 0)
    assert [column["runs"] for column in found["columns"]] == [[first[0]], [first[1]]]
    cell = found["metrics"][0]["cells"][1]
    assert (cell["interval"], cell["change"]["interval"], cell["change"]["p"]) == (None, None, None)
    assert cell["change"]["note"] == "one run: no interval"
    assert "One run: no interval (all columns)." in found["notes"]


def test_a_published_column_is_the_baseline_of_the_table_and_of_the_report(filled: Filled, compare: Compare) -> None:
    run_ids, name = filled.campaign(2, 1, 3), f"{PUBLISHED}/test-3"
    code, printed, _ = compare(*run_ids, "--baseline", name, "--published", PUBLISHED, "--json")
    found = json.loads(printed)
    assert (code, found["baseline"]) == (0, 3)
    assert [column.get("published") for column in found["columns"][:4]] == [None, f"{PUBLISHED}/test-1", None, name]
    assert [column.get("published") for column in found["columns"]].count(name) == 1
    line = next(line for line in found["metrics"] if line["name"] == "throughput")
    with Reader(filled.store.path) as reader:
        request = ReportRequest(tuple(run_ids), ReportKind.COMPARISON, name)
        sections = {
            section.title: section.blocks for section in build_report(reader, Plugins.discover(), request).sections
        }
    [origins, table, printed] = sections["Results"]
    assert isinstance(printed, Table) and printed.caption.startswith("As printed in the source")
    assert isinstance(origins, Paragraph) and origins.text.startswith("* Published by the source")
    assert isinstance(table, Table)
    assert [head.detail for head in table.heads[2:]] == ["2 runs", "baseline, published", "2 runs"]
    row = next(row for row in table.rows if row[0].text == line["title"])
    percent = line["cells"][0]["change"]["percent"]
    assert row[4].details[-1][0] == format_difference(percent).replace("-", "−")


def test_json_and_csv_hold_the_figures_of_the_table(filled: Filled, compare: Compare, tmp_path: Path) -> None:
    run_ids = filled.campaign(5, 1, 3)
    code, printed, _ = compare(*run_ids, "--json", "--csv", tmp_path / "comparison.csv")
    found = json.loads(printed)
    assert code == 0 and [line["name"] for line in found["metrics"]] == ["throughput", "cpu_per_message{role=sender}"]
    change = found["metrics"][0]["cells"][1]["change"]
    assert change["judgement"] == "worse" and change["interval"][0] < change["ratio"] < change["interval"][1]
    assert found["findings"][0]["judged"] is True
    [answer] = found["answers"]
    assert (answer["number"], answer["judgement"]) == ("25 of 100", "worse")
    with (tmp_path / "comparison.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["scenario"] for row in rows] == ["Test 1", "Test 3"] * 2
    assert float(rows[1]["ratio"]) == change["ratio"]


def test_runs_that_are_compared_ran_interleaved_and_carry_their_warm_up(filled: Filled, tmp_path: Path) -> None:
    profile = load_profile("demo", Plugins.discover(), {"warm_up": "25"}, 3)
    run_ids = filled.queued(campaign_of(profile))
    with Reader(tmp_path / "runs.db") as reader:
        runs = sorted(reader.comparable(run_ids), key=lambda run: run.position)
    scenarios = len({run.scenario for run in runs})
    for first in range(0, len(runs), scenarios):
        assert len({run.scenario for run in runs[first : first + scenarios]}) == scenarios, "one of each in each round"
    assert {run.parameters["warm_up"] for run in runs} == {25}


def test_each_run_can_be_a_column(filled: Filled, compare: Compare) -> None:
    run_ids = filled.campaign(2, 1)
    _, printed, _ = compare(*run_ids, run_ids[0], "--each", "--json")
    assert [column["title"] for column in json.loads(printed)["columns"]] == ["Test 1 · run 1", "Test 1 · run 2"]


def test_runs_of_different_kinds_show_their_common_metrics(filled: Filled, compare: Compare) -> None:
    run_ids = filled.campaign(1, 1) + filled.campaign(1, 2, kind="not.installed")
    code, shown, _ = compare(*run_ids)
    assert code == 0 and "Runs of different trials: only the metrics they share are shown." in shown


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((1, 77), "There is no run 77 in "),
        ((1, "--baseline", 78), "There is no run 78 in "),
        ((1, 2), "Run 2 is still queued: compare it once it has ended, or leave it out."),
        ((1, "--published", "swim-within-malaysa-small"), "There are no published figures swim-within-malaysa-small"),
        ((1, "--published", "nothing"), PUBLISHED),
        ((1, "--baseline", "nothing"), "There are no published figures nothing"),
        ((1, "--baseline", PUBLISHED), f"{PUBLISHED} has several columns; name one of them: {PUBLISHED}/test-1, "),
    ],
)
def test_a_mistake_is_one_sentence(
    filled: Filled, compare: Compare, arguments: tuple[object, ...], sentence: str
) -> None:
    filled.campaign(1, 1)
    filled.queued(NewCampaign("demo", "Demo", "", 7, (NewScenario("Test 1", KIND, parameters(1)),), ((0, 1),)))
    code, shown, errors = compare(*arguments)
    assert (code, shown) == (1, "") and errors.startswith("labconsole: ") and sentence in errors
    assert len(errors.splitlines()) == 1


def test_file_that_cannot_be_written_is_reported_and_leaves_no_partial_file(
    filled: Filled, compare: Compare, tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("not a directory")
    code, _, errors = compare(*filled.campaign(1, 1), "--csv", tmp_path / "taken" / "comparison.csv")
    assert code == 1 and "cannot be written" in errors
    assert (tmp_path / "taken").read_text() == "not a directory"


def test_missing_database_is_reported_and_not_created(compare: Compare, tmp_path: Path) -> None:
    code, _, errors = compare(1)
    assert code == 1 and "There is no database" in errors and not (tmp_path / "runs.db").exists()
