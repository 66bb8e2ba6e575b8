"""The practice plugin, a console with a cluster, and its run queue."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from labconsole.paths import HOME_VARIABLE
from tests.helpers.practice import Bench, practice_plugin_on_path


@pytest.fixture(scope="module")
def practice_plugin() -> Iterator[None]:
    """The practice plugin is on the path of this process and of the hosts."""
    with practice_plugin_on_path():
        yield


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The console's folder."""
    return tmp_path_factory.mktemp("hosts") / "console"


@pytest.fixture
def bench(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """A queue on a new database, of the console whose cluster it is."""
    monkeypatch.setenv(HOME_VARIABLE, str(home))
    opened = Bench(tmp_path)
    yield opened
    opened.close()
