"""Commands of the terminal that plugins bring: found in their group, and looked for only there."""

from __future__ import annotations

import argparse
import subprocess
import sys

import pytest

from labconsole.cli.command import Command
from labconsole.cli.main import main
from labconsole.plugin import Plugin, Plugins


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("number", type=int)


def run(arguments: argparse.Namespace) -> int:
    return int(arguments.number)


DOUBLE = Command("return a number", _arguments, f"{__name__}:run")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin with a command of the group hsm, one of another group, and a broken one."""
    commands = {"hsm give": f"{__name__}:DOUBLE", "other give": "nowhere:X", "hsm broken": "nowhere_at_all:X"}
    plugins = Plugins((Plugin(name="p", title="Practice", description="", commands=commands),))
    monkeypatch.setattr(Plugins, "discover", lambda: plugins)


@pytest.mark.usefixtures("installed")
def test_a_command_of_a_plugin_takes_its_arguments_and_gives_its_exit_code() -> None:
    assert main(["hsm", "give", "7"]) == 7


@pytest.mark.usefixtures("installed")
def test_the_help_of_a_group_shows_them_and_a_broken_one_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["hsm", "--help"])
    told = capsys.readouterr()
    assert "return a number" in told.out and "doctor" in told.out
    assert "the command hsm broken of Practice is broken" in told.err
    assert "other give" not in told.out + told.err


def test_the_key_pool_s_command_is_installed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["hsm", "--help"])
    assert "verify-store" in capsys.readouterr().out


def test_no_plugin_is_looked_for_where_none_is_meant() -> None:
    script = (
        "import contextlib, sys\n"
        "from labconsole.cli.main import main\n"
        "with contextlib.suppress(SystemExit): main(['--help'])\n"
        "print('labconsole.plugin' in sys.modules, 'labconsole_keypool.commands' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.splitlines()[-1] == "False False"
