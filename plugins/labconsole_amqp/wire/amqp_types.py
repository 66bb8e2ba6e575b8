"""Walks the sections of an encoded AMQP 1.0 message without copying, and refuses what is malformed.

Type codes and widths: OASIS AMQP 1.0 part 1, 1.2 and 1.6; sections and their order: part 3, 3.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

Buffer = bytes | bytearray

SASL_HEADER = b"AMQP\x03\x01\x00\x00"
"""Protocol header of SASL (part 5, 5.3.1)."""

HEADER, DELIVERY_ANNOTATIONS, MESSAGE_ANNOTATIONS, PROPERTIES, APPLICATION_PROPERTIES = range(0x70, 0x75)
DATA, SEQUENCE, VALUE, FOOTER = range(0x75, 0x79)

STRINGS = frozenset((0xA1, 0xB1))
SYMBOLS = frozenset((0xA3, 0xB3))
BINARIES = frozenset((0xA0, 0xB0))
LONG_FORMS = frozenset((0x80, 0x81))
"""ulong and long in their form of 8 bytes."""
LISTS = frozenset((0x45, 0xC0, 0xD0))
_MAPS = frozenset((0xC1, 0xD1))
_BODY_TYPES = {DATA: BINARIES, VALUE: BINARIES | STRINGS}
_TYPES = {
    HEADER: LISTS,
    DELIVERY_ANNOTATIONS: _MAPS,
    MESSAGE_ANNOTATIONS: _MAPS,
    PROPERTIES: LISTS,
    APPLICATION_PROPERTIES: _MAPS,
    FOOTER: _MAPS,
    **_BODY_TYPES,
}

_FIXED_WIDTH = (
    dict.fromkeys((0x40, 0x41, 0x42, 0x43, 0x44, 0x45), 0)
    | dict.fromkeys((0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56), 1)
    | dict.fromkeys((0x60, 0x61), 2)
    | dict.fromkeys((0x70, 0x71, 0x72, 0x73, 0x74), 4)
    | dict.fromkeys((0x80, 0x81, 0x82, 0x83, 0x84), 8)
    | dict.fromkeys((0x94, 0x98), 16)
)
_SIZE_BYTES = dict.fromkeys((0xA0, 0xA1, 0xA3, 0xC0, 0xC1, 0xE0), 1) | dict.fromkeys(
    (0xB0, 0xB1, 0xB3, 0xD0, 0xD1, 0xF0), 4
)

_MOST_ITEMS = 1_000
"""In a list or map of a message: what is not verified yet must not take many times its size in memory."""


class EnvelopeError(Exception):
    """A message that is malformed or not of the expected envelope; its text is the reason, for the run's events."""


class Value(NamedTuple):
    """An encoded value: its type code, and where its content (after code and size) starts and stops."""

    type: int
    start: int
    stop: int


class Section(NamedTuple):
    """A section of a message: its descriptor code and the value in it."""

    code: int
    value: Value


def sections(message: Buffer) -> Iterator[Section]:
    """Yield the sections of `message` in order; several data sections may follow each other.

    Raises:
        EnvelopeError: a section is cut off, unknown, out of order, or holds a type that it cannot hold.
    """
    at, end, last = 0, len(message), 0
    while at < end:
        if message[at] != 0:
            raise EnvelopeError(f"no section begins at byte {at}")
        descriptor = value_at(message, at + 1, end)
        code = unsigned_long(message, descriptor)
        if code is None or code not in _TYPES:
            raise EnvelopeError(f"unknown or unsupported section at byte {at}")
        if not (code > last or code == last == DATA) or (code == VALUE and last == DATA):
            raise EnvelopeError(f"section 0x{code:02x} is out of order at byte {at}")
        content = value_at(message, descriptor.stop, end)
        if content.type not in _TYPES[code]:
            raise EnvelopeError(f"section 0x{code:02x} holds type 0x{content.type:02x} at byte {at}")
        yield Section(code, content)
        at, last = content.stop, code


def value_at(message: Buffer, at: int, end: int) -> Value:
    """The plain (not described) value that begins at byte `at` and must stop by byte `end`. Raises EnvelopeError."""
    if at >= end:
        raise EnvelopeError(f"the message is cut off at byte {at}")
    code = message[at]
    start = at + 1
    width = _FIXED_WIDTH.get(code)
    if width is None:
        size_bytes = _SIZE_BYTES.get(code)
        if size_bytes is None:
            raise EnvelopeError(f"unknown type code 0x{code:02x} at byte {at}")
        width = int.from_bytes(message[start : start + size_bytes], "big")
        start += size_bytes
    if start + width > end:
        raise EnvelopeError(f"a value of {width} bytes at byte {at} goes beyond its place")
    return Value(code, start, start + width)


def list_items(message: Buffer, value: Value) -> list[Value]:
    """The items of a list; raises EnvelopeError if they do not fill it exactly."""
    return [] if value.type == 0x45 else _items(message, value)


def map_items(message: Buffer, value: Value) -> list[tuple[Value, Value]]:
    """The (key, value) pairs of a map; raises EnvelopeError if they do not fill it exactly."""
    items = _items(message, value)
    if len(items) % 2:
        raise EnvelopeError(f"the map at byte {value.start} has a key without a value")
    return list(zip(items[::2], items[1::2], strict=True))


def unsigned_long(message: Buffer, value: Value) -> int | None:
    """The number in a value of type ulong, or None if it is of another type."""
    if value.type in (0x44, 0x53, 0x80):
        return int.from_bytes(message[value.start : value.stop], "big")
    return None


def ulong_or_long(message: Buffer, value: Value) -> int | None:
    """The number in a value of type ulong or long, in any width, or None if it is of another type."""
    if value.type in (0x55, 0x81):
        return int.from_bytes(message[value.start : value.stop], "big", signed=True)
    return unsigned_long(message, value)


def _items(message: Buffer, value: Value) -> list[Value]:
    width = 1 if value.type in (0xC0, 0xC1) else 4
    at, stop = value.start + width, value.stop
    if at > stop:
        raise EnvelopeError(f"the list or map at byte {value.start} has no count")
    count = int.from_bytes(message[value.start : at], "big")
    items: list[Value] = []
    for _ in range(count):
        if len(items) == _MOST_ITEMS:
            raise EnvelopeError(f"of the list or map at byte {value.start}, {_MOST_ITEMS} items are the most")
        # A described value counts as its content; descriptors nest only to the right here.
        while at < stop and message[at] == 0:
            at = value_at(message, at + 1, stop).stop
        item = value_at(message, at, stop)
        items.append(item)
        at = item.stop
    if at != stop:
        raise EnvelopeError(f"the list or map at byte {value.start} holds more than its {count} items")
    return items
