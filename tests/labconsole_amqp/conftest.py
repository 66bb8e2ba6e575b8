"""What the AMQP trial's tests share: one home with lab identities, since making them takes longer than a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from labconsole.locations import HOME_VARIABLE


@pytest.fixture(scope="session")
def _shared_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def lab_home(own_home: Path, _shared_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The console's data directory, shared by all tests that ask for it."""
    monkeypatch.setenv(HOME_VARIABLE, str(_shared_home))
    return _shared_home
