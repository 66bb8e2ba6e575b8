"""The practice plugin is found by the console and by its worker processes, as any third party's is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.practice import PLUGIN, Bench, practice_plugin_on_path


@pytest.fixture(scope="module", autouse=True)
def practice_plugin() -> Iterator[Path]:
    """Puts the plugin's directory on the path of this process and its children."""
    with practice_plugin_on_path():
        yield PLUGIN


@pytest.fixture
def thread_bench(tmp_path: Path) -> Iterator[Bench]:
    """The same, with runs in threads: for what their processes have no part in."""
    opened = Bench(tmp_path, in_threads=True)
    yield opened
    opened.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A queue on a new database."""
    opened = Bench(tmp_path)
    yield opened
    opened.close()
