"""A window killed at random moments loses nothing committed, leaves no process, and marks the run.

A kill counts only when a run was in progress; one between two runs is repeated at another moment.
"""

from __future__ import annotations

import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.labconsole_ui.window_kills import environment, kill_window

HITS, AT_ONCE = 6, 2
LATEST_S = 1.5


@pytest.mark.nightly
@pytest.mark.timeout(120)
@pytest.mark.parametrize("first", range(0, HITS, AT_ONCE))
def test_kill_of_the_window_loses_nothing_and_leaves_nothing(tmp_path: Path, first: int) -> None:
    """Nightly: alone finds what a kill at a later moment loses. `shell/test_consistent_status.py` judges one in CI."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        hits = [threads.submit(_hit, tmp_path / str(seed), seed) for seed in range(first, first + AT_ONCE)]
    for hit in hits:
        hit.result()


def _hit(folder: Path, seed: int) -> None:
    """Kill windows at moments that follow from `seed` until one was in mid-run."""
    folder.mkdir()
    moments = random.Random(20261120 + seed)
    for attempt in range(4):
        if _killed_in_mid_run(folder / str(attempt), moments.uniform(0, LATEST_S), moments.uniform(0, 0.25)):
            return
    raise AssertionError(f"no kill hit a run in progress, seed {seed}")


def _killed_in_mid_run(folder: Path, moment: float, later: float) -> bool:
    """Kill a window, and recover its runs from the terminal; returns whether a run was in progress."""
    folder.mkdir()
    kill = kill_window(folder / "runs.db", folder / "home", moment, later)
    done = subprocess.run(
        [sys.executable, "-m", "labconsole.cli.main", "runs", "--db", str(kill.database)],
        env=environment(folder / "home"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    kill.assert_recovered()
    return kill.in_mid_run
