"""Key files of the certificate database: encrypted, the owner's alone, opened with the passphrase."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from labconsole.errors import UserError
from labconsole.security.key_files import is_quickly_guessed, load_private_key, save_private_key
from labconsole.security.pki.keys import key_secret, keys_directory, make_key, opened_key, own_passphrase
from labconsole.security.pki.records import FileKey, KeyRecord, TokenKey
from labconsole.security.pki.store import PkiStore
from labconsole.security.private_files import write_private
from labconsole.security.secrets import Secret, SecretSource
from labconsole.security.x509.key_types import KeyType, generate
from tests.labconsole.security.conftest import UseKeyring

CANARY = "canary-9d1f47"


def added(store: PkiStore, source: SecretSource | None = None, passphrase: str | None = None) -> KeyRecord:
    """A key of State Alpha."""
    made = make_key(store.directory, KeyType.P_256, source, None if passphrase is None else Secret(passphrase))
    with store.change() as change:
        state = change.add_state("Alpha")
        return change.add_key(state.id, "alpha", made.private.public_key(), made.place)


def files(store: PkiStore) -> list[Path]:
    """All files of the database."""
    return [path for path in store.directory.rglob("*") if path.is_file()]


def test_a_key_under_the_consoles_own_passphrase_opens_without_a_question(store: PkiStore) -> None:
    record = added(store)
    with opened_key(store.directory, record) as private:
        signature = private.public_key()
    with opened_key(store.directory, record) as again:
        assert again.public_key() == signature
    assert not key_secret(store.directory, record).source.must_be_asked()


def test_all_own_keys_share_one_passphrase(store: PkiStore) -> None:
    assert own_passphrase(store.directory)[0] == own_passphrase(store.directory)[0]
    assert own_passphrase(store.directory)[1].reveal() == own_passphrase(store.directory)[1].reveal()


def test_the_keyring_keeps_it_where_there_is_one(store: PkiStore, use_keyring: UseKeyring) -> None:
    entries = use_keyring("FileKeyring")
    record = added(store)
    source, passphrase = own_passphrase(store.directory)
    assert source.passphrase_file is None
    assert passphrase.reveal() in entries.read_text()
    assert not [path for path in files(store) if passphrase.reveal().encode() in path.read_bytes()]
    with opened_key(store.directory, record) as private:
        assert private is not None
    entries.unlink()
    assert own_passphrase(store.directory)[0] != source


def test_without_the_keyring_a_file_keeps_it(store: PkiStore, use_keyring: UseKeyring) -> None:
    entries = use_keyring("FileKeyring")
    source, passphrase = own_passphrase(store.directory, keyring=False)
    assert source.passphrase_file is not None
    assert not entries.exists() or passphrase.reveal() not in entries.read_text()
    assert own_passphrase(store.directory)[0] == source


def test_a_chosen_passphrase_is_in_no_file_and_no_key_is_open(store: PkiStore) -> None:
    record = added(store, SecretSource(), CANARY)
    with store.change() as change:
        change.note("exported certificate", "none")
    for path in files(store):
        data = path.read_bytes()
        assert CANARY.encode() not in data, path
        assert b"BEGIN PRIVATE KEY" not in data, path
        assert b"BEGIN EC PRIVATE KEY" not in data, path
    asked = []

    def prompt(purpose: str) -> Secret:
        asked.append(purpose)
        return Secret(CANARY)

    with opened_key(store.directory, record, prompt):
        pass
    assert asked == ["the key alpha"]
    with (
        pytest.raises(UserError, match="the passphrase is wrong"),
        opened_key(store.directory, record, lambda _: Secret("other")),
    ):
        pass
    with (
        pytest.raises(UserError, match="There is no passphrase for the key alpha"),
        opened_key(store.directory, record),
    ):
        pass


def test_a_passphrase_file_of_the_operators(store: PkiStore, tmp_path: Path) -> None:
    file = tmp_path / "mine"
    write_private(file, f"{CANARY}\n".encode())
    record = added(store, SecretSource(passphrase_file=file))
    [key] = keys_directory(store.directory).glob("*.pem")
    load_pem_private_key(key.read_bytes(), CANARY.encode())
    with opened_key(store.directory, record):
        pass


def test_an_old_file_under_a_typed_passphrase_is_encrypted_again_when_it_is_used(store: PkiStore) -> None:
    record = added(store, SecretSource(), CANARY)
    assert isinstance(record.place, FileKey)
    file = keys_directory(store.directory) / record.place.file
    assert not is_quickly_guessed(file)
    save_private_key(file, load_private_key(file, Secret(CANARY)), Secret(CANARY))  # as version 0.1.0 wrote it
    old = file.read_bytes()
    assert is_quickly_guessed(file)
    with pytest.raises(UserError), opened_key(store.directory, record, lambda _: Secret("other")):
        pass
    assert file.read_bytes() == old
    with opened_key(store.directory, record, lambda _: Secret(CANARY)) as private:
        assert private.public_key() == load_private_key(file, Secret(CANARY)).public_key()
    assert not is_quickly_guessed(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 or sys.platform == "win32"
    assert [path.name for path in file.parent.glob("*.pem*")] == [file.name]


def test_a_key_under_a_generated_passphrase_stays_as_it_is(store: PkiStore) -> None:
    record = added(store)
    assert isinstance(record.place, FileKey)
    file = keys_directory(store.directory) / record.place.file
    before = file.read_bytes()
    assert is_quickly_guessed(file)  # 32 random bytes cannot be guessed
    with opened_key(store.directory, record):
        pass
    assert file.read_bytes() == before


@pytest.mark.skipif(sys.platform == "win32", reason="no modes")
def test_files_are_the_owners_alone(store: PkiStore) -> None:
    added(store)
    assert stat.S_IMODE(keys_directory(store.directory).stat().st_mode) == 0o700
    for path in keys_directory(store.directory).iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_the_directory_may_be_moved(store: PkiStore, tmp_path: Path) -> None:
    record = added(store)
    store.close()
    moved = store.directory.rename(tmp_path / "elsewhere")
    with PkiStore.open(moved) as again, opened_key(moved, again.key(record.id)) as private:
        assert private is not None


def test_another_key_under_the_same_name_is_refused(store: PkiStore) -> None:
    record = added(store)
    [path] = keys_directory(store.directory).glob("*.pem")
    other = make_key(store.directory, KeyType.P_256).place
    (keys_directory(store.directory) / other.file).replace(path)
    with pytest.raises(UserError, match="holds another key than alpha"), opened_key(store.directory, record):
        pass


def test_a_missing_key_file_is_reported(store: PkiStore) -> None:
    record = added(store)
    [path] = keys_directory(store.directory).glob("*.pem")
    path.unlink()
    with pytest.raises(UserError, match=r"The key file .* does not exist"), opened_key(store.directory, record):
        pass


def test_a_missing_token_is_reported(store: PkiStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABCONSOLE_HOME", str(tmp_path / "home"))
    with store.change() as change:
        state = change.add_state("Alpha")
        record = change.add_key(state.id, "a", generate(KeyType.P_256).public_key(), TokenKey("hsm-9", "a"))
    with pytest.raises(UserError, match="hsm-9"), opened_key(store.directory, record):
        pass
