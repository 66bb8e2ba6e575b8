"""The binary formats, compact and hybrid: raw fields instead of base64, and only what the other end cannot know.

Signed: version (1 octet), message id (8), creation time in ms (6), signature, body. The signature also covers the
names of sender, recipient and address, which both ends know and none transmits; a message for another recipient or
address so has a wrong signature.

Signed and encrypted: the same 15 octets in the clear, the wrapped AES-256 key, then AES-256-GCM (its tag last) of
signature and body. Associated data are the 15 octets, the wrapped key and the names. Each message has a key of its
own, so that the nonce may be constant (zero).

The hybrid format has the same layout. Signed: by Ed25519, with a signature of 64 octets. Signed and encrypted: the 15
octets in the clear, then the single-shot HPKE (RFC 9180, base mode) of signature and body: KEM MLKEM768-X25519
(X-Wing), HKDF-SHA256, AES-256-GCM. Its `info` is the 15 octets and the names. Who breaks one of both key agreements
still reads nothing.
"""

from __future__ import annotations

import os
import struct
from abc import abstractmethod
from typing import ClassVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from labconsole_amqp.envelopes.content_format import (
    Content,
    ContentFormat,
    ContentKeys,
    RefusedError,
    VerifiedContent,
    decryption_failed,
)
from labconsole_amqp.envelopes.signing import signature_bytes
from labconsole_amqp.wire.protected_message import SignedMetadata
from labconsole_amqp.wire.sign_encrypt import Outcome

_SIGNED, _ENCRYPTED = 1, 2
"""Versions; a later layout has other numbers."""
_HEADER = struct.Struct(">BQ6s")
_TIME_BYTES = 6
_LAST_TIME = 2 ** (8 * _TIME_BYTES) - 1
_SUITE = Suite(KEM.MLKEM768_X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
_KEY_BYTES = 32
_NONCE = bytes(12)
_KEY_WRAP = OAEP(mgf=MGF1(SHA256()), algorithm=SHA256(), label=None)


class BinaryContent(ContentFormat):
    """The layout for any signature scheme; how a body is encrypted is left to its heirs."""

    implies_names = True
    domain: ClassVar[bytes]
    """Distinguishes the signatures of each format from those of every other."""

    def __init__(self, keys: ContentKeys) -> None:
        super().__init__(keys)
        names = (keys.sender, keys.recipient, keys.address)
        encoded = (name.encode() for name in names)
        self._context = self.domain + b"".join(len(name).to_bytes(2, "big") + name for name in encoded)

    @abstractmethod
    def _encrypted(self, plaintext: bytes, header: bytes) -> bytes:
        """`plaintext` for the recipient, bound to `header` and to the context."""

    @abstractmethod
    def _decrypted(self, octets: bytes, header: bytes) -> bytes:
        """The plaintext. Raises RefusedError."""

    @property
    def context(self) -> bytes:
        """The names of format, sender, recipient and address."""
        return self._context

    def sign(self, body: bytes, metadata: SignedMetadata) -> Content:
        """The header of 15 octets, signature, body."""
        created = min(metadata.created_ms, _LAST_TIME).to_bytes(_TIME_BYTES, "big")
        header = _HEADER.pack(_SIGNED, metadata.message_id, created)
        return Content(b"".join((header, self.signer.sign(self._context + header + body), body)))

    def verify(self, content: Content) -> VerifiedContent:
        """The body, and the metadata of the header with the expected names. Raises RefusedError."""
        octets, start, verifier = content.octets, _HEADER.size, self.verifier()
        stop = start + signature_bytes(verifier.type)
        if len(octets) < stop or octets[0] != _SIGNED:
            raise RefusedError(Outcome.MALFORMED, "the body is not signed content of this format")
        header, body = octets[:start], octets[stop:]
        if not verifier.verifies(octets[start:stop], self._context + header + body):
            raise RefusedError(Outcome.SIGNATURE_WRONG)
        _, message_id, created = _HEADER.unpack(header)
        keys = self.keys
        metadata = SignedMetadata(keys.sender, keys.recipient, keys.address, message_id, int.from_bytes(created, "big"))
        return VerifiedContent(body, metadata, verifier.key_id)

    def encrypt(self, signed: Content) -> bytes:
        """The header in the clear, then signature and body for the recipient."""
        header = bytes((_ENCRYPTED,)) + signed.octets[1 : _HEADER.size]
        return header + self._encrypted(signed.octets[_HEADER.size :], header)

    def decrypt(self, octets: bytes) -> Content:
        """The signed content. Raises RefusedError."""
        if len(octets) < _HEADER.size or octets[0] != _ENCRYPTED:
            raise decryption_failed()
        header = octets[: _HEADER.size]
        plaintext = self._decrypted(octets[_HEADER.size :], header)
        return Content(bytes((_SIGNED,)) + header[1:] + plaintext)


class CompactContent(BinaryContent):
    """RSASSA-PSS; AES-256-GCM under a key that RSAES-OAEP wraps."""

    domain = b"labconsole compact 1"

    def _encrypted(self, plaintext: bytes, header: bytes) -> bytes:
        recipient: RSAPublicKey = self.keys.recipient_key
        key = os.urandom(_KEY_BYTES)
        wrapped = recipient.encrypt(key, _KEY_WRAP)
        return wrapped + AESGCM(key).encrypt(_NONCE, plaintext, header + wrapped + self.context)

    def _decrypted(self, octets: bytes, header: bytes) -> bytes:
        recipient: RSAPrivateKey = self.keys.decryption_key
        wrapped = octets[: recipient.key_size // 8]
        try:
            key = recipient.decrypt(wrapped, _KEY_WRAP)
            if len(key) != _KEY_BYTES:
                raise decryption_failed()
            return AESGCM(key).decrypt(_NONCE, octets[len(wrapped) :], header + wrapped + self.context)
        except (ValueError, InvalidTag) as error:
            raise decryption_failed() from error


class HybridContent(BinaryContent):
    """Ed25519; HPKE."""

    domain = b"labconsole hybrid 1"

    def _encrypted(self, plaintext: bytes, header: bytes) -> bytes:
        return _SUITE.encrypt(plaintext, self.keys.recipient_key, info=header + self.context)

    def _decrypted(self, octets: bytes, header: bytes) -> bytes:
        try:
            return _SUITE.decrypt(octets, self.keys.decryption_key, info=header + self.context)
        except (ValueError, InvalidTag) as error:
            raise decryption_failed() from error
