"""The lab's keys that no certificate carries: State B's, created on first use, in files of the certificate database."""

from __future__ import annotations

from filelock import FileLock, Timeout

from labconsole.errors import UserError
from labconsole.paths import pki_dir
from labconsole.security.lab_identities import STATE_B
from labconsole.security.pki.keys import keys_directory, own_passphrase
from labconsole_amqp.envelopes import encryption_keys
from labconsole_amqp.envelopes.encryption_keys import EncryptionKeyFiles, EncryptionKeyType

FOLDER = "message-keys"
_LOCK_TIMEOUT_S = 60.0


def lab_encryption_key(type: EncryptionKeyType) -> EncryptionKeyFiles:
    """The lab's key of this type; created unless there is a usable one. Its passphrase is that of the lab's keys.

    Raises:
        UserError: it cannot be created, or another process that creates it does not finish.
    """
    directory = pki_dir()
    folder, name = directory / FOLDER, f"{STATE_B}-{type.value}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        source, passphrase = own_passphrase(directory)
        source = source.relative_to(keys_directory(directory))
        files = EncryptionKeyFiles(
            key=folder / f"{name}.pem",
            public_key=folder / f"{name}.pub.pem",
            passphrase_file=source.passphrase_file,
            keyring_entry=source.keyring_entry or "",
        )
        assert files.key is not None and files.public_key is not None
        with FileLock(folder / ".lock", timeout=_LOCK_TIMEOUT_S, mode=0o600):
            try:
                encryption_keys.load_private(files.key, type, passphrase)
                encryption_keys.load_public(files.public_key, type)
            except UserError:  # there is none yet, or its passphrase is lost
                encryption_keys.save(folder, name, type, passphrase)
    except Timeout as error:
        raise UserError(
            f"Another process has been creating keys in {folder} for {_LOCK_TIMEOUT_S:.0f} s: end it."
        ) from error
    except OSError as error:
        raise UserError(f"No key can be created in {folder} ({error.strerror or error}): check the disk.") from error
    return files
