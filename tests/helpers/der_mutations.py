"""Damaged copies of DER with valid lengths: the fault is deep inside."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

_CONSTRUCTED = 0x20
_OCTET_STRING = 0x04
_BIT_STRING = 0x03
_TAGS = (
    0x01,
    0x02,
    0x03,
    0x04,
    0x05,
    0x06,
    0x0A,
    0x0C,
    0x13,
    0x16,
    0x17,
    0x18,
    0x1E,
    0x30,
    0x31,
    0x80,
    0x82,
    0xA0,
    0xA3,
)
"""X.690 and X.680: universal ones, and some of contexts."""


@dataclass
class _Node:
    """One TLV; what an OCTET STRING or BIT STRING wraps counts as its content too."""

    tag: int
    value: bytes = b""
    lead: bytes = b""
    """The bytes before the wrapped content: the number of unused bits."""
    children: list[_Node] = field(default_factory=list)

    def encoded(self) -> bytes:
        """DER."""
        content = self.lead + b"".join(child.encoded() for child in self.children) if self.children else self.value
        return bytes([self.tag]) + _length(len(content)) + content

    def walk(self) -> Iterator[_Node]:
        """This one and all below."""
        yield self
        for child in self.children:
            yield from child.walk()


def der_mutations(data: bytes, count: int, seed: int) -> Iterator[bytes]:
    """`count` damaged copies of the DER `data`, each with one to three faults, the same ones for the same seed."""
    chance = random.Random(seed)
    for _ in range(count):
        [tree] = _parsed(data)
        for _ in range(chance.choice((1, 1, 2, 3))):
            chance.choice(_FAULTS)(chance.choice(list(tree.walk())), chance)
        yield tree.encoded()


def _parsed(data: bytes) -> list[_Node]:
    """The TLVs in `data`. Raises ValueError, IndexError."""
    nodes, at = [], 0
    while at < len(data):
        tag, first, start = data[at], data[at + 1], at + 2
        size = first & 0x7F if first & 0x80 else 0
        length = int.from_bytes(data[start : start + size], "big") if size else first
        value = data[start + size : start + size + length]
        if len(value) < length or first == 0x80:
            raise ValueError("cut off")
        nodes.append(_node(tag, value))
        at = start + size + length
    return nodes


def _node(tag: int, value: bytes) -> _Node:
    lead = value[:1] if tag == _BIT_STRING else b""
    if value and (tag & _CONSTRUCTED or tag in (_OCTET_STRING, _BIT_STRING)):
        try:
            return _Node(tag, value, lead, _parsed(value[len(lead) :]))
        except (ValueError, IndexError):
            return _Node(tag, value)
    return _Node(tag, value)


def _length(length: int) -> bytes:
    if length < 0x80:
        return bytes([length])
    encoded = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes([0x80 | len(encoded)]) + encoded


def _retag(node: _Node, chance: random.Random) -> None:
    node.tag = chance.choice(_TAGS)


def _change_value(node: _Node, chance: random.Random) -> None:
    value = bytearray(node.value or b"\0")
    value[chance.randrange(len(value))] ^= 1 << chance.randrange(8)
    node.value, node.children = bytes(value), []


def _resize_value(node: _Node, chance: random.Random) -> None:
    node.value, node.children = chance.choice((b"", node.value[:-1], node.value * 2, chance.randbytes(9))), []


def _drop_child(node: _Node, chance: random.Random) -> None:
    if node.children:
        del node.children[chance.randrange(len(node.children))]
        node.value = b""


def _double_child(node: _Node, chance: random.Random) -> None:
    if node.children:
        node.children.insert(chance.randrange(len(node.children) + 1), chance.choice(node.children))


def _mix_children(node: _Node, chance: random.Random) -> None:
    chance.shuffle(node.children)


_FAULTS: tuple[Callable[[_Node, random.Random], None], ...] = (
    _retag,
    _change_value,
    _change_value,
    _resize_value,
    _drop_child,
    _double_child,
    _mix_children,
)
