"""Encrypted data (EtsiTs103097Data-Encrypted, TS 103 097 clause 5.3): ECIES and AES-128-CCM of IEEE 1609.2, 5.3.5."""

from __future__ import annotations

import hashlib
import hmac
import os
from dataclasses import dataclass
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESCCM
from cryptography.hazmat.primitives.kdf.x963kdf import X963KDF

from labconsole.errors import UserError
from labconsole_v2x.security.encoding import (
    PROTOCOL_VERSION,
    EncodingError,
    compressed,
    encode_encryption_key,
    encode_list,
    encode_octets,
    encode_point,
)
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.reading import (
    READ_ERRORS,
    MalformedDataError,
    check_end,
    malformed,
    read_choice,
    read_list,
    read_octets,
    read_point,
)
from labconsole_v2x.security.structures import Certificate, Curve, Point, PublicKey

KEY_SIZE, TAG_SIZE, NONCE_SIZE, _MAC_KEY_SIZE = 16, 16, 12, 32
_SHARED_KEY_RECIPIENT, _CERTIFICATE_RECIPIENT, _KEY_RECIPIENT = 0, 2, 4
_CURVES = (Curve.P256, Curve.BRAINPOOL_P256R1)
_KEY_P1 = hashlib.sha256(b"").digest()
"""Where the key comes from neither a certificate nor signed data (6.3.32)."""


class DecryptionError(UserError):
    """Encrypted data that the key does not open: one message for every cause, so that none can be probed for."""


class DecryptionKey(Protocol):
    """A private encryption key in software (`SoftwareKey`) or in a token."""

    @property
    def public_key(self) -> PublicKey:
        """Its public key, compressed."""

    def shared_secret(self, peer: PublicKey) -> bytes:
        """The secret of ECDH; ValueError where `peer` is not a point of the same curve."""


@dataclass(frozen=True, slots=True)
class WrappedKey:
    """An AES key wrapped by ECIES (`EciesP256EncryptedKey`): the sender's point V, the key C, and its tag T."""

    curve: Curve
    v: Point
    c: bytes
    t: bytes


@dataclass(frozen=True, slots=True)
class Recipient:
    """A recipient: the choice in `RecipientInfo`, its HashedId8, and the wrapped key where it was wrapped by ECIES."""

    choice: int
    hashed_id8: bytes
    key: WrappedKey | None


@dataclass(frozen=True, slots=True)
class EncryptedData:
    """Encrypted data as received: `ciphertext` ends with the tag of CCM."""

    recipients: tuple[Recipient, ...]
    nonce: bytes
    ciphertext: bytes


def encrypt_to_certificate(plaintext: bytes, certificate: Certificate, aes_key: bytes | None = None) -> bytes:
    """Encrypted data for the holder of a certificate with an encryption key (certRecipInfo).

    `plaintext` is a whole `Ieee1609Dot2Data` (6.3.31). `aes_key` is that of a sender who expects the answer under it;
    a new one by default. Raises `EncodingError` where the certificate has no encryption key.
    """
    key = certificate.encryption_key
    if key is None:
        raise EncodingError("The certificate has no encryption key. Choose the certificate of an EA or AA.")
    aes_key = aes_key or os.urandom(KEY_SIZE)
    return _encrypt(
        plaintext, aes_key, key, _CERTIFICATE_RECIPIENT, certificate.hashed_id8, _certificate_p1(certificate)
    )


def decrypt_with_certificate(octets: bytes, certificate: Certificate, key: DecryptionKey) -> bytes:
    """The plaintext for the holder of `certificate`, whose encryption key is `key`.

    Raises `MalformedDataError` where the octets are not encrypted data, else `DecryptionError`.
    """
    return open_with_certificate(octets, certificate, key)[0]


def open_with_certificate(octets: bytes, certificate: Certificate, key: DecryptionKey) -> tuple[bytes, bytes]:
    """The plaintext, and the AES key for an answer; raises as `decrypt_with_certificate` does."""
    return _decrypt(octets, key, _CERTIFICATE_RECIPIENT, certificate.hashed_id8, _certificate_p1(certificate))


def encrypt_to_key(plaintext: bytes, key: PublicKey) -> bytes:
    """Encrypted data for the holder of a public key (rekRecipInfo), which TS 103 097 does not use itself."""
    return _encrypt(plaintext, os.urandom(KEY_SIZE), key, _KEY_RECIPIENT, _key_hashed_id8(key), _KEY_P1)


def decrypt_with_key(octets: bytes, key: DecryptionKey) -> bytes:
    """The plaintext for the holder of `key`; raises as `decrypt_with_certificate` does."""
    return _decrypt(octets, key, _KEY_RECIPIENT, _key_hashed_id8(key.public_key), _KEY_P1)[0]


def encrypt_with_shared_key(plaintext: bytes, aes_key: bytes) -> bytes:
    """Encrypted data for the other holder of an AES key (pskRecipInfo): the answer to encrypted data."""
    recipient = bytes((0x80 | _SHARED_KEY_RECIPIENT,)) + _shared_key_hashed_id8(aes_key)
    return _encoded(plaintext, aes_key, recipient)


def decrypt_with_shared_key(octets: bytes, aes_key: bytes) -> bytes:
    """The plaintext for a holder of the AES key; raises as `decrypt_with_certificate` does."""
    data = scan_encrypted_data(octets)
    wanted = (_SHARED_KEY_RECIPIENT, _shared_key_hashed_id8(aes_key))
    if any((recipient.choice, recipient.hashed_id8) == wanted for recipient in data.recipients):
        return _opened(data, aes_key)
    raise _refused()


def wrap_key(aes_key: bytes, recipient: PublicKey, p1: bytes, ephemeral: SoftwareKey) -> WrappedKey:
    """An AES-128 key wrapped by ECIES (5.3.5.1) with a key that is used once."""
    mask, mac_key = _derive(ephemeral, recipient, p1)
    c = _xor(aes_key, mask)
    return WrappedKey(recipient.curve, ephemeral.public_key.point, c, _tag(mac_key, c))


def unwrap_key(wrapped: WrappedKey, key: DecryptionKey, p1: bytes) -> bytes:
    """The AES-128 key; raises `DecryptionError`."""
    try:
        mask, mac_key = _derive(key, PublicKey(wrapped.curve, wrapped.v), p1)
    except ValueError as error:  # not a point of the key's curve
        raise _refused() from error
    if not hmac.compare_digest(_tag(mac_key, wrapped.c), wrapped.t):
        raise _refused()
    return _xor(wrapped.c, mask)


def scan_encrypted_data(octets: bytes) -> EncryptedData:
    """Slices a whole `Ieee1609Dot2Data` with encrypted data (6.3.30); raises `MalformedDataError`."""
    try:
        data, end = read_encrypted_data(octets, 0)
    except READ_ERRORS as error:
        raise MalformedDataError("Encrypted data is truncated. Check that it is whole.") from error
    check_end(end, len(octets))
    return data


def read_encrypted_data(octets: bytes, at: int) -> tuple[EncryptedData, int]:
    """Encrypted data inside of other octets: a reader as those of `reading`."""
    if octets[at] != PROTOCOL_VERSION or octets[at + 1] != 0x82:
        malformed("Not encrypted data", at)
    recipients, at = read_list(octets, at + 2, _recipient)
    (nonce, ciphertext), at = _ciphertext(octets, at)
    return EncryptedData(recipients, nonce, ciphertext), at


def _recipient(octets: bytes, at: int) -> tuple[Recipient, int]:
    choice = read_choice(octets[at], 5, "Recipient", at)
    hashed_id8, at = octets[at + 1 : at + 9], at + 9
    if choice == 0:  # a key that both sides have
        return Recipient(choice, hashed_id8, None), at
    if choice == 1:  # wrapped by such a key
        _, at = _ciphertext(octets, at)
        return Recipient(choice, hashed_id8, None), at
    curve = _CURVES[read_choice(octets[at], len(_CURVES), "Key wrapped on a curve", at)]
    v, at = read_point(octets, at + 1, curve.size)
    middle, end = at + KEY_SIZE, at + KEY_SIZE + TAG_SIZE
    return Recipient(choice, hashed_id8, WrappedKey(curve, v, octets[at:middle], octets[middle:end])), end


def _ciphertext(octets: bytes, at: int) -> tuple[tuple[bytes, bytes], int]:
    """A `SymmetricCiphertext` (6.3.38): nonce and ciphertext."""
    read_choice(octets[at], 1, "Symmetric algorithm", at)
    nonce, at = octets[at + 1 : at + 1 + NONCE_SIZE], at + 1 + NONCE_SIZE
    ciphertext, at = read_octets(octets, at)
    return (nonce, ciphertext), at


def _encrypt(plaintext: bytes, aes_key: bytes, key: PublicKey, choice: int, hashed_id8: bytes, p1: bytes) -> bytes:
    wrapped = wrap_key(aes_key, key, p1, SoftwareKey.generate(key.curve))
    encrypted_key = bytes((0x80 | key.curve.choice,)) + encode_point(wrapped.v) + wrapped.c + wrapped.t
    return _encoded(plaintext, aes_key, bytes((0x80 | choice,)) + hashed_id8 + encrypted_key)


def _encoded(plaintext: bytes, aes_key: bytes, recipient: bytes) -> bytes:
    nonce = os.urandom(NONCE_SIZE)
    ciphertext = encode_octets(AESCCM(aes_key, TAG_SIZE).encrypt(nonce, plaintext, None))
    return bytes((PROTOCOL_VERSION, 0x82)) + encode_list([recipient], bytes) + b"\x80" + nonce + ciphertext


def _decrypt(octets: bytes, key: DecryptionKey, choice: int, hashed_id8: bytes, p1: bytes) -> tuple[bytes, bytes]:
    """The plaintext, and the AES key."""
    data = scan_encrypted_data(octets)
    for recipient in data.recipients:
        if recipient.key is not None and (recipient.choice, recipient.hashed_id8) == (choice, hashed_id8):
            aes_key = unwrap_key(recipient.key, key, p1)
            return _opened(data, aes_key), aes_key
    raise _refused()


def _opened(data: EncryptedData, aes_key: bytes) -> bytes:
    try:
        return AESCCM(aes_key, TAG_SIZE).decrypt(data.nonce, data.ciphertext, None)
    except InvalidTag as error:
        raise _refused() from error


def _shared_key_hashed_id8(aes_key: bytes) -> bytes:
    """The HashedId8 of a `SymmetricEncryptionKey`, by which pskRecipInfo names it (6.3.33)."""
    return hashlib.sha256(b"\x80" + aes_key).digest()[-8:]


def _certificate_p1(certificate: Certificate) -> bytes:
    """The whole-certificate hash (6.3.32), which is SHA-384 for a certificate whose own key has 384 bits."""
    return hashlib.new(certificate.verification_key.curve.hash_name, certificate.canonical).digest()


def _key_hashed_id8(key: PublicKey) -> bytes:
    """The HashedId8 of a `PublicEncryptionKey`, by which rekRecipInfo names its recipient (6.3.34)."""
    return hashlib.sha256(encode_encryption_key(compressed(key))).digest()[-8:]


def _derive(key: DecryptionKey, peer: PublicKey, p1: bytes) -> tuple[bytes, bytes]:
    """The mask of the AES key and the key of its tag (KDF2); ValueError where the curves differ."""
    octets = X963KDF(hashes.SHA256(), KEY_SIZE + _MAC_KEY_SIZE, p1).derive(key.shared_secret(peer))
    return octets[:KEY_SIZE], octets[KEY_SIZE:]


def _tag(mac_key: bytes, c: bytes) -> bytes:
    return hmac.digest(mac_key, c, "sha256")[:TAG_SIZE]


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


def _refused() -> DecryptionError:
    return DecryptionError("The data cannot be decrypted with this key. Check the recipient, and that it is whole.")
