"""Where secrets come from, in which order, and that they show themselves nowhere."""

import json
import os
import pickle
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from labconsole.errors import UserError
from labconsole.security import os_keyring
from labconsole.security.secrets import Secret, SecretSource, keep_secret

UseKeyring = Callable[[str], Path]


def passphrase_file(directory: Path, content: str, mode: int = 0o600) -> Path:
    file = directory / "passphrase"
    file.write_text(content, encoding="utf-8")
    file.chmod(mode)
    return file


def test_keyring_comes_before_file_and_file_before_prompt(tmp_path: Path, use_keyring: UseKeyring) -> None:
    file = passphrase_file(tmp_path, "from the file\nsecond line\n")
    entries = use_keyring("FileKeyring")
    source = SecretSource(keyring_entry="state-a", passphrase_file=file)
    assert source.resolve("state-a", lambda _: Secret("prompted")).reveal() == "from the file"
    entries.write_text(json.dumps({"labconsole/state-a": "from the keyring"}))
    assert source.resolve("state-a", lambda _: Secret("prompted")).reveal() == "from the keyring"
    prompted = SecretSource().resolve("state-a", lambda purpose: Secret(f"prompted for {purpose}"))
    assert prompted.reveal() == "prompted for state-a"


def test_without_any_source_the_sentence_names_the_remedy() -> None:
    with pytest.raises(UserError, match=r"no passphrase for state-a: .*keyring set labconsole entry.*passphrase file"):
        SecretSource(keyring_entry="entry").resolve("state-a")
    with pytest.raises(UserError, match="no passphrase for state-a"):
        SecretSource().resolve("state-a", lambda _: None)


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
@pytest.mark.parametrize("mode", [0o604, 0o640, 0o660])
def test_passphrase_file_open_to_others_is_refused_without_a_prompt(tmp_path: Path, mode: int) -> None:
    file = passphrase_file(tmp_path, "secret", mode)
    with pytest.raises(UserError, match=f"mode {mode:04o}.*chmod 600"):
        SecretSource(passphrase_file=file).resolve("state-a", lambda _: Secret("prompted"))


def test_unusable_passphrase_files_are_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is empty"):
        SecretSource(passphrase_file=passphrase_file(tmp_path, "\nsecond line")).resolve("state-a")
    with pytest.raises(UserError, match="does not exist"):
        SecretSource(passphrase_file=tmp_path / "none").resolve("state-a")
    with pytest.raises(UserError, match="cannot be read"):
        SecretSource(passphrase_file=tmp_path).resolve("state-a")


def test_a_secret_does_not_show_itself() -> None:
    canary = "canary-7391"
    secret = Secret(canary)
    assert canary not in f"{secret} {secret!r} {[secret]} {vars(type(secret))}"
    with pytest.raises(TypeError, match="does not leave its process"):
        pickle.dumps(secret)


def test_a_kept_secret_is_found_wherever_its_directory_was_moved_to(tmp_path: Path) -> None:
    made, moved = tmp_path / "made", tmp_path / "moved"
    made.mkdir()
    source = keep_secret(made, "pin", Secret("größe 大"), "entry")
    made.rename(moved)
    assert source.relative_to(moved).resolve("state-a").reveal() == "größe 大"
    assert os.name != "posix" or stat.S_IMODE((moved / "pin").stat().st_mode) == 0o600


def test_a_secret_is_kept_in_the_keyring_if_there_is_one(tmp_path: Path, use_keyring: UseKeyring) -> None:
    use_keyring("FileKeyring")
    source = keep_secret(tmp_path, "pin", Secret("kept"), "entry")
    assert source == source.relative_to(tmp_path) == SecretSource(keyring_entry="entry")
    assert source.resolve("state-a").reveal() == "kept"
    assert not (tmp_path / "pin").exists()


def test_keyring_returns_stored_secrets(use_keyring: UseKeyring) -> None:
    use_keyring("FileKeyring")
    assert os_keyring.read("state-a") is None
    assert os_keyring.store("state-a", "größe 大\n")
    assert os_keyring.read("state-a") == "größe 大\n"


@pytest.mark.parametrize("backend", ["PlaintextKeyring", "LockedKeyring"])
def test_keyrings_that_keep_no_secret_safe_count_as_none(use_keyring: UseKeyring, backend: str) -> None:
    entries = use_keyring(backend)
    assert not os_keyring.store("state-a", "secret")
    assert not entries.exists()
    assert os_keyring.read("state-a") is None


@pytest.mark.parametrize("backend", ["fail", "null"])
def test_null_and_fail_backend_count_as_none_and_start_no_process(
    monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", f"keyring.backends.{backend}.Keyring")
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert not os_keyring.store("state-a", "secret")
    assert os_keyring.read("state-a") is None


def test_a_keyring_that_hangs_times_out(use_keyring: UseKeyring) -> None:
    use_keyring("HangingKeyring")
    began = time.monotonic()
    assert os_keyring.read("state-a", timeout_s=1.0) is None
    assert time.monotonic() - began < 10
