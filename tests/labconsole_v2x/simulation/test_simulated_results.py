"""Results of simulated runs are called simulated wherever they are next to others: terminal, CSV and PDF."""

from __future__ import annotations

import csv
import subprocess
from pathlib import Path

import pytest

from labconsole.cli.main import main
from tests.labconsole_v2x.simulation.stored_simulations import store_simulations

ATTACKED = {
    f"A-SIG-01: {attackers} at {rate} Hz": {"attack": "a-sig-01", "attackers": attackers, "attack_rate": float(rate)}
    for attackers, rate in ((2, 10), (2, 50))
}
PUBLISHED = ("--published", "preserve-table-4-2/a-sig-01-2-10")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("simulated") / "runs.db"
    store_simulations(path, 2, ATTACKED)
    return path


def text_of(path: Path, page: int | None = None) -> str:
    """The PDF's text, or that of one page, on one line."""
    pages = [] if page is None else ["-f", str(page), "-l", str(page)]
    command = ["pdftotext", *pages, "-layout", path, "-"]
    text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
    return " ".join(text.replace("\u200b", "").split())


@pytest.mark.parametrize("width", [80, 220])
def test_terminal_calls_columns_and_intervals_simulated(
    database: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["compare", "1", "--campaign", "--all", *PUBLISHED, "--db", str(database)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "2 simulated runs, mean" in shown or (width == 80 and "2 simulated" in shown), "the heads of columns"
    assert "ours: what was simulated for the same scenario, against the published figure" in shown
    assert "relative to the interval simulated" in shown
    assert "2 simulated runs each" in shown
    assert "The intervals simulated for the same scenarios hold" in shown
    assert "measured" not in shown
    assert main(["show", "1", "--db", str(database)]) == 0
    shown = capsys.readouterr().out
    assert "Simulated with" in shown and "easured" not in shown


def test_csv_has_the_origin_in_each_row(database: Path, tmp_path: Path) -> None:
    path = tmp_path / "comparison.csv"
    assert main(["compare", "1", "--campaign", *PUBLISHED, "--csv", str(path), "--db", str(database)]) == 0
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["origin"] for row in rows} == {"simulated", "published"}
    assert any(row["ours / published"] for row in rows)
    assert not any("easured" in text for row in rows for pair in row.items() for text in pair)


def test_reports_call_columns_tables_and_charts_simulated(database: Path, tmp_path: Path) -> None:
    path = tmp_path / "campaign.pdf"
    assert main(["report", "1", "--campaign", *PUBLISHED, "--pdf", str(path), "--db", str(database)]) == 0
    text = text_of(path)
    assert "baseline, 2 simulated runs" in text
    assert "Simulated 2026-11-20 12:00:00" in text, "when, on the title page"
    assert "Ours: what was simulated for the same scenario" in text
    assert "The intervals simulated for the same scenarios hold" in text
    assert "A-SIG-01: 2 at 50 Hz, simulated" in text, "the legends of charts"
    assert "easured" not in text.replace("Measured for all: end-to-end delay", ""), "but for what the source measured"


def test_comparison_with_all_published_columns_has_landscape_pages(database: Path, tmp_path: Path) -> None:
    path = tmp_path / "wide.pdf"
    published = ("--published", "preserve-table-4-2")
    assert main(["report", "1", "--campaign", *published, "--pdf", str(path), "--db", str(database)]) == 0
    command = ["pdfinfo", "-f", "1", "-l", "99", path]
    pages = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
    sizes = [line.split("size:")[1].split() for line in pages.splitlines() if line.endswith("(A4)")]
    wide = [float(width) > float(height) for width, _x, height, *_unit in sizes]
    assert wide[0] is False and True in wide and wide[-1] is False
    results = wide.index(True) + 1
    text = text_of(path, results)
    assert "Results" in text and "(1 of 2)" in text, "the heading is on the page of its table"


def test_run_report_says_simulated(database: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.pdf"
    assert main(["report", "1", "--pdf", str(path), "--db", str(database)]) == 0
    text = text_of(path)
    assert "Simulated 2026-11-20 12:00:00" in text and "easured" not in text
    assert "seconds of virtual time since T0" in text and "over virtual time, simulated" in text
    assert "seconds since the work began (T0)" in text, "the processes' CPU and memory"
