"""The first second of a command: help that imports little, and interrupts at any moment of it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import pytest

from tests.helpers.practice import profile_text, wait_until
from tests.helpers.signals import interruptible
from tests.labconsole.cli.conftest import CommandLine

OWN = {"labconsole", "labconsole_amqp", "labconsole_certificates", "labconsole_keypool", "labconsole_v2x"}
_IMPORTED = ("argparse", "labconsole.model.plugin", "pydantic", "numpy", "sqlalchemy", "labconsole.engine.queue")
MOMENTS = [
    pytest.param(module, number, marks=[pytest.mark.nightly] if (place + 3 * signals) % 4 else [])
    for place, module in enumerate(_IMPORTED)
    for signals, number in enumerate(("SIGINT", "SIGHUP"))
]
"""Modules after whose import a start is interrupted, and by what."""
EITHER = [signal.SIGHUP, pytest.param(signal.SIGINT, marks=pytest.mark.nightly)]
not_on_windows = pytest.mark.skipif(sys.platform == "win32", reason="sends signals")


def test_help_imports_the_standard_library_and_the_console_alone() -> None:
    commands = [["--help"], ["pki", "--help"], ["hsm", "--help"], ["run", "--help"]]
    script = (
        "import contextlib, sys\n"
        "before = set(sys.modules)\n"
        "from labconsole.cli.main import main\n"
        f"for arguments in {commands}:\n"
        "    with contextlib.suppress(SystemExit): main(arguments)\n"
        "    imported = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "    print('imported:', *imported - set(sys.stdlib_module_names))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    *helps, last = re.split(r"^imported: ?(.*)\n", done.stdout, flags=re.MULTILINE)
    assert last == "" and len(helps) == 2 * len(commands)
    for help, foreign in zip(helps[::2], helps[1::2], strict=True):
        assert "usage: " in help and len(help.splitlines()) > 8
        assert set(foreign.split()) <= OWN


def test_help_of_a_plugins_command_shows_its_own_arguments(labconsole: CommandLine) -> None:
    done = labconsole("pki", "request", "--help")
    assert "--profile PROFILE" in done.stdout and "--type TYPE" in done.stdout and "ml-dsa-65" in done.stdout


def test_next_to_nothing_is_imported_before_an_interrupt_is_handled() -> None:
    """An interrupt while Python imports the entry shows a traceback: that takes a few milliseconds alone."""
    script = (
        "import sys; before = set(sys.modules); import labconsole.cli.main; print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    imported = set(done.stdout.split())
    own = {"labconsole", "labconsole.cli", "labconsole.cli.exit_codes", "labconsole.cli.interrupts"}
    assert {name for name in imported if name.startswith("labconsole")} == own | {"labconsole.cli.main"}
    assert not {"logging", "argparse", "importlib.metadata", "threading"} & imported


@not_on_windows
@pytest.mark.parametrize(("module", "number"), MOMENTS)
def test_an_interrupt_while_a_command_starts_is_exit_code_130_without_a_traceback(
    labconsole: CommandLine, module: str, number: str
) -> None:
    """Python reports each module on stderr once it is imported. Other moments and signals are nightly."""
    profile = labconsole.profile(profile_text(count=1_000_000, rate=1000))
    command = labconsole.command("run", profile, "--db", "runs.db")
    with interruptible():
        process = subprocess.Popen(
            [command[0], "-X", "importtime", *command[1:]],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=labconsole.environment,
            cwd=labconsole.folder,
        )
    assert process.stderr is not None
    for line in process.stderr:
        if line.rpartition("|")[2].strip() == module:
            break
    process.send_signal(signal.Signals[number])
    output, log = process.communicate(timeout=60)
    assert (process.returncode, output) == (130, "")
    assert "Traceback" not in log and "Exception ignored" not in log


@not_on_windows
@pytest.mark.parametrize("number", EITHER)
def test_a_signal_that_was_ignored_at_the_start_stays_ignored(labconsole: CommandLine, number: signal.Signals) -> None:
    """`nohup` starts a command so; nightly also a shell's background, whose signal is set in the same loop."""
    profile = labconsole.profile(profile_text(count=200, rate=1000))
    before = signal.signal(number, signal.SIG_IGN)
    try:
        process = subprocess.Popen(
            labconsole.command("run", profile, "--json", "--db", "runs.db"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=labconsole.environment,
            cwd=labconsole.folder,
        )
    finally:
        signal.signal(number, before)
    while process.poll() is None:
        process.send_signal(number)
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
    output, log = process.communicate()
    assert process.returncode == 0, log
    assert '"status": "finished"' in output


@not_on_windows
@pytest.mark.parametrize("number", EITHER)
def test_an_interrupt_ends_the_window(labconsole: CommandLine, number: signal.Signals) -> None:
    """Its runs are marked by the next console, as after any end of its process. The nightly set sends SIGINT, too."""
    labconsole.environment["QT_QPA_PLATFORM"] = "offscreen"
    window = labconsole.start("gui", "--db", "runs.db")
    assert wait_until((labconsole.folder / "runs.db").exists, 60)
    window.send_signal(number)
    _, log = window.communicate(timeout=60)
    assert window.returncode == -number and "Traceback" not in log
