"""DER (X.690) of the few structures that messages have: encoded by joining octets, read strictly."""

from __future__ import annotations

from typing import NamedTuple

INTEGER, OCTET_STRING, NULL, OID, UTC_TIME = 0x02, 0x04, 0x05, 0x06, 0x17
SEQUENCE, SET = 0x30, 0x31
CONTEXT_0, CONTEXT_0_PRIMITIVE = 0xA0, 0x80
"""[0], around other values or in place of a primitive one; [1] and so on follow."""

_MOST_LENGTH_OCTETS = 4
_HIGH_TAG = 0x1F
_MOST_ITEMS = 64
"""In one element of a message: what is not verified yet must not take many times its size in memory."""


class DerError(ValueError):
    """Octets that are not the DER of the expected structure."""


class Element(NamedTuple):
    """An element of an encoding: its tag, where it begins, and where its content starts and stops."""

    octets: bytes
    tag: int
    begin: int
    start: int
    stop: int

    @property
    def content(self) -> bytes:
        """The content."""
        return self.octets[self.start : self.stop]

    @property
    def whole(self) -> bytes:
        """Tag, length and content."""
        return self.octets[self.begin : self.stop]

    def items(self, *tags: int) -> list[Element]:
        """The elements in this one; `tags`: those that the first ones must have. Raises DerError."""
        found: list[Element] = []
        at = self.start
        while at < self.stop:
            if len(found) == _MOST_ITEMS:
                raise DerError("an element has too many others in it")
            found.append(_element(self.octets, at, self.stop))
            at = found[-1].stop
        if tuple(item.tag for item in found[: len(tags)]) != tags:
            raise DerError("an element is missing or of another type")
        return found

    def only(self, tag: int) -> Element:
        """The one element in this one. Raises DerError."""
        item = _element(self.octets, self.start, self.stop)
        if item.tag != tag or item.stop != self.stop:
            raise DerError("there is more than one element, or one of another type")
        return item


def read(octets: bytes, tag: int) -> Element:
    """The one element that `octets` are. Raises DerError."""
    element = _element(octets, 0, len(octets))
    if element.tag != tag or element.stop != len(octets):
        raise DerError("it is of another type, or octets follow it")
    return element


def tlv(tag: int, *contents: bytes) -> bytes:
    """Tag, length and content."""
    content = b"".join(contents)
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content


def oid(dotted: str) -> bytes:
    """The encoding of an object identifier."""
    first, second, *others = map(int, dotted.split("."))
    content = bytearray()
    for arc in (40 * first + second, *others):
        groups = [arc & 0x7F]
        while arc := arc >> 7:
            groups.append(0x80 | arc & 0x7F)
        content += bytes(reversed(groups))
    return tlv(OID, bytes(content))


def _element(octets: bytes, at: int, end: int) -> Element:
    if at + 2 > end or octets[at] & _HIGH_TAG == _HIGH_TAG:
        raise DerError("an element is cut off, or has a tag that is not used here")
    size, start = octets[at + 1], at + 2
    if size & 0x80:
        count = size & 0x7F
        length = octets[start : start + count]
        size = int.from_bytes(length, "big")
        if not 0 < count <= _MOST_LENGTH_OCTETS or start + count > end or size < 0x80 or not length[0]:
            raise DerError("a length is not in its one form")
        start += count
    if start + size > end:
        raise DerError("an element goes beyond its place")
    return Element(octets, octets[at], at, start, start + size)
