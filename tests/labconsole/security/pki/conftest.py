"""A certificate database of a test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from labconsole.security.pki.store import PkiStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[PkiStore]:
    """An empty database."""
    with PkiStore.open(tmp_path / "pki") as store:
        yield store
