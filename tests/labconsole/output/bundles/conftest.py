"""The database that runs come from, a bundle of them, and the database that they go to."""

from __future__ import annotations

from pathlib import Path

import pytest

from labconsole.output.bundle_writer import write_bundle
from labconsole.store.reader import Reader
from tests.labconsole.output.bundles.campaign import filled


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The operator's database that runs come from; not to be changed."""
    path = tmp_path_factory.mktemp("original") / "runs.db"
    filled(path)
    return path


@pytest.fixture(scope="session")
def good(original: Path) -> Path:
    """A bundle of all its runs."""
    path = original.with_name("runs.lcz")
    with Reader(original) as reader:
        write_bundle(reader, [1, 2, 3, 4], path)
    return path


@pytest.fixture(scope="session")
def another_filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of another operator with runs of its own; not to be changed."""
    path = tmp_path_factory.mktemp("another") / "runs.db"
    filled(path)
    return path


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Where the database of another operator is, or will be."""
    return tmp_path / "other.db"
