"""Key files that a kill has left: the doctor lists them, and they are removed on confirmation only."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from labconsole.cli.main import main
from labconsole.security.pki.keys import keys_directory, make_key, stray_key_files
from labconsole.security.x509.key_types import KeyType
from labconsole_certificates.upkeep import checks
from tests.labconsole_certificates.three_states import ThreeStates


@pytest.fixture
def left(world: ThreeStates) -> list[Path]:
    """A key without a row and half of a file, as old as the keys with rows; and one that is being created just now."""
    directory = keys_directory(world.store.directory)
    used = list(directory.glob("*.pem"))
    assert used
    key = directory / make_key(world.store.directory, KeyType.P_256).place.file
    half = directory / f".{key.name}-{'0' * 32}"
    half.write_bytes(b"-----BEGIN")
    for path in (key, half, *used):
        os.utime(path, (time.time() - 7200,) * 2)
    make_key(world.store.directory, KeyType.P_256)
    return sorted((key, half))


def test_the_doctor_lists_key_files_without_a_row(world: ThreeStates, left: list[Path]) -> None:
    assert list(stray_key_files(world.store.directory, world.store.snapshot().keys)) == left
    [check] = [each for each in checks() if each.name == "key files"]
    assert not check.ok and check.found.startswith("2 key files belong to no certificate")


def test_they_are_removed_on_confirmation_only(
    world: ThreeStates, left: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    directory = keys_directory(world.store.directory)
    before = set(directory.iterdir())
    assert main(["pki", "remove-key-files"]) == 1
    assert set(directory.iterdir()) == before
    output = capsys.readouterr().err
    assert all(path.name in output for path in left) and "give --yes" in output
    assert main(["pki", "remove-key-files", "--yes"]) == 0
    assert set(directory.iterdir()) == before - set(left)
    assert [entry.subject for entry in world.store.audit(10) if entry.what == "removed key file"]
    assert main(["pki", "remove-key-files"]) == 0
