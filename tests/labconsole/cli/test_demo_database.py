"""The whole way of results: the demo campaign on the real broker, then every command that works on its database."""

from __future__ import annotations

import csv
import json
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.benchmarks.export import fill
from tests.labconsole.cli.conftest import CommandLine, Demo

RUNS = ("1", "2", "3", "4")
SCENARIOS = ["Test 1: plain", "Test 2: TLS", "Test 3: TLS, signed", "Test 4: TLS, signed, encrypted"]


@pytest.fixture
def database(demo: Demo, tmp_path: Path) -> Path:
    """A database with the demo's four tests, in the order of the scenarios or not: a copy for one test."""
    assert demo.done.returncode == 0, demo.done.stderr
    return Path(shutil.copy(demo.database, tmp_path / "demo.db"))


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def checked(labconsole: CommandLine, *arguments: str | Path) -> str:
    """What a command that must succeed prints; it says nothing on stderr."""
    [printed] = all_checked(labconsole, arguments)
    return printed


def all_checked(labconsole: CommandLine, *commands: Sequence[str | Path]) -> list[str]:
    """What commands that must succeed print."""
    ends = labconsole.each(*commands)
    for command, done in zip(commands, ends, strict=True):
        assert (done.returncode, done.stderr) == (0, ""), (command, done.stderr)
    return [done.stdout for done in ends]


def test_runs_are_compared_and_the_figures_of_the_table_are_in_csv_and_json(
    labconsole: CommandLine, database: Path, tmp_path: Path
) -> None:
    asked = (
        "compare",
        "2",
        "--campaign",
        "--baseline",
        "1",
        "--published",
        "swim-within-malaysia-small",
        "--db",
        database,
    )
    text, as_json = all_checked(labconsole, [*asked, "--csv", tmp_path / "comparison.csv"], [*asked, "--json"])
    assert "Message throughput" in text and "no interval" in text and "published" in text
    comparison = json.loads(as_json)
    titles = [column["title"] for column in comparison["columns"]]
    assert sorted(titles[:4]) == SCENARIOS and len(titles) == 8
    rows = [row for row in table(tmp_path / "comparison.csv") if row["metric"] == "sent_size"]
    values = {row["scenario"]: float(row["value"]) for row in rows if row["origin"] == "measured"}
    assert [values[name] for name in SCENARIOS] == [282, 282, 652, 1053]
    assert {row["runs"] for row in rows if row["origin"] == "published"} == {"0"}


def test_figures_that_are_not_judged_are_marked_in_the_list_and_explained_with_the_run(
    labconsole: CommandLine, database: Path
) -> None:
    listed, shown = all_checked(labconsole, ("runs", "--db", database), ("show", "1", "--db", database))
    [plain] = [line for line in listed.splitlines() if line.split()[:2] == ["1", "finished"]]
    assert " msg/s *" in plain and " 0 msg *" not in plain
    assert listed.splitlines()[-1] == "* not judged: `labconsole show RUN` gives the reason."
    reasons = [line for line in shown.splitlines() if line.startswith("Not judged: ")]
    assert any(line.startswith("Not judged: throughput: all within ") for line in reasons)
    assert "Not judged: queue_time_p99: p99 needs 5,000 samples (there are 300)." in reasons


def test_a_campaign_becomes_a_report_and_csv(labconsole: CommandLine, database: Path, tmp_path: Path) -> None:
    pdf, folder = tmp_path / "report.pdf", tmp_path / "csv"
    checked(labconsole, "report", "1", "--campaign", "--pdf", pdf, "--csv", folder, "--db", database)
    assert pdf.read_bytes().startswith(b"%PDF-1.7") and pdf.stat().st_size > 50_000
    assert {row["run"] for row in table(folder / "metrics.csv")} == set(RUNS)
    assert {row["scenario"] for row in table(folder / "comparison.csv")} == set(SCENARIOS)
    assert not list(tmp_path.rglob("*.partial"))


def test_runs_move_to_another_database_with_all_they_hold(
    labconsole: CommandLine, database: Path, tmp_path: Path
) -> None:
    bundle, other = tmp_path / "two.lcz", tmp_path / "other.db"
    verified, _ = all_checked(
        labconsole, ["verify", *RUNS, "--db", database], ["bundle", "3", "4", bundle, "--db", database]
    )
    assert verified.count("ok") == 4
    checked(labconsole, "import", bundle, "--db", other)
    verified, *shown = all_checked(
        labconsole,
        ["verify", "1", "2", "--db", other],
        ["show", "4", "--json", "--db", database],
        ["show", "2", "--json", "--db", other],
    )
    assert verified.count("ok") == 2
    before, after = map(json.loads, shown)
    assert before["evidence"]["digest"] == after["evidence"]["digest"]
    assert before["artefacts"] == after["artefacts"] != []
    assert before["metrics"] == after["metrics"] and before["uuid"] == after["uuid"]


def test_runs_are_exported_in_every_format(labconsole: CommandLine, database: Path, tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "out"
    asked = ("--csv", out, "--parquet", out, "--json", out)
    printed = checked(labconsole, "export", "1", "3", *asked, "--db", database)
    assert sorted(printed.splitlines()) == sorted(str(path) for path in out.rglob("*") if path.is_file())
    for run in ("1", "3"):
        whole = json.loads((out / f"run-{run}.json").read_text(encoding="utf-8"))
        latencies = [int(row["latency_ns [ns]"]) for row in table(out / f"run-{run}" / "samples-messages.csv")]
        assert len(latencies) == 300
        assert max(latencies) / 1e6 == whole["metrics"]["queue_time_max"]["value"]
        samples = pq.read_table(out / f"run-{run}" / "samples-messages.parquet")
        assert samples["latency_ns"].to_pylist() == latencies
        (figure,) = [row for row in table(out / "metrics.csv") if (row["run"], row["metric"]) == (run, "throughput")]
        assert float(figure["value"]) == whole["metrics"]["throughput"]["value"]


def test_a_whole_campaign_is_exported(labconsole: CommandLine, database: Path, tmp_path: Path) -> None:
    printed = checked(labconsole, "export", "2", "--campaign", "--json", tmp_path / "all", "--db", database)
    assert [Path(line).name for line in printed.splitlines()] == [f"run-{run}.json" for run in RUNS]


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
def test_an_export_that_is_interrupted_leaves_nothing(labconsole: CommandLine, tmp_path: Path) -> None:
    fill(tmp_path / "long.db", 1_000_000)
    process = labconsole.start("export", "1", "--csv", tmp_path / "out", "--db", tmp_path / "long.db")
    deadline = time.monotonic() + 30
    while not list(tmp_path.glob("out/.samples-*.partial")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    output, log = process.communicate(timeout=30)
    assert (process.returncode, output, log) == (130, "", "")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("export", "9", "--csv", "out"), "There is no run 9"),
        (("export", "1", "2", "--json", "one.json"), "one.json can hold one run, not 2: name a directory instead."),
        (("export", "1", "--csv", "file"), "choose another directory"),
        (("export", "1"), "say how to export"),
    ],
)
def test_export_that_fails_is_one_sentence(
    labconsole: CommandLine, database: Path, tmp_path: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    (tmp_path / "file").touch()
    before = set(tmp_path.iterdir())
    done = labconsole(*arguments, "--db", database)
    assert done.returncode in (1, 2) and done.stdout == ""
    assert sentence in done.stderr and len(done.stderr.splitlines()) == 1
    assert {path for path in tmp_path.iterdir() if not path.name.startswith("demo.db")} <= before
