"""`labconsole hsm plan` at the terminal: the table, derivations, forecast, CSV, and one sentence for a mistake."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from labconsole.cli.main import main
from labconsole_keypool.planning import plan_simulations
from labconsole_keypool.planning.arrival_log import HOUR
from tests.labconsole_keypool.synthetic_weeks import synthetic_weeks


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Five weeks of hours with counts."""
    weeks = synthetic_weeks(5, 1, scale=100)
    hours = [f"{weeks.start + number * HOUR},{count:.0f}" for number, count in enumerate(weeks.requests)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["hour,count", *hours]))
    return path


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LABCONSOLE_HOME", str(tmp_path / "home"))
    return tmp_path


def test_plan_without_arguments_is_the_case_of_the_source(
    own_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plan_simulations, "MOST_SIMULATED", 1000)  # two seconds less
    assert main(["hsm", "plan", "--steps"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (nine,) = (line for line in lines if line.startswith("HSMs with their own storage alone  "))
    assert nine.split()[6:8] == ["9", "HSMs"]
    assert "  360,000 / 44,278 = 8.130, rounded up 9" in lines
    assert any("no run with a pool near 360,000 requests at 50/s" in line for line in lines)


def test_forecast_shows_its_error_next_to_the_benchmark_and_is_written_to_csv(
    own_home: Path, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = own_home / "plan.csv"
    assert main(["hsm", "plan", "--rate", "4", "--duration", "75", "--arrivals", str(log), "--csv", str(target)]) == 0
    output = capsys.readouterr().out
    assert "better than the same hour of the week before" in output
    assert "Generation keeps up" in output and "Idle from" in output
    with target.open(newline="") as file:
        rows = {row["figure"]: row for row in csv.DictReader(file)}
    assert float(rows["pool"]["formula"]) > 0 and rows["queue"]["simulation note"] == "300 requests at 4/s"
    assert sum(name.startswith("forecast 2026-04-") for name in rows) == 168


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--rate", "ten"], 2, "--rate: input should be a number"),
        (["--threads", "0"], 2, "--threads: input should be greater than or equal to 1 (it is '0')."),
        (["--duration", "0"], 2, "--duration: input should be greater than 0 (it is '0')."),
        (["--from-runs", "--arrivals", "x"], 2, "a forecast is made from a log or from runs, not from both: leave"),
        (
            ["--timing", "luna"],
            1,
            "No plan was computed: timing: no timing profile is called luna; there are: luna-sa-1700",
        ),
        (["--sign-ms", "1000001"], 2, "--sign-ms: input should be less than or equal to 1000000"),
        (
            ["--wrap-ms", "5", "--sign", "malmo"],
            1,
            "No plan was computed: --wrap-ms is of own times, --sign of a timing",
        ),
        (["--arrivals", "short.csv"], 1, "short.csv: 0.1 days of arrivals. A forecast needs 3 weeks at least"),
        (["--arrivals", "text.csv"], 1, "Arrival log text.csv, line 2: the count must be a whole number from 0 on"),
        (["--from-runs", "--db", "none.db"], 1, "There is no database none.db"),
    ],
)
def test_a_mistake_is_one_sentence(
    own_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    sentence: str,
) -> None:
    monkeypatch.chdir(own_home)
    Path("short.csv").write_text("2026-03-02T08:00,1\n2026-03-02T09:00,1\n")
    Path("text.csv").write_text("2026-03-02T08:00,1\n2026-03-02T09:00,ten\n")
    assert main(["hsm", "plan", *arguments]) == code
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(f"labconsole: {sentence}") and len(output.err.splitlines()) == 1
