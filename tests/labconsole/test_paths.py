"""Where the console keeps the user's data and finds its own files."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from labconsole import paths


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    chosen = tmp_path / "deep" / "home"
    monkeypatch.setenv(paths.HOME_VARIABLE, str(chosen))
    return chosen


def test_the_variable_names_the_home(home: Path) -> None:
    assert paths.data_dir() == home
    assert paths.database_path() == home / "runs.db"
    assert not paths.database_path().exists()
    assert paths.pki_dir() == home / "pki"
    assert paths.tokens_dir() == home / "tokens"


def test_an_argument_wins_over_the_variable(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    assert paths.tokens_dir(other) == other / "tokens"
    assert not home.exists()


def test_without_either_it_is_the_platforms_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(paths.HOME_VARIABLE, raising=False)
    monkeypatch.setattr("platformdirs.user_data_path", lambda name, **_: tmp_path / name)
    assert paths.data_dir() == tmp_path / "labconsole"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no permission bits; the profile directory is private there")
def test_new_directories_are_private_whatever_the_umask(home: Path) -> None:
    before = os.umask(0o000)
    try:
        made = [paths.data_dir(), paths.pki_dir(), paths.tokens_dir()]
    finally:
        os.umask(before)
    assert [stat.S_IMODE(path.stat().st_mode) for path in made] == [0o700] * 3


def test_profiles_and_resources_are_found() -> None:
    assert paths.profiles_dir().name == "profiles"
    assert paths.resource().is_dir()


def test_a_missing_resource_is_named() -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.txt is missing"):
        paths.resource("payloads", "nowhere.txt")
