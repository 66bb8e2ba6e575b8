"""Running other programs during the set-up: their output is shown, and its last lines are kept to explain a failure."""

from __future__ import annotations

import subprocess
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

KEPT_LINES = 200


class SetupError(Exception):
    """The set-up cannot continue; the message is one sentence that says what is wrong and what to do."""


def say(text: str) -> None:
    """Tell the user on stderr, so that stdout stays the application's."""
    print(f"labconsole: {text}", file=sys.stderr, flush=True)


def run_shown(
    command: Sequence[str], environment: Mapping[str, str] | None = None, directory: Path | None = None
) -> tuple[int, str]:
    """Run `command` without stdin in `directory` and show what it prints; return its exit code and its last lines."""
    kept: deque[str] = deque(maxlen=KEPT_LINES)
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        cwd=directory,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            sys.stderr.write(f"  {line}")
            kept.append(line)
    return process.returncode, "".join(kept)
