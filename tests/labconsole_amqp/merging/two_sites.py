"""Two consoles as processes, each with a home, a database and a clock of its own, and the commands of an operator."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labconsole.clock import SHIFT_VARIABLE
from labconsole.paths import HOME_VARIABLE
from tests.helpers.signals import interruptible

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

    def begin(self, settings: dict[str, Any]) -> subprocess.Popen[str]:
        """Start a run with these parameters."""
        profile = self.folder / f"{self.mode}.toml"
        lines = ["format = 1", 'kind = "amqp.messaging"', 'title = "Two sites"', "[parameters]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in {**settings, "mode": self.mode}.items()]
        profile.write_text("\n".join(lines) + "\n")
        with interruptible():
            return subprocess.Popen(
                [*_CONSOLE, "run", str(profile), "--json", "--db", str(self.database)],
                env=self.environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of this console on its database."""
        return subprocess.run(
            [*_CONSOLE, *arguments, "--db", str(self.database)],
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=120,
        )


_CONSOLE = [sys.executable, "-m", "labconsole.cli.main"]


def finish(runs: Sequence[subprocess.Popen[str]], codes: Sequence[int]) -> list[dict[str, Any]]:
    """The results of started runs, which exit with these codes."""
    ended = [run.communicate(timeout=120) for run in runs]
    assert [run.returncode for run in runs] == list(codes), ended
    return [json.loads(out) for out, _ in ended]
