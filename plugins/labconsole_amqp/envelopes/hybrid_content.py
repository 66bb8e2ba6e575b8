"""The hybrid format: the compact layout, signed by Ed25519 and encrypted by HPKE with ML-KEM-768 and X25519.

Signed: as `compact`, with a signature of 64 octets. Signed and encrypted: the 15 octets of the header in the clear,
then the single-shot HPKE (RFC 9180, base mode) of signature and body: KEM MLKEM768-X25519 (X-Wing), HKDF-SHA256,
AES-256-GCM. Its `info` is the header and the names. Who breaks one of both key agreements still reads nothing.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from labconsole_amqp.envelopes.compact import BinaryContent
from labconsole_amqp.envelopes.content_format import decryption_failed

_SUITE = Suite(KEM.MLKEM768_X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)


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
