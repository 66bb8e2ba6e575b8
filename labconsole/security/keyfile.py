"""Private keys in files: encrypted PKCS#8 in PEM, mode 0600."""

from __future__ import annotations

from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from labconsole.security.private_files import read_private, write_private
from labconsole.security.secrets import Secret
from labconsole.trial import TrialError

_ENCRYPTED_MARKS = (b"-----BEGIN ENCRYPTED PRIVATE KEY-----", b"Proc-Type: 4,ENCRYPTED")


def save_private_key(path: Path, key: PrivateKeyTypes, secret: Secret) -> None:
    """Write `key` to `path` as PKCS#8, encrypted with `secret` (PBES2, AES-256-CBC), mode 0600. Raises OSError."""
    encryption = BestAvailableEncryption(secret.reveal().encode())
    write_private(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))


def is_encrypted(path: Path) -> bool:
    """Whether the key file needs a passphrase. Raises TrialError: missing, unreadable, open to others."""
    return any(mark in read_private(path, "key file") for mark in _ENCRYPTED_MARKS)


def load_private_key(path: Path, secret: Secret | None) -> PrivateKeyTypes:
    """Read a PEM private key; `secret` is None for a key that is not encrypted.

    Raises:
        TrialError: missing, unreadable, open to others, wrong passphrase, no private key, or an unknown kind of key.
    """
    data = read_private(path, "key file")
    encrypted = any(mark in data for mark in _ENCRYPTED_MARKS)
    if encrypted and secret is None:
        raise TrialError(f"The key file {path} is encrypted: say where its passphrase comes from.")
    try:
        return load_pem_private_key(data, secret.reveal().encode() if encrypted and secret is not None else None)
    except UnsupportedAlgorithm as error:
        raise TrialError(f"The key in {path} is of a kind that is not supported: use RSA or EC.") from error
    except ValueError as error:
        if encrypted:
            raise TrialError(
                f"The key file {path} does not open: the passphrase is wrong, or it is damaged."
            ) from error
        raise TrialError(f"The file {path} holds no private key in PEM form: name the key file.") from error
