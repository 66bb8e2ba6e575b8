"""Deterministic CBOR (RFC 8949, 4.2) of what messages have: integers, octets, text, arrays, maps, tags, float64, null.

Read strictly: definite lengths, each number in its shortest form, no map key twice, nothing after the item. Values are
int, bytes, str, list, dict, float, None and `Tagged`; the order of maps is that in which they were given.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

_UNSIGNED, _NEGATIVE, _OCTETS, _TEXT, _ARRAY, _MAP, _TAG, _OTHER = range(8)
_NULL, _FLOAT64 = b"\xf6", 0xFB
_SIZES = {24: 1, 25: 2, 26: 4, 27: 8}
_DEEPEST = 8
_MOST_ITEMS = 256
"""In a message: what is not verified yet must not take many times its size in memory."""


class CborError(ValueError):
    """Octets that are not one item in the form that is accepted."""


class Tagged(NamedTuple):
    """An item with a tag."""

    tag: int
    value: Any


def encode(value: Any) -> bytes:
    """The encoding of a value."""
    match value:
        case Tagged(tag, inner):
            return _head(_TAG, tag) + encode(inner)
        case int():
            return _head(_UNSIGNED, value) if value >= 0 else _head(_NEGATIVE, -1 - value)
        case bytes():
            return _head(_OCTETS, len(value)) + value
        case str():
            text = value.encode()
            return _head(_TEXT, len(text)) + text
        case list():
            return _head(_ARRAY, len(value)) + b"".join(map(encode, value))
        case dict():
            return _head(_MAP, len(value)) + b"".join(encode(part) for pair in value.items() for part in pair)
        case float():
            return struct.pack(">Bd", _FLOAT64, value)
        case None:
            return _NULL
    raise TypeError(f"{type(value).__name__} is not encoded here")


def decode(octets: bytes) -> Any:
    """The value of the one item that `octets` are. Raises CborError."""
    value, at = _item(octets, 0, 0, iter(range(_MOST_ITEMS)))
    if at != len(octets):
        raise CborError("octets follow the item")
    return value


def _head(kind: int, number: int) -> bytes:
    if number < 24:
        return bytes((kind << 5 | number,))
    code, size = next((code, size) for code, size in _SIZES.items() if number < 1 << 8 * size)
    return bytes((kind << 5 | code,)) + number.to_bytes(size, "big")


def _item(octets: bytes, at: int, depth: int, budget: Iterator[int]) -> tuple[Any, int]:
    if at >= len(octets) or depth > _DEEPEST:
        raise CborError("an item is cut off, or nested too deeply")
    if next(budget, None) is None:
        raise CborError("there are too many items")
    kind, code = octets[at] >> 5, octets[at] & 0x1F
    if kind == _OTHER:
        return _other(octets, at)
    number, at = _number(octets, at + 1, code)
    match kind:
        case 0:
            return number, at
        case 1:
            return -1 - number, at
        case 2 | 3:
            if at + number > len(octets):
                raise CborError("a string is cut off")
            content = octets[at : at + number]
            return content if kind == _OCTETS else _text(content), at + number
        case 4:
            return _items(octets, at, number, depth, budget)
        case 5:
            flat, at = _items(octets, at, 2 * number, depth, budget)
            return _map(flat), at
    value, at = _item(octets, at, depth + 1, budget)
    return Tagged(number, value), at


def _number(octets: bytes, at: int, code: int) -> tuple[int, int]:
    if code < 24:
        return code, at
    size = _SIZES.get(code)
    if size is None or at + size > len(octets):
        raise CborError("a number is cut off, or a length is not definite")
    number = int.from_bytes(octets[at : at + size], "big")
    if number < (24 if size == 1 else 1 << 4 * size):
        raise CborError("a number is not in its shortest form")
    return number, at + size


def _items(octets: bytes, at: int, count: int, depth: int, budget: Iterator[int]) -> tuple[list[Any], int]:
    if count > len(octets) - at:  # each takes one octet at least
        raise CborError("an array or map is cut off")
    found = []
    for _ in range(count):
        value, at = _item(octets, at, depth + 1, budget)
        found.append(value)
    return found, at


def _map(flat: list[Any]) -> dict[int | str, Any]:
    found: dict[int | str, Any] = {}
    for key, value in zip(flat[::2], flat[1::2], strict=True):
        if not isinstance(key, int | str) or key in found:
            raise CborError("a key of a map is there twice, or is not a number or text")
        found[key] = value
    return found


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise CborError("text is not UTF-8") from error


def _other(octets: bytes, at: int) -> tuple[float | None, int]:
    if octets[at] == _NULL[0]:
        return None, at + 1
    if octets[at] != _FLOAT64 or at + 9 > len(octets):
        raise CborError("a value of a kind that is not used here")
    (number,) = struct.unpack_from(">d", octets, at + 1)
    if not math.isfinite(number):
        raise CborError("a number is not finite")
    return number, at + 9
