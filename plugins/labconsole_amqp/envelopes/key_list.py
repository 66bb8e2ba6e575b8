"""The list of keys that each sign one message: the sender's message identity vouches for them by its signature.

The list is content of the run's own envelope, signed and not encrypted, for an address that no message has. Its body is
the SubjectPublicKeyInfo of each key in base64, one a line.
"""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key

from labconsole.errors import UserError
from labconsole.security.x509.key_types import KeyType, PublicKey, type_of
from labconsole_amqp.envelopes.content_format import Content, ContentKeys, RefusedError
from labconsole_amqp.envelopes.formats import EnvelopeFormat
from labconsole_amqp.wire.envelope import message_number
from labconsole_amqp.wire.protected_message import SignedMetadata


def signed_list(format: EnvelopeFormat, keys: ContentKeys, index: int, public_keys: Iterable[PublicKey]) -> Content:
    """The list of the keys of sender `index`; `keys` are those of its messages, its `signer` that of its identity."""
    lines = (base64.b64encode(one.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)) for one in public_keys)
    own = _of_list(keys)
    metadata = SignedMetadata(
        own.sender, own.recipient, own.address, message_number(index, 0), time.time_ns() // 1_000_000
    )
    return format.content_format()(own).sign(b"\n".join(lines), metadata)


def keys_in(
    format: EnvelopeFormat, keys: ContentKeys, index: int, content: Content, type: KeyType
) -> tuple[PublicKey, ...]:
    """The keys of this type in the list of sender `index`; the `verifier` in `keys` is that of its identity.

    Raises UserError: it is not signed by that identity, of another sender or for another recipient, or malformed.
    """
    own = _of_list(keys)
    try:
        body, metadata, _ = format.content_format()(own).verify(content)
    except RefusedError as refused:
        raise _refused(index, f"{refused.outcome.value}{f': {refused}' if str(refused) else ''}") from refused
    expected = (own.sender, own.recipient, own.address, message_number(index, 0))
    if (metadata.sender, metadata.recipient, metadata.address, metadata.message_id) != expected:
        raise _refused(index, "it is of another sender, or for another recipient or address")
    try:
        found = [load_der_public_key(base64.b64decode(line, validate=True)) for line in body.split(b"\n")]
    except (binascii.Error, ValueError, UnsupportedAlgorithm) as error:
        raise _refused(index, "a line is not a public key") from error
    if any(type_of(one) is not type for one in found):
        raise _refused(index, f"a key is not of the type {type.value}, which the sender's message identity has")
    return cast(tuple[PublicKey, ...], tuple(found))


def _of_list(keys: ContentKeys) -> ContentKeys:
    return replace(keys, address=f"{keys.address}/message-keys", recipient_key=None, decryption_key=None)


def _refused(index: int, reason: str) -> UserError:
    return UserError(f"The list of the message keys of sender {index} is refused: {reason}.")
