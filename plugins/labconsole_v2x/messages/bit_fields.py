"""Fields of a message in UPER: their ranges and widths, read and written bit by bit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from operator import le, lshift, sub
from typing import NamedTuple

from labconsole_v2x.messages.asn1_modules import MessageError


class Field(NamedTuple):
    """A constrained integer, enumeration or bit string: its path, range, and bits in UPER."""

    path: tuple[str, ...]
    low: int
    high: int
    width: int
    bit_string: bool


def field(path: str, low: int, high: int, *, width: int | None = None, bit_string: bool = False) -> Field:
    """Return the field at a dotted `path`; `width` where the type is extensible, which costs a bit more."""
    return Field(tuple(path.split(".")), low, high, width or (high - low).bit_length(), bit_string)


def check_range(item: Field, value: int) -> None:
    """Check that a field can have this value.

    Raises:
        MessageError: it is out of range.
    """
    if not item.low <= value <= item.high:
        raise MessageError(f"{'.'.join(item.path)} is {value}: out of range {item.low} to {item.high}")


class Layout:
    """Fields that always follow one another, and what is needed to read and write them at once."""

    def __init__(self, fields: Iterable[Field]) -> None:
        self.fields = tuple(fields)
        ends = list(accumulate(item.width for item in self.fields))
        self.width = ends[-1]
        self.lows = [item.low for item in self.fields]
        self.highs = [item.high for item in self.fields]
        self.shifts = [self.width - end for end in ends]
        masks = [(1 << item.width) - 1 for item in self.fields]
        self.to_read = list(zip(self.shifts, masks, self.lows, strict=True))


class NotReadableError(Exception):
    """The bits end before the fields do, or a value is out of its field's range."""


class BitReader:
    """The octets of a message as one whole number, of which `left` bits are not read yet."""

    def __init__(self, octets: bytes) -> None:
        self._number = int.from_bytes(octets, "big")
        self.left = len(octets) * 8

    def read(self, layout: Layout) -> list[int]:
        """Return the values of the next fields.

        Raises:
            NotReadableError: they do not fit.
        """
        left = self.left - layout.width
        if left < 0:
            raise NotReadableError
        number = self._number >> left
        values = [(number >> shift & mask) + low for shift, mask, low in layout.to_read]
        if not all(map(le, values, layout.highs)):
            raise NotReadableError
        self.left = left
        return values


class LocatingReader(BitReader):
    """Notes also in which octets (first, end) of the message the fields are, by the last name of their path."""

    def __init__(self, octets: bytes) -> None:
        super().__init__(octets)
        self.found: dict[str, list[tuple[int, int]]] = {}
        self._all = self.left

    def read(self, layout: Layout) -> list[int]:
        at = self._all - self.left
        values = super().read(layout)
        for item in layout.fields:
            self.found.setdefault(item.path[-1], []).append((at // 8, (at + item.width + 7) // 8))
            at += item.width
        return values


class BitWriter:
    """The bits of a message as they are written."""

    def __init__(self) -> None:
        self._number = 0
        self._width = 0

    def write(self, layout: Layout, values: Sequence[int]) -> None:
        """Append the values of all fields of a layout.

        Raises:
            MessageError: a value is out of range.
        """
        if not (all(map(le, layout.lows, values)) and all(map(le, values, layout.highs))):
            for item, value in zip(layout.fields, values, strict=True):
                check_range(item, value)
        bits = sum(map(lshift, map(sub, values, layout.lows), layout.shifts))
        self._number = self._number << layout.width | bits
        self._width += layout.width

    def octets(self) -> bytes:
        """Return what was written, with zero bits up to a whole octet."""
        return (self._number << -self._width % 8).to_bytes((self._width + 7) // 8, "big")
