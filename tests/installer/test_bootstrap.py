"""The two commands: usage, refusals, and what they hand over to, with the real script in processes of its own."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

import bootstrap
import environment
import system_packages

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "installer" / "bootstrap.py"
ALL_PRESENT = all(need.present() for need in system_packages.needs("test", building=False))


@pytest.fixture
def finished_checkout(tmp_path: Path) -> Path:
    """A checkout whose environment is complete, with an application that says how it was called and ends with 7."""
    root = tmp_path / "checkout"
    for folder in ("installer", "requirements", "labconsole"):
        (root / folder).mkdir(parents=True)
    for path in [*SCRIPT.parent.glob("*.py"), *map(ROOT.joinpath, environment.DEFINING_FILES)]:
        shutil.copy(path, root / path.relative_to(ROOT))
    shutil.copy(ROOT / "labconsole" / "qt_libraries.py", root / "labconsole")
    made = environment.Environment(root)
    made.python.parent.mkdir(parents=True)
    for name in ("python", "labconsole"):
        made.python.with_name(name).write_text('#!/bin/sh\necho "$0" "$@" "$QT_QPA_PLATFORM" "$PWD"\nexit 7\n')
        made.python.with_name(name).chmod(0o755)
    state = asdict(environment.wanted_state(root, made.path))
    (made.path / "labconsole-state.json").write_text(json.dumps(state))
    return root


def start(script: Path, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """Start the script as a user does, without a display and with no apt to reach by mistake."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    variables = {**inherited, "QT_QPA_PLATFORM": "", **changes}
    command = [sys.executable, str(script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=variables, stdin=subprocess.DEVNULL, check=False)


@pytest.mark.parametrize("arguments", [[], ["walk"], ["run", "gui"]])
def test_bad_usage_ends_with_2_and_shows_the_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        bootstrap.main(arguments)
    printed = capsys.readouterr()
    assert (end.value.code, printed.out) == (2, "")
    assert "bootstrap.py run" in printed.err


def test_exit_code_of_bad_usage_is_that_of_the_script() -> None:
    done = start(SCRIPT, "test", "-x")
    assert done.returncode == 2
    assert "bootstrap.py run" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("minor", range(6, 11))
def test_an_older_python_is_refused_in_one_sentence(
    minor: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The script has its syntax, and stops before it imports anything that has not."""
    ast.parse(SCRIPT.read_text("utf-8"), feature_version=(3, minor))
    with monkeypatch.context() as patch:
        patch.setattr(sys, "version_info", (3, minor, 1))
        patch.setattr(sys, "version", f"3.{minor}.1 (guise)")
        code = bootstrap.main(["run"])
    printed = capsys.readouterr()
    assert (code, printed.out) == (1, "")
    assert printed.err.startswith(f"labconsole: Python 3.11 or newer is needed, and this is 3.{minor}.")
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize("minor", (6, *(pytest.param(minor, marks=pytest.mark.nightly) for minor in range(7, 11))))
def test_an_older_python_is_refused_by_the_script(minor: int) -> None:
    """With that Python where it is installed; otherwise with this one in its guise.

    Nightly: Pythons between the oldest one and 3.11, whose syntax CI tests.
    """
    guise = (
        f"import runpy, sys; sys.version_info = (3, {minor}, 1); sys.version = '3.{minor}.1 (guise)'; "
        f"sys.argv = ['bootstrap.py', 'run']; runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
    )
    older = shutil.which(f"python3.{minor}")
    real = older is not None and subprocess.run([older, "-c", ""], capture_output=True, check=False).returncode == 0
    command = [str(older), str(SCRIPT), "run"] if real else [sys.executable, "-c", guise]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 1
    assert done.stdout.decode().startswith(f"labconsole: Python 3.11 or newer is needed, and this is 3.{minor}.")
    assert done.stdout.count(b"\n") == 1


def test_the_refusal_names_a_newer_python_that_is_there() -> None:
    assert bootstrap.python_refusal("3.9.2", "python3.12").endswith("start again with python3.12.")
    assert bootstrap.python_refusal("3.9.2", None).endswith("install one and start again with it.")


def test_arguments_after_the_first_dashes_are_passed_on() -> None:
    assert bootstrap.split_arguments(["run", "--", "export", "--", "x"]) == (["run"], ["export", "--", "x"])
    assert bootstrap.split_arguments(["test"]) == (["test"], [])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux asks for a display server")
@pytest.mark.parametrize(
    ("display", "wayland", "expected"),
    [
        ("", "", ["run", "demo", "--csv"]),
        (":0", "", ["gui"]),
        ("", "wayland-0", ["gui"]),
    ],
)
def test_the_window_opens_where_there_is_a_display(
    monkeypatch: pytest.MonkeyPatch, display: str, wayland: str, expected: list[str]
) -> None:
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.setenv("WAYLAND_DISPLAY", wayland)
    assert bootstrap.start_arguments(bootstrap.has_display()) == expected


@pytest.mark.skipif(os.name == "nt", reason="the stand-in application is a shell script")
@pytest.mark.skipif(not ALL_PRESENT, reason="system packages are missing here: they would be installed")
class TestASecondStart:
    """What happens when everything is there already."""

    def test_run_hands_over_and_ends_as_the_application(self, finished_checkout: Path) -> None:
        done = start(finished_checkout / "installer" / "bootstrap.py", "run", "--", "runs", "--json")
        application = finished_checkout / ".venv" / "bin" / "labconsole"
        assert (done.returncode, done.stderr) == (7, "")
        assert done.stdout.split()[:3] == [str(application), "runs", "--json"]

    def test_run_without_a_display_runs_the_demo(self, finished_checkout: Path) -> None:
        done = start(finished_checkout / "installer" / "bootstrap.py", "run")
        assert done.stdout.split()[1:4] == ["run", "demo", "--csv"]

    def test_test_runs_pytest_offscreen_at_the_root(self, finished_checkout: Path) -> None:
        done = start(finished_checkout / "installer" / "bootstrap.py", "test", "--", "-k", "x", QT_QPA_PLATFORM="xcb")
        assert done.returncode == 7
        parallel = ["--numprocesses=auto", "--dist=worksteal"]
        assert done.stdout.split()[1:] == ["-m", "pytest", *parallel, "-k", "x", "offscreen", str(finished_checkout)]

    def test_an_environment_to_be_made_is_left_to_a_faster_python(self, finished_checkout: Path) -> None:
        (finished_checkout / ".venv" / "labconsole-state.json").write_text('"installing"')
        measuring = finished_checkout / "installer" / "fastest_python.py"
        measuring.write_text(re.sub("ROUNDS = .", "ROUNDS = 1", measuring.read_text()))  # the installed ones, too
        faster = finished_checkout / f"python{sys.version_info.major}.{sys.version_info.minor}"
        faster.write_text(
            '#!/bin/sh\n[ "$1" = -I ] && echo 0.000001 || { echo "$0" "$@" "$LABCONSOLE_PYTHON_CHOSEN"; exit 7; }\n'
        )
        faster.chmod(0o755)
        script = finished_checkout / "installer" / "bootstrap.py"
        done = start(script, "run", "--", "runs", PATH=f"{faster.parent}{os.pathsep}{os.environ['PATH']}")
        assert (done.returncode, done.stdout) == (7, f"{faster} {script} run -- runs 1\n")
        assert done.stderr.startswith(f"labconsole: using {faster}, which is ")

    def test_it_imports_nothing_that_installs_or_asks_the_network(self, finished_checkout: Path) -> None:
        done = start(finished_checkout / "installer" / "bootstrap.py", "test", PYTHONPROFILEIMPORTTIME="1")
        assert done.returncode == 7
        imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
        assert "environment" in imported
        assert not imported & {"fastest_python", "venv", "ensurepip", "pip", "ssl", "urllib.request", "kryoptic_build"}
