"""A data directory with the finished runs of a profile, for tests of what is made of runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from labconsole.cli.main import main
from tests.helpers.worker_threads import workers_in_threads


def run_in(home: Path, profile: str) -> Path:
    """Run the text of a profile in a data directory, in threads; its runs are numbered from 1 on."""
    path = home / "profile.toml"
    path.write_text(profile)
    with pytest.MonkeyPatch.context() as patch, workers_in_threads():
        patch.setenv("LABCONSOLE_HOME", str(home))
        assert main(["run", str(path)]) == 0
    return home
