"""A certificate database of a test's own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from labconsole.security.pki.keys import keys_directory, own_passphrase
from labconsole.security.pki.store import PkiStore


@pytest.fixture(scope="session")
def made_passphrase(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of keys with the console's own passphrase, made once: it asks the keyring, which takes time."""
    directory = tmp_path_factory.mktemp("passphrase")
    own_passphrase(directory)
    return keys_directory(directory)


@pytest.fixture
def kept_passphrase(tmp_path: Path, made_passphrase: Path) -> None:
    """The database of the test has such a passphrase already."""
    shutil.copytree(made_passphrase, keys_directory(tmp_path / "pki"), dirs_exist_ok=True)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[PkiStore]:
    """An empty database."""
    with PkiStore.open(tmp_path / "pki") as store:
        yield store
