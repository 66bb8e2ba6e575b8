"""Private keys in files: encrypted PKCS#8 in PEM, mode 0600; guessing a typed passphrase is made expensive."""

from __future__ import annotations

import os
from pathlib import Path

from asn1crypto import algos, keys, pem
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC
from cryptography.hazmat.primitives.padding import PKCS7
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from labconsole.security.private_files import read_private, write_private
from labconsole.security.secret_value import Secret
from labconsole.security.x509.parsing import ContentKind, PrivateKey, kinds_of, read_private_key

ROUNDS = 600_000
"""Rounds of PBKDF2 with HMAC-SHA-256 (OWASP, 2023): 0.1 to 0.3 s. The library's own writer always uses 2,048."""

_LABEL = "ENCRYPTED PRIVATE KEY"
_BLOCK = 16  # octets of AES, and of a salt


def save_private_key(path: Path, key: PrivateKeyTypes, secret: Secret, *, typed: bool = False) -> None:
    """Write `key` to `path` as PKCS#8, encrypted with `secret` (PBES2, AES-256-CBC), mode 0600. Raises OSError.

    `typed`: a person chose `secret`, so it may be guessed; a generated one cannot be.
    """
    if typed:
        data = _under_many_rounds(key, secret)
    else:
        encryption = BestAvailableEncryption(secret.reveal().encode())
        data = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
    write_private(path, data)


def is_quickly_guessed(path: Path) -> bool:
    """Whether the key file takes fewer rounds for each guess than `save_private_key` for a typed passphrase.

    Raises UserError: missing, unreadable, open to others.
    """
    try:
        found = keys.EncryptedPrivateKeyInfo.load(pem.unarmor(read_private(path, "key file"))[2])
        derivation = found["encryption_algorithm"]["parameters"]["key_derivation_func"]
        few = derivation["parameters"]["iteration_count"].native < ROUNDS
        return bool(few and derivation["algorithm"].native == "pbkdf2")
    except (ValueError, TypeError, KeyError):  # not encrypted, or in another way than the console's own files
        return False


def is_encrypted(path: Path) -> bool:
    """Whether the key file needs a passphrase. Raises UserError: missing, unreadable, open to others."""
    return ContentKind.ENCRYPTED_PRIVATE_KEY in kinds_of(read_private(path, "key file"))


def load_private_key(path: Path, secret: Secret | None) -> PrivateKey:
    """Read the operator's private key; `secret` is None for a key that is not encrypted.

    Raises:
        UserError: missing, unreadable, open to others, wrong passphrase, not a private key, an unknown kind of key, or
            an RSA key that does not work.
    """
    return read_private_key(read_private(path, "key file"), secret, f"The key file {path}", own=True)


def _under_many_rounds(key: PrivateKeyTypes, secret: Secret) -> bytes:
    """PEM of an EncryptedPrivateKeyInfo (RFC 5958, 3) under PBES2 (RFC 8018, 6.2)."""
    salt, vector = os.urandom(_BLOCK), os.urandom(_BLOCK)
    derived = PBKDF2HMAC(SHA256(), 32, salt, ROUNDS).derive(secret.reveal().encode())
    padder = PKCS7(8 * _BLOCK).padder()
    padded = padder.update(key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())) + padder.finalize()
    encryptor = Cipher(algorithms.AES256(derived), modes.CBC(vector)).encryptor()
    derivation = {
        "salt": algos.Pbkdf2Salt("specified", salt),
        "iteration_count": ROUNDS,
        "prf": {"algorithm": "sha256"},
    }
    parameters = {
        "key_derivation_func": {"algorithm": "pbkdf2", "parameters": derivation},
        "encryption_scheme": {"algorithm": "aes256_cbc", "parameters": vector},
    }
    info = keys.EncryptedPrivateKeyInfo(
        {
            "encryption_algorithm": {"algorithm": "pbes2", "parameters": parameters},
            "encrypted_data": encryptor.update(padded) + encryptor.finalize(),
        }
    )
    data: bytes = pem.armor(_LABEL, info.dump())
    return data
