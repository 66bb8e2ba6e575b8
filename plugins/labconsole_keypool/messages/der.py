"""Encodes the few DER values (X.690) of certificate extensions that `cryptography` lacks."""

from __future__ import annotations


def sequence(*items: bytes) -> bytes:
    """SEQUENCE of values that are encoded already."""
    return _value(0x30, b"".join(items))


def set_of(item: bytes) -> bytes:
    """SET of one value that is encoded already."""
    return _value(0x31, item)


def utf8(text: str) -> bytes:
    """UTF8String."""
    return _value(0x0C, text.encode())


def printable(text: str) -> bytes:
    """PrintableString. Raises ValueError: a character outside its set (X.680, 41.4)."""
    if not is_printable(text):
        raise ValueError("it has characters other than A-Z, a-z, 0-9, blank and '()+,-./:=?")
    return _value(0x13, text.encode("ascii"))


def is_printable(text: str) -> bool:
    """Whether a PrintableString can hold the text."""
    return all(character.isascii() and (character.isalnum() or character in " '()+,-./:=?") for character in text)


def generalized_time(text: str) -> bytes:
    """GeneralizedTime of a text such as 19121212120000Z."""
    return _value(0x18, text.encode("ascii"))


def object_identifier(dotted: str) -> bytes:
    """OBJECT IDENTIFIER of at least two numbers."""
    first, second, *rest = map(int, dotted.split("."))
    return _value(0x06, b"".join(map(_base_128, (40 * first + second, *rest))))


def _base_128(number: int) -> bytes:
    digits = [number & 0x7F]
    while number := number >> 7:
        digits.insert(0, number & 0x7F | 0x80)
    return bytes(digits)


def _value(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content
