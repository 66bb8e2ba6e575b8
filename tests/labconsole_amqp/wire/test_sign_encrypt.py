"""Signing, encrypting, opening: another implementation agrees, and receivers fail closed."""

import base64
import threading
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from proton import Message

from labconsole.errors import UserError
from labconsole_amqp.wire.envelope import FieldsIn, MessageParts, Protection, encode
from labconsole_amqp.wire.sign_encrypt import OpenedMessage, Outcome, open_sealed, rsa_private_key, seal

PAYLOAD = b"(FPL-LCX617-IS)" * 15
FIELDS = ("x-digital-signature", "x-encrypted-key", "x-iv")

Keys = tuple[rsa.RSAPrivateKey, rsa.RSAPrivateKey]


@pytest.fixture(scope="module")
def keys() -> Keys:
    """Private keys of sender and receiver."""
    return rsa.generate_private_key(65537, 2048), rsa.generate_private_key(65537, 2048)


def sealed(keys: Keys, protection: Protection, payload: bytes = PAYLOAD) -> MessageParts:
    return seal(payload, protection, keys[0], keys[1].public_key())


def opened(keys: Keys, message: bytes, protection: Protection, expected: bytes | None = PAYLOAD) -> OpenedMessage:
    wanted = None if expected is None else lambda payload, _: payload == expected
    return open_sealed(message, protection, keys[0].public_key(), keys[1], expected=wanted)


@pytest.mark.parametrize("fields_in", FieldsIn)
@pytest.mark.parametrize("protection", Protection)
def test_sealed_messages_open(keys: Keys, protection: Protection, fields_in: FieldsIn) -> None:
    for payload in (b"", b"Hello SWIM!", PAYLOAD, bytes(16), b"x" * 42_708):
        parts = sealed(keys, protection, payload)
        result = opened(keys, encode(parts, 1_000, fields_in=fields_in)[0], protection, payload)
        assert (result.outcome, result.payload) == (Outcome.OK, payload)
        signs, encrypts = protection is not Protection.NONE, protection is Protection.SIGNED_ENCRYPTED
        assert (parts.sign_ns > 0, parts.encrypt_ns > 0) == (signs, encrypts)
        assert (result.verify_ns > 0, result.decrypt_ns > 0) == (signs, encrypts)


def test_another_implementation_opens_it_step_by_step(keys: Keys) -> None:
    """As the source's tool: read with proton, unwrap the key, decrypt, unpad, verify the plaintext."""
    sender, receiver = keys
    message = Message()
    message.decode(encode(sealed(keys, Protection.SIGNED_ENCRYPTED), 1_000)[0])
    properties: Any = message.properties
    body: Any = message.body
    signature, wrapped, iv = (base64.b64decode(properties[name]) for name in FIELDS)
    oaep = padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None)
    decryptor = Cipher(algorithms.AES256(receiver.decrypt(wrapped, oaep)), modes.CBC(iv)).decryptor()
    padded = decryptor.update(bytes(body)) + decryptor.finalize()
    assert padded[-1] == 16 - len(PAYLOAD) % 16
    plaintext = padded[: -padded[-1]]
    assert plaintext == PAYLOAD
    sender.public_key().verify(signature, plaintext, padding.PKCS1v15(), hashes.SHA256())


def test_key_and_iv_are_fresh_for_every_message(keys: Keys) -> None:
    first, second = (sealed(keys, Protection.SIGNED_ENCRYPTED) for _ in range(2))
    assert first.iv != second.iv and first.body != second.body


def test_receivers_require_the_protection_of_their_test(keys: Keys) -> None:
    plain, signed, encrypted = (encode(sealed(keys, protection), 1_000)[0] for protection in Protection)
    assert opened(keys, plain, Protection.SIGNED).outcome is Outcome.SIGNATURE_MISSING
    assert opened(keys, plain, Protection.SIGNED_ENCRYPTED).outcome is Outcome.SIGNATURE_MISSING
    assert opened(keys, signed, Protection.SIGNED_ENCRYPTED).outcome is Outcome.DECRYPTION_FAILED
    assert opened(keys, encrypted, Protection.SIGNED, None).outcome is Outcome.MALFORMED
    assert opened(keys, encrypted, Protection.NONE, None).outcome is Outcome.MALFORMED


def changed(parts: MessageParts, **fields: Any) -> bytes:
    return encode(parts._replace(**fields), 1_000)[0]


def flipped(data: bytes | None, at: int = 0) -> bytes:
    assert data is not None
    return data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :]


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        (lambda p: changed(p, signature=None), Outcome.SIGNATURE_MISSING),
        (lambda p: changed(p, signature=flipped(p.signature)), Outcome.SIGNATURE_WRONG),
        (lambda p: changed(p, signature=b""), Outcome.SIGNATURE_WRONG),
        (lambda p: changed(p, iv=flipped(p.iv)), Outcome.SIGNATURE_WRONG),
        (lambda p: changed(p, body=flipped(p.body)), Outcome.SIGNATURE_WRONG),
        (lambda p: changed(p, body=p.body[:-1]), Outcome.DECRYPTION_FAILED),
        (lambda p: changed(p, body=b""), Outcome.DECRYPTION_FAILED),
        (lambda p: changed(p, iv=None), Outcome.DECRYPTION_FAILED),
        (lambda p: changed(p, iv=b"short"), Outcome.DECRYPTION_FAILED),
        (lambda p: changed(p, encrypted_key=flipped(p.encrypted_key)), Outcome.DECRYPTION_FAILED),
        (lambda p: changed(p, encrypted_key=b"x"), Outcome.DECRYPTION_FAILED),
        (lambda p: changed(p)[:-1], Outcome.MALFORMED),
    ],
)
def test_every_change_is_refused_without_payload(
    keys: Keys, change: Callable[[MessageParts], bytes], outcome: Outcome
) -> None:
    result = opened(keys, change(sealed(keys, Protection.SIGNED_ENCRYPTED)), Protection.SIGNED_ENCRYPTED)
    assert (result.outcome, result.payload) == (outcome, None)


def test_every_decryption_failure_has_the_same_outcome(keys: Keys) -> None:
    """A wrapped key that does not unwrap, a valid one for AES-128, and wrong padding."""
    parts = sealed(keys, Protection.SIGNED_ENCRYPTED)
    assert parts.iv is not None
    oaep = padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None)
    encryptor = Cipher(algorithms.AES128(bytes(16)), modes.CBC(parts.iv)).encryptor()
    pad = 16 - len(PAYLOAD) % 16
    short = {
        "encrypted_key": keys[1].public_key().encrypt(bytes(16), oaep),
        "body": encryptor.update(PAYLOAD + bytes((pad,)) * pad) + encryptor.finalize(),
    }
    bad_padding = {"body": flipped(parts.body, len(parts.body) - 17)}  # the last byte of the block before the last
    not_wrapped = {"encrypted_key": bytes(256)}
    results = [
        opened(keys, changed(parts, **fields), Protection.SIGNED_ENCRYPTED)
        for fields in (short, bad_padding, not_wrapped)
    ]
    assert [(result.outcome, result.payload, result.reason) for result in results] == [
        (Outcome.DECRYPTION_FAILED, None, "")
    ] * 3


def test_another_payload_or_signer_is_refused(keys: Keys) -> None:
    signed = encode(sealed(keys, Protection.SIGNED), 1_000)[0]
    assert opened(keys, signed, Protection.SIGNED, b"another").outcome is Outcome.PAYLOAD_DIFFERS
    unknown = open_sealed(signed, Protection.SIGNED, keys[1].public_key())
    assert (unknown.outcome, unknown.payload) == (Outcome.SIGNATURE_WRONG, None)


def test_missing_keys_are_a_fault_of_the_caller(keys: Keys) -> None:
    message = encode(MessageParts(PAYLOAD))[0]
    with pytest.raises(ValueError, match="needs a verification key"):
        open_sealed(message, Protection.SIGNED)
    with pytest.raises(ValueError, match="private key"):
        open_sealed(message, Protection.SIGNED_ENCRYPTED, keys[0].public_key())
    with pytest.raises(ValueError, match="recipient key"):
        seal(PAYLOAD, Protection.SIGNED_ENCRYPTED, keys[0])


def test_keys_other_than_rsa_are_refused_in_a_sentence() -> None:
    with pytest.raises(UserError, match="state-a is not an RSA key"):
        rsa_private_key(ec.generate_private_key(ec.SECP256R1()), "state-a")


def test_two_threads_sign_with_one_key(keys: Keys) -> None:
    outcomes: list[Outcome] = []

    def work() -> None:
        for number in range(20):
            message = encode(sealed(keys, Protection.SIGNED, b"%d" % number), 1_000)[0]
            outcomes.append(opened(keys, message, Protection.SIGNED, b"%d" % number).outcome)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [Outcome.OK] * 40
