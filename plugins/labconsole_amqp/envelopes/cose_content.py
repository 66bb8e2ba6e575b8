"""COSE (RFC 9052, RFC 9053): COSE_Sign1 with the payload; encrypted: COSE_Encrypt, whose plaintext is the COSE_Sign1.

The protected header of the COSE_Sign1 carries the metadata as CWT claims (RFC 9597): issuer, audience, issued at in
seconds to 1 ms, CWT id (the message id in 8 octets) and `address`. Signatures are by ES256. Bodies are encrypted by
A256GCM under a key of ECDH-ES + HKDF-256 (direct).
"""

from __future__ import annotations

import os
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from labconsole_amqp.envelopes.cbor import CborError, Tagged, decode, encode
from labconsole_amqp.envelopes.content_format import (
    Content,
    ContentFormat,
    RefusedError,
    VerifiedContent,
    decryption_failed,
)
from labconsole_amqp.envelopes.signing import P256_COORDINATE_BYTES, der_signature, key_id, raw_signature
from labconsole_amqp.wire.protected_message import SignedMetadata
from labconsole_amqp.wire.sign_encrypt import Outcome

_SIGN1, _ENCRYPT = 18, 96
"""CBOR tags."""
_ALGORITHM, _CRITICAL, _CONTENT_TYPE, _KEY_ID, _IV, _CLAIMS, _EPHEMERAL = 1, 2, 3, 4, 5, 15, -1
"""Header parameters."""
_ES256, _A256GCM, _ECDH_ES = -7, 3, -25
_COSE_SIGN1 = 18
"""The CoAP content format of COSE_Sign1."""
_ISSUER, _AUDIENCE, _ISSUED_AT, _CWT_ID, _ADDRESS = 1, 3, 6, 7, "address"
_P_256 = {1: 2, -1: 1}
"""Key type EC2, curve P-256."""
_KEY_BYTES, _NONCE_BYTES, _NUMBER_BYTES = 32, 12, 8
_NO_PARTY = [None, None, None]
_LAST_TIME_S = 1e12
_CONTENT_HEADER = encode({_ALGORITHM: _A256GCM, _CONTENT_TYPE: _COSE_SIGN1})
_RECIPIENT_HEADER = encode({_ALGORITHM: _ECDH_ES})


class CoseContent(ContentFormat):
    """COSE_Sign1, and COSE_Encrypt around it."""

    def sign(self, body: bytes, metadata: SignedMetadata) -> Content:
        """A tagged COSE_Sign1."""
        claims = {
            _ISSUER: metadata.sender,
            _AUDIENCE: metadata.recipient,
            _ISSUED_AT: metadata.created_ms / 1000,
            _CWT_ID: metadata.message_id.to_bytes(_NUMBER_BYTES, "big"),
            _ADDRESS: metadata.address,
        }
        protected = encode({_ALGORITHM: _ES256, _KEY_ID: self.signer.key_id, _CLAIMS: claims})
        signature = raw_signature(self.signer.sign(_signed(protected, body)))
        return Content(encode(Tagged(_SIGN1, [protected, {}, body, signature])))

    def verify(self, content: Content) -> VerifiedContent:
        """The payload, and the metadata in the protected header. Raises RefusedError."""
        try:
            protected, _, body, signature = _structure(content.octets, _SIGN1, bytes, dict, bytes, bytes)
            header = _map(protected)
        except CborError as error:
            raise RefusedError(Outcome.MALFORMED, f"the signed content is not COSE_Sign1: {error}") from error
        key = header.get(_KEY_ID)
        verifier = self.verifier(key if isinstance(key, bytes) else None)
        if header.get(_ALGORITHM) != _ES256 or _CRITICAL in header:
            raise RefusedError(Outcome.MALFORMED, "its algorithm is not ES256, or it has critical parameters")
        signed = _signed(protected, body)
        if len(signature) != 2 * P256_COORDINATE_BYTES or not verifier.verifies(der_signature(signature), signed):
            raise RefusedError(Outcome.SIGNATURE_WRONG)
        return VerifiedContent(body, _metadata(header.get(_CLAIMS)), verifier.key_id)

    def encrypt(self, signed: Content) -> bytes:
        """A tagged COSE_Encrypt for one recipient."""
        recipient: ec.EllipticCurvePublicKey = self.keys.recipient_key
        ephemeral = ec.generate_private_key(ec.SECP256R1())
        numbers = ephemeral.public_key().public_numbers()
        x, y = (one.to_bytes(P256_COORDINATE_BYTES, "big") for one in (numbers.x, numbers.y))
        nonce, key = os.urandom(_NONCE_BYTES), _derived(ephemeral.exchange(ec.ECDH(), recipient), _RECIPIENT_HEADER)
        ciphertext = AESGCM(key).encrypt(nonce, signed.octets, _associated_data(_CONTENT_HEADER))
        unprotected = {_EPHEMERAL: {**_P_256, -2: x, -3: y}, _KEY_ID: key_id(recipient)}
        recipients = [[_RECIPIENT_HEADER, unprotected, b""]]
        return encode(Tagged(_ENCRYPT, [_CONTENT_HEADER, {_IV: nonce}, ciphertext, recipients]))

    def decrypt(self, octets: bytes) -> Content:
        """The COSE_Sign1 in a COSE_Encrypt. Raises RefusedError."""
        try:
            protected, unprotected, ciphertext, recipients = _structure(octets, _ENCRYPT, bytes, dict, bytes, list)
            nonce = unprotected.get(_IV)
            _require(_map(protected), _A256GCM)
            if not isinstance(nonce, bytes) or len(nonce) != _NONCE_BYTES:
                raise decryption_failed()
            key = self._content_key(recipients)
            return Content(AESGCM(key).decrypt(nonce, ciphertext, _associated_data(protected)))
        except (ValueError, InvalidTag) as error:
            raise decryption_failed() from error

    def _content_key(self, recipients: list[Any]) -> bytes:
        """The key that the one recipient derives. Raises ValueError, RefusedError."""
        private_key: ec.EllipticCurvePrivateKey = self.keys.decryption_key
        (recipient,) = recipients
        if not isinstance(recipient, list):
            raise decryption_failed()
        protected, unprotected, wrapped = recipient
        if not isinstance(protected, bytes) or not isinstance(unprotected, dict) or wrapped != b"":
            raise decryption_failed()
        _require(_map(protected), _ECDH_ES)
        key, ephemeral = unprotected.get(_KEY_ID), unprotected.get(_EPHEMERAL)
        if key not in (None, key_id(private_key.public_key())) or not isinstance(ephemeral, dict):
            raise decryption_failed()
        x, y = ephemeral.get(-2), ephemeral.get(-3)
        if any(ephemeral.get(name) != value for name, value in _P_256.items()) or not (
            isinstance(x, bytes) and isinstance(y, bytes) and len(x) == len(y) == P256_COORDINATE_BYTES
        ):
            raise decryption_failed()
        numbers = ec.EllipticCurvePublicNumbers(int.from_bytes(x, "big"), int.from_bytes(y, "big"), ec.SECP256R1())
        return _derived(private_key.exchange(ec.ECDH(), numbers.public_key()), protected)


def _associated_data(protected: bytes) -> bytes:
    return encode(["Encrypt", protected, b""])


def _derived(secret: bytes, protected: bytes) -> bytes:
    """The key of a recipient with this protected header: its COSE_KDF_Context names no parties (RFC 9053, 5.2)."""
    context = encode([_A256GCM, _NO_PARTY, _NO_PARTY, [8 * _KEY_BYTES, protected]])
    return HKDF(SHA256(), _KEY_BYTES, salt=None, info=context).derive(secret)


def _require(header: dict[Any, Any], algorithm: int) -> None:
    """Raises RefusedError if a protected header is of another algorithm, or has critical parameters."""
    if header.get(_ALGORITHM) != algorithm or _CRITICAL in header:
        raise decryption_failed()


def _signed(protected: bytes, body: bytes) -> bytes:
    return encode(["Signature1", protected, b"", body])


def _structure(octets: bytes, tag: int, *types: type) -> list[Any]:
    """The parts of a tagged message. Raises CborError."""
    message = decode(octets)
    if not isinstance(message, Tagged) or message.tag != tag or not isinstance(message.value, list):
        raise CborError("it is not a message of this kind")
    parts: list[Any] = message.value
    if len(parts) != len(types) or not all(map(isinstance, parts, types)):
        raise CborError("a part is missing or of another type")
    return parts


def _map(octets: bytes) -> dict[Any, Any]:
    header = decode(octets)
    if not isinstance(header, dict):
        raise CborError("its protected header is not a map")
    return header


def _metadata(claims: object) -> SignedMetadata:
    """What CWT claims say of a message. Raises RefusedError."""
    found = claims if isinstance(claims, dict) else {}
    sender, recipient, address = (found.get(name) for name in (_ISSUER, _AUDIENCE, _ADDRESS))
    number, created = found.get(_CWT_ID), found.get(_ISSUED_AT)
    if not (
        isinstance(sender, str)
        and isinstance(recipient, str)
        and isinstance(address, str)
        and isinstance(number, bytes)
        and len(number) == _NUMBER_BYTES
        and isinstance(created, int | float)
        and 0 <= created < _LAST_TIME_S
    ):
        reason = "its claims do not name sender, recipient, address, number and time"
        raise RefusedError(Outcome.MALFORMED, reason)
    return SignedMetadata(sender, recipient, address, int.from_bytes(number, "big"), round(created * 1000))
