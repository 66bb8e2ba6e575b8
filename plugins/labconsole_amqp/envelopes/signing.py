"""Keys that sign and verify the messages of hardened envelopes, by the type of key."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from labconsole.security.x509.key_types import KeyType, PrivateKey, PublicKey, type_of

SALT_BYTES = 32
"""Salt of RSASSA-PSS: as long as its hash (RFC 8017, 9.1)."""
KEY_ID_BYTES = 8
P256_COORDINATE_BYTES = 32

_SIGNATURE_BYTES = {
    KeyType.RSA_2048: 256,
    KeyType.RSA_3072: 384,
    KeyType.RSA_4096: 512,
    KeyType.P_256: 71,  # DER: 70 to 72, rarely fewer
    KeyType.ED25519: 64,
    KeyType.ML_DSA_44: 2420,
    KeyType.ML_DSA_65: 3309,
}


class Signer(Protocol):
    """Something that signs: a private key in memory, or one that never leaves its device."""

    type: KeyType
    """RSA signs by RSASSA-PSS with SHA-256, P-256 by ECDSA with SHA-256 (DER), others by their own scheme."""
    key_id: bytes
    """As `key_id` of its public key."""
    subject_key_id: bytes
    """The subject key identifier of its certificate (SHA-1 of the public key: RFC 5280, 4.2.1.2)."""

    def sign(self, data: bytes) -> bytes:
        """The signature of `data`; any thread may call it."""


def _arguments(type: KeyType) -> tuple[Any, ...]:
    if type in (KeyType.RSA_2048, KeyType.RSA_3072, KeyType.RSA_4096):
        return PSS(MGF1(SHA256()), SALT_BYTES), SHA256()
    return (ec.ECDSA(SHA256()),) if type is KeyType.P_256 else ()


def key_id(public_key: PublicKey) -> bytes:
    """The name of a public key in messages: the first octets of the SHA-256 of its SubjectPublicKeyInfo."""
    spki = public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(spki).digest()[:KEY_ID_BYTES]


def _subject_key_id(public_key: PublicKey) -> bytes:
    # Imported late: `cryptography.x509` is a third of what a role without signatures would import.
    from cryptography.x509 import SubjectKeyIdentifier

    return SubjectKeyIdentifier.from_public_key(public_key).digest


def signature_bytes(type: KeyType) -> int:
    """The length of a signature; of P-256, in DER, the most common one."""
    return _SIGNATURE_BYTES[type]


class KeySigner:
    """Signs with a private key in memory."""

    def __init__(self, key: PrivateKey) -> None:
        """`key` is of a type that `signature_bytes` knows."""
        found = type_of(key.public_key())
        assert found is not None
        self.type = found
        self.key_id = key_id(key.public_key())
        self.subject_key_id = _subject_key_id(key.public_key())
        self._sign: Any = key.sign
        self._arguments = _arguments(found)

    def sign(self, data: bytes) -> bytes:
        """The signature of `data`."""
        signature: bytes = self._sign(data, *self._arguments)
        return signature


class ExampleSigner:
    """Gives octets as long as a signature, to measure messages without a key."""

    key_id = bytes(KEY_ID_BYTES)
    subject_key_id = bytes(20)

    def __init__(self, type: KeyType) -> None:
        self.type = type
        ecdsa = encode_dss_signature(1 << 255, 1 << 254)
        self._signature = ecdsa if type is KeyType.P_256 else bytes(signature_bytes(type))

    def sign(self, data: bytes) -> bytes:
        """Octets that verify nothing."""
        return self._signature


def raw_signature(der: bytes) -> bytes:
    """An ECDSA signature of P-256 as the two numbers one after the other, as JOSE and COSE have it."""
    return b"".join(one.to_bytes(P256_COORDINATE_BYTES, "big") for one in decode_dss_signature(der))


def der_signature(raw: bytes) -> bytes:
    """The DER form of `raw_signature`."""
    r, s = raw[:P256_COORDINATE_BYTES], raw[P256_COORDINATE_BYTES:]
    return encode_dss_signature(int.from_bytes(r, "big"), int.from_bytes(s, "big"))


class Verifier:
    """Verifies with the public key of the expected signer."""

    def __init__(self, key: PublicKey) -> None:
        """`key` is of a type that `signature_bytes` knows."""
        found = type_of(key)
        assert found is not None
        self.type = found
        self.key_id = key_id(key)
        self.subject_key_id = _subject_key_id(key)
        self._verify: Any = key.verify
        self._arguments = _arguments(found)

    def find(self, key_id: bytes | None) -> Verifier | None:
        """This one, for a message that names its key by either id, or none."""
        return self if key_id in (None, self.key_id, self.subject_key_id) else None

    def verifies(self, signature: bytes, data: bytes) -> bool:
        """Whether `signature` is that of `data` by this key."""
        try:
            self._verify(signature, data, *self._arguments)
        except (InvalidSignature, ValueError):  # ValueError: of a length that the scheme has not
            return False
        return True


class VerifierPool:
    """Verifies with the public key that a message names, one of many of a type: each signs one message."""

    def __init__(self, type: KeyType, keys: Iterable[PublicKey]) -> None:
        """`keys` are of this type."""
        self.type = type
        verifiers = map(Verifier, keys)
        self._by_id = {key_id: one for one in verifiers for key_id in (one.key_id, one.subject_key_id)}

    def find(self, key_id: bytes | None) -> Verifier | None:
        """The verifier for the key with this id; None where there is none, or a message names no key."""
        return None if key_id is None else self._by_id.get(key_id)
