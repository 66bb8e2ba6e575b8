"""Messages as they arrive, until they are returned: many small ones are then compared with their template by numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from labconsole.clock import now_ns
from labconsole_amqp.wire.template import Template

LARGE_BYTES = 1024
"""From this size on, messages are compared one by one where they are read, which spares a copy; so is a single one."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Received messages in order; all arrays have one element per message.

    `received_ns` is when a message was read from the socket, or, of all but the first of a read, when it was taken from
    what was read; many small ones are spread evenly over the time in which they were taken. Where `matched`, the
    message equals one of the receiver's templates, and `stamps_ms` and `numbers` hold its stamp and number (-1 without
    one); elsewhere they are -1, and `raw` maps the message's index to its bytes, for the slow path. A message that the
    sender aborted halfway has size 0 and `raw` b"". `sizes` are bytes of the encoded message.
    """

    received_ns: NDArray[np.int64]
    stamps_ms: NDArray[np.int64]
    numbers: NDArray[np.int64]
    sizes: NDArray[np.int64]
    matched: NDArray[np.bool_]
    raw: dict[int, bytes]

    def __len__(self) -> int:
        return len(self.received_ns)


@dataclass(frozen=True, slots=True)
class Rows:
    """Messages of one length that are not compared yet: a row each."""

    received_ns: NDArray[np.int64]
    rows: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, begin: int, stop: int) -> Rows:
        """The messages from index `begin` to `stop`."""
        return Rows(self.received_ns[begin:stop], self.rows[begin:stop])


@dataclass(frozen=True, slots=True)
class Compared:
    """Messages of `length` bytes that were compared where they were read.

    `found` has stamp and number of each, and its bytes where it equals no template.
    """

    received_ns: list[int]
    length: int
    found: list[tuple[int, int] | bytes]

    def __len__(self) -> int:
        return len(self.found)

    def part(self, begin: int, stop: int) -> Compared:
        """The messages from index `begin` to `stop`."""
        return Compared(self.received_ns[begin:stop], self.length, self.found[begin:stop])


@dataclass(frozen=True, slots=True)
class Arrival:
    """Messages of successive delivery ids that have arrived together; `settled` by their sender."""

    messages: Rows | Compared
    first_id: int
    settled: bool

    def __len__(self) -> int:
        return len(self.messages)

    def part(self, begin: int, stop: int) -> Arrival:
        """The messages from index `begin` to `stop`."""
        return Arrival(self.messages.part(begin, stop), self.first_id + begin, self.settled)


class ArrivalClock:
    """The times of messages that are taken from what was read."""

    def __init__(self) -> None:
        self._last_ns = self._read_ns = 0

    def times(self, count: int, read_ns: int) -> NDArray[np.int64]:
        """Those of the next `count` messages of what was read at `read_ns`: the first one's, and then evenly."""
        begin_ns, self._last_ns, self._read_ns = max(read_ns, self._last_ns), now_ns(), read_ns
        return begin_ns + np.arange(count) * ((self._last_ns - begin_ns) // count)

    def time(self, read_ns: int) -> int:
        """That of the next message of what was read at `read_ns`."""
        self._last_ns = now_ns() if read_ns == self._read_ns else read_ns
        self._read_ns = read_ns
        return self._last_ns


class TemplateMatcher:
    """Compares messages with a template, apart from stamp and number, and reads these."""

    def __init__(self, template: Template) -> None:
        self._stamp, self._number = template.stamp_offset, template.number_offset
        message, begin = template.message, 0
        self._parts: list[tuple[int, int, bytearray]] = []
        """What is compared: where each part begins and stops, and what it is (a bytearray is compared at once, while a
        memoryview or bytes would be compared byte by byte)."""
        places = [offset for offset in (self._stamp, self._number) if offset is not None]
        for stop in (*sorted(places), len(message)):
            self._parts.append((begin, stop, bytearray(message[begin:stop])))
            begin = stop + 8

    @cached_property
    def _columns(self) -> NDArray[np.intp]:
        """The places of what is compared in a row; a large message, which has megabytes of them, is never in one."""
        return np.concatenate([np.arange(begin, stop) for begin, stop, _ in self._parts])

    @cached_property
    def _values(self) -> NDArray[np.uint8]:
        """The octets at these places."""
        return np.concatenate([np.frombuffer(part, np.uint8) for _, _, part in self._parts])

    def check(self, rows: NDArray[np.uint8]) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
        """Which rows match, and their stamps (ms since the Unix epoch) and numbers; -1 where they do not."""
        stamps, numbers = _integers(rows, self._stamp), np.full(len(rows), -1)
        if self._number is not None:
            numbers = _integers(rows, self._number)
        matched: NDArray[np.bool_] = np.logical_and.reduce(rows[:, self._columns] == self._values, axis=1)
        matched &= stamps >= 0
        if not matched.all():
            stamps[~matched] = numbers[~matched] = -1
        return matched, stamps, numbers

    def check_one(self, message: memoryview) -> tuple[int, int] | None:
        """The stamp and number of one message, None: it does not match."""
        for begin, stop, part in self._parts:
            if part != message[begin:stop]:
                return None
        stamp = int.from_bytes(message[self._stamp : self._stamp + 8], "big", signed=True)
        if stamp < 0:
            return None
        if self._number is None:
            return stamp, -1
        return stamp, int.from_bytes(message[self._number : self._number + 8], "big", signed=True)


def _integers(rows: NDArray[np.uint8], offset: int) -> NDArray[np.int64]:
    fields = np.ascontiguousarray(rows[:, offset : offset + 8])
    return fields.view(">i8").reshape(len(rows)).astype(np.int64)


def compared(message: memoryview, matcher: TemplateMatcher | None) -> tuple[int, int] | bytes:
    """The stamp and number of one message, or its bytes where it equals no template."""
    found = matcher.check_one(message) if matcher is not None else None
    return bytes(message) if found is None else found


def joined(arrivals: Sequence[Arrival], matchers: Mapping[int, TemplateMatcher]) -> Batch:
    """The messages of all arrivals, compared with the template of their length."""
    total = sum(map(len, arrivals))
    stamps, numbers, matched = np.full(total, -1), np.full(total, -1), np.zeros(total, np.bool_)
    received, sizes, raw = np.zeros(total, np.int64), np.zeros(total, np.int64), dict[int, bytes]()
    by_length: dict[int, list[tuple[int, NDArray[np.uint8]]]] = {}
    begin = 0
    for arrival in arrivals:
        messages, part = arrival.messages, slice(begin, begin + len(arrival))
        received[part] = messages.received_ns
        if isinstance(messages, Rows):
            length = messages.rows.shape[1]
            by_length.setdefault(length, []).append((begin, messages.rows))
        else:
            length = messages.length
            matcher = matchers.get(length)
            for index, found in enumerate(messages.found, begin):
                if isinstance(found, bytes) and matcher is not None:  # its template may have been learnt since
                    found = compared(memoryview(found), matcher)
                if isinstance(found, bytes):
                    raw[index] = found
                else:
                    (stamps[index], numbers[index]), matched[index] = found, True
        sizes[part] = length
        begin = part.stop
    for length, pieces in by_length.items():
        places = np.concatenate([np.arange(start, start + len(rows)) for start, rows in pieces])
        rows = np.concatenate([rows for _, rows in pieces])
        if (matcher := matchers.get(length)) is not None:
            matched[places], stamps[places], numbers[places] = matcher.check(rows)
        raw |= {int(places[at]): rows[at].tobytes() for at in np.flatnonzero(~matched[places]).tolist()}
    return Batch(received, stamps, numbers, sizes, matched, dict(sorted(raw.items())))
