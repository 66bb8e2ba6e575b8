"""Published verdicts of the practice plugin next to those of its runs: terminal, JSON, CSV and report."""

from __future__ import annotations

import csv
import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from labconsole.model.plugin import Plugins
from labconsole.output.report.document import Document, Table, TextCell, Tone
from labconsole.output.report.report_builder import build_report
from labconsole.output.report.report_request import ReportKind, ReportRequest
from labconsole.store.reader import Reader
from tests.helpers.practice import PLUGIN, profile_text
from tests.labconsole.cli.conftest import CommandLine


class Counted:
    """Two runs that count 100 numbers, and two that say of 200 that some are missing: shared, never changed."""

    def __init__(self, folder: Path) -> None:
        self.database = folder / "runs.db"
        self.labconsole = CommandLine(folder)
        self.labconsole.environment["COLUMNS"] = "160"
        profile = self.labconsole.profile(profile_text({"count": 100}, {"count": 200, "fault": "miscount"}))
        done = self.labconsole("run", profile, "--repeat", "2", "--db", self.database)
        assert done.returncode == 3, done.stderr

    def of(self, scenario: str) -> list[int]:
        """The runs of a scenario."""
        with Reader(self.database) as reader:
            return sorted(run.id for run in reader.runs() if run.scenario == scenario)

    def compare(self, *arguments: str) -> str:
        done = self.labconsole("compare", "1", "--campaign", "--db", self.database, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Counted:
    return Counted(tmp_path_factory.mktemp("counted"))


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[Plugins]:
    """With the practice plugin among them."""
    monkeypatch.syspath_prepend(str(PLUGIN))
    importlib.invalidate_caches()
    yield Plugins.discover()
    sys.modules.pop("practice_trial", None)


def report(counted: Counted, plugins: Plugins, kind: ReportKind, *run_ids: int, published: str) -> Table:
    """The verdicts of a report."""
    with Reader(counted.database) as reader:
        document: Document = build_report(reader, plugins, ReportRequest(run_ids, kind, published=(published,)))
    [section] = [section for section in document.sections if section.title == "Verdicts"]
    [table] = section.blocks
    assert isinstance(table, Table)
    return table


def texts(row: tuple[TextCell, ...]) -> list[str]:
    return [" / ".join((cell.text, *(text for text, _ in cell.details))) for cell in row]


def test_the_terminal_shows_published_verdicts_next_to_those_of_the_runs(counted: Counted) -> None:
    shown = counted.compare("--published", "practice-verdicts")
    verdicts = shown[shown.index("Verdict ") :]
    rows = [line.split("  ") for line in verdicts.splitlines()]
    cells = {row[0]: [cell.strip() for cell in row[1:] if cell.strip()] for row in rows if row[0]}
    assert cells["all counted"] == ["2 of 2 pass", "passed", "2 of 2 fail", "passed"]
    assert cells["nothing skipped"] == ["–", "not tested", "–", "–"]
    assert cells["counted in time"] == ["–", "failed", "–", "–"]
    assert "as ours" in verdicts and "not as ours" in verdicts and "200 numbers." in verdicts
    assert "As ours: all runs of the same scenario have the published result." in shown
    metrics = shown[: shown.index("Verdict ")]
    assert "published" not in metrics[metrics.index("Metric ") :], "no column of dashes where no figure is printed"


def test_verdicts_that_passed_in_all_runs_are_one_line_until_all_is_asked_for(counted: Counted) -> None:
    runs = [str(run_id) for run_id in counted.of("scenario 1")]
    folded = counted.labconsole("compare", *runs, "--db", counted.database).stdout
    assert "Verdicts passed in all runs: 1. `--all` shows them." in folded and "all counted" not in folded
    everything = counted.labconsole("compare", *runs, "--all", "--db", counted.database).stdout
    assert "all counted" in everything and "Verdicts passed" not in everything


def test_a_table_of_figures_and_verdicts_has_both(counted: Counted) -> None:
    shown = counted.compare("--published", "practice-both")
    verdicts = shown.index("Verdict ")
    assert re.search(r"\b99(\.0+)?\b", shown[:verdicts])
    assert "failed" in shown[verdicts:] and "not as ours" in shown[verdicts:]


def test_json_and_csv_have_the_verdicts_of_runs_and_source(counted: Counted, tmp_path: Path) -> None:
    compared_json = json.loads(
        counted.compare("--published", "practice-verdicts", "--json", "--csv", str(tmp_path / "c.csv"))
    )
    lines = {line["name"]: line["cells"] for line in compared_json["verdicts"]}
    ours, theirs, missing, _ = lines["all counted"]
    assert (ours["result"], ours["text"], ours["runs"]) == ("pass", "2 of 2 pass", 2)
    assert (theirs["result"], theirs["agrees"]) == ("pass", True)
    assert theirs["reference"] == "The practice book, Table 1"
    assert (missing["result"], missing["reason"]) == ("fail", "200 numbers.")
    assert lines["nothing skipped"][0] is None and lines["nothing skipped"][1]["result"] == "not tested"
    with (tmp_path / "c.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["verdict"] for row in rows if row["metric"]} == {""}
    found = {(row["verdict"], row["scenario"]): row for row in rows if row["verdict"]}
    first = found["all counted", "scenario 1"]
    runs = " ".join(map(str, counted.of("scenario 1")))
    assert (first["result"], first["runs"], first["run numbers"], first["origin"]) == (
        "2 of 2 pass",
        "2",
        runs,
        "measured",
    )
    printed = found["counted in time", "100 numbers · Practice verdicts"]
    assert (printed["result"], printed["origin"]) == ("failed", "published")
    assert printed["published reference"] == "The practice book, Table 1"
    differs = found["all counted", "200 numbers · Practice verdicts"]
    assert differs["result agrees with published"] == "no"
    assert found["all counted", "scenario 2"]["reason"] == "200 numbers."


def test_a_report_has_them_in_its_table_of_verdicts(counted: Counted, plugins: Plugins) -> None:
    table = report(counted, plugins, ReportKind.COMPARISON, 1, 2, 3, 4, published="practice-verdicts")
    assert [head.title for head in table.heads][:3] == ["Verdict", "scenario 1", "100 numbers · Practice verdicts"]
    rows = {row[0].text: texts(row)[1:] for row in table.rows}
    assert rows["all counted"] == [
        "✓ 2 of 2 pass",
        "✓ passed / as ours",
        "✗ 2 of 2 fail / 200 numbers.",
        "✓ passed / not as ours",
    ]
    assert rows["nothing skipped"] == ["–", "not tested", "–", "–"]
    assert table.notes[0] == "100 numbers · Practice verdicts: The practice book, Table 1."


def test_a_report_of_one_run_has_its_reasons_and_the_published_verdicts(counted: Counted, plugins: Plugins) -> None:
    table = report(counted, plugins, ReportKind.RUN, 1, published="practice-verdicts/hundred")
    assert [head.title for head in table.heads] == ["Verdict", "Result", "Reason", "100 numbers · Practice verdicts"]
    rows = {row[0].text: row[1:] for row in table.rows}
    assert texts(rows["all counted"]) == ["✓ pass", "100 numbers.", "✓ passed / as ours"]
    assert rows["counted in time"][2].tone is Tone.BAD


def test_the_pdf_report_and_its_csv_are_made_with_them(counted: Counted, tmp_path: Path) -> None:
    files = ("--pdf", tmp_path / "r.pdf", "--csv", tmp_path / "csv")
    published = ("--published", "practice-verdicts")
    done = counted.labconsole("report", "1", "--campaign", *published, *files, "--db", counted.database)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "r.pdf").stat().st_size > 20_000
    assert "counted in time" in (tmp_path / "csv" / "comparison.csv").read_text(encoding="utf-8")
