"""`labconsole action`: the list, an action with its progress, Ctrl-C, and what must be typed."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time

import pytest

from labconsole.cli.main import main
from tests.helpers.practice import PLUGIN
from tests.helpers.terminal import Terminal
from tests.labconsole.cli.conftest import CommandLine

terminal_only = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo terminal")


def test_the_list_and_an_action(labconsole: CommandLine) -> None:
    listed = labconsole("action")
    assert listed.returncode == 0 and "practice.tally" in listed.stdout and "Count to a number" in listed.stdout
    done = labconsole("action", "practice.tally", "--set", "count=3")
    assert (done.returncode, done.stdout) == (0, "Counted to 3.\n")
    assert "At 2." in done.stderr


def test_a_confirmation_of_the_window_alone_is_not_asked_for(labconsole: CommandLine) -> None:
    values = ("count=3", "destroy=true", "in_window=true")
    done = labconsole("action", "practice.tally", *(text for value in values for text in ("--set", value)))
    assert (done.returncode, done.stdout) == (0, "Counted to 3.\n")
    assert "my-label" not in done.stderr


def test_tables_of_a_result_are_printed_in_their_order_with_tones_as_colours(
    labconsole: CommandLine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = labconsole("action", "practice.tally", "--set", "table=true")
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    assert lines == [
        "Two tables.",
        "         Number  To do",
        "ok       one",
        "no       two     count again",
        "missing  three   buy one",
        "Row meets column:",
        "A meets B too often.",
        "  A B",
        "A · t",
        "B ✓ ·",
        "In all: 3.",
    ]
    monkeypatch.syspath_prepend(str(PLUGIN))
    monkeypatch.setenv("PYTHONPATH", str(PLUGIN), prepend=os.pathsep)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    importlib.invalidate_caches()
    assert main(["action", "practice.tally", "--set", "table=true"]) == 0
    out = capsys.readouterr().out
    for text, code in (("ok", 32), ("no", 33), ("missing", 31), ("A meets B too often.", 31), ("·", 2)):
        assert f"\x1b[{code}m{text}" in out


def test_mistakes_are_one_sentence(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PLUGIN))
    monkeypatch.setenv("PYTHONPATH", str(PLUGIN), prepend=os.pathsep)
    importlib.invalidate_caches()
    cases = {
        ("practice.tallly",): (2, "labconsole: no action is called practice.tallly; did you mean practice.tally?\n"),
        ("practice.tally", "--set", "count"): (2, "labconsole: --set count is not of the form KEY=VALUE.\n"),
        ("practice.tally", "--set", "cuont=3"): (2, "labconsole: there is no key cuont; did you mean count?\n"),
        ("practice.tally", "--set", "destroy=true"): (
            1,
            "labconsole: All numbers in my-label will be lost. This must be confirmed by typing my-label: do it on a "
            "terminal.\n",
        ),
    }
    for arguments, expected in cases.items():
        assert (main(["action", *arguments]), capsys.readouterr().err) == expected
    assert main(["action", "practice.tally", "--set", "fault=refuse"]) == 1
    assert capsys.readouterr().err.endswith("labconsole: The numbers are out: order new ones.\n")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")
def test_ctrl_c_stops_an_operation_and_prints_its_result(labconsole: CommandLine) -> None:
    process = labconsole.start("action", "practice.tally", "--set", "count=100000", "--set", "pause=0.01")
    assert process.stderr is not None
    while "At " not in process.stderr.readline():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130 and out == "" and "labconsole: Counted to " in err


@terminal_only
def test_label_and_passphrase_are_asked_for_on_a_terminal(labconsole: CommandLine) -> None:
    arguments = ("action", "practice.tally", "--set", "destroy=true", "--set", "ask=true")
    terminal = Terminal(labconsole.command(*arguments), labconsole.environment)
    terminal.answer("All numbers in my-label will be lost. To confirm, type my-label.", "my-label")
    terminal.answer("Passphrase for counting: ", "hunter2")
    code, out = terminal.finish()
    assert code == 0 and out == b"What was given\n2retnuh\n\nCounted to 10.\n"
    assert b"hunter2" not in terminal.shown
