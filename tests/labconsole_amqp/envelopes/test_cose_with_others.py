"""pycose and cwt read every message of the envelope `cose`, and the console those that they write."""

from __future__ import annotations

import random
import time
from typing import Any

import cbor2
import cwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from pycose.headers import KID, Algorithm
from pycose.keys import EC2Key
from pycose.keys.curves import P256
from pycose.messages import CoseMessage, Sign1Message

from labconsole.security.x509.key_types import KeyType
from labconsole_amqp.envelopes.cbor import CborError, Tagged, decode, encode
from labconsole_amqp.envelopes.formats import EnvelopeFormat
from labconsole_amqp.envelopes.signing import KeySigner, key_id, raw_signature
from labconsole_amqp.wire.envelope import Protection, message_number
from labconsole_amqp.wire.protected_message import decode_protected, encode_protected
from labconsole_amqp.wire.sign_encrypt import Outcome
from tests.labconsole_amqp.envelope_lab import ADDRESS, PAYLOAD, RECIPIENT, SENDER, Ends, ends, private_key

LENGTHS = (1, 11, 237, 42_708)


def pair(protection: Protection, expected: bytes | None = None) -> Ends:
    return ends(EnvelopeFormat.COSE, protection, expected=expected)


def pycose_key(owner: str) -> EC2Key:
    numbers = private_key(KeyType.P_256, owner).private_numbers()
    x, y, d = (
        one.to_bytes(32, "big") for one in (numbers.public_numbers.x, numbers.public_numbers.y, numbers.private_value)
    )
    return EC2Key(crv=P256, x=x, y=y, d=d)


def cwt_key(owner: str, *, public: bool = False, **more: Any) -> Any:
    key = private_key(KeyType.P_256, owner)
    if public:
        pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    else:
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return cwt.COSEKey.from_pem(pem, **more)


def claims(sequence: int) -> dict[Any, Any]:
    number = message_number(0, sequence).to_bytes(8, "big")
    return {"address": ADDRESS, 7: number, 6: int(time.time()), 3: RECIPIENT, 1: SENDER}


def test_pycose_verifies_every_signed_message() -> None:
    sender = pair(Protection.SIGNED)
    for sequence, length in enumerate(LENGTHS * 3):
        body = (PAYLOAD * 200)[:length]
        message: Any = CoseMessage.decode(decode_protected(sender.protect(sequence, body)).content)
        message.key = pycose_key("sender")
        assert message.verify_signature()
        assert message.payload == body
        found = message.phdr[next(name for name in message.phdr if name in (15, "CWT_CLAIMS"))]
        assert (found[1], found[3], found["address"]) == (SENDER, RECIPIENT, ADDRESS)
        assert int.from_bytes(found[7], "big") == message_number(0, sequence)


def test_pycose_and_cwt_decrypt_every_encrypted_message() -> None:
    sender = pair(Protection.SIGNED_ENCRYPTED)
    for sequence, length in enumerate(LENGTHS * 2):
        body = (PAYLOAD * 200)[:length]
        content = decode_protected(sender.protect(sequence, body)).content
        outer: Any = CoseMessage.decode(content)
        outer.recipients[0].key = pycose_key("recipient")
        plaintext = outer.decrypt(outer.recipients[0])
        key = cwt_key(
            "recipient", alg="ECDH-ES+HKDF-256", kid=key_id(private_key(KeyType.P_256, "recipient").public_key())
        )
        assert cwt.COSE.new().decode(content, keys=[key], context={"alg": "A256GCM"}) == plaintext
        inner: Any = CoseMessage.decode(plaintext)
        inner.key = pycose_key("sender")
        assert inner.verify_signature() and inner.payload == body


def test_the_console_opens_what_pycose_signs() -> None:
    for sequence, body in enumerate((b"x", PAYLOAD, PAYLOAD * 50)):
        kid = KeySigner(private_key(KeyType.P_256, "sender")).key_id
        message = Sign1Message(phdr={Algorithm: "ES256", KID: kid}, uhdr={}, payload=body, key=pycose_key("sender"))
        message.phdr[15] = claims(sequence)
        result = pair(Protection.SIGNED, body).received(encode_protected(message.encode(), b"")[0])
        assert (result.outcome, result.payload) == (Outcome.OK, body), result.reason


def test_the_console_opens_what_cwt_signs_and_encrypts() -> None:
    for sequence, body in enumerate((b"x", PAYLOAD, PAYLOAD * 50)):
        coder = cwt.COSE.new()
        signed = coder.encode_and_sign(
            body, key=cwt_key("sender", alg="ES256"), protected={1: -7, 15: claims(sequence)}
        )
        result = pair(Protection.SIGNED, body).received(encode_protected(signed, b"")[0])
        assert (result.outcome, result.payload) == (Outcome.OK, body), result.reason
        recipient = cwt.Recipient.new(
            protected={1: -25},
            recipient_key=cwt_key("recipient", public=True, alg="ECDH-ES+HKDF-256"),
            context={"alg": "A256GCM"},
        )
        sealed = coder.encode_and_encrypt(signed, protected={1: 3, 3: 18}, unprotected={}, recipients=[recipient])
        result = pair(Protection.SIGNED_ENCRYPTED, body).received(encode_protected(sealed, b"")[0])
        assert (result.outcome, result.payload) == (Outcome.OK, body), result.reason


def signed_by_hand(header: dict[Any, Any]) -> bytes:
    """A COSE_Sign1 of the expected sender with any protected header."""
    protected = cbor2.dumps(header)
    to_sign = cbor2.dumps(["Signature1", protected, b"", PAYLOAD])
    signature = raw_signature(KeySigner(private_key(KeyType.P_256, "sender")).sign(to_sign))
    return cbor2.dumps(cbor2.CBORTag(18, [protected, {}, PAYLOAD, signature]))


def test_other_forms_and_algorithms_are_refused_even_with_a_good_signature() -> None:
    receiver = pair(Protection.SIGNED, PAYLOAD)
    good = {1: -7, 15: claims(1)}
    headers: list[dict[Any, Any]] = [
        {**good, 1: -37},
        {15: claims(1)},
        {**good, 2: [99], 99: 0},
        {1: -7},
        {1: -7, 15: []},
        {1: -7, 15: {**claims(1), 3: b"bytes"}},
        {1: -7, 15: {**claims(1), 6: "now"}},
        {1: -7, 15: {**claims(1), 6: -1}},
        {1: -7, 15: {**claims(1), 7: b"short"}},
        {1: -7, 15: {name: value for name, value in claims(1).items() if name != "address"}},
    ]
    for header in headers:
        result = receiver.received(encode_protected(signed_by_hand(header), b"")[0])
        assert result.outcome is Outcome.MALFORMED, (header, result)
    assert receiver.received(encode_protected(signed_by_hand(good), b"")[0]).outcome is Outcome.OK


def test_cbor_is_that_of_cbor2_and_read_strictly() -> None:
    values: list[Any] = [
        *(0, 23, 24, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**64 - 1, -1, -24, -25, -256, -257, -(2**64)),
        *(b"", b"x" * 23, b"x" * 24, b"x" * 300, "", "ä" * 200, [], [1, [2, [3]]], {}, {1: "a", -1: b"b", "c": None}),
        *(1747728000.123, 0.1, None),
    ]
    for value in values:
        assert encode(value) == cbor2.dumps(value), value
        assert decode(encode(value)) == value
    assert encode(Tagged(96, [b"x"])) == cbor2.dumps(cbor2.CBORTag(96, [b"x"]))
    refused = ["1800", "190017", "1a0000ffff", "5f4101ff", "9fff", "bfff", "a201010102", "a1f600", "60ff", "00 00"]
    refused += ["f4", "f90000", "fa00000000", "fb7ff0000000000000", "1c", "5bffffffffffffffff", "9bffffffffffffffff"]
    refused += ["", "81", "61", "d8", "c1" * 20 + "00", "81" * 20 + "00", "61ff"]
    for text in refused:
        with pytest.raises(CborError):
            decode(bytes.fromhex(text))


def test_random_octets_raise_nothing_else() -> None:
    dice = random.Random(3)
    for _ in range(5_000):
        try:
            decode(dice.randbytes(dice.randrange(40)))
        except CborError:
            continue
