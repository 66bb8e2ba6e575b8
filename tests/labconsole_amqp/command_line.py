"""Commands of the console in the test's process, where their own process is not what is tested."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from labconsole.cli.main import main


@dataclass(frozen=True)
class CommandResult:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


def run_command(capsys: pytest.CaptureFixture[str], *arguments: str) -> CommandResult:
    """Run `labconsole` with these arguments."""
    try:
        code = main(arguments)
    except SystemExit as exit_:  # as argparse ends a process
        code = int(exit_.code or 0)
    captured = capsys.readouterr()
    return CommandResult(code, captured.out, captured.err)
