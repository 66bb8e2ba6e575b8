"""A console with State A and State B, fresh for each test, or one for a module."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from labconsole.security.pki.store import PkiStore
from tests.labconsole_certificates.rotation.rotation_console import Lab


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a database with both States, to be copied."""
    directory = tmp_path_factory.mktemp("pki")
    with PkiStore.open(directory) as store:
        Lab.fill(store)
    return directory


@pytest.fixture
def lab(filled: Path, tmp_path: Path) -> Iterator[Lab]:
    """A database with both States."""
    with PkiStore.open(shutil.copytree(filled, tmp_path / "pki")) as store:
        yield Lab(store)


@pytest.fixture(scope="module")
def kept_lab(filled: Path) -> Iterator[Lab]:
    """One for tests that change nothing."""
    with PkiStore.open(filled) as store:
        yield Lab(store)
