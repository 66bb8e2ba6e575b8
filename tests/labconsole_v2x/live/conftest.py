"""A run as a queue stores it, for tests that read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.practice import Bench
from tests.helpers.shared_once import shared_once
from tests.labconsole_v2x.live.live_lab import run_in_queue


@pytest.fixture(scope="session")
def stored_run(tmp_path_factory: pytest.TempPathFactory, shared_home: Path) -> Path:
    """A read-only database with a short run without capture: run 1."""

    def create(folder: Path) -> None:
        bench = Bench(folder, in_threads=True)
        try:
            assert run_in_queue(bench, capture=False).row.reason == ""
        finally:
            bench.close()

    return shared_once(tmp_path_factory, "live-stored-run", create) / "runs.db"
