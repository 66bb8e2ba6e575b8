"""Signs, encrypts, opens and checks payloads as the source's tool does, and measures each step.

Test 3 signs the payload with RSA PKCS#1 v1.5 and SHA-256. Test 4 also encrypts it with a fresh AES-256 key and IV in
CBC mode (PKCS#7 padding); the AES key travels wrapped with RSA-OAEP (SHA-1, MGF1 with SHA-1).

What this format protects and what not (it is the source's, and is not changed):

* The signature covers the plaintext payload only. `sent_time`, message id and address are not signed: a message can
  be **replayed**, re-dated or sent on to another receiver, and still verifies.
* CBC ciphertext has **no MAC**. A changed one is detected only by its padding or by the signature after decryption.
  A peer that can distinguish those two failures has a **padding oracle** and can read messages. `Outcome` is for the
  receiver's record only; towards the peer and the broker every outcome but OK must look the same (same
  disposition, no reason). The time that opening takes still differs between them.
* The signature inside does not name the recipient: a recipient can encrypt a signed payload again for a third party.

Receivers fail closed: with a required signature or encryption missing, the payload is refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP, PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.padding import PKCS7

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole_amqp.wire.amqp_types import Buffer, EnvelopeError
from labconsole_amqp.wire.envelope import MessageParts, Protection
from labconsole_amqp.wire.envelope_layout import Envelope, decode
from labconsole_amqp.wire.protected_message import SignedMetadata

if TYPE_CHECKING:
    from cryptography import x509

_SIGNATURE_PADDING = PKCS1v15()
_DIGEST = hashes.SHA256()
_KEY_WRAP = OAEP(mgf=MGF1(hashes.SHA1()), algorithm=hashes.SHA1(), label=None)
_PADDING = PKCS7(AES.block_size)
_KEY_BYTES = 32
_IV_BYTES = 16


class Outcome(StrEnum):
    """The outcome of a received message. Never report to the peer which failure it was (padding oracle).

    The place of each is stored in runs: new ones are appended. Those after MALFORMED are of hardened envelopes alone.
    """

    OK = "ok"
    SIGNATURE_MISSING = "signature missing"
    SIGNATURE_WRONG = "signature wrong"
    DECRYPTION_FAILED = "decryption failed"
    PAYLOAD_DIFFERS = "payload differs"
    MALFORMED = "malformed"
    REPLAYED = "replayed"
    OTHER_RECIPIENT = "other recipient"
    OTHER_ADDRESS = "other address"
    NOT_TIMELY = "too old or from the future"
    UNKNOWN_SIGNER = "unknown signer"
    SIGNER_REFUSED = "signer's certificate refused"
    KEY_USED = "key used before"


ExpectedPayload = Callable[[bytes, int | None], bool]
"""Whether a payload is that of the message with this id, None without one."""


class OpenedMessage(NamedTuple):
    """The outcome of one received message; `payload` is None unless the outcome is OK.

    `envelope` is None only for malformed messages, and `reason` says what was malformed. Times are in ns.
    `metadata` is what a hardened envelope has signed besides the payload, and `key_id` names the key that has, where
    its signature was good.
    """

    outcome: Outcome
    envelope: Envelope | None
    payload: bytes | None = None
    verify_ns: int = 0
    decrypt_ns: int = 0
    reason: str = ""
    metadata: SignedMetadata | None = None
    key_id: bytes = b""


def seal(
    payload: bytes,
    protection: Protection,
    signing_key: RSAPrivateKey | None = None,
    recipient_key: RSAPublicKey | None = None,
) -> MessageParts:
    """Protect `payload`; safe to call from several threads with the same keys (RSA releases the GIL).

    Raises:
        ValueError: the protection needs a key that is not given.
    """
    if protection is Protection.NONE:
        return MessageParts(payload)
    if signing_key is None or (recipient_key is None and protection is Protection.SIGNED_ENCRYPTED):
        raise ValueError(f"protection {protection.value} needs a signing key, and to encrypt also a recipient key")
    began = now_ns()
    signature = signing_key.sign(payload, _SIGNATURE_PADDING, _DIGEST)
    signed = now_ns()
    if protection is Protection.SIGNED or recipient_key is None:
        return MessageParts(payload, signature, sign_ns=signed - began)
    key, iv = os.urandom(_KEY_BYTES), os.urandom(_IV_BYTES)
    padder = _PADDING.padder()
    encryptor = Cipher(AES(key), CBC(iv)).encryptor()
    ciphertext = encryptor.update(padder.update(payload) + padder.finalize()) + encryptor.finalize()
    wrapped = recipient_key.encrypt(key, _KEY_WRAP)
    return MessageParts(ciphertext, signature, wrapped, iv, signed - began, now_ns() - signed)


def open_sealed(
    message: Buffer,
    protection: Protection,
    verification_key: RSAPublicKey | None = None,
    decryption_key: RSAPrivateKey | None = None,
    *,
    expected: ExpectedPayload | None = None,
    decoded: Callable[[Buffer], Envelope] = decode,
) -> OpenedMessage:
    """Decode, decrypt and verify one received message; with `expected`, the payload must also be that.

    `decoded` is `decode`, or that of a `LayoutMemory`.

    Never raises because of the message's content. `protection` is what the receiver requires, not what the message has.

    Raises:
        ValueError: the protection needs a key that is not given.
    """
    signed = protection is not Protection.NONE
    encrypted = protection is Protection.SIGNED_ENCRYPTED
    if (signed and verification_key is None) or (encrypted and decryption_key is None):
        raise ValueError(f"protection {protection.value} needs a verification key, and to decrypt also a private key")
    try:
        envelope = decoded(message)
    except EnvelopeError as error:
        return OpenedMessage(Outcome.MALFORMED, None, reason=str(error))
    if not encrypted and (envelope.encrypted_key is not None or envelope.iv is not None):
        return OpenedMessage(
            Outcome.MALFORMED, envelope, reason="the message is encrypted, which this test does not use"
        )
    if verification_key is None or not signed:
        return _check_payload(envelope, envelope.body, expected, 0, 0)
    if envelope.signature is None:
        return OpenedMessage(Outcome.SIGNATURE_MISSING, envelope)
    payload: bytes | None = envelope.body
    began = now_ns()
    if decryption_key is not None and encrypted:
        payload = _decrypt(envelope, decryption_key)
    decrypted = now_ns()
    decrypt_ns = decrypted - began if encrypted else 0
    if payload is None:
        return OpenedMessage(Outcome.DECRYPTION_FAILED, envelope, decrypt_ns=decrypt_ns)
    try:
        verification_key.verify(envelope.signature, payload, _SIGNATURE_PADDING, _DIGEST)
    except InvalidSignature:
        return OpenedMessage(Outcome.SIGNATURE_WRONG, envelope, None, now_ns() - decrypted, decrypt_ns)
    return _check_payload(envelope, payload, expected, now_ns() - decrypted, decrypt_ns)


def rsa_private_key(key: PrivateKeyTypes, owner: str) -> RSAPrivateKey:
    """`key`, checked for use by the envelope. Raises UserError if it is not an RSA key."""
    if not isinstance(key, RSAPrivateKey):
        raise UserError(f"The key of {owner} is not an RSA key, which message signing and encryption need: choose one.")
    return key


def rsa_public_key(certificate: x509.Certificate, owner: str) -> RSAPublicKey:
    """The key in `certificate`, checked for use by the envelope. Raises UserError if it is not an RSA key."""
    key = certificate.public_key()
    if not isinstance(key, RSAPublicKey):
        raise UserError(
            f"The certificate of {owner} holds no RSA key, which message signing and encryption need: choose one."
        )
    return key


def _decrypt(envelope: Envelope, decryption_key: RSAPrivateKey) -> bytes | None:
    """The payload, or None on any failure: wrapped key, length and padding are not distinguished."""
    if envelope.encrypted_key is None or envelope.iv is None or len(envelope.iv) != _IV_BYTES:
        return None
    try:
        key = decryption_key.decrypt(envelope.encrypted_key, _KEY_WRAP)
        if len(key) != _KEY_BYTES:
            return None
        decryptor = Cipher(AES(key), CBC(envelope.iv)).decryptor()
        padded = decryptor.update(envelope.body) + decryptor.finalize()
        unpadder = _PADDING.unpadder()
        return unpadder.update(padded) + unpadder.finalize()
    except ValueError:  # what `cryptography` raises for each of them
        return None


def _check_payload(
    envelope: Envelope, payload: bytes, expected: ExpectedPayload | None, verify_ns: int, decrypt_ns: int
) -> OpenedMessage:
    if expected is not None and not expected(payload, envelope.message_id):
        return OpenedMessage(Outcome.PAYLOAD_DIFFERS, envelope, None, verify_ns, decrypt_ns)
    return OpenedMessage(Outcome.OK, envelope, payload, verify_ns, decrypt_ns)
