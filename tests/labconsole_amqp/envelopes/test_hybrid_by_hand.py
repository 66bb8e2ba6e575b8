"""The envelope `hybrid`, opened step by step as RFC 9180 and the draft of X-Wing have it, without an HPKE library."""

from __future__ import annotations

import hashlib
import hmac

from cryptography.hazmat.primitives.asymmetric import mlkem, x25519
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hpke import MLKEM768X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from labconsole.security.x509.key_types import KeyType
from labconsole_amqp.envelopes.binary_content import HybridContent
from labconsole_amqp.envelopes.content_format import ContentKeys
from labconsole_amqp.envelopes.signing import KeySigner
from labconsole_amqp.wire.envelope import message_number
from labconsole_amqp.wire.protected_message import SignedMetadata
from tests.labconsole_amqp.envelope_lab import ADDRESS, PAYLOAD, RECIPIENT, SENDER, private_key

SUITE = b"HPKE" + b"\x64\x7a" + b"\x00\x01" + b"\x00\x02"
"""X-Wing, HKDF-SHA256, AES-256-GCM."""
CIPHERTEXT_BYTES, X25519_BYTES = 1088, 32


def extract(salt: bytes, label: bytes, material: bytes) -> bytes:
    """LabeledExtract of RFC 9180, 4."""
    return hmac.digest(salt or bytes(32), b"HPKE-v1" + SUITE + label + material, "sha256")


def expand(secret: bytes, label: bytes, info: bytes, length: int) -> bytes:
    """LabeledExpand of RFC 9180, 4, for one block."""
    labelled = length.to_bytes(2, "big") + b"HPKE-v1" + SUITE + label + info
    return hmac.digest(secret, labelled + b"\x01", "sha256")[:length]


def test_each_step_is_that_of_the_standards() -> None:
    signing = private_key(KeyType.ED25519, "sender")
    lattice, curve = mlkem.MLKEM768PrivateKey.generate(), x25519.X25519PrivateKey.generate()
    recipient_key = MLKEM768X25519PrivateKey(lattice, curve).public_key()
    sender = HybridContent(
        ContentKeys(SENDER, RECIPIENT, ADDRESS, signer=KeySigner(signing), recipient_key=recipient_key)
    )
    metadata = SignedMetadata(SENDER, RECIPIENT, ADDRESS, message_number(0, 3), 1_747_728_000_000)
    octets = sender.encrypt(sender.sign(PAYLOAD, metadata))

    header, kem, sealed = octets[:15], octets[15 : 15 + 1120], octets[15 + 1120 :]
    names = b"".join(len(name).to_bytes(2, "big") + name.encode() for name in (SENDER, RECIPIENT, ADDRESS))
    context = b"labconsole hybrid 1" + names
    number, time = message_number(0, 3).to_bytes(8, "big"), (1_747_728_000_000).to_bytes(6, "big")
    assert header == b"\x02" + number + time
    ephemeral = kem[CIPHERTEXT_BYTES:]
    assert len(ephemeral) == X25519_BYTES
    own = curve.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    shared = lattice.decapsulate(kem[:CIPHERTEXT_BYTES])
    shared += curve.exchange(x25519.X25519PublicKey.from_public_bytes(ephemeral)) + ephemeral + own
    secret = hashlib.sha3_256(shared + rb"\.//^" + b"\\").digest()
    schedule = b"\x00" + extract(b"", b"psk_id_hash", b"") + extract(b"", b"info_hash", header + context)
    root = extract(secret, b"secret", b"")
    key, nonce = expand(root, b"key", schedule, 32), expand(root, b"base_nonce", schedule, 12)
    plaintext = AESGCM(key).decrypt(nonce, sealed, b"")
    signature, body = plaintext[:64], plaintext[64:]
    assert body == PAYLOAD
    signing.public_key().verify(signature, context + b"\x01" + number + time + body)
