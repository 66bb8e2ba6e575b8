"""The command line as scripts and people meet it: output, exit codes, and one clear sentence for each mistake."""

from __future__ import annotations

import csv
import json
import platform
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from labconsole.analysis.columns import group_repeats
from labconsole.analysis.table_shape import fill, table_shapes
from labconsole.model.plugin import Plugins
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus
from tests.helpers.practice import Bench, profile_text, wait_until
from tests.labconsole.cli.conftest import CommandLine, Demo

NAMED_METRICS = (
    *("connect_time", "send_duration", "send_rate", "sent_size", "receiver_link_time", "receive_duration"),
    *("received_size", "throughput", "queue_time_mean", "queue_time_p50", "queue_time_p99", "lost"),
    "failed_verifications",
)


def test_run_json_prints_one_object_per_run_and_nothing_else(demo: Demo) -> None:
    """The built-in demo on the real broker, with the names that others rely on; it fills a table of its source."""
    done = demo.done
    assert done.returncode == 0, done.stderr
    runs: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert [run["run"] for run in runs] == [1, 2, 3, 4]
    assert runs[0]["scenario"] == "Test 1: plain"
    assert [run["parameters"]["test"] for run in runs] == [1, 2, 3, 4]
    for run in runs:
        assert (run["status"], run["profile"]) == ("finished", "demo")
        assert run["parameters"]["count"] == 300
        for name in NAMED_METRICS:
            assert {"value", "unit", "origin", "samples"} <= set(run["metrics"][name]), name
        assert run["metrics"]["throughput"]["unit"] == "msg/s"
        assert run["metrics"]["lost"]["value"] == run["metrics"]["failed_verifications"]["value"] == 0
        assert {verdict["result"] for verdict in run["verdicts"]} == {"pass", "not applicable"}
    assert [run["metrics"]["sent_size"]["value"] for run in runs] == [282, 282, 652, 1053]
    assert "Run 1 " not in done.stdout and done.stderr == ""
    plugins = Plugins.discover()
    with Reader(demo.database) as reader:
        groups = group_repeats(reader.comparable([1, 2, 3, 4]))
    filled = {shape.name for shape in table_shapes(plugins, "amqp.messaging") if fill(shape, groups, plugins).filled}
    assert filled == {"swim-within-malaysia-medium", "swim-my-sg-medium"}
    (shape,) = (one for one in table_shapes(plugins, "amqp.messaging") if one.name == "swim-within-malaysia-medium")
    cells = [cell for row in fill(shape, groups, plugins).cells for cell in row]
    assert len(cells) == 36 and all(cell.value and cell.published and cell.runs == 1 for cell in cells)


def test_run_prints_a_table_and_the_paths_of_its_files(labconsole: CommandLine, tmp_path: Path) -> None:
    profile = labconsole.profile(profile_text({"count": 100}, {"count": 300}))
    done = labconsole("run", profile, "--repeat", "2", "--csv", tmp_path / "csv", "--db", "here.db")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["scenario", "1", "scenario", "2"]
    assert lines[1].split() == ["Metric", "Unit", "2", "runs,", "mean", "2", "runs,", "mean"]
    assert lines[2].split() == ["Counted", "↑", "100", "300"], "no cell is cut or broken in a pipe"
    assert lines[3].split() == ["+200", "%"]
    assert "Runs 1-4 are in here.db" in done.stdout
    assert "Run 3 (scenario" in done.stderr
    rows = list(csv.DictReader((tmp_path / "csv" / "metrics.csv").open(encoding="utf-8")))
    assert [row["value"] for row in rows if row["metric"] == "counted"].count("300.0") == 2
    assert (tmp_path / "csv" / "run-4" / "parameters.csv").exists()


BAD_USAGE = [
    (["run", "dmo"], "No profile is called dmo; did you mean demo?"),
    (["run", "nowhere/x.toml"], "The profile nowhere/x.toml does not exist; `labconsole profiles` lists"),
    (["run", "demo", "--set", "cuont=3"], "Profile demo.toml: there is no key cuont; did you mean count?"),
    (["run", "demo", "--set", "count"], "--set count is not of the form KEY=VALUE."),
    (["run", "demo", "--set", "count=many"], "demo.toml: count: input should be a whole number (it is 'many')."),
    (["run", "v2x-demo", "--set", "rate=fast"], "v2x-demo.toml: rate: input should be a number (it is 'fast')."),
    (
        ["run", "v2x-demo", "--set", "roots=/x"],
        "roots: input should be a list, such as [1, 2] or [\"a\"] (it is '/x').",
    ),
    (["run", "v2x-demo", "--set", "capture=maybe"], "capture: input should be true or false (it is 'maybe')."),
    (["run", "demo", "--repeat", "0"], "The number of repeats must be 1 or more, not 0."),
    (["run", "demo", "--repeat", "often"], "argument --repeat: invalid int value: 'often'"),
    (["trials", "amqp.mesaging"], "no trial is called amqp.mesaging; there are: amqp.messaging"),
    (["compare", "9" * 19], f"argument RUN: {'9' * 19} is not the number of a run"),
    (["verify", "1", "0"], "argument RUN: 0 is not the number of a run"),
    (["frobnicate"], "invalid choice: 'frobnicate'"),
    ([], "the following arguments are required: COMMAND"),
]


@pytest.fixture(scope="module")
def refusals(tmp_path_factory: pytest.TempPathFactory) -> list[subprocess.CompletedProcess[str]]:
    """What the command line says to each of `BAD_USAGE`."""
    return CommandLine(tmp_path_factory.mktemp("bad usage")).each(*(arguments for arguments, _ in BAD_USAGE))


@pytest.mark.parametrize("number", range(len(BAD_USAGE)), ids=[sentence for _, sentence in BAD_USAGE])
def test_bad_usage_is_one_sentence(refusals: list[subprocess.CompletedProcess[str]], number: int) -> None:
    done, (_, sentence) = refusals[number], BAD_USAGE[number]
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr and "Traceback" not in done.stderr


def test_file_name_that_is_too_long_is_one_sentence(labconsole: CommandLine) -> None:
    name = "x" * 300
    asked = (("import", name), ("run", f"{name}.toml"), ("runs", "--db", name), ("verify", "1", "--db", name))
    for done in labconsole.each(*asked):
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"labconsole: The file name {name}")
        assert done.stderr.endswith(" is too long: shorten it.\n") and "Traceback" not in done.stderr


def test_a_failed_run_is_exit_code_1_and_the_others_still_run(labconsole: CommandLine) -> None:
    profile = labconsole.profile(profile_text({"fault": "refuse"}, {"count": 100}))
    done = labconsole("run", profile, "--json")
    assert done.returncode == 1
    failed, finished = [json.loads(line) for line in done.stdout.splitlines()]
    assert (failed["status"], failed["reason"]) == ("failed", "The counter refuses to continue: ask it nicely.")
    assert finished["status"] == "finished"
    assert "failed: The counter refuses to continue: ask it nicely." in done.stderr


def test_a_missed_threshold_is_exit_code_3(labconsole: CommandLine) -> None:
    profile = labconsole.profile(profile_text(count=100) + "[thresholds]\ncounted = { min = 101, max = 200 }\n")
    done = labconsole("run", profile, "--json")
    assert done.returncode == 3, done.stderr
    run = json.loads(done.stdout)
    assert run["status"] == "finished"
    [verdict] = [verdict for verdict in run["verdicts"] if verdict["name"] == "threshold: counted"]
    assert verdict == {
        "name": "threshold: counted",
        "kind": "finding",
        "result": "fail",
        "reason": "counted is 100; asked: at least 101 and at most 200.",
        "evidence": {"value": 100, "bounds": {"min": 101.0, "max": 200.0}},
    }
    assert labconsole("run", profile, "--set", "count=150").returncode == 0


def test_a_threshold_of_a_metric_that_the_run_lacks_is_exit_code_3(labconsole: CommandLine) -> None:
    """Nothing shows that it was met."""
    text = profile_text(count=100, fault="missing metric") + "[thresholds]\nchecksum = { min = 0 }\n"
    done = labconsole("run", labconsole.profile(text), "--json")
    assert done.returncode == 3, done.stderr
    [verdict] = [one for one in json.loads(done.stdout)["verdicts"] if one["name"] == "threshold: checksum"]
    assert (verdict["result"], verdict["reason"]) == ("unknown", "The run has no metric checksum.")


def test_a_failed_check_of_the_data_is_exit_code_3_and_marks_the_run(labconsole: CommandLine) -> None:
    """No profile declares it as a threshold: a run whose data are not whole never passes for a good one."""
    profile = labconsole.profile(profile_text({"fault": "miscount"}, {}, count=100))
    done = labconsole("run", profile, "--db", "runs.db")
    assert done.returncode == 3, done.stderr
    assert "Run 1 (scenario 1) finished, but its data fail a check: 100 numbers." in done.stderr
    listed = labconsole("runs", "--db", "runs.db").stdout
    assert listed.count("finished, check failed") == 1
    assert "finished, check failed" in labconsole("show", "1", "--db", "runs.db").stdout


def test_runs_are_reported_as_they_end_with_each_repeat_of_a_disturbed_one(labconsole: CommandLine) -> None:
    profile = labconsole.profile(profile_text({"fault": "disturbed"}, {}, count=100))
    done = labconsole("run", profile, "--db", "runs.db")
    ended = [line.split(" (")[0] for line in done.stderr.splitlines() if line.endswith("finished.")]
    assert ended == ["Run 1", "Run 3", "Run 2"]


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, *(pytest.param(one, marks=pytest.mark.nightly) for one in (signal.SIGINT, signal.SIGHUP))],
)
def test_an_interrupt_cancels_everything_and_is_exit_code_130(
    labconsole: CommandLine, tmp_path: Path, number: signal.Signals
) -> None:
    """Nightly also SIGINT and SIGHUP, by which `test_start_up.py` interrupts commands in CI."""
    profile = labconsole.profile(profile_text({}, {}, count=1_000_000, rate=1000))
    console = labconsole.start("run", profile, "--json", "--db", "runs.db")
    database = tmp_path / "runs.db"
    assert wait_until(lambda: _status(database, 1) is RunStatus.RUNNING, 30)
    console.send_signal(number)
    output, errors = console.communicate(timeout=30)
    assert console.returncode == 130, errors
    runs = [json.loads(line) for line in output.splitlines()]
    assert [run["status"] for run in runs] == ["cancelled", "cancelled"]
    assert "Traceback" not in errors


def _status(database: Path, run_id: int) -> RunStatus | None:
    if not database.exists():
        return None
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as raw:
        try:
            row = raw.execute("SELECT status FROM run WHERE id = ?", (run_id,)).fetchone()
        except sqlite3.OperationalError:
            return None
    raw.close()
    return RunStatus(row[0]) if row else None


def test_stored_runs_are_listed_shown_and_exported(labconsole: CommandLine, tmp_path: Path) -> None:
    sites = '[[sites]]\nname = "State A"\nhost_name = "a.example"\n[[sites]]\nname = "State B"\nremarks = "far"\n'
    profile = labconsole.profile(profile_text({"count": 1000}, {"fault": "refuse"}) + sites)
    labconsole("run", profile)
    listed, shown, text, shown_json, exported = labconsole.each(
        *(["runs"], ["show", "1", "--json"], ["show", "2"], ["show", "2", "--json"]),
        ["export", "1", "--csv", tmp_path / "out"],
    )
    assert listed.returncode == 0
    assert [line.split()[:2] for line in listed.stdout.splitlines()[1:]] == [["2", "failed"], ["1", "finished"]]

    detail = json.loads(shown.stdout)
    assert detail["metrics"]["counted"]["value"] == 1000 and detail["warnings"] == ["Counting is not measuring."]
    assert {"uuid", "kind", "seed", "provenance", "events", "series", "started", "ended"} < set(detail)
    assert detail["provenance"]["seed"] == detail["seed"]
    assert "failed: The counter refuses to continue: ask it nicely." in text.stdout and "Parameters: " in text.stdout
    lines = [line.split() for line in text.stdout.splitlines()]
    assert ["Site", "State", "A", "State", "B"] in lines and ["remarks", "–", "far"] in lines
    assert any(line[1:3] == ["worker", "error"] and "The counter refuses" in " ".join(line) for line in lines)
    assert ["seed", str(json.loads(shown_json.stdout)["seed"])] in lines
    assert any(line[:1] == ["cpu"] for line in lines) and ["live_view_hz", "4.0"] in lines

    assert exported.returncode == 0
    files = {Path(line).name: Path(line) for line in exported.stdout.splitlines()}
    with files["samples-counted.csv"].open(encoding="utf-8") as file:
        assert len(list(csv.reader(file))) == 1001
    assert {"parameters.csv", "metrics.csv", "events.csv", "samples-resources.csv"} <= set(files)
    assert {"provenance.csv", "sites.csv"} <= set(files)


@pytest.mark.parametrize("command", [["show", "7"], ["export", "7", "--csv", "out"]])
def test_unknown_run_is_reported(labconsole: CommandLine, tmp_path: Path, command: list[str]) -> None:
    Bench(tmp_path).close()
    done = labconsole(*command, "--db", "runs.db")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("labconsole: There is no run 7 in ")


@pytest.mark.parametrize("command", [["runs"], ["show", "1"]])
def test_reading_a_missing_database_does_not_create_it(
    labconsole: CommandLine, tmp_path: Path, command: list[str]
) -> None:
    done = labconsole(*command, "--db", "tpyo.db")
    assert done.returncode == 1 and "There is no database tpyo.db" in done.stderr
    assert not (tmp_path / "tpyo.db").exists()


def test_a_database_in_a_directory_that_is_not_there(labconsole: CommandLine) -> None:
    done = labconsole("run", labconsole.profile(profile_text(count=10)), "--db", "nowhere/runs.db")
    assert done.returncode == 1 and "There is no directory" in done.stderr and "Traceback" not in done.stderr


def test_a_database_of_a_newer_console_is_refused(labconsole: CommandLine, tmp_path: Path) -> None:
    Bench(tmp_path).close()
    with sqlite3.connect(tmp_path / "runs.db") as raw:
        raw.execute("PRAGMA user_version = 99")
    raw.close()
    profile = labconsole.profile(profile_text(count=10))
    for done in labconsole.each(["runs", "--db", "runs.db"], ["run", profile, "--db", "runs.db"]):
        assert done.returncode == 1
        assert "was written by a newer lab console" in done.stderr and "It was not changed." in done.stderr


def test_two_consoles_on_one_database(labconsole: CommandLine, tmp_path: Path) -> None:
    """The second waits for the first, says for which run and process, and its figures are those of a run alone."""
    slow = labconsole.profile(profile_text(count=3000, rate=1000), "slow")
    quick = labconsole.profile(profile_text(count=10), "quick")
    database = tmp_path / "runs.db"
    first = labconsole.start("run", slow, "--json", "--db", database)
    assert wait_until(lambda: _status(database, 1) is RunStatus.RUNNING, 30)
    second = labconsole("run", quick, "--json", "--db", database)
    output, errors = first.communicate(timeout=60)
    assert second.returncode == 0, second.stderr
    assert json.loads(second.stdout)["metrics"]["counted"]["value"] == 10
    waited = f"Waiting for run 1 (slow) of another console (process {first.pid} on {platform.node()}): "
    assert second.stderr.count("Waiting for") == 1 and waited in second.stderr
    assert first.returncode == 0, errors
    assert json.loads(output)["metrics"]["counted"]["value"] == 3000
    with Reader(database) as reader:
        early, late = reader.run(1).row, reader.run(2).row
    assert late.started >= early.ended, "no two at a time"


def test_lists_show_broken_plugins_and_continue(labconsole: CommandLine, own_home: Path) -> None:
    (own_home / "profiles").mkdir(parents=True)
    (own_home / "profiles" / "bad.toml").write_text("format = 1\nextends = [nothing]\n")
    profiles, trials, one, doctor = labconsole.each(
        ["profiles"], ["trials"], ["trials", "practice.counting"], ["doctor"]
    )
    assert profiles.returncode == 0
    names = [line.split()[0] for line in profiles.stdout.splitlines()[1:]]
    assert {"bad", "demo", "swim-within-malaysia", "swim-my-sg"} <= set(names)
    assert "is not valid TOML" in profiles.stdout

    assert trials.returncode == 0
    assert ["practice.counting", "Counting"] in [line.split()[:2] for line in trials.stdout.splitlines()]
    assert "broken: ModuleNotFoundError: No module named 'a_library_that_is_not_installed'" in trials.stdout
    assert "Plugin shattered is broken: RuntimeError: this plugin is in pieces" in trials.stdout

    assert "Numbers that each role counts" in one.stdout and "Numbers that all roles counted." in one.stdout

    assert doctor.returncode == 1, "a plugin is broken"
    assert "plugin shattered" in doctor.stdout and "SQLite" in doctor.stdout and "SoftHSM2" in doctor.stdout


def test_the_list_of_runs_shows_the_key_metrics_of_their_own_trials(labconsole: CommandLine, tmp_path: Path) -> None:
    labconsole.environment["COLUMNS"] = "200"
    database = tmp_path / "runs.db"
    assert labconsole("run", labconsole.profile(profile_text(count=100)), "--db", database).returncode == 0
    [heading, row, *_] = labconsole("runs", "--db", database).stdout.splitlines()
    assert heading.split()[-2:] == ["counted", "checksum"]
    assert row.split()[-2] == "100"


def test_the_list_of_runs_shows_only_the_key_metrics_that_a_trial_names(
    labconsole: CommandLine, tmp_path: Path
) -> None:
    labconsole.environment["COLUMNS"] = "200"
    database = tmp_path / "runs.db"
    profile = labconsole.profile(profile_text(count=100).replace("practice.counting", "practice.keyed"))
    assert labconsole("run", profile, "--db", database).returncode == 0
    [heading, *_] = labconsole("runs", "--db", database).stdout.splitlines()
    assert heading.split()[-1] == "checksum" and "counted" not in heading


@pytest.mark.nightly
def test_runs_of_a_killed_console_are_recovered_by_the_next_command(labconsole: CommandLine, tmp_path: Path) -> None:
    """Nightly: alone finds that the list does not show them so; `engine/test_kills.py` kills consoles in CI."""
    profile = labconsole.profile(profile_text({}, {}, count=1_000_000, rate=3000))
    database = tmp_path / "runs.db"
    console = labconsole.start("run", profile, "--db", database)
    assert wait_until(lambda: database.exists() and bool(_rows(database)), 40)
    before = _rows(database)
    console.kill()
    console.communicate()
    listed = labconsole("runs", "--db", database)
    assert [line.split()[:2] for line in listed.stdout.splitlines()[1:]] == [["2", "cancelled"], ["1", "interrupted"]]
    with Reader(database) as reader:
        run = reader.run(1)
        assert run.row.metrics["counted"].value >= before > 0
    assert run.row.reason == "Its process ended in mid-run; what it had measured until then is kept."


def _rows(database: Path) -> int:
    """Rows that the first run has stored so far."""
    if _status(database, 1) is not RunStatus.RUNNING:
        return 0
    with Reader(database) as reader:
        return sum(series.rows for series in reader.run(1).series if series.name == "counted")


def test_csv_files_go_where_they_were_asked_for(labconsole: CommandLine, tmp_path: Path, own_home: Path) -> None:
    """`--csv .` is the folder one is in; only `--csv` alone is a new one in the data directory."""
    profile = labconsole.profile(profile_text(count=10))
    done = labconsole("run", profile, "--csv", ".")
    assert done.returncode == 0 and "Run 1 is in " in done.stdout, "one run is not called runs"
    assert (tmp_path / "metrics.csv").exists() and not (own_home / "exports").exists()
    assert labconsole("run", profile, "--csv").returncode == 0
    [folder] = (own_home / "exports").iterdir()
    assert (folder / "metrics.csv").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes of files")
def test_new_files_are_their_operators_alone_in_directories_of_others(labconsole: CommandLine, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    profile = labconsole.profile(profile_text(count=50))
    command = labconsole.command("run", profile, "--db", shared / "runs.db", "--csv", shared / "csv")
    done = subprocess.run(command, capture_output=True, text=True, env=labconsole.environment, umask=0o022)
    assert done.returncode == 0, done.stderr
    files = [path for path in shared.rglob("*") if path.is_file()]
    assert {"runs.db", "runs.db.lock", "metrics.csv"} < {path.name for path in files}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


READING = (("runs",), ("show", "1"), ("export", "1", "--csv", "out"))


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> list[subprocess.CompletedProcess[str]]:
    """What each of `READING` says to a copy of its own of an old database."""
    folder = tmp_path_factory.mktemp("old")
    old = Path(__file__).parents[1] / "store" / "golden" / "v1.db"
    for number in range(len(READING)):
        shutil.copy(old, folder / f"{number}.db")
    commands = [[*command, "--db", f"{number}.db"] for number, command in enumerate(READING)]
    return CommandLine(folder).each(*commands)


@pytest.mark.parametrize("number", range(len(READING)), ids=[command[0] for command in READING])
def test_a_database_of_an_older_version_is_updated_and_read(
    readings: list[subprocess.CompletedProcess[str]], number: int
) -> None:
    done = readings[number]
    assert done.returncode == 0, done.stderr
    assert done.stdout
