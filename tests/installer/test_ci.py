"""The check that CI runs: the suite first, then each static check, and any failure is its failure."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STEPS = {
    "python3": "python3 installer/bootstrap.py test",
    "ruff": "ruff check .\nruff format --check .",
    "mypy": "mypy",
    "lint-imports": "lint-imports",
}

pytestmark = pytest.mark.skipif(os.name == "nt", reason="CI's entry is a shell script; Windows runs bootstrap.py test")


def run_ci(folder: Path, failing: str | None) -> tuple[int, list[str]]:
    """Run `.ci/run` on stand-ins that say how they were called; return its exit code and the calls."""
    tools = folder / ".venv" / "bin"
    tools.mkdir(parents=True)
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci")
    for name in STEPS:
        (tools / name).write_text(f'#!/bin/sh\necho $(basename "$0") "$@"\nexit {int(name == failing)}\n')
        (tools / name).chmod(0o755)
    variables = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run([folder / ".ci" / "run"], capture_output=True, text=True, env=variables, cwd="/", check=False)
    return done.returncode, done.stdout.splitlines()


def test_everything_is_checked_in_order(tmp_path: Path) -> None:
    assert run_ci(tmp_path, None) == (0, "\n".join(STEPS.values()).splitlines())


@pytest.mark.parametrize("failing", STEPS)
def test_any_failure_is_its_failure(tmp_path: Path, failing: str) -> None:
    code, calls = run_ci(tmp_path, failing)
    assert code == 1
    assert calls[-1].startswith(failing)
