"""Runs `labconsole` as its own process, with the practice plugin installed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.helpers.parallel import run_parallel
from tests.helpers.practice import PLUGIN, environment
from tests.helpers.signals import interruptible


class CommandLine:
    """Starts `labconsole`; its home and database are the test's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = environment(PLUGIN)

    def __call__(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            self.command(*arguments), capture_output=True, text=True, timeout=90, env=self.environment, cwd=self.folder
        )

    def together(self, *commands: Sequence[str | Path]) -> list[subprocess.CompletedProcess[str]]:
        """Run commands that do not touch each other, two at a time, and give their ends in this order."""
        ends = run_parallel(range(len(commands)), lambda number: self(*commands[number]))
        return [ends[number].result() for number in range(len(commands))]

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        """Start a command; the test ends it."""
        with interruptible():
            return subprocess.Popen(
                self.command(*arguments),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=self.environment,
                cwd=self.folder,
            )

    @staticmethod
    def command(*arguments: str | Path) -> list[str]:
        """The arguments of a `labconsole` process."""
        return [sys.executable, "-m", "labconsole.cli.main", *map(str, arguments)]

    def profile(self, text: str, name: str = "practice") -> Path:
        """Write a profile."""
        path = self.folder / f"{name}.toml"
        path.write_text(text, encoding="utf-8")
        return path


class Demo:
    """The demo campaign, one round and small, as `labconsole run demo --json` ran it on the real broker, in a closed
    loop, as the source did: shared, never changed."""

    def __init__(self, folder: Path) -> None:
        self.database = folder / "own.db"
        small = ("--set", "loop=closed", "--set", "count=300", "--repeat", "1")
        self.done = CommandLine(folder)("run", "demo", *small, "--json", "--db", self.database)


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return Demo(tmp_path_factory.mktemp("demo"))


@pytest.fixture
def labconsole(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)
