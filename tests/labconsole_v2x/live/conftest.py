"""A run as a queue stores it, for tests that read it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from labconsole.store.records import RunDetail
from labconsole_v2x.live.series import TOO_LATE_EVENT
from tests.helpers.practice import Bench
from tests.helpers.repeated_runs import repeated
from tests.helpers.shared_once import shared_once
from tests.labconsole_v2x.live.live_lab import run_in_queue


@pytest.fixture(scope="session")
def stored_run(tmp_path_factory: pytest.TempPathFactory, shared_home: Path) -> Path:
    """A read-only database with a short run without capture: run 1, of which this computer has sent all CAMs."""

    def create(folder: Path) -> None:
        def attempt(number: int) -> RunDetail:
            (folder / str(number)).mkdir()
            with closing(Bench(folder / str(number), in_threads=True)) as bench:
                run = run_in_queue(bench, capture=False)
            assert run.row.reason == ""
            return run

        repeated(attempt, lambda run: not any(event.name == TOO_LATE_EVENT for event in run.events))

    return max(shared_once(tmp_path_factory, "live-stored-run", create).glob("*/runs.db"))
