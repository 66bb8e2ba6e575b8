"""Keys that bodies are encrypted to and that no certificate carries here: pinned by file, which both ends exchange.

A private key file has PKCS#8 blocks in PEM (RFC 5958; ML-KEM by RFC 9935), best encrypted; a public one has
SubjectPublicKeyInfo blocks. A hybrid key is two blocks, ML-KEM-768 first, then X25519.
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import mlkem, x25519
from cryptography.hazmat.primitives.hpke import MLKEM768X25519PrivateKey, MLKEM768X25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from pydantic import BaseModel, ConfigDict

from labconsole.errors import UserError
from labconsole.security.private_files import read_private, write_private
from labconsole.security.secrets import Secret, SecretSource

_BLOCK = re.compile(rb"-----BEGIN [A-Z ]+-----.*?-----END [A-Z ]+-----\n?", re.DOTALL)
_ENCRYPTED = b"-----BEGIN ENCRYPTED PRIVATE KEY-----"


class EncryptionKeyType(StrEnum):
    """Types of such keys."""

    ML_KEM_768 = "ml-kem-768"
    ML_KEM_768_X25519 = "ml-kem-768-x25519"

    @property
    def label(self) -> str:
        """As sentences have it."""
        return {"ml-kem-768": "ML-KEM-768", "ml-kem-768-x25519": "ML-KEM-768 with X25519"}[self]


class EncryptionKeyFiles(BaseModel):
    """The files of a receiver's key; contains no secret. A sender needs the public one alone."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    key: Path | None = None
    public_key: Path | None = None
    passphrase_file: Path | None = None
    keyring_entry: str | None = None

    @property
    def secret_source(self) -> SecretSource:
        """Where the passphrase of the private key comes from."""
        entry = str(self.key.absolute()) if self.keyring_entry is None and self.key is not None else self.keyring_entry
        return SecretSource(keyring_entry=entry or None, passphrase_file=self.passphrase_file)


def generate(type: EncryptionKeyType) -> Any:
    """A new private key."""
    return _joined(_generated(type))


def save(folder: Path, name: str, type: EncryptionKeyType, secret: Secret) -> tuple[Path, Path]:
    """Generate a key, and write its private file, encrypted with `secret` and 0600, and its public one.

    Raises OSError.
    """
    keys = _generated(type)
    encryption = BestAvailableEncryption(secret.reveal().encode())
    private, public = folder / f"{name}.pem", folder / f"{name}.pub.pem"
    pkcs8 = (key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption) for key in keys)
    spki = (key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo) for key in keys)
    write_private(public, b"".join(spki))
    write_private(private, b"".join(pkcs8))
    return private, public


def is_encrypted(path: Path) -> bool:
    """Whether the private key file needs a passphrase. Raises UserError: missing, unreadable, open to others."""
    return _ENCRYPTED in read_private(path, "encryption key file")


def load_private(path: Path, type: EncryptionKeyType, secret: Secret | None) -> Any:
    """The private key in a file. Raises UserError: missing, open to others, wrong passphrase, another type."""
    octets = read_private(path, "encryption key file")
    password = None if secret is None or _ENCRYPTED not in octets else secret.reveal().encode()
    try:
        keys = [load_pem_private_key(block, password) for block in _BLOCK.findall(octets)]
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise UserError(
            f"The encryption key file {path} cannot be opened: check the passphrase and the file."
        ) from error
    kinds = (mlkem.MLKEM768PrivateKey, x25519.X25519PrivateKey)
    return _of_type(keys, kinds, type, path)


def load_public(path: Path, type: EncryptionKeyType) -> Any:
    """The public key in a file. Raises UserError: missing, malformed, another type."""
    from labconsole.security.x509.parsing import read_file  # late, with asn1crypto: most runs pin no key

    octets = read_file(path, "encryption key file")
    try:
        keys = [load_pem_public_key(block) for block in _BLOCK.findall(octets)]
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UserError(
            f"The encryption key file {path} is not a public key in PEM: ask the receiver for it."
        ) from error
    return _of_type(keys, (mlkem.MLKEM768PublicKey, x25519.X25519PublicKey), type, path)


def _of_type(keys: list[Any], kinds: tuple[type, type], wanted: EncryptionKeyType, path: Path) -> Any:
    expected = kinds if wanted is EncryptionKeyType.ML_KEM_768_X25519 else kinds[:1]
    if len(keys) != len(expected) or not all(map(isinstance, keys, expected)):
        raise UserError(f"The encryption key file {path} has no {wanted.label} key, which the envelope needs.")
    return _joined(keys)


def _generated(type: EncryptionKeyType) -> list[Any]:
    """The parts of a new private key, each a block of its file."""
    lattice = mlkem.MLKEM768PrivateKey.generate()
    return [lattice] if type is EncryptionKeyType.ML_KEM_768 else [lattice, x25519.X25519PrivateKey.generate()]


def _joined(keys: list[Any]) -> Any:
    """The key that these parts are."""
    if len(keys) == 1:
        return keys[0]
    private = isinstance(keys[0], mlkem.MLKEM768PrivateKey)
    return MLKEM768X25519PrivateKey(*keys) if private else MLKEM768X25519PublicKey(*keys)
