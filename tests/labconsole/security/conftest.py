"""Chooses the keyring backend that the tests of this folder see: none, unless a test asks for one."""

from collections.abc import Callable
from pathlib import Path

import pytest

UseKeyring = Callable[[str], Path]


@pytest.fixture(autouse=True)
def no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    """The developer's own keyring stays out of the tests."""
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")


@pytest.fixture
def use_keyring(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> UseKeyring:
    """Switch to a backend of keyring_backends.py; returns the file of its entries."""

    def use(backend: str) -> Path:
        file = tmp_path / "keyring.json"
        monkeypatch.setenv("PYTHON_KEYRING_BACKEND", f"keyring_backends.{backend}")
        monkeypatch.setenv("LABCONSOLE_TEST_KEYRING", str(file))
        monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=":")
        return file

    return use
