"""A window killed while it runs the demo, in a process of its own: what is stored then, and once it is recovered."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from labconsole.store.errors import StoreError
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus
from tests.helpers.practice import wait_until

DRIVER = Path(__file__).with_name("window_driver.py")
_FIRST_SAMPLES_S, _NEXT_RUN_S, _EXIT_S = 60, 20, 5
Rows = dict[tuple[str, str], int]
"""Stored rows of each series, by role and series."""


@dataclass(frozen=True)
class Kill:
    """A database whose window was killed, with the run that was in progress shortly before."""

    database: Path
    run_id: int
    in_mid_run: bool
    rows: Rows

    def assert_recovered(self) -> None:
        """Nothing that was stored is lost, series are whole, and the run has its status and reason."""
        with Reader(self.database) as reader:
            rows = reader.runs()
            detail = reader.run(self.run_id)
            for series in detail.series:
                table = reader.samples(self.run_id).table(series.name, series.role)
                assert {len(column) for column in table.values()} == {series.rows}
        assert all(row.status.final for row in rows)
        assert detail.row.status is (RunStatus.INTERRUPTED if self.in_mid_run else RunStatus.FINISHED)
        recovered = {(series.role, series.name): series.rows for series in detail.series}
        assert all(recovered[key] >= rows for key, rows in self.rows.items())
        if self.in_mid_run:
            assert detail.row.reason == "Its process ended in mid-run; what it had measured until then is kept."
            assert not list(self.database.with_name("runs.db.spool").glob(f"{detail.row.uuid}/*"))


def environment(home: Path) -> dict[str, str]:
    """The environment of a console with this home."""
    return {
        **os.environ,
        "LABCONSOLE_HOME": str(home),
        "QT_QPA_PLATFORM": "offscreen",
        "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
    }


def kill_window(database: Path, home: Path, moment: float = 0.0, later: float = 0.0) -> Kill:
    """Run the demo in a window and kill it; no process is left, and nothing stored is lost.

    The kill is `moment` seconds after the first samples of the demo, and `later` ones in the run that is then in
    progress.
    """
    window = subprocess.Popen(
        [sys.executable, str(DRIVER), str(database)],
        env=environment(home),
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert wait_until(lambda: run_in_progress(database) is not None, _FIRST_SAMPLES_S)
        time.sleep(moment)
        assert wait_until(lambda: run_in_progress(database) is not None, _NEXT_RUN_S)
        run_id = run_in_progress(database)
        assert run_id is not None
        time.sleep(later)
        family = psutil.Process(window.pid).children(recursive=True)
        before = _rows(database, run_id)
    finally:
        window.kill()
        window.communicate()
    _, alive = psutil.wait_procs(family, timeout=_EXIT_S)
    assert not alive, [process.cmdline() for process in alive]
    with Reader(database) as reader:
        in_mid_run = reader.run(run_id).row.status is RunStatus.RUNNING
    after = _rows(database, run_id)
    assert all(after[key] >= rows for key, rows in before.items())
    return Kill(database, run_id, in_mid_run, after)


def run_in_progress(database: Path) -> int | None:
    """The run in progress, once its first samples are in the database."""
    try:
        with Reader(database) as reader:
            running = [row.id for row in reader.runs() if row.status is RunStatus.RUNNING]
            return running[0] if running and reader.run(running[0]).series else None
    except StoreError:
        return None  # the window has not created it yet


def _rows(database: Path, run_id: int) -> Rows:
    with Reader(database) as reader:
        return {(series.role, series.name): series.rows for series in reader.run(run_id).series}
