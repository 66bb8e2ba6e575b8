"""Commands of the terminal that plugins bring: found in their group, and looked for only there."""

from __future__ import annotations

import argparse
import subprocess
import sys

import pytest

from labconsole.cli.command import Command
from labconsole.cli.main import main
from labconsole.model.plugin import Plugin, Plugins


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("number", type=int)


def run(arguments: argparse.Namespace) -> int:
    return int(arguments.number)


DOUBLE = Command("return a number", _arguments, f"{__name__}:run")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin with a group of its own, a command of it and of the group hsm, one of no group, and a broken one."""
    commands = {"hsm give": f"{__name__}:DOUBLE", "other give": "nowhere:X", "hsm broken": "nowhere_at_all:X"}
    commands["own give"] = commands["hsm give"]
    groups = {"own": "what the plugin practises", "show": "a name that is taken"}
    plugin = Plugin(name="p", title="Practice", description="", commands=commands, command_groups=groups)
    plugins = Plugins((plugin,))
    monkeypatch.setattr(Plugins, "discover", lambda: plugins)


@pytest.mark.usefixtures("installed")
def test_a_command_of_a_plugin_accepts_its_arguments_and_returns_its_exit_code() -> None:
    assert main(["hsm", "give", "7"]) == 7


@pytest.mark.usefixtures("installed")
def test_the_help_of_a_group_shows_them_and_a_broken_one_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["hsm", "--help"])
    printed = capsys.readouterr()
    assert "return a number" in printed.out and "doctor" in printed.out
    assert "the command hsm broken of Practice is broken" in printed.err
    assert "other give" not in printed.out + printed.err


def test_the_key_pool_s_command_is_installed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["hsm", "--help"])
    assert "verify-store" in capsys.readouterr().out


@pytest.mark.usefixtures("installed")
def test_a_group_that_only_a_plugin_brings_works_like_the_console_s_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["own", "give", "5"]) == 5
    assert main(["own"]) == 0
    alone = capsys.readouterr()
    assert "What the plugin practises." in alone.out and "return a number" in alone.out
    assert "the group show of Practice is broken (there is a command of that name)" in alone.err
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "what the plugin practises" in capsys.readouterr().out


@pytest.mark.usefixtures("installed")
def test_a_group_of_the_console_alone_prints_its_help_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hsm"]) == 0
    assert "verify" not in (printed := capsys.readouterr().out) and "return a number" in printed and "tokens" in printed


def test_plugins_are_not_loaded_for_commands_of_the_console() -> None:
    script = (
        "import contextlib, sys\n"
        "from labconsole.cli.main import main\n"
        "with contextlib.suppress(SystemExit): main(['show', '--help'])\n"
        "print('labconsole.model.plugin' in sys.modules)\n"
        "with contextlib.suppress(SystemExit): main(['--help'])\n"
        "print('labconsole_keypool.store.checking' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True)
    printed = done.stdout.splitlines()
    assert "False" in printed and printed[-1] == "False" and "True" not in printed
