"""States with their roots, in the certificate database of the test's own home."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from labconsole.paths import pki_dir
from labconsole.security import key_files
from labconsole.security.pki.store import PkiStore
from labconsole_certificates.operations import export_formats
from labconsole_certificates.operations.authorities import create_root
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.states import add_state
from tests.labconsole_certificates.exchange.two_consoles import make_consoles
from tests.labconsole_certificates.three_states import ThreeStates


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passphrases and passwords of files take 2,048 rounds in this process, where 600,000 take 0.2 s or 0.6 s each.

    That files have 600,000 is judged by `test_key_files.py` and `test_export_formats.py`.
    """
    monkeypatch.setattr(key_files, "ROUNDS", 2048)
    monkeypatch.setattr(export_formats, "_ROUNDS", 2048)


@pytest.fixture(scope="session")
def made_pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a database that was made once: its passphrase asks the keyring, which takes time."""
    directory = tmp_path_factory.mktemp("pair") / "pki"
    with PkiStore.open(directory) as store:
        for name in ("State A", "State B"):
            create_root(store, add_state(store, name, f"{name[-1].lower()}.example"), NewKey())
    return directory


@pytest.fixture
def world(made_pair: Path) -> Iterator[ThreeStates]:
    """A copy of it, in the home of the test, with State C besides."""
    shutil.copytree(made_pair, pki_dir(), dirs_exist_ok=True)
    with PkiStore.open() as store:
        add_state(store, "State C", local=False)
        snapshot = store.snapshot()
        a, b, c = snapshot.states
        yield ThreeStates(store, a, b, c, snapshot.roots_of(a.id)[0], snapshot.roots_of(b.id)[0])


@pytest.fixture(scope="session")
def made_consoles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The databases `a` and `b` of two consoles that were made once, too: to be copied."""
    directory = tmp_path_factory.mktemp("consoles")
    make_consoles(directory)
    return directory


@pytest.fixture
def consoles(made_consoles: Path, tmp_path: Path) -> Path:
    """The databases `a` and `b` of two consoles, in this directory."""
    return Path(shutil.copytree(made_consoles, tmp_path / "consoles"))
