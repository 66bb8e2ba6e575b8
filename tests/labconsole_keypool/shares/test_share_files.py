"""Shares as files: 0600, never replaced, all or none; both forms are read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from labconsole.errors import UserError
from labconsole_keypool.shares.secret_sharing import Share, ShareError, combine_shares, split_key
from labconsole_keypool.shares.share_files import ShareForm, from_text, read_share, to_text, write_shares

KEY = bytes(range(32))


@pytest.fixture(scope="module")
def shares() -> tuple[Share, ...]:
    """Three of which two are needed."""
    return split_key(KEY, 2, 3)


@pytest.mark.parametrize("form", ShareForm)
def test_written_shares_are_read_again(tmp_path: Path, shares: tuple[Share, ...], form: ShareForm) -> None:
    paths = write_shares(tmp_path, shares, form)
    assert [path.stem for path in paths] == ["share-1-of-3", "share-2-of-3", "share-3-of-3"]
    assert combine_shares([read_share(path) for path in paths[1:]]) == KEY
    if os.name == "posix":
        assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o600}


def test_no_file_is_replaced_and_none_left_of_those_that_would_have_been_new(
    tmp_path: Path, shares: tuple[Share, ...]
) -> None:
    there = tmp_path / "share-2-of-3.toml"
    there.write_text("other content")
    with pytest.raises(ShareError, match=r"share-2-of-3\.toml is there already"):
        write_shares(tmp_path, shares, ShareForm.FILES)
    assert there.read_text() == "other content"
    assert list(tmp_path.glob("share*")) == [there]


def test_a_directory_that_is_not_there_is_named(tmp_path: Path, shares: tuple[Share, ...]) -> None:
    with pytest.raises(ShareError, match=r"cannot be written to .*nowhere"):
        write_shares(tmp_path / "nowhere", shares, ShareForm.FILES)


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_a_share_that_others_can_read_is_refused(tmp_path: Path, shares: tuple[Share, ...]) -> None:
    path = write_shares(tmp_path, shares, ShareForm.FILES)[0]
    path.chmod(0o644)
    with pytest.raises(UserError, match="can be read by others"):
        read_share(path)


def test_a_changed_field_is_noticed(shares: tuple[Share, ...]) -> None:
    text = to_text(shares[0], ShareForm.FILES)
    assert from_text(text) == shares[0]
    for line in text.splitlines():
        for changed in (_with_another_digit(line), line.split(" =")[0] + " = []", ""):
            with pytest.raises(ShareError):
                from_text(text.replace(line, changed))


@pytest.mark.parametrize("text", ["format = 1", "a = [", 'format = "labconsole share 1"', "index = 1"])
def test_invalid_share_is_refused(text: str) -> None:
    with pytest.raises(ShareError):
        from_text(text)


def test_binary_file_is_refused_as_a_share(tmp_path: Path) -> None:
    path = tmp_path / "share"
    path.write_bytes(b"\xff\xfe\x00")
    path.chmod(0o600)
    with pytest.raises(ShareError, match="is not text"):
        read_share(path)


def _with_another_digit(line: str) -> str:
    """The line with its last digit changed."""
    at = max(position for position, letter in enumerate(line) if letter in "0123456789abcdef")
    return line[:at] + ("1" if line[at] != "1" else "2") + line[at + 1 :]
