"""A home that has the lab identities and the token `lab` already: created once per test run, copied for a test."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from labconsole.security.lab_identities import lab_identities
from labconsole.security.token import softhsm
from labconsole.security.token.lab_token import lab_token
from tests.helpers.shared_once import shared_once


@pytest.fixture(scope="session")
def shared_lab_home(tmp_path_factory: pytest.TempPathFactory, shared_home: Path) -> Path:
    """The home that is copied; read-only."""

    def create(home: Path) -> None:
        lab_identities(home / "pki")
        if softhsm.library() is not None:
            lab_token(home)

    return shared_once(tmp_path_factory, "lab-home", create)


@pytest.fixture
def lab_home(own_home: Path, shared_lab_home: Path) -> Path:
    """The home of the test, which need not create identities and token; a test may change them."""
    return Path(shutil.copytree(shared_lab_home, own_home, dirs_exist_ok=True))
