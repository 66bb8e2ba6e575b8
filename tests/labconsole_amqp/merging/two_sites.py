"""Two consoles as processes, each with a home, a database and a clock of its own, and the commands of an operator."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from labconsole.cli.exit_codes import FINISHED
from labconsole.cli.main import main
from labconsole.clock import SHIFT_VARIABLE
from labconsole.paths import HOME_VARIABLE
from tests.helpers.signals import interruptible
from tests.helpers.worker_threads import CONSOLE_IN_THREADS

SHIFT_NS, DRIFT_PPM = 7_000_000_000, 60


def by_shifted_clock(t_ns: int) -> int:
    """The receiver's clock at `t_ns` of the sender's, which is that of this computer."""
    return t_ns + SHIFT_NS + t_ns * DRIFT_PPM // 1_000_000


@dataclass(frozen=True)
class Site:
    """One console in `folder`; the receiver's clock is shifted and drifts."""

    mode: str
    folder: Path

    @property
    def database(self) -> Path:
        return self.folder / f"{self.mode}.db"

    def environment(self) -> dict[str, str]:
        """That of its processes."""
        shift = f"{SHIFT_NS},{DRIFT_PPM}" if self.mode == "receiver" else ""
        return {**os.environ, HOME_VARIABLE: str(self.folder / self.mode), SHIFT_VARIABLE: shift}

    def begin(self, settings: dict[str, Any], in_threads: bool) -> subprocess.Popen[str]:
        """Start a run with these parameters; its worker and roles are processes of their own unless `in_threads`."""
        profile = self.folder / f"{self.mode}.toml"
        lines = ["format = 1", 'kind = "amqp.messaging"', 'title = "Two sites"', "[parameters]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in {**settings, "mode": self.mode}.items()]
        profile.write_text("\n".join(lines) + "\n")
        console = CONSOLE_IN_THREADS if in_threads else (sys.executable, "-m", "labconsole.cli.main")
        with interruptible():
            return subprocess.Popen(
                [*console, "run", str(profile), "--json", "--db", str(self.database)],
                env=self.environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )

    def command(self, *arguments: str) -> str:
        """What a command of this console on its database prints, which is carried out in the test's process."""
        out = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out):
            patch.setenv(HOME_VARIABLE, str(self.folder / self.mode))
            assert main([*arguments, "--db", str(self.database)]) == FINISHED
        return out.getvalue()


def finish(runs: Sequence[subprocess.Popen[str]], codes: Sequence[int]) -> list[dict[str, Any]]:
    """The results of started runs, which exit with these codes."""
    ended = [run.communicate(timeout=120) for run in runs]
    assert [run.returncode for run in runs] == list(codes), ended
    return [json.loads(out) for out, _ in ended]
