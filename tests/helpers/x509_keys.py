"""Private keys for tests, one of each type. RSA keys are files next to this one, since to generate some takes long."""

from __future__ import annotations

import re
from functools import cache
from itertools import count
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from labconsole.security.x509.key_types import KeyType, PrivateKey, generate

_STORED = Path(__file__).parent / "rsa_keys"
_PEM = re.compile(rb"-----BEGIN PRIVATE KEY-----.+?-----END PRIVATE KEY-----", re.DOTALL)
_places = count()


@cache
def key_of(type: KeyType) -> PrivateKey:
    """The key of a type that all tests of a process share: an RSA key is always the same one."""
    stored = _STORED / f"{type}.pem"
    return _load(stored.read_bytes()) if stored.exists() else generate(type)


@cache
def rsa_key_for(holder: str) -> RSAPrivateKey:
    """The RSA-2048 key of a holder; each holder has another one, and none is that of `key_of`."""
    stored, place = _PEM.findall((_STORED / "holders.pem").read_bytes()), next(_places)
    key = _load(stored[place]) if place < len(stored) else generate(KeyType.RSA_2048)
    assert isinstance(key, RSAPrivateKey)
    return key


@cache
def p_256_key_for(holder: str) -> PrivateKey:
    """The P-256 key of a holder; each holder has another one. To open it takes OpenSSL no 50 ms, as an RSA key does."""
    return generate(KeyType.P_256)


def _load(pem: bytes) -> PrivateKey:
    key = load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=True)  # this takes 50 ms, and they are our own
    assert isinstance(key, PrivateKey)
    return key
