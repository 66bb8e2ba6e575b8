"""Private keys in files: encrypted PKCS#8 in PEM, mode 0600."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

from labconsole.security.private_files import read_private, write_private
from labconsole.security.secrets import Secret
from labconsole.security.x509.gate import ContentKind, PrivateKey, kinds_of, read_private_key


def save_private_key(path: Path, key: PrivateKeyTypes, secret: Secret) -> None:
    """Write `key` to `path` as PKCS#8, encrypted with `secret` (PBES2, AES-256-CBC), mode 0600. Raises OSError."""
    encryption = BestAvailableEncryption(secret.reveal().encode())
    write_private(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))


def is_encrypted(path: Path) -> bool:
    """Whether the key file needs a passphrase. Raises TrialError: missing, unreadable, open to others."""
    return ContentKind.ENCRYPTED_PRIVATE_KEY in kinds_of(read_private(path, "key file"))


def load_private_key(path: Path, secret: Secret | None) -> PrivateKey:
    """Read a private key; `secret` is None for a key that is not encrypted.

    Raises:
        TrialError: missing, unreadable, open to others, wrong passphrase, no private key, or an unknown kind of key.
    """
    return read_private_key(read_private(path, "key file"), secret, f"The key file {path}")
