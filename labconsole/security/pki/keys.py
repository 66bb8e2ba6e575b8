"""Private keys of the certificate database: generated, kept in encrypted files, opened with their passphrase.

Files lie in `<directory>/keys`, PKCS#8 under PBES2, mode 0600. A file is written before its row: one without a row is
harmless. Keys whose passphrase no person chose share one random passphrase, which the console keeps in the OS keyring,
else in a file next to them. A passphrase that a person chose may be guessed: its key files take 600,000 rounds for each
guess, and older files, with 2,048, are encrypted again when they are used.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout
from pydantic import ValidationError

from labconsole.errors import UserError
from labconsole.security.key_files import is_quickly_guessed, load_private_key, save_private_key
from labconsole.security.pki.records import FileKey, KeyRecord, State, TokenKey
from labconsole.security.private_files import read_private, write_private
from labconsole.security.secrets import Prompt, Secret, SecretRequest, SecretSource, keep_secret
from labconsole.security.token.named_tokens import find_configuration
from labconsole.security.token.remote_private_key import opened_token_key
from labconsole.security.x509.fingerprints import key_fingerprint
from labconsole.security.x509.key_types import KeyType, PrivateKey, generate

if TYPE_CHECKING:
    from labconsole.security.pki.change import Change

_OWN_PASSPHRASE = "own-passphrase.json"
_OWN_FILE = "passphrase-"
_OWN_ENTRY = "certificate-keys-"
"""How the names of file and keyring entry begin that keep such a passphrase."""
_KEY_FILE = re.compile(r"\.?[0-9a-f]{32}-[0-9a-f]{8}\.pem(-[0-9a-f]{32})?")
"""As `keep_key` names them, and `write_private` what it has not finished."""
_SETTLED_S = 3600.0
_LOCK_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class MadeKey:
    """A private key that is stored at `place` and can sign at once; its row is added by `record`."""

    place: FileKey | TokenKey
    private: PrivateKey
    label: str = ""

    def record(self, change: Change, state: State) -> KeyRecord:
        """Add its row, as a key of `state`. Raises StoreError."""
        return change.add_key(state.id, self.label, self.private.public_key(), self.place)


def make_key(
    directory: Path, type: KeyType, source: SecretSource | None = None, passphrase: Secret | None = None
) -> MadeKey:
    """Make a key pair and keep it as `keep_key` does. RSA takes 0.1 s to some seconds: not in a `change`."""
    return keep_key(directory, generate(type), source, passphrase)


def keep_key(
    directory: Path, private: PrivateKey, source: SecretSource | None = None, passphrase: Secret | None = None
) -> MadeKey:
    """Write a private key to a file of the database in `directory`, encrypted with `passphrase`.

    `source` is where the passphrase will come from; `SecretSource()`: the operator is asked each time. Without both the
    console takes its own.

    Raises:
        UserError: `source` does not give the passphrase that was left out, or the file cannot be written.
    """
    if source is None:
        source, passphrase = own_passphrase(directory)
    elif passphrase is None:
        passphrase = source.relative_to(keys_directory(directory)).resolve("the new key")
    file = f"{key_fingerprint(private.public_key())[:32]}-{secrets.token_hex(4)}.pem"
    try:
        save_private_key(keys_directory(directory) / file, private, passphrase, typed=not _is_generated(source))
    except OSError as error:
        raise UserError(f"The private key cannot be written ({error.strerror or error}): check the disk.") from error
    return MadeKey(FileKey(file, source), private)


def keys_directory(directory: Path) -> Path:
    """Where the key files of the database in `directory` lie; made if it is not there. Raises OSError."""
    keys = directory / "keys"
    keys.mkdir(mode=0o700, parents=True, exist_ok=True)
    return keys


def key_secret(directory: Path, record: KeyRecord) -> SecretRequest:
    """The passphrase or PIN that opens a key, to be asked for before it is needed. Raises UserError: no such token."""
    match record.place:
        case TokenKey(token):
            return find_configuration(token).pin_request(token)
        case FileKey(_, source):
            purpose = f"the key {record.label}"
            return SecretRequest(f"key {record.spki_sha256}", purpose, source.relative_to(keys_directory(directory)))


@contextmanager
def opened_key(directory: Path, record: KeyRecord, prompt: Prompt | None = None) -> Iterator[PrivateKey]:
    """The private key, to sign with while the context is open; a key in a token only signs.

    Raises:
        UserError: no or a wrong passphrase or PIN, the file is missing or damaged, or the token refuses.
    """
    secret = key_secret(directory, record).resolve(prompt)
    match record.place:
        case TokenKey(token, label):
            with opened_token_key(token, label, secret) as key:
                yield key
        case FileKey(file, source):
            path = keys_directory(directory) / file
            private = load_private_key(path, secret)
            if not isinstance(private, PrivateKey) or key_fingerprint(private.public_key()) != record.spki_sha256:
                raise UserError(f"The file {path} holds another key than {record.label}: put the right one back.")
            if not _is_generated(source) and is_quickly_guessed(path):
                with suppress(OSError):  # a full or read-only disk: the file stays as it is until the next use
                    save_private_key(path, private, secret, typed=True)
            yield private


def stray_key_files(directory: Path, records: Iterable[KeyRecord]) -> tuple[Path, ...]:
    """Key files, and parts of them, that none of `records` names: a process was killed before it wrote the row.

    Only what is older than an hour: another process may be about to write its row. Raises OSError.
    """
    known = {record.place.file for record in records if isinstance(record.place, FileKey)}
    oldest = time.time() - _SETTLED_S
    found = (path for path in keys_directory(directory).iterdir() if _KEY_FILE.fullmatch(path.name))
    return tuple(sorted(path for path in found if path.name not in known and path.stat().st_mtime < oldest))


def own_passphrase(directory: Path, *, keyring: bool = True) -> tuple[SecretSource, Secret]:
    """The console's own passphrase for keys in `directory`, created where there is none, and where it is stored.

    Without `keyring` a new one is kept in a file: of a database that is deleted soon, nothing stays in the OS keyring.

    Raises:
        UserError: it cannot be kept.
    """
    keys = keys_directory(directory)
    try:
        with FileLock(keys / ".lock", timeout=_LOCK_TIMEOUT_S, mode=0o600):
            return _kept_passphrase(keys) or _new_passphrase(keys, keyring)
    except Timeout as error:
        raise UserError(f"Another console has held {keys} for {_LOCK_TIMEOUT_S:.0f} s: close it.") from error
    except OSError as error:
        raise UserError(f"No passphrase can be kept in {keys} ({error.strerror or error}): check the disk.") from error


def _is_generated(source: SecretSource) -> bool:
    """Whether the console made up the passphrase, rather than a person."""
    if source.passphrase_file is not None:
        return str(source.passphrase_file).startswith(_OWN_FILE)  # relative to the keys' own directory
    return source.keyring_entry is not None and source.keyring_entry.startswith(_OWN_ENTRY)


def _kept_passphrase(keys: Path) -> tuple[SecretSource, Secret] | None:
    """The one that was kept before; None where there is none, or it is gone (keys under it are lost with it)."""
    reference = keys / _OWN_PASSPHRASE
    if not reference.exists():
        return None
    try:
        source = SecretSource.model_validate_json(read_private(reference, "secret reference"))
        return source, source.relative_to(keys).resolve("the console's own keys")
    except (ValidationError, UserError):
        return None


def _new_passphrase(keys: Path, keyring: bool) -> tuple[SecretSource, Secret]:
    tag = secrets.token_hex(4)
    secret = Secret(secrets.token_urlsafe(32))
    source = keep_secret(keys, f"{_OWN_FILE}{tag}", secret, f"{_OWN_ENTRY}{tag}" if keyring else None)
    write_private(keys / _OWN_PASSPHRASE, source.model_dump_json().encode())
    return source, secret
