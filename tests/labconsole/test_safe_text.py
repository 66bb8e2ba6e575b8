"""What a terminal would obey, or what makes one name look like another, is spelt out wherever texts are shown."""

from __future__ import annotations

import logging

import pytest
from rich.table import Table
from rich.text import Text

from labconsole.cli.main import main
from labconsole.cli.terminal import output
from labconsole.safe_text import SafeFormatter, shown, shown_lines

HOSTILE = "State\x1b[31m A\x07 \u202egro.live\u202c \x9b2J"
SPELT = "State<U+001B>[31m A<U+0007> <U+202E>gro.live<U+202C> <U+009B>2J"


def test_control_and_direction_characters_are_spelt_out_and_layout_is_kept() -> None:
    assert shown_lines(HOSTILE) == SPELT
    assert shown_lines(f"one\n\ttwo {HOSTILE}") == f"one\n\ttwo {SPELT}"
    assert shown("one\ntwo") == "one<U+000A>two"
    for name in ("Bêta", "สำนักงาน", "بحرين", "日本", "می‌خواهم"):
        assert shown_lines(name) == name


@pytest.mark.parametrize("stderr", [False, True])
def test_the_terminal_shows_no_escape_sequence_of_a_name(capsys: pytest.CaptureFixture[str], stderr: bool) -> None:
    table = Table(HOSTILE)
    table.add_row(HOSTILE)
    table.add_row(Text(HOSTILE, "red"))
    console = output(stderr=stderr)
    console.print(table)
    console.print(HOSTILE, soft_wrap=True)
    captured = capsys.readouterr()
    printed = captured.err if stderr else captured.out
    assert printed.count("<U+001B>[31m") == 4 and "\x1b" not in printed and "\u202e" not in printed


@pytest.mark.parametrize(
    "arguments",
    [("run", f"{HOSTILE}.toml"), ("import", f"{HOSTILE}.lcz"), ("import", f"{HOSTILE}{'x' * 300}")],
    ids=["bad usage", "failed", "too long"],
)
def test_a_refusal_shows_no_escape_sequence_of_a_file_name(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, str]
) -> None:
    assert main(arguments) != 0
    said = capsys.readouterr().err
    assert "<U+001B>[31m" in said and "\x1b" not in said


def test_a_log_shows_no_escape_sequence() -> None:
    record = logging.LogRecord("console", logging.WARNING, "", 0, "of %s", (HOSTILE,), None)
    assert SafeFormatter(logging.BASIC_FORMAT).format(record) == f"WARNING:console:of {SPELT}"
