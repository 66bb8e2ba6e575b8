"""A tree of named fields with the octets in which each is, and the walk over octets that builds it and never fails."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from labconsole.safe_text import shown
from labconsole_v2x.inspection.inspection_report import time_text
from labconsole_v2x.inspection.verdicts import cause
from labconsole_v2x.messages import its_time
from labconsole_v2x.security.reading import (
    MAX_ITEMS,
    READ_ERRORS,
    MalformedDataError,
    Reader,
    malformed,
    read_choice,
    read_extensions,
    read_fixed,
    read_integer,
    read_length,
    read_octets,
    read_optional,
)

T = TypeVar("T")
MOST_SHOWN_OCTETS = 48
"""Octets of a value in hexadecimal; the rest of a longer one is in the octets themselves."""


@dataclass(frozen=True, slots=True)
class Node:
    """A field: its name and value as texts, and its octets from `start` to `end` (excluded)."""

    name: str
    value: str
    start: int
    end: int
    children: tuple[Node, ...] = ()
    fault: bool = False
    """Whether these octets could not be read; the value then is the reason."""


class StoppedError(Exception):
    """Octets that cannot be read, whose reason is in the tree: what follows them cannot be found."""


@dataclass(slots=True)
class Part:
    """A node with parts that is being read; its value may be set until its end."""

    value: str = ""


class Walk:
    """Reads fields one after the other, from `at` on, and collects their nodes.

    What a field's reader raises becomes a node with the reason: the rest of the part that it is in stays unread, and
    reading continues after the innermost part whose end is known.
    """

    def __init__(self, octets: bytes, at: int = 0) -> None:
        self.octets = octets
        self.at = at
        self.end = len(octets)
        self.nodes: list[Node] = []

    @property
    def next(self) -> int:
        """The next octet. Raises MalformedDataError: there is none."""
        if self.at >= self.end:
            malformed("Truncated", self.at)
        return self.octets[self.at]

    @contextmanager
    def part(self, name: str, value: str = "", *, size: int | None = None) -> Iterator[Part]:
        """A node whose parts are read within the block; `size` where its octets are counted, so that it can fail."""
        part, start = Part(value), self.at
        siblings, outer_end = self.nodes, self.end
        self.nodes = []
        if size is not None:
            self.end = min(outer_end, start + size)
        stopped = False
        try:
            yield part
            if size is not None and self.at < self.end:
                self.field("further octets", self.end - self.at)
            if size is not None and start + size > outer_end:
                malformed(f"Truncated: {outer_end - start} octets instead of {size}", outer_end)
        except StoppedError:
            stopped = size is None or start + size > outer_end
        except (MalformedDataError, *READ_ERRORS) as error:
            self.fault(cause(error) if isinstance(error, MalformedDataError) else "Truncated")
            stopped = size is None or start + size > outer_end
        children, self.nodes, self.end = tuple(self.nodes), siblings, outer_end
        self.nodes.append(Node(name, part.value, start, self.at, children))
        if stopped:
            raise StoppedError

    def fault(self, why: str) -> None:
        """Pass the rest of the part, with the reason for which it cannot be read."""
        self.nodes.append(Node("not readable", shown(why), self.at, self.end, fault=True))
        self.at = self.end

    def read(self, name: str, reader: Reader[T], text: Callable[[T], str] = str) -> T:
        """Read a field by a reader of COER."""
        value, end = reader(self.octets, self.at)
        self._add(name, text(value), self.at, end)
        self.at = end
        return value

    def skip(self, reader: Reader[T]) -> T:
        """Read what has no node of its own: a preamble, a tag, a length."""
        value, end = reader(self.octets, self.at)
        self._check(end)
        self.at = end
        return value

    def field(self, name: str, size: int, text: Callable[[bytes], str] | None = None) -> bytes:
        """Read a field of `size` octets; their value in hexadecimal, if no other text is given."""
        return self.read(name, read_fixed(size), text or hex_text)

    def number(self, name: str, size: int, text: Callable[[int], str] = str) -> int:
        """Read an unsigned whole number of `size` octets."""
        return int.from_bytes(self.field(name, size, lambda octets: text(int.from_bytes(octets, "big"))), "big")

    def octet_string(self, name: str, text: Callable[[bytes], str] | None = None) -> bytes:
        """Read an octet string with its length, which the node's octets leave out."""
        value, end = read_octets(self.octets, self.at)
        self._add(name, (text or hex_text)(value), end - len(value), end)
        self.at = end
        return value

    def integer(self, name: str, text: Callable[[int], str] = str, *, signed: bool = False) -> int:
        """Read a whole number of any size, with its length, which the node's octets leave out."""
        value, end = read_integer(self.octets, self.at, signed=signed)
        self._add(name, text(value), read_length(self.octets, self.at)[1], end)
        self.at = end
        return value

    def choice(self, choices: Mapping[int, T], what: str) -> T:
        """Read the tag of a CHOICE without a node, and return the alternative."""
        number = read_choice(self.next, max(choices) + 1, what, self.at)
        self.at += 1
        return choices[number]

    def preamble(self, unused: int = 0) -> int:
        """Read the preamble of a SEQUENCE without a node. Raises MalformedDataError: an unused bit is set."""
        bits = self.next
        if bits & unused:
            malformed("Unused bits set", self.at)
        self.at += 1
        return bits

    def optional(self) -> bool:
        """Read the preamble of a SEQUENCE with one optional or extensible part."""
        given = read_optional(self.octets, self.at)
        self.preamble()
        return given

    def items(self, name: str, read: Callable[[int], object]) -> None:
        """Read a SEQUENCE OF as a part; `read` gets the number of each item, from 1 on."""
        with self.part(name) as part:
            count = self.each(read)
            part.value = f"{count} item{'' if count == 1 else 's'}"

    def each(self, read: Callable[[int], object]) -> int:
        """Read the items of a SEQUENCE OF without a node for all of them, and return their number."""
        start, count = self.at, self.skip(read_integer)
        if count > MAX_ITEMS:
            malformed(f"List of {count} items", start)
        for number in range(1, count + 1):
            read(number)
        return count

    def extensions(self, known: Mapping[int, tuple[str, Callable[[], object]]]) -> None:
        """Read the extension additions of a SEQUENCE, each as a part, whose end is known."""
        found, end = read_extensions(self.octets, self.at)
        self._check(end)
        for number, start, stop in found:
            self.at = start
            if number in known:
                name, read = known[number]
                with self.part(name, size=stop - start):
                    read()
            else:
                self.field(f"extension {number + 1}", stop - start)
        self.at = end

    def struct(self, layout: struct.Struct, *fields: Mapping[str, Callable[[Any], str]]) -> None:
        """Read the fields of a header that is packed as `layout` has it.

        For each of its parts, padding included, a text for each name: several names share octets by their bits.
        """
        for code, texts in zip(_codes(layout.format), fields, strict=True):
            end = self.at + struct.calcsize(code)
            self._check(end)
            (value,) = struct.unpack_from(code, self.octets, self.at) or (self.octets[self.at : end],)
            for name, text in texts.items():
                self._add(name, text(value), self.at, end)
            self.at = end

    def _add(self, name: str, value: str, start: int, end: int) -> None:
        self._check(end)
        self.nodes.append(Node(name, value, start, end))

    def _check(self, end: int) -> None:
        if end > self.end:
            malformed(f"Truncated: {self.end - self.at} octets instead of {end - self.at}", self.at)


@cache
def _codes(layout: str) -> tuple[str, ...]:
    """The parts of a big-endian struct's format."""
    return tuple(f">{code}" for code in re.findall(r"\d*[a-zA-Z]", layout.replace("xx", "2x")))


def hex_text(octets: bytes) -> str:
    """Octets in hexadecimal, and how many where they are too many."""
    text = octets[:MOST_SHOWN_OCTETS].hex()
    return text if len(octets) <= MOST_SHOWN_OCTETS else f"{text} ... ({len(octets):,} octets)"


def with_unit(value: int, digits: int, unit: str) -> str:
    """A whole number in units of the last of so many decimal digits, as text with its unit."""
    return f"{value / 10**digits:.{digits}f} {unit}"


def degrees(value: int) -> str:
    """Latitude or longitude, of which the value has tenths of microdegrees."""
    return with_unit(value, 7, "°")


def utc_text(its_us: int, digits: int = 6) -> str:
    """ITS time in us as UTC with up to six digits of a second; the number where no calendar has it."""
    text = time_text(its_time.unix_ns(its_us))
    return f"{text[: 20 + digits].rstrip('.')}Z" if text else f"{its_us:,} us"


def named(value: int, names: Mapping[int, str]) -> str:
    """A number with the name that it has, if it has one."""
    return f"{names[value]} ({value})" if value in names else str(value)


def innermost(nodes: tuple[Node, ...], octet: int) -> tuple[Node, ...]:
    """The path from the top to the smallest node with an octet; of several with the same octets, the outermost."""
    path: list[Node] = []
    while within := [node for node in nodes if node.start <= octet < node.end]:
        path.append(min(within, key=lambda node: node.end - node.start))
        nodes = path[-1].children
    while len(path) > 1 and (path[-1].start, path[-1].end) == (path[-2].start, path[-2].end):
        path.pop()
    return tuple(path)


def as_text(nodes: tuple[Node, ...], indent: str = "") -> str:
    """The tree as lines, each level indented by two spaces."""
    lines = []
    for node in nodes:
        lines.append(f"{indent}{node.name}{': ' if node.value else ''}{node.value}")
        if node.children:
            lines.append(as_text(node.children, indent + "  "))
    return "\n".join(lines)
