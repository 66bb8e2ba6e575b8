"""Decodes messages of the source's envelope: finds their parts once for all messages of one layout.

The decoder accepts what `envelope` encodes and what brokers change in it on the way (header filled in, annotations
added, sections in other widths, data sections, a footer), and `sent_time` as a long, as version 0.1.0 of the console
sent it; it refuses everything else.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from labconsole_amqp.wire.amqp_types import (
    APPLICATION_PROPERTIES,
    DATA,
    HEADER,
    LONG_FORMS,
    MESSAGE_ANNOTATIONS,
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
    ulong_or_long,
    unsigned_long,
)
from labconsole_amqp.wire.envelope import ENCRYPTED_KEY, IV, SENT_TIME, SIGNATURE

_FIELDS = frozenset((SIGNATURE, ENCRYPTED_KEY, IV))
_NO_STAMP = "the application property sent_time is missing or is not a ulong or long"
_LAST_STAMP = 2**63 - 1  # what fits into a column of samples
_MOST_LAYOUTS = 256
_MOST_PARTS, _LARGEST_FIXED = 16, 4096
"""Pieces, and bytes, of what does not differ in a layout that is kept: messages come from anybody."""


class Envelope(NamedTuple):
    """A decoded message. `stamp_ms` is `sent_time`; `message_id` is None without one or if it is not a ulong."""

    stamp_ms: int
    message_id: int | None
    body: bytes
    signature: bytes | None
    encrypted_key: bytes | None
    iv: bytes | None


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the parts of an encoded message are: `message_id` if it is a ulong, `fields` are strings by their name."""

    stamp: Value
    message_id: Value | None
    fields: Mapping[bytes, Value]
    body: tuple[Value, ...]

    @property
    def stamp_offset(self) -> int | None:
        """Where the 8 bytes of the stamp are; None if it is in a shorter form."""
        return self.stamp.start if self.stamp.type in LONG_FORMS else None

    @property
    def number_offset(self) -> int | None:
        """Where the 8 bytes of the message id are; None if it has none, or one in a shorter form."""
        number = self.message_id
        return None if number is None or number.type not in LONG_FORMS else number.start

    def read(self, message: Buffer) -> Envelope:
        """The parts of a message of this layout. Raises EnvelopeError: one of them is malformed."""
        raw = {name: _from_base64(message, name, item) for name, item in self.fields.items()}
        first, *others = self.body
        body = bytes(message[first.start : first.stop])
        if others:
            body = b"".join((body, *(message[part.start : part.stop] for part in others)))
        if first.type in STRINGS and not _is_utf8(body):
            raise EnvelopeError("the body is a string that is not UTF-8")
        return Envelope(
            stamp_of(message, self.stamp),
            None if self.message_id is None else unsigned_long(message, self.message_id),
            body,
            raw.get(SIGNATURE),
            raw.get(ENCRYPTED_KEY),
            raw.get(IV),
        )

    def fixed(self, message: Buffer) -> Iterator[tuple[slice, bytes]]:
        """What is the same in all messages of this layout, with its places."""
        parts = [self.stamp, *self.fields.values(), *self.body]
        at = 0
        for part in sorted(parts + ([] if self.message_id is None else [self.message_id]), key=lambda part: part.start):
            yield slice(at, part.start), bytes(message[at : part.start])
            at = part.stop
        yield slice(at, len(message)), bytes(message[at:])


class LayoutMemory:
    """Decodes messages, those of a known layout without searching for their parts. Any thread may call it."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[list[tuple[slice, bytes]], Layout]] = {}
        """By the size of messages: what is the same in all of them, and their layout."""

    def decode(self, message: Buffer) -> Envelope:
        """As `decode` of this module."""
        fixed, layout = self._known.get(len(message)) or ([], None)
        for place, octets in fixed:
            if message[place] != octets:
                layout = None
                break
        if layout is None:
            layout = layout_of(message)
            envelope = layout.read(message)
            self._learn(message, layout)
            return envelope
        return layout.read(message)

    def _learn(self, message: Buffer, layout: Layout) -> None:
        fixed = list(layout.fixed(message))
        if len(fixed) <= _MOST_PARTS and sum(len(octets) for _, octets in fixed) <= _LARGEST_FIXED:
            if len(self._known) >= _MOST_LAYOUTS:
                self._known.clear()
            self._known[len(message)] = fixed, layout


def decode(message: Buffer) -> Envelope:
    """Decode a message of this envelope as it came through any AMQP 1.0 broker.

    Raises:
        EnvelopeError: it is malformed, or not a message of this envelope; the reason is one sentence.
    """
    return layout_of(message).read(message)


def layout_of(message: Buffer) -> Layout:
    """Where the parts of a message of this envelope are. Raises EnvelopeError: as `decode`, but for their content."""
    message_id: Value | None = None
    stamp: Value | None = None
    fields: dict[bytes, Value] = {}
    body: list[Value] = []
    for code, content in sections(message):
        if code == PROPERTIES:
            items = list_items(message, content)
            message_id = items[0] if items and unsigned_long(message, items[0]) is not None else None
        elif code == MESSAGE_ANNOTATIONS:
            _collect(message, content, fields)
        elif code == APPLICATION_PROPERTIES:
            stamp = _collect(message, content, fields)
        elif code in (VALUE, DATA):
            body.append(content)
        elif code == HEADER:
            list_items(message, content)
        else:
            map_items(message, content)
    if not body:
        raise EnvelopeError("the message has no body")
    if stamp is None or ulong_or_long(message, stamp) is None:
        raise EnvelopeError(_NO_STAMP)
    return Layout(stamp, message_id, fields, tuple(body))


def stamp_of(message: Buffer, stamp: Value | None) -> int:
    """The number in the value of `sent_time`. Raises EnvelopeError: it is missing, or not a time."""
    number = None if stamp is None else ulong_or_long(message, stamp)
    if number is None:
        raise EnvelopeError(_NO_STAMP)
    if number > _LAST_STAMP:
        raise EnvelopeError(f"sent_time is {number}, which is not a time")
    return number


def _collect(message: Buffer, section: Value, fields: dict[bytes, Value]) -> Value | None:
    """Add the envelope's fields in a map section to `fields`; returns the value of sent_time, if any."""
    stamp = None
    for key, item in map_items(message, section):
        if key.type not in STRINGS and key.type not in SYMBOLS:
            continue
        name = bytes(message[key.start : key.stop])
        if name == SENT_TIME:
            if stamp is not None:
                raise EnvelopeError("the message says sent_time twice")
            stamp = item
        elif name in _FIELDS:
            if name in fields:
                raise EnvelopeError(f"the message says {name.decode()} twice")
            if item.type not in STRINGS:
                raise EnvelopeError(f"{name.decode()} is not a string")
            fields[name] = item
    return stamp


def _from_base64(message: Buffer, name: bytes, item: Value) -> bytes:
    try:
        return binascii.a2b_base64(message[item.start : item.stop], strict_mode=True)
    except binascii.Error as error:
        raise EnvelopeError(f"{name.decode()} is not base64: {error}") from error


def _is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
