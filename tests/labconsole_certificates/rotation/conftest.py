"""A console with State A and State B, fresh for each test, or one for a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from labconsole.security.pki.store import PkiStore
from tests.labconsole_certificates.rotation.lab import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A database with both States."""
    with PkiStore.open(tmp_path / "pki") as store:
        yield Lab(store)


@pytest.fixture(scope="module")
def kept_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One for all tests of a module that change nothing: making the keys takes a quarter of a second."""
    with PkiStore.open(tmp_path_factory.mktemp("pki")) as store:
        yield Lab(store)
