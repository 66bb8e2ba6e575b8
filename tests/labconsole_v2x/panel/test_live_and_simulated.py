"""A live run, its simulated twin and what the source printed for both: terminal, CSV, PDF and window."""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from labconsole.cli.main import main
from labconsole.model.plugin import Plugins
from labconsole.store.reader import Reader
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.comparison.comparison_view import ComparisonView
from tests.helpers.repeated_runs import repeated
from tests.helpers.shared_once import shared_once
from tests.helpers.worker_threads import workers_in_threads
from tests.labconsole_v2x.simulation.stored_simulations import store_simulations

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")

SCENARIO = "A-SIG-01: 2 attackers at 50 Hz"
ATTACK = {"attack": "a-sig-01", "attackers": 2, "attack_rate": 50.0}
PRINTED = "preserve-table-4-2/a-sig-01-2-50"
PRINTED_TITLE = f"{SCENARIO} · PRESERVE, Table 4.2: under attack"
PROFILE = f"""
format = 1
title = "Short"
description = "A live run."
kind = "v2x.attack"
parameters = {{ warm_up = 1.0, duration = 1.0, capture = false }}
[[scenarios]]
name = "{SCENARIO}"
parameters = {{ attack = "a-sig-01", attackers = 2, attack_rate = 50.0 }}
"""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A read-only database: one live run, or two where the computer was busy, then two simulated ones.

    The live run is repeated, twice at most, where the computer was too busy for a single CAM to be accepted.
    """

    def create(folder: Path) -> None:
        (folder / "short.toml").write_text(PROFILE, encoding="utf-8")

        def attempt(number: int) -> Path:
            database = folder / str(number) / "runs.db"
            database.parent.mkdir()
            with workers_in_threads():
                assert main(["run", str(folder / "short.toml"), "--db", str(database)]) == 0
            return database

        def has_latencies(database: Path) -> bool:
            with Reader(database) as reader:
                return all("latency_mean" in run.metrics for run in reader.runs())

        store_simulations(repeated(attempt, has_latencies), 2, {SCENARIO: ATTACK})

    return max(shared_once(tmp_path_factory, "v2x-twins", create).glob("*/runs.db"))


@pytest.fixture(scope="module")
def run_ids(database: Path) -> list[int]:
    with Reader(database) as reader:
        return sorted(run.id for run in reader.runs())


def test_csv_has_the_published_figure_next_to_both(database: Path, run_ids: list[int], tmp_path: Path) -> None:
    path = tmp_path / "comparison.csv"
    runs = [str(run_id) for run_id in run_ids]
    assert main(["compare", *runs, "--published", PRINTED, "--csv", str(path), "--db", str(database)]) == 0
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["metric"] == "latency_mean"]
    assert [row["origin"] for row in rows] == ["measured", "published", "simulated", "published"]
    live, first, simulated, second = rows
    assert first["scenario"] == second["scenario"] == PRINTED_TITLE and first["value"] == second["value"] == "57.05"
    for own, printed in ((live, first), (simulated, second)):
        assert printed["ours"] == own["scenario"] and not own["ours"]
        assert float(printed["ours / published"]) == pytest.approx(float(own["value"]) / 57.05)


def test_terminal_names_the_origin_of_both_intervals(
    database: Path, run_ids: list[int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "240")
    runs = [str(run_id) for run_id in run_ids]
    assert main(["compare", *runs, "--published", PRINTED, "--all", "--db", str(database)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.count("published") >= 2 and "2 simulated runs, mean" in shown and "measured run" in shown
    assert "calculated, measured and simulated for the same scenario, against the published figure" in shown


def test_report_has_both_pairs_of_columns(database: Path, run_ids: list[int], tmp_path: Path) -> None:
    path = tmp_path / "twins.pdf"
    runs = [str(run_id) for run_id in run_ids]
    assert main(["report", *runs, "--published", PRINTED, "--pdf", str(path), "--db", str(database)]) == 0
    command = ["pdftotext", "-layout", path, "-"]
    text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
    heads = next(line.split() for line in text.splitlines() if line.split().count("published") > 1)
    words = [word for word in heads if word in ("measured", "simulated", "published")]
    assert words == ["measured", "published", "simulated", "published"]


@pytest.fixture
def view(qtbot: QtBot, theme: Theme, database: Path, run_ids: list[int]) -> Iterator[ComparisonView]:
    made = ComparisonView(partial(Reader, database), run_ids, Plugins.discover(), theme)
    made.resize(1280, 800)
    made.show()
    qtbot.waitUntil(lambda: made.stack.currentWidget() is not made.reading)
    yield made
    made.close()
    made.deleteLater()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def heads(view: ComparisonView) -> list[str]:
    """The word behind the last comma of each column's head: its origin."""
    model = view.table.model()
    columns = range(1, model.columnCount())
    return [str(model.headerData(column, Qt.Orientation.Horizontal)).rpartition(", ")[2] for column in columns]


def test_window_has_the_published_column_right_of_both_and_moves_and_removes_it_with_them(
    qtbot: QtBot, view: ComparisonView
) -> None:
    view.add_published([PRINTED])
    live = "calculated and measured"
    qtbot.waitUntil(lambda: heads(view) == [live, "published", "simulated", "published"])
    row = next(row for row in view.table.rows.records() if row.metric == "packet_loss")
    assert "Ours, measured for the same scenario" in row.cells[1].help.replace("calculated and ", "")
    assert "Ours, simulated for the same scenario" in row.cells[3].help
    view.move_column(2, -1)
    qtbot.waitUntil(lambda: heads(view) == ["simulated", "published", live, "published"])
    view.remove_column(1)
    qtbot.waitUntil(lambda: heads(view) == ["simulated", live])
    view.undo()
    qtbot.waitUntil(lambda: heads(view) == ["simulated", "published", live, "published"])
    view.remove_column(2)
    qtbot.waitUntil(lambda: heads(view) == ["simulated", "published"])
