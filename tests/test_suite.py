"""What the suite needs from the place where it is started: neither a display nor a shell's foreground."""

from __future__ import annotations

import ast
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.helpers.forked_programs import ForkingPopen, ForkServer, programs_started, runs
from tests.helpers.signals import interruptible

ROOT = Path(__file__).resolve().parents[1]


def test_pytest_needs_no_display() -> None:
    bare = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    bare.pop("QT_QPA_PLATFORM", None)
    opens = "import tests.conftest; from PySide6.QtGui import QGuiApplication; QGuiApplication([])"
    done = subprocess.run(
        [sys.executable, "-c", opens], cwd=ROOT, env=bare, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ignores neither")
@pytest.mark.parametrize("number", ["SIGINT", "SIGHUP"])
def test_processes_that_are_interrupted_accept_it_in_a_suite_that_ignores_it(number: str) -> None:
    """A shell's background ignores SIGINT, `nohup` SIGHUP."""
    said = f"import signal; print(signal.getsignal(signal.{number}) is signal.SIG_IGN)"
    before = signal.signal(signal.Signals[number], signal.SIG_IGN)
    try:
        with interruptible():
            started = subprocess.Popen([sys.executable, "-c", said], stdout=subprocess.PIPE, text=True)
        assert signal.getsignal(signal.Signals[number]) is signal.SIG_IGN
    finally:
        signal.signal(signal.Signals[number], before)
    assert started.communicate(timeout=60)[0] == "False\n"


@pytest.mark.skipif(sys.platform != "linux", reason="programs are forked on Linux alone")
def test_a_forked_program_is_a_child_with_arguments_environment_and_handles_of_its_own(tmp_path: Path) -> None:
    """It is compared with one that was started."""

    def seen() -> tuple[str, str, int]:
        command = [sys.executable, "-P", "-m", "labconsole.cli.main", "runs", "--db", "missing.db"]
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": tmp_path}
        done = subprocess.Popen(command, env={**os.environ, "LABCONSOLE_HOME": str(tmp_path)}, **options)
        output, errors = done.communicate(timeout=60)
        return output, errors, done.returncode

    forked = seen()
    with programs_started():
        assert forked == seen() and forked[2]


@pytest.mark.skipif(sys.platform != "linux", reason="programs are forked on Linux alone")
def test_a_forked_program_ends_with_its_parent_and_as_it_is_killed() -> None:
    command = [sys.executable, "-P", "-m", "labconsole.engine.worker"]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    process = psutil.Process(worker.pid)
    assert process.parent() == psutil.Process() and os.getsid(worker.pid) == worker.pid
    assert process.name() == "worker", "one that was started has the name of Python"
    assert runs(process, "labconsole.engine.worker") and not runs(process, "labconsole.engine.role")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(60) == -signal.SIGTERM
    for pipe in (worker.stdin, worker.stdout):
        assert pipe is not None
        pipe.close()


SERIAL = """
import os, time
from pathlib import Path
import pytest

def log(text):
    with Path(os.environ["LOG"]).open("a") as file:
        file.write(text + "\\n")

@pytest.mark.serial
@pytest.mark.parametrize("number", range(3))
def test_serial(number):
    log(f"serial begins {os.environ['PYTEST_XDIST_WORKER']}")
    time.sleep(0.05)
    log(f"serial ends {os.environ['PYTEST_XDIST_WORKER']}")

@pytest.mark.parametrize("number", range(6))
def test_other(number):
    log("other begins")
    time.sleep(0.3 if number == 5 else 0.05)
    log("other ends")

@pytest.mark.timeout(0)
def test_long(tmp_path_factory):
    folder = tmp_path_factory.getbasetemp().parent / "shared"
    folder.mkdir()
    (folder / "ends-last").write_text("gw1")
    log("other begins, long")
    log("other ends")
"""


def test_long_tests_run_first_and_serial_ones_last_while_no_other_test_runs(tmp_path: Path) -> None:
    (tmp_path / "test_sample.py").write_text(SERIAL, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = serial\n", encoding="utf-8")
    log = tmp_path / "log"
    plugins = [f"-p{name}" for name in ("xdist", "timeout", "tests.helpers.suite_schedule")]
    options = ["-q", *plugins, "-n", "2", "--dist=worksteal"]
    command = [sys.executable, "-m", "pytest", *options]
    # Each of the three processes would import Qt for its plugin.
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment = {**os.environ, **alone, "LOG": str(log), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, "-c", str(tmp_path / "pytest.ini"), str(tmp_path)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "10 passed" in done.stdout, done.stdout + done.stderr
    lines = log.read_text(encoding="utf-8").splitlines()
    assert all(line.startswith("other") for line in lines[:14]) and len(lines) == 20
    assert lines.index("other begins, long") < 4, "it is the first in its process"
    assert {line.split()[2] for line in lines[14:]} == {"gw1"}, "the process that ends last"
    assert [line.split()[1] for line in lines[14:]] == ["begins", "ends"] * 3


def test_no_test_module_imports_from_another_one() -> None:
    """What two need is in a `conftest.py` or a helper module: a test module can then be run, moved and split alone."""
    importing = {
        f"{path.relative_to(ROOT)}: {module}"
        for path in (ROOT / "tests").rglob("*.py")
        for module in imported_modules(path)
        if module.startswith("tests.") and module.rpartition(".")[2].startswith("test_")
    }
    assert importing == set()


def test_imports_of_every_form_are_found(tmp_path: Path) -> None:
    source = tmp_path / "source.py"
    source.write_text(
        "import tests.a.test_b as b, tests.test_c\nfrom tests.test_suite import (\n    x,\n)\n"
        "def f():\n    from tests import (  # a comment\n        test_tree,\n        test_language as other,\n    )\n"
    )
    forms = {"tests.a.test_b", "tests.test_c", "tests.test_suite", "tests.test_tree", "tests.test_language"}
    assert forms <= set(imported_modules(source))


IMPORTS = re.compile(r"^[ \t]*(?:import[ ]+tests\b.*|from[ ]+tests\b[^\n(]*(?:\([^)]*\)|.*))$", re.MULTILINE)
"""Statements that import from `tests`: to parse whole files takes seconds."""


def imported_modules(path: Path) -> Iterator[str]:
    """Dotted names of the modules of `tests` that a file imports, or imports names from."""
    source = path.read_text(encoding="utf-8")
    for statement in IMPORTS.findall(source):
        [node] = ast.parse(statement.strip()).body
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name for name in names if ROOT.joinpath(*name.split(".")).with_suffix(".py").is_file())


@pytest.mark.skipif(sys.platform != "linux", reason="forks programs")
def test_the_late_answer_to_a_request_for_a_program_is_not_that_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    mine.settimeout(0.01)  # as the timeout of a test, which is raised while it waits
    silent = subprocess.Popen(["sleep", "60"])
    server = ForkServer(mine, silent.pid)
    monkeypatch.setattr(ForkingPopen, "server", server)
    with theirs, pytest.raises(TimeoutError):
        server.fork({}, [0])
    assert ForkingPopen.server is None and silent.wait() == 0, "it was killed and waited for"
