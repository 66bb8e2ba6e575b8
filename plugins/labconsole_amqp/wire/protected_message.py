"""The AMQP message of hardened envelopes: protected content in a data section, with its media type.

* header only for durable messages;
* properties: `message-id` (ulong) if messages are numbered, `content-type` (symbol) where the format has one;
* application-properties: `sent_time` (ulong, as in `envelope`; written when it is sent, and never signed), and
  `x-jws-signature` (string) with a detached signature where the format has one;
* body: one data section.

The decoder accepts what brokers change on the way, as that of `envelope` does, and refuses everything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from labconsole_amqp.wire.amqp_types import (
    APPLICATION_PROPERTIES,
    DATA,
    HEADER,
    PROPERTIES,
    STRINGS,
    SYMBOLS,
    VALUE,
    Buffer,
    EnvelopeError,
    Value,
    list_items,
    map_items,
    sections,
    unsigned_long,
)
from labconsole_amqp.wire.envelope import (
    HEADER_DURABLE,
    SENDER_SHIFT,
    SENT_TIME,
    SEQUENCE_MASK,
    STAMP_BYTES,
    STAMP_KEY,
)
from labconsole_amqp.wire.envelope_layout import stamp_of

DETACHED_SIGNATURE = b"x-jws-signature"

_PROPERTIES = b"\x00\x53\x73"
_APPLICATION_PROPERTIES = b"\x00\x53\x74"
_DATA = b"\x00\x53\x75"
_CONTENT_TYPE_FIELD = 6  # of the properties (AMQP 1.0 part 3, 3.2.4), counted from 0


@dataclass(frozen=True, slots=True)
class SignedMetadata:
    """What a hardened envelope signs besides the body.

    `sender` and `recipient` are the subjects of their certificates (RFC 4514), `address` is the AMQP address,
    `message_id` as `message_number` has it, `created_ms` the creation time since the Unix epoch.
    """

    sender: str
    recipient: str
    address: str
    message_id: int
    created_ms: int

    @property
    def sender_index(self) -> int:
        """The number of the sender within the run, from 0; each counts its own messages."""
        return (self.message_id >> SENDER_SHIFT) - 1

    @property
    def sequence(self) -> int:
        """The number of the message among those of its sender, from 0."""
        return self.message_id & SEQUENCE_MASK


class ProtectedMessage(NamedTuple):
    """A decoded message of a hardened envelope; nothing in it is verified yet.

    `message_id` is None without one or if it is not a ulong; `content_type` and `detached_signature` are empty
    without one. `stamp_ms` is `sent_time`.
    """

    stamp_ms: int
    message_id: int | None
    content_type: bytes
    content: bytes
    detached_signature: bytes


def encode_protected(
    content: bytes,
    content_type: bytes,
    detached_signature: bytes = b"",
    *,
    durable: bool = False,
    message_id: int | None = None,
) -> tuple[bytes, int]:
    """Encode one message; returns it and the offset of the stamp (8 bytes, 0). `content_type` has 255 bytes at most.

    The offset is the same for all messages of one form: with or without signature, number and durability.
    """
    number = b"\x40" if message_id is None else b"\x80" + message_id.to_bytes(8, "big")
    fields, count = number, 1
    if content_type:
        fields += b"\x40" * (_CONTENT_TYPE_FIELD - 1) + b"\xa3" + bytes((len(content_type),)) + content_type
        count = _CONTENT_TYPE_FIELD + 1
    elif message_id is None:
        fields, count = b"", 0
    head = [HEADER_DURABLE if durable else b"", _PROPERTIES, _list(fields, count), _APPLICATION_PROPERTIES]
    signature = b""
    if detached_signature:
        signature = b"\xa1" + bytes((len(DETACHED_SIGNATURE),)) + DETACHED_SIGNATURE
        signature += b"\xb1" + len(detached_signature).to_bytes(4, "big") + detached_signature
    entries = len(STAMP_KEY) + STAMP_BYTES + len(signature)
    if signature:  # the long form at any length, so that the stamp has one place
        head += (b"\xd1", (entries + 4).to_bytes(4, "big"), (4).to_bytes(4, "big"))
    else:
        head += (b"\xc1", bytes((entries + 1, 2)))
    before = b"".join((*head, STAMP_KEY))
    width = b"\xa0" + bytes((len(content),)) if len(content) < 256 else b"\xb0" + len(content).to_bytes(4, "big")
    return b"".join((before, bytes(STAMP_BYTES), signature, _DATA, width, content)), len(before)


def decode_protected(message: Buffer) -> ProtectedMessage:
    """Decode a message as it came through any AMQP 1.0 broker.

    Raises:
        EnvelopeError: it is malformed, or not a message of a hardened envelope; the reason is one sentence.
    """
    message_id: int | None = None
    content_type = detached = b""
    stamp: Value | None = None
    parts: list[bytes] = []
    for code, section in sections(message):
        if code == PROPERTIES:
            items = list_items(message, section)
            message_id = unsigned_long(message, items[0]) if items else None
            if len(items) > _CONTENT_TYPE_FIELD:
                content_type = _text(message, items[_CONTENT_TYPE_FIELD])
        elif code == APPLICATION_PROPERTIES:
            stamp, detached = _application_properties(message, section)
        elif code == DATA:
            parts.append(bytes(message[section.start : section.stop]))
        elif code == VALUE:
            raise EnvelopeError("the body is a value, where this envelope has binary data")
        elif code == HEADER:
            list_items(message, section)
        else:
            map_items(message, section)
    if not parts:
        raise EnvelopeError("the message has no body")
    return ProtectedMessage(stamp_of(message, stamp), message_id, content_type, b"".join(parts), detached)


def _list(fields: bytes, count: int) -> bytes:
    if not count:
        return b"\x45"
    if len(fields) < 255:
        return b"\xc0" + bytes((len(fields) + 1, count)) + fields
    return b"\xd0" + (len(fields) + 4).to_bytes(4, "big") + count.to_bytes(4, "big") + fields


def _application_properties(message: Buffer, section: Value) -> tuple[Value | None, bytes]:
    """The values of `sent_time` and of a detached signature. Raises EnvelopeError: one of them is there twice."""
    found: dict[bytes, Value] = {}
    for key, item in map_items(message, section):
        name = bytes(message[key.start : key.stop]) if key.type in STRINGS else b""
        if name in (SENT_TIME, DETACHED_SIGNATURE):
            if name in found:
                raise EnvelopeError(f"the message says {name.decode()} twice")
            found[name] = item
    signature = found.get(DETACHED_SIGNATURE)
    if signature is not None and signature.type not in STRINGS:
        raise EnvelopeError(f"{DETACHED_SIGNATURE.decode()} is not a string")
    return found.get(SENT_TIME), _text(message, signature) if signature is not None else b""


def _text(message: Buffer, value: Value) -> bytes:
    return bytes(message[value.start : value.stop]) if value.type in STRINGS | SYMBOLS else b""
