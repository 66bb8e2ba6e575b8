"""jwcrypto and joserfc read every message of the envelope `jose`, and the console those that they write."""

from __future__ import annotations

import json
import time
from functools import cache
from typing import Any

import joserfc.jwk
import joserfc.jws
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from jwcrypto import jwe, jwk, jws

from labconsole.security.x509.key_types import KeyType
from labconsole_amqp.envelopes.formats import EnvelopeFormat
from labconsole_amqp.envelopes.signing import KeySigner, key_id, raw_signature
from labconsole_amqp.wire.envelope import Protection, message_number
from labconsole_amqp.wire.protected_message import decode_protected, encode_protected
from labconsole_amqp.wire.sign_encrypt import Outcome
from tests.labconsole_amqp.envelope_lab import ADDRESS, PAYLOAD, RECIPIENT, SENDER, Ends, ends, private_key

TYPES = (KeyType.P_256, KeyType.RSA_2048)
LENGTHS = (1, 11, 237, 42_708)
SIGNING = {KeyType.P_256: "ES256", KeyType.RSA_2048: "PS256"}
ENCRYPTION = {KeyType.P_256: "ECDH-ES", KeyType.RSA_2048: "RSA-OAEP-256"}


def pem(type: KeyType, owner: str) -> bytes:
    key = private_key(type, owner)
    return bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


@cache
def foreign(type: KeyType, owner: str) -> Any:
    """A key of jwcrypto; one of RSA takes 50 ms to open."""
    return jwk.JWK.from_pem(pem(type, owner))


def pair(type: KeyType, protection: Protection, expected: bytes | None = None) -> Ends:
    return ends(EnvelopeFormat.JOSE, protection, type, type, expected=expected)


def claims(type: KeyType, sequence: int, **more: Any) -> dict[str, Any]:
    """The protected header of a partner's message."""
    kid = jws.base64url_encode(KeySigner(private_key(type, "sender")).key_id)
    return {
        "aud": RECIPIENT,
        "iss": SENDER,
        "address": ADDRESS,
        "iat": int(time.time()),
        "jti": str(message_number(0, sequence)),
        "alg": SIGNING[type],
        "kid": kid,
        **more,
    }


@pytest.mark.parametrize("type", TYPES)
def test_both_verify_every_signed_message(type: KeyType) -> None:
    sender = pair(type, Protection.SIGNED)
    registry = joserfc.jws.JWSRegistry(algorithms=[SIGNING[type]], strict_check_header=False)
    key = joserfc.jwk.import_key(pem(type, "sender"), "EC" if type is KeyType.P_256 else "RSA")
    for sequence, length in enumerate(LENGTHS * 3):
        body = (PAYLOAD * 200)[:length]
        message = decode_protected(sender.protect(sequence, body))
        assert message.content == body
        token = jws.JWS()
        token.deserialize(message.detached_signature.decode())
        token.header_registry = jws.JWSEHeaderRegistry({"b64": jws.JWSHeaderRegistry["b64"]})
        token.verify(foreign(type, "sender"), detached_payload=body)
        header = token.jose_header
        assert (header["iss"], header["aud"], header["address"]) == (SENDER, RECIPIENT, ADDRESS)
        assert header["jti"] == str(message_number(0, sequence))
        assert abs(header["iat"] - time.time()) < 5
        found = joserfc.jws.deserialize_compact(message.detached_signature, key, payload=body, registry=registry)
        assert found.payload == body


@pytest.mark.parametrize("type", TYPES)
def test_jwcrypto_decrypts_and_verifies_every_encrypted_message(type: KeyType) -> None:
    sender = pair(type, Protection.SIGNED_ENCRYPTED)
    for sequence, length in enumerate(LENGTHS * 2):
        body = (PAYLOAD * 200)[:length]
        outer = jwe.JWE()
        outer.deserialize(decode_protected(sender.protect(sequence, body)).content.decode())
        outer.decrypt(foreign(type, "recipient"))
        assert outer.jose_header["cty"] == "JOSE"
        inner = jws.JWS()
        inner.deserialize(outer.payload.decode(), foreign(type, "sender"))
        assert inner.payload == body


@pytest.mark.parametrize("type", TYPES)
def test_the_console_opens_what_jwcrypto_writes(type: KeyType) -> None:
    for sequence, body in enumerate((b"x", PAYLOAD, PAYLOAD * 50)):
        receiver = pair(type, Protection.SIGNED, body)
        token = jws.JWS(body)
        header = claims(type, sequence, b64=False, crit=["b64"])
        token.add_signature(foreign(type, "sender"), None, json.dumps(header), None)
        token.detach_payload()
        message, _ = encode_protected(body, b"application/octet-stream", token.serialize(compact=True).encode())
        result = receiver.received(message)
        assert (result.outcome, result.payload) == (Outcome.OK, body), result.reason
        receiver = pair(type, Protection.SIGNED_ENCRYPTED, body)
        token = jws.JWS(body)
        token.add_signature(foreign(type, "sender"), None, json.dumps(claims(type, sequence)), None)
        kid = jws.base64url_encode(key_id(private_key(type, "recipient").public_key()))
        protected = {"alg": ENCRYPTION[type], "enc": "A256GCM", "cty": "JOSE", "kid": kid}
        outer = jwe.JWE(token.serialize(compact=True).encode(), json.dumps(protected))
        outer.add_recipient(foreign(type, "recipient"))
        message, _ = encode_protected(outer.serialize(compact=True).encode(), b"application/jose")
        result = receiver.received(message)
        assert (result.outcome, result.payload) == (Outcome.OK, body), result.reason


def signed_by_hand(header: dict[str, Any] | bytes, body: bytes = PAYLOAD) -> bytes:
    """A detached JWS of the expected sender with any header."""
    octets = header if isinstance(header, bytes) else json.dumps(header).encode()
    protected = jws.base64url_encode(octets).encode()
    signature = raw_signature(KeySigner(private_key(KeyType.P_256, "sender")).sign(protected + b"." + body))
    return protected + b".." + jws.base64url_encode(signature).encode()


def test_other_forms_and_algorithms_are_refused_even_with_a_good_signature() -> None:
    receiver = pair(KeyType.P_256, Protection.SIGNED, PAYLOAD)
    good = claims(KeyType.P_256, 1, b64=False, crit=["b64"])
    headers: list[dict[str, Any] | bytes] = [
        {**good, "alg": "none"},
        {**good, "alg": "HS256"},
        {**good, "alg": "PS256"},
        {**good, "b64": True},
        {**good, "crit": ["b64", "exp"], "exp": 1},
        {name: value for name, value in good.items() if name != "aud"},
        {**good, "aud": [RECIPIENT]},
        {**good, "iat": "now"},
        {**good, "iat": -1},
        {**good, "jti": "1e3"},
        {**good, "jti": str(2**64)},
        json.dumps(good).encode().replace(b'"iat"', b'"iat": 1e999, "x"'),
        json.dumps(good)[:-1].encode() + b', "aud": "another"}',
        b"[" * 3000 + b"]" * 3000,
        b"[]",
        b"\xff",
    ]
    for header in headers:
        result = receiver.received(encode_protected(PAYLOAD, b"", signed_by_hand(header))[0])
        assert result.outcome is Outcome.MALFORMED, (header, result)
    assert receiver.received(encode_protected(PAYLOAD, b"", signed_by_hand(good))[0]).outcome is Outcome.OK
    assert receiver.received(encode_protected(PAYLOAD, b"")[0]).outcome is Outcome.SIGNATURE_MISSING


def test_base64url_has_one_form() -> None:
    """The last digit of a signature of 64 octets has four bits that mean nothing; they must be zero."""
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    receiver = pair(KeyType.P_256, Protection.SIGNED, PAYLOAD)
    token = signed_by_hand(claims(KeyType.P_256, 1, b64=False, crit=["b64"]))
    last = digits.index(chr(token[-1]))
    others = [token[:-1] + digits[last + more].encode() for more in range(1, 16)]
    for wrong in (*others, token + b"=", token[:-1] + b"+", token[:-1] + b" " + token[-1:]):
        assert receiver.received(encode_protected(PAYLOAD, b"", wrong)[0]).outcome is Outcome.MALFORMED
    assert receiver.received(encode_protected(PAYLOAD, b"", token)[0]).outcome is Outcome.OK
