"""Flat file and database: each gives back what was saved, once and in order."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from labconsole.errors import UserError
from labconsole.security.token.mechanisms import KeyKind, WrapMechanism
from labconsole_keypool.measuring.storage_media import Storage, StorageMedium, open_medium, scratch_directory
from labconsole_keypool.store.key_records import NewKey

KIND, MECHANISM = KeyKind.P_256, WrapMechanism.KEY_WRAP


def keys(medium: StorageMedium, *numbers: int) -> list[NewKey]:
    return [NewKey(KIND, bytes([n]) * (80 + n), b"public %d" % n, medium.wrapper, MECHANISM, 1, 2, 1) for n in numbers]


@pytest.mark.parametrize("storage", Storage)
def test_each_key_comes_back_once_and_in_order(storage: Storage, tmp_path: Path) -> None:
    with closing(open_medium(storage, tmp_path, "serial", KIND, MECHANISM)) as medium:
        saved = keys(medium, 1, 2, 3, 4, 5)
        medium.save(saved[:2])
        medium.save(saved[2:])
        loaded = medium.load(3)
        assert [(key.private, key.public) for key in loaded] == [(key.private, key.public) for key in saved[:3]]
        assert {(key.kind, key.mechanism, key.wrapper) for key in loaded} == {(KIND, MECHANISM, medium.wrapper)}
        assert [key.private for key in medium.load(9)] == [key.private for key in saved[3:]]
        assert medium.load(1) == []


def test_saved_keys_are_in_the_file_at_once(tmp_path: Path) -> None:
    with closing(open_medium(Storage.FILE, tmp_path, "serial", KIND, MECHANISM)) as medium:
        (key,) = keys(medium, 7)
        medium.save([key])
        (file,) = tmp_path.iterdir()
        assert key.private in file.read_bytes()


def test_only_the_leftovers_of_a_killed_run_are_removed(own_home: Path) -> None:
    with scratch_directory() as mine:
        (left := mine.with_name("step-times-4194305-x")).mkdir()  # more than the highest process number there is
        (left / "keys.bin").write_bytes(b"wrapped")
        with scratch_directory() as another:
            assert mine.exists() and another.exists() and not left.exists()
    assert not list(own_home.glob("step-times-*"))


def test_missing_directory_is_reported_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"keys\.bin cannot be created: No such file or directory\.$"):
        open_medium(Storage.FILE, tmp_path / "gone", "serial", KIND, MECHANISM)
