"""Runs `labconsole` with the practice plugin installed, in the process of the tests or in one of its own."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from labconsole.cli.main import main
from tests.helpers.practice import PLUGIN, environment
from tests.helpers.shared_once import shared_once
from tests.helpers.signals import interruptible
from tests.helpers.worker_threads import workers_in_threads


class CommandLine:
    """Runs `labconsole`; its home and database are the test's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = environment(PLUGIN)

    def __call__(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, here, and its runs in threads: what processes do besides, `start` shows."""
        words = [*map(str, arguments)]
        out, err = io.StringIO(), io.StringIO()
        with (
            pytest.MonkeyPatch.context() as patch,
            workers_in_threads(),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            for name, value in self.environment.items():
                patch.setenv(name, value)
            patch.syspath_prepend(PLUGIN)
            patch.chdir(self.folder)
            try:
                code: int | str | None = main(words)
            except SystemExit as end:
                code = end.code
        assert isinstance(code, int), code
        return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())

    def each(self, *commands: Sequence[str | Path]) -> list[subprocess.CompletedProcess[str]]:
        """Run commands one after the other."""
        return [self(*command) for command in commands]

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
        self.done = subprocess.CompletedProcess[str](**json.loads((folder / "done.json").read_text(encoding="utf-8")))

    @classmethod
    def record(cls, folder: Path) -> None:
        """Run it here, and its runs in threads."""
        small = ("--set", "loop=closed", "--set", "count=300", "--repeat", "1")
        done = CommandLine(folder)("run", "demo", *small, "--json", "--db", folder / "own.db")
        (folder / "done.json").write_text(json.dumps(vars(done)), encoding="utf-8")


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return Demo(shared_once(tmp_path_factory, "demo", Demo.record))


@pytest.fixture
def labconsole(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)
