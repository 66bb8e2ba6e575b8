"""Ends with hardened envelopes in tests: keys of each type, made once, and a sender and receiver of each format."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from labconsole.security.x509.key_types import KeyType, generate
from labconsole_amqp.envelopes.content_format import ContentKeys
from labconsole_amqp.envelopes.encryption_keys import EncryptionKeyType
from labconsole_amqp.envelopes.encryption_keys import generate as generate_for_bodies
from labconsole_amqp.envelopes.formats import HARDENED, EnvelopeFormat
from labconsole_amqp.envelopes.message_checks import KnownSigner, MessageChecks
from labconsole_amqp.envelopes.message_envelope import HardenedEnvelope, MessageEnvelope, MessageForm
from labconsole_amqp.envelopes.signing import KeySigner, Verifier
from labconsole_amqp.wire.envelope import Protection, message_number
from labconsole_amqp.wire.sign_encrypt import OpenedMessage

PAYLOAD = b"(FPL-LCX617-IS)" * 15
SENDER, RECIPIENT, ADDRESS = "CN=state-a,O=Lab Console", "CN=state-b,O=Lab Console", "labconsole"
PROTECTIONS = (Protection.SIGNED, Protection.SIGNED_ENCRYPTED)

CASES = [
    (format, protection, signing, encryption)
    for format in HARDENED
    for protection in PROTECTIONS
    for signing, encryption in zip(
        format.signing, (*format.encryption, *[format.encryption[-1]] * len(format.signing)), strict=False
    )
    if KeyType.RSA_3072 not in (signing, encryption) and KeyType.RSA_4096 not in (signing, encryption)
]
"""Each format, protected in both ways, with keys of each type (of RSA, 2048 bits)."""


@lru_cache(maxsize=32)
def private_key(type: Any, owner: str = "") -> Any:
    """The private key of an owner, made once."""
    return generate_for_bodies(type) if isinstance(type, EncryptionKeyType) else generate(type)


@dataclass(frozen=True)
class Ends:
    """A sender and a receiver of one envelope."""

    sender: MessageEnvelope
    receiver: MessageEnvelope

    def protect(self, sequence: int = 0, body: bytes = PAYLOAD) -> bytes:
        """The encoded message of a sequence number."""
        return self.sender.protect(body, message_number(0, sequence)).message

    def received(self, message: bytes) -> OpenedMessage:
        """The final outcome of a message at the receiver."""
        return self.receiver.accept(self.receiver.open(message))


def known_signer(*, from_days: int = -1, to_days: int = 1) -> KnownSigner:
    """A signer whose certificate is valid between days from now."""
    now = datetime.now(UTC)
    return KnownSigner(now + timedelta(days=from_days), now + timedelta(days=to_days))


def ends(
    format: EnvelopeFormat,
    protection: Protection,
    signing: Any = None,
    encryption: Any = None,
    *,
    sender: str = SENDER,
    recipient: str = RECIPIENT,
    address: str = ADDRESS,
    signer: KnownSigner | None = None,
    signed_by: str = "sender",
    encrypted_to: str = "recipient",
    numbered: bool = False,
    window: int = 64,
    tolerance_s: float = 600,
    expected: bytes | None = PAYLOAD,
) -> Ends:
    """The two ends. The sender's names and keys may be others than those that the receiver expects."""
    signing, encryption = signing or format.signing[0], encryption or format.encryption[0]
    form = MessageForm(protection, numbered=numbered)
    make = format.content_format()
    signs, encrypts = private_key(signing, signed_by), protection is Protection.SIGNED_ENCRYPTED
    sends = ContentKeys(
        sender,
        recipient,
        address,
        signer=KeySigner(signs),
        recipient_key=private_key(encryption, encrypted_to).public_key() if encrypts else None,
    )
    receives = ContentKeys(
        SENDER,
        RECIPIENT,
        ADDRESS,
        verifier=Verifier(private_key(signing, "sender").public_key()),
        decryption_key=private_key(encryption, "recipient") if encrypts else None,
    )
    checks = MessageChecks(
        sender=SENDER,
        recipient=RECIPIENT,
        address=ADDRESS,
        signer=signer or known_signer(),
        tolerance_s=tolerance_s,
        window=window,
    )
    return Ends(
        HardenedEnvelope(form, format, make(sends)),
        HardenedEnvelope(
            form,
            format,
            make(receives),
            checks,
            expected=None if expected is None else lambda payload, _: payload == expected,
        ),
    )
