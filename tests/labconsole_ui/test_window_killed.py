"""A window killed at random moments loses nothing committed, leaves no process, and marks the run.

A kill counts only when a run was in progress; one between two runs is repeated at another moment.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from labconsole.store.errors import StoreError
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus

DRIVER = Path(__file__).with_name("window_driver.py")
HITS, AT_ONCE = 6, 2
LATEST_S = 1.5


def _live_run(database: Path) -> int | None:
    """The run in progress, once its first samples are in the database."""
    try:
        with Reader(database) as reader:
            running = [row.id for row in reader.runs() if row.status is RunStatus.RUNNING]
            return running[0] if running and reader.run(running[0]).series else None
    except StoreError:
        return None  # the window is about to make it


def _committed(database: Path, run_id: int) -> dict[tuple[str, str], int]:
    with Reader(database) as reader:
        return {(series.role, series.name): series.rows for series in reader.run(run_id).series}


def _wait(condition: object, limit_s: float, what: str) -> object:
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        found = condition()  # type: ignore[operator]
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what} did not come in {limit_s} s")


@pytest.mark.timeout(120)
@pytest.mark.parametrize("first", range(0, HITS, AT_ONCE))
def test_kill_of_the_window_loses_nothing_and_leaves_nothing(tmp_path: Path, first: int) -> None:
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
    raise AssertionError(f"no kill hit a run that went on, seed {seed}")


def _killed_in_mid_run(folder: Path, moment: float, later: float) -> bool:
    """Kill a window; returns whether a run was in progress.

    That is `moment` seconds after the first samples of its demo, and `later` ones in the run that is then in progress.
    """
    folder.mkdir()
    database = folder / "runs.db"
    environment = {
        **os.environ,
        "LABCONSOLE_HOME": str(folder / "home"),
        "QT_QPA_PLATFORM": "offscreen",
        "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
    }
    window = subprocess.Popen(
        [sys.executable, str(DRIVER), str(database)], env=environment, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        _wait(lambda: _live_run(database), 60, "a run with samples")
        time.sleep(moment)
        live = _wait(lambda: _live_run(database), 20, "another run with samples")
        assert isinstance(live, int)
        time.sleep(later)
        family = psutil.Process(window.pid).children(recursive=True)
        before = _committed(database, live)
    finally:
        window.kill()
        window.communicate()

    _, alive = psutil.wait_procs(family, timeout=5)
    assert not alive, [process.cmdline() for process in alive]
    with Reader(database) as reader:
        hit = reader.run(live).row.status is RunStatus.RUNNING
    after_kill = _committed(database, live)
    assert all(after_kill[key] >= rows for key, rows in before.items())

    done = subprocess.run(
        [sys.executable, "-m", "labconsole.cli.main", "runs", "--db", str(database)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    with Reader(database) as reader:
        rows = reader.runs()
        detail = reader.run(live)
        for series in detail.series:
            table = reader.samples(live).table(series.name, series.role)
            assert {len(column) for column in table.values()} == {series.rows}
    assert all(row.status.final for row in rows)
    assert detail.row.status is (RunStatus.INTERRUPTED if hit else RunStatus.FINISHED)
    recovered = {(series.role, series.name): series.rows for series in detail.series}
    assert all(recovered[key] >= rows for key, rows in after_kill.items())
    if hit:
        assert detail.row.reason == "Its process ended in mid-run; what it had measured until then is kept."
        assert not list(database.with_name("runs.db.spool").glob(f"{detail.row.uuid}/*"))
    return hit
