"""The window is killed at random moments: nothing committed is lost, nothing is left running, the run is marked."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from labconsole.store.errors import StoreError
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus

DRIVER = Path(__file__).with_name("window_driver.py")
MOMENTS = [round(moment, 2) for moment in random.Random(20261120).choices([x / 20 for x in range(0, 70)], k=6)]


def _live_run(database: Path) -> int | None:
    """The run that goes on, once its first samples are in the database."""
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
@pytest.mark.parametrize("moment", MOMENTS)
def test_kill_of_the_window_loses_nothing_and_leaves_nothing(tmp_path: Path, moment: float) -> None:
    database = tmp_path / "runs.db"
    environment = {
        **os.environ,
        "LABCONSOLE_HOME": str(tmp_path / "home"),
        "QT_QPA_PLATFORM": "offscreen",
        "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
    }
    window = subprocess.Popen(
        [sys.executable, str(DRIVER), str(database)], env=environment, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        run_id = _wait(lambda: _live_run(database), 60, "a run with samples")
        assert isinstance(run_id, int)
        time.sleep(moment)
        family = psutil.Process(window.pid).children(recursive=True)
        live = _live_run(database) or run_id
        before = _committed(database, live)
    finally:
        window.kill()
        window.communicate()

    _, alive = psutil.wait_procs(family, timeout=5)
    assert not alive, [process.cmdline() for process in alive]
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
    assert detail.row.status in (RunStatus.INTERRUPTED, RunStatus.FINISHED)
    recovered = {(series.role, series.name): series.rows for series in detail.series}
    assert all(recovered[key] >= rows for key, rows in after_kill.items())
    if detail.row.status is RunStatus.INTERRUPTED:
        assert detail.row.reason
        assert not list(database.with_name("runs.db.spool").glob(f"{detail.row.uuid}/*"))
