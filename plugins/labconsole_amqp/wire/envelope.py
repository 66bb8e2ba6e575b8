"""The message envelope of the source's tool, byte for byte, and its encoder; `envelope_layout` decodes it.

AMQP 1.0 message (OASIS AMQP 1.0 part 3) as `amqp-kamehameha` sends it (WP/16, "Tools Used"):

* header and properties, present and empty;
* application-properties `sent_time` (ulong, as the tool's library rhea writes it; milliseconds since the Unix epoch);
* body: the payload as an amqp-value string; when encrypted, the ciphertext as an amqp-value binary;
* signed: `x-digital-signature`; encrypted: also `x-encrypted-key` and `x-iv`, each a base64 string.

These three fields are in the application-properties, or, in the tool's earlier form, in the message-annotations
(`FieldsIn`). With RSA-2048 the encoded message has, for payloads of 11 / 237 / 42,708 bytes, these sizes in bytes:

| | plain | signed | signed and encrypted |
| --- | --- | --- | --- |
| application-properties | 56 / 282 / 42,756 | 426 / 652 / 43,126 | 829 / 1,053 / 43,536 |
| message-annotations | the same | 438 / 664 / 43,138 | 841 / 1,065 / 43,548 |

They are the source's "Sender Message Size" figures: its Within-Malaysia tables are the annotation form, its MY-to-SG
tables the application-property form. One cell follows from neither: small payload, Test 4, MY to SG, printed as 903.

The encoder writes what `proton.Message.encode()` writes for the same fields, without proton.
"""

from __future__ import annotations

import binascii
from enum import StrEnum
from typing import NamedTuple

SIGNATURE = b"x-digital-signature"
ENCRYPTED_KEY = b"x-encrypted-key"
IV = b"x-iv"
SENT_TIME = b"sent_time"

NUMBER_BEFORE_STAMP = 32
"""In a message made by `encode`, the 8 bytes of the message id begin this many bytes before the stamp."""

SENDER_SHIFT = 40
"""Bits of a message number for the sequence; the bits above are the sender, counted from 1."""
SEQUENCE_MASK = (1 << SENDER_SHIFT) - 1

HEADER_DURABLE = b"\x00\x53\x70\xc0\x02\x01\x41"
"""The header section of a durable message; its one field is `durable`."""
STAMP_KEY = b"\xa1\x09sent_time\x80"
"""The key of the stamp and the type of its value (ulong), in application-properties."""
STAMP_BYTES = 8

_HEADER = b"\x00\x53\x70\x45"
_ANNOTATIONS = b"\x00\x53\x72\xd1"
_PROPERTIES = b"\x00\x53\x73\x45"
_PROPERTIES_ID = b"\x00\x53\x73\xc0\x0a\x01\x80"
_APPLICATION_PROPERTIES = b"\x00\x53\x74\xd1"
_BODY = b"\x00\x53\x77"
_MAP_PREFIX_BYTES = 8  # size and count, four bytes each

# Annotation keys are symbols, application property keys are strings (AMQP 1.0 part 3, 3.2.10 and 3.2.5).
_SYMBOL_KEY, _STRING_KEY = b"\xa3", b"\xa1"

_RSA_2048_BASE64 = 344
_IV_BASE64 = 24
_AES_BLOCK = 16


class Protection(StrEnum):
    """Protection of the payload: Tests 1 and 2 send it as it is, Test 3 signs, Test 4 signs and encrypts."""

    NONE = "none"
    SIGNED = "signed"
    SIGNED_ENCRYPTED = "signed-encrypted"


class FieldsIn(StrEnum):
    """The section that carries signature, wrapped key and IV."""

    APPLICATION_PROPERTIES = "application-properties"
    MESSAGE_ANNOTATIONS = "message-annotations"


class MessageParts(NamedTuple):
    """The parts that differ between messages. `signature` (RSA), `encrypted_key` (RSA) and `iv` (16 bytes) are raw.

    `body` is the UTF-8 payload, or the ciphertext if there is an `encrypted_key`. `sign_ns` and `encrypt_ns` are the
    nanoseconds that signing and encrypting took.
    """

    body: bytes
    signature: bytes | None = None
    encrypted_key: bytes | None = None
    iv: bytes | None = None
    sign_ns: int = 0
    encrypt_ns: int = 0


def message_number(sender: int, sequence: int) -> int:
    """The message id that names message `sequence` (below 2**40) of sender `sender`, both counted from 0."""
    return (sender + 1) << SENDER_SHIFT | sequence


def encode(
    parts: MessageParts,
    stamp_ms: int = 0,
    *,
    fields_in: FieldsIn = FieldsIn.APPLICATION_PROPERTIES,
    durable: bool = False,
    message_id: int | None = None,
) -> tuple[bytes, int]:
    """Encode one message; returns it and the offset of the stamp, an 8-byte big-endian integer below 2**63.

    The stamp always takes its 8-byte form, so that it can be written into the message when that is sent; so does
    `message_id` (ulong). proton writes the same bytes for stamps above 127 and ids above 255 (any `message_number`).
    """
    fields = _fields(parts)
    chunks = [HEADER_DURABLE if durable else _HEADER]
    if fields and fields_in is FieldsIn.MESSAGE_ANNOTATIONS:
        entries = b"".join(_entry(_SYMBOL_KEY, name, raw) for name, raw in fields)
        chunks += (_ANNOTATIONS, _map_prefix(len(entries), len(fields)), entries)
        fields = []
    if message_id is None:
        chunks.append(_PROPERTIES)
    else:
        chunks += (_PROPERTIES_ID, message_id.to_bytes(8, "big"))
    entries = b"".join(_entry(_STRING_KEY, name, raw) for name, raw in fields)
    stamp_entry = len(STAMP_KEY) + STAMP_BYTES
    chunks += (_APPLICATION_PROPERTIES, _map_prefix(stamp_entry + len(entries), 1 + len(fields)), STAMP_KEY)
    head = b"".join(chunks)
    body = parts.body
    short, long = (b"\xa1", b"\xb1") if parts.encrypted_key is None else (b"\xa0", b"\xb0")
    width = short + bytes((len(body),)) if len(body) < 256 else long + len(body).to_bytes(4, "big")
    return b"".join((head, stamp_ms.to_bytes(8, "big"), entries, _BODY, width, body)), len(head)


def encoded_size(
    payload_length: int,
    protection: Protection,
    fields_in: FieldsIn = FieldsIn.APPLICATION_PROPERTIES,
    *,
    durable: bool = False,
    message_id: bool = False,
) -> int:
    """Size in bytes of an encoded message with `payload_length` bytes of payload and RSA-2048 keys."""
    size = len(HEADER_DURABLE if durable else _HEADER)
    size += len(_PROPERTIES_ID) + 8 if message_id else len(_PROPERTIES)
    size += len(_APPLICATION_PROPERTIES) + _MAP_PREFIX_BYTES + len(STAMP_KEY) + STAMP_BYTES
    if protection is not Protection.NONE:
        size += 2 + len(SIGNATURE) + 5 + _RSA_2048_BASE64
        if fields_in is FieldsIn.MESSAGE_ANNOTATIONS:
            size += len(_ANNOTATIONS) + _MAP_PREFIX_BYTES
    if protection is Protection.SIGNED_ENCRYPTED:
        size += 2 + len(ENCRYPTED_KEY) + 5 + _RSA_2048_BASE64
        size += 2 + len(IV) + 2 + _IV_BASE64
        payload_length += _AES_BLOCK - payload_length % _AES_BLOCK
    return size + len(_BODY) + (2 if payload_length < 256 else 5) + payload_length


def _fields(parts: MessageParts) -> list[tuple[bytes, bytes]]:
    named = ((SIGNATURE, parts.signature), (ENCRYPTED_KEY, parts.encrypted_key), (IV, parts.iv))
    return [(name, raw) for name, raw in named if raw is not None]


def _entry(key_type: bytes, name: bytes, raw: bytes) -> bytes:
    text = binascii.b2a_base64(raw, newline=False)
    width = b"\xa1" + bytes((len(text),)) if len(text) < 256 else b"\xb1" + len(text).to_bytes(4, "big")
    return b"".join((key_type, bytes((len(name),)), name, width, text))


def _map_prefix(entry_bytes: int, entries: int) -> bytes:
    return (entry_bytes + 4).to_bytes(4, "big") + (2 * entries).to_bytes(4, "big")
