"""The size of a message of a hardened format, measured with an example that no key is needed for."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, rsa

from labconsole.security.x509.key_types import KeyType
from labconsole_amqp.envelopes.content_format import ContentKeys
from labconsole_amqp.envelopes.encryption_keys import EncryptionKeyType, generate
from labconsole_amqp.envelopes.formats import EnvelopeFormat
from labconsole_amqp.envelopes.message_envelope import HardenedEnvelope, MessageForm
from labconsole_amqp.envelopes.signing import ExampleSigner
from labconsole_amqp.wire.envelope import Protection, message_number

_PERIOD = 36
"""Octets by which sizes grow evenly, also those of base64 in base64."""
_LARGEST_MEASURED = 5_000 * _PERIOD
_RSA_BITS = {KeyType.RSA_2048: 2048, KeyType.RSA_3072: 3072, KeyType.RSA_4096: 4096}


def example_size(
    format: EnvelopeFormat, form: MessageForm, payload_length: int, sender: str, recipient: str, address: str
) -> int:
    """Bytes of an encoded message with so many bytes of payload, and keys of the format's first types.

    Exact, but for ECDSA signatures in DER, which differ by a byte or two, and lengths in DER above 16 MB. Takes some
    ms at most: that of a large payload is calculated from smaller ones.
    """
    measure = partial(_measured, format, form, sender=sender, recipient=recipient, address=address)
    if payload_length <= _LARGEST_MEASURED:
        return measure(payload_length)
    smaller = _LARGEST_MEASURED - _PERIOD + payload_length % _PERIOD
    size = measure(smaller)
    return size + (payload_length - smaller) // _PERIOD * (size - measure(smaller - _PERIOD))


@lru_cache(maxsize=256)
def _measured(
    format: EnvelopeFormat, form: MessageForm, payload_length: int, *, sender: str, recipient: str, address: str
) -> int:
    encrypts = form.protection is Protection.SIGNED_ENCRYPTED
    keys = ContentKeys(
        sender,
        recipient,
        address,
        signer=ExampleSigner(format.signing[0]),
        recipient_key=_recipient_key(format.encryption[0]) if encrypts else None,
    )
    envelope = HardenedEnvelope(form, format, format.content_format()(keys))
    return len(envelope.protect(b"x" * payload_length, message_number(0, 0)).message)


@lru_cache(maxsize=16)
def _recipient_key(type: KeyType | EncryptionKeyType) -> Any:
    """A public key of this type; of RSA, one whose factors are not known to anyone, since finding some takes long."""
    if isinstance(type, EncryptionKeyType):
        return generate(type).public_key()
    if type in _RSA_BITS:
        return rsa.RSAPublicNumbers(65537, 2 ** (_RSA_BITS[type] - 1) + 1).public_key()
    return ec.generate_private_key(ec.SECP256R1()).public_key()
