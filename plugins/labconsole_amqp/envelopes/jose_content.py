"""JOSE: a detached JWS with the payload as it is (RFC 7515, RFC 7797); encrypted: a JWE (RFC 7516) of a JWS.

The protected header of the JWS carries the metadata: `iss`, `aud`, `jti` (the message id as a decimal number), `iat` in
seconds to 1 ms, and `address`. Signed messages have the payload as their body, and the JWS in the application property
`x-jws-signature`; encrypted ones have a JWE in compact serialization, whose plaintext is a JWS in compact
serialization (`cty` is `JOSE`), with the payload in base64url.

Algorithms follow from the key: ES256, ECDH-ES (direct) for P-256; PS256, RSA-OAEP-256 for RSA; A256GCM.
"""

from __future__ import annotations

import binascii
import hashlib
import json
import os
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256

from labconsole.security.x509.key_types import KeyType
from labconsole_amqp.envelopes.content_format import (
    Content,
    ContentFormat,
    ContentKeys,
    RefusedError,
    VerifiedContent,
    decryption_failed,
)
from labconsole_amqp.envelopes.signing import P256_COORDINATE_BYTES, der_signature, key_id, raw_signature
from labconsole_amqp.wire.protected_message import SignedMetadata
from labconsole_amqp.wire.sign_encrypt import Outcome

_SIGNING = {
    KeyType.P_256: "ES256",
    KeyType.RSA_2048: "PS256",
    KeyType.RSA_3072: "PS256",
    KeyType.RSA_4096: "PS256",
}
_ENCRYPTION = "A256GCM"
_KEY_BYTES, _NONCE_BYTES, _TAG_BYTES = 32, 12, 16
_DETACHED = {"b64": False, "crit": ["b64"]}
"""In the header of a detached JWS with the payload as it is (RFC 7797, 6)."""
_KEY_WRAP = OAEP(mgf=MGF1(SHA256()), algorithm=SHA256(), label=None)
_LONGEST_HEADER = 4096
_URL_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_TO_URL, _FROM_URL = bytes.maketrans(b"+/", b"-_"), bytes.maketrans(b"-_", b"+/")
_LAST_TIME_S = 1e12
_LARGEST_NUMBER = 2**64 - 1


class JoseContent(ContentFormat):
    """Signed: the payload and a detached JWS; encrypted: a JWE whose plaintext is a JWS."""

    def __init__(self, keys: ContentKeys) -> None:
        super().__init__(keys)
        signing = keys.signer or keys.verifier
        assert signing is not None
        self._algorithm = _SIGNING[signing.type]
        common = {"alg": self._algorithm}
        if keys.signer is not None:
            common["kid"] = _encode(keys.signer.key_id).decode()
        form = {} if self.encrypts else _DETACHED
        claims = {"iss": keys.sender, "aud": keys.recipient, "address": keys.address}
        self._header = _json({**common, **form, **claims})[:-1]
        self._form = form

    def sign(self, body: bytes, metadata: SignedMetadata) -> Content:
        """The payload with a detached JWS; where it is encrypted next, a JWS that contains it."""
        seconds, ms = divmod(metadata.created_ms, 1000)
        header = _encode(b'%s,"jti":"%d","iat":%d.%03d}' % (self._header, metadata.message_id, seconds, ms))
        if self.encrypts:
            signed = header + b"." + _encode(body)
            return Content(signed + b"." + self._signature(signed))
        return Content(body, header + b".." + self._signature(header + b"." + body))

    def verify(self, content: Content) -> VerifiedContent:
        """The payload, and the metadata in the protected header. Raises RefusedError."""
        if self.encrypts:
            header, payload, signature = _parts(content.octets, 3)
            return VerifiedContent(_decode(payload), *self._verified(header, payload, signature))
        if not content.detached_signature:
            raise RefusedError(Outcome.SIGNATURE_MISSING)
        header, payload, signature = _parts(content.detached_signature, 3)
        if payload:
            raise _malformed("its JWS is not detached")
        return VerifiedContent(content.octets, *self._verified(header, content.octets, signature))

    def encrypt(self, signed: Content) -> bytes:
        """A JWE in compact serialization."""
        recipient, header, wrapped = self.keys.recipient_key, _recipient_header(self.keys.recipient_key), b""
        if isinstance(recipient, RSAPublicKey):
            key = os.urandom(_KEY_BYTES)
            wrapped = recipient.encrypt(key, _KEY_WRAP)
        else:
            ephemeral = ec.generate_private_key(ec.SECP256R1())
            header["epk"] = _ephemeral_key(ephemeral.public_key())
            key = _derived(ephemeral.exchange(ec.ECDH(), recipient))
        protected, nonce = _encode(_json(header)), os.urandom(_NONCE_BYTES)
        sealed = AESGCM(key).encrypt(nonce, signed.octets, protected)
        parts = (wrapped, nonce, sealed[:-_TAG_BYTES], sealed[-_TAG_BYTES:])
        return b".".join((protected, *map(_encode, parts)))

    def decrypt(self, octets: bytes) -> Content:
        """The JWS in a JWE. Raises RefusedError."""
        try:
            protected, *others = _parts(octets, 5)
            wrapped, nonce, ciphertext, tag = map(_decode, others)
            key = self._content_key(_header(protected), wrapped)
            if len(key) != _KEY_BYTES or len(nonce) != _NONCE_BYTES or len(tag) != _TAG_BYTES:
                raise decryption_failed()
            return Content(AESGCM(key).decrypt(nonce, ciphertext + tag, protected))
        except (RefusedError, ValueError, InvalidTag) as error:
            raise decryption_failed() from error

    def _signature(self, data: bytes) -> bytes:
        signature = self.signer.sign(data)
        return _encode(raw_signature(signature) if self.signer.type is KeyType.P_256 else signature)

    def _verified(self, protected: bytes, payload: bytes, signature: bytes) -> tuple[SignedMetadata, bytes]:
        """The metadata in a protected header whose signature is good, and the id of its key. Raises RefusedError."""
        header = _header(protected)
        verifier = self.verifier(_key_id(header.get("kid")))
        if header.get("alg") != self._algorithm or {name: header.get(name) for name in _DETACHED} != {
            name: self._form.get(name) for name in _DETACHED
        }:
            raise _malformed("its JWS is of another algorithm or form")
        raw = _decode(signature)
        if verifier.type is KeyType.P_256:
            if len(raw) != 2 * P256_COORDINATE_BYTES:
                raise RefusedError(Outcome.SIGNATURE_WRONG)
            raw = der_signature(raw)
        if not verifier.verifies(raw, protected + b"." + payload):
            raise RefusedError(Outcome.SIGNATURE_WRONG)
        return _metadata(header), verifier.key_id

    def _content_key(self, header: dict[str, Any], wrapped: bytes) -> bytes:
        """The content-encryption key for the expected recipient. Raises ValueError, RefusedError."""
        private_key = self.keys.decryption_key
        expected = _recipient_header(private_key.public_key())
        if any(header.get(name) != value for name, value in expected.items()) or "crit" in header or "zip" in header:
            raise decryption_failed()
        if isinstance(private_key, RSAPrivateKey):
            return private_key.decrypt(wrapped, _KEY_WRAP)
        epk = header.get("epk")
        if wrapped or not isinstance(epk, dict) or (epk.get("kty"), epk.get("crv")) != ("EC", "P-256"):
            raise decryption_failed()
        x, y = (_coordinate(epk.get(name)) for name in ("x", "y"))
        ephemeral = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
        return _derived(private_key.exchange(ec.ECDH(), ephemeral))


def _key_id(kid: object) -> bytes | None:
    """The key id in a header, None without one; empty, which no key has, where it is of another form."""
    if not isinstance(kid, str):
        return None
    try:
        return _decode(kid.encode())
    except RefusedError:
        return b""


def _recipient_header(public_key: Any) -> dict[str, Any]:
    algorithm = "RSA-OAEP-256" if isinstance(public_key, RSAPublicKey) else "ECDH-ES"
    return {"alg": algorithm, "enc": _ENCRYPTION, "cty": "JOSE", "kid": _encode(key_id(public_key)).decode()}


def _ephemeral_key(public_key: ec.EllipticCurvePublicKey) -> dict[str, str]:
    numbers = public_key.public_numbers()
    x, y = (_encode(one.to_bytes(P256_COORDINATE_BYTES, "big")).decode() for one in (numbers.x, numbers.y))
    return {"kty": "EC", "crv": "P-256", "x": x, "y": y}


def _coordinate(text: object) -> int:
    octets = _decode(text.encode()) if isinstance(text, str) else b""
    if len(octets) != P256_COORDINATE_BYTES:
        raise decryption_failed()
    return int.from_bytes(octets, "big")


def _derived(secret: bytes) -> bytes:
    """The key of ECDH-ES in direct key agreement (RFC 7518, 4.6): one round of Concat KDF, no party information."""
    name = len(_ENCRYPTION).to_bytes(4, "big") + _ENCRYPTION.encode()
    information = name + bytes(8) + (8 * _KEY_BYTES).to_bytes(4, "big")
    return hashlib.sha256((1).to_bytes(4, "big") + secret + information).digest()


def _metadata(header: dict[str, Any]) -> SignedMetadata:
    names = [header.get(name) for name in ("iss", "aud", "address")]
    number, created = header.get("jti"), header.get("iat")
    is_number = isinstance(number, str) and number.isascii() and number.isdigit() and len(number) <= 20
    is_time = isinstance(created, int | float) and not isinstance(created, bool) and 0 <= created < _LAST_TIME_S
    sender, recipient, address = (name if isinstance(name, str) else None for name in names)
    if sender is None or recipient is None or address is None or not is_number or not is_time:
        raise _malformed("its protected header does not name sender, recipient, address, number and time")
    if int(str(number)) > _LARGEST_NUMBER:
        raise _malformed("its number is too large")
    return SignedMetadata(sender, recipient, address, int(str(number)), round(float(created or 0) * 1000))


def _header(protected: bytes) -> dict[str, Any]:
    """A protected header. Raises RefusedError."""
    if len(protected) > _LONGEST_HEADER:
        raise _malformed("its header is too long")
    try:
        header = json.loads(_decode(protected), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise _malformed("its header is not JSON") from error
    if not isinstance(header, dict):
        raise _malformed("its header is not a JSON object")
    return header


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a member is there twice")
    return found


def _parts(octets: bytes, count: int) -> list[bytes]:
    parts = octets.split(b".", count)
    if len(parts) != count:
        raise _malformed(f"it has not the {count} parts of a compact serialization")
    return parts


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _encode(octets: bytes) -> bytes:
    """Base64url without padding (RFC 7515, 2)."""
    return binascii.b2a_base64(octets, newline=False).translate(_TO_URL).rstrip(b"=")


def _decode(text: bytes) -> bytes:
    """The octets of base64url in its one form. Raises RefusedError."""
    if text.translate(None, _URL_ALPHABET):
        raise _malformed("it is not base64url")
    try:
        octets = binascii.a2b_base64(text.translate(_FROM_URL) + b"=" * (-len(text) % 4), strict_mode=True)
    except binascii.Error as error:
        raise _malformed("it is not base64url") from error
    if _encode(octets[-(len(octets) % 3 or 3) :])[-1:] != text[-1:]:
        raise _malformed("it is not base64url in its one form")
    return octets


def _malformed(reason: str) -> RefusedError:
    return RefusedError(Outcome.MALFORMED, reason)
