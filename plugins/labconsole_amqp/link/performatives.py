"""The frames that carry messages, credit and outcomes: read and written (AMQP 1.0 part 2, 2.3 and 2.7)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from labconsole_amqp.wire.amqp_types import LISTS, EnvelopeError, Value, list_items, value_at

FRAME_HEAD = struct.Struct(">IBBH")
"""Size, offset of the body in words of four bytes, type (0: AMQP), and channel."""
IDS = 2**32
"""Delivery ids and counts are serial numbers of 32 bits (RFC 1982)."""

UINT = 0x70
"""Type code of a uint of four bytes."""
_UINT_ZERO, _UINT, _TRUE, _FALSE, _NULL = b"\x43", bytes([UINT]), b"\x41", b"\x42", b"\x40"
_WINDOW = 2**31 - 1
"""Frames that the peer may send, and that we may: more than there will be."""
_GROWTH = 16
_MOST_SHIFT = 16
"""By so much may a frame be shorter, so that the eight bytes of a stamp and of a number stay together."""
_FIRST_HEAD = struct.Struct(">IBBH 3s BBB s s I 2s I s s s")
_NEXT_HEAD = struct.Struct(">IBBH 3s BBB s 4s s")
ID_PLACES = 16, 22
"""Where the first frame of a message has its delivery id and its tag, four bytes each."""


class Performative(IntEnum):
    """Descriptor codes of frame bodies."""

    BEGIN = 0x11
    ATTACH = 0x12
    FLOW = 0x13
    TRANSFER = 0x14
    DISPOSITION = 0x15
    END = 0x17


class DeliveryState(IntEnum):
    """Descriptor codes of delivery states (part 3, 3.4)."""

    NONE = 0
    RECEIVED = 0x23
    ACCEPTED = 0x24
    REJECTED = 0x25
    RELEASED = 0x26
    MODIFIED = 0x27


def serial_difference(number: int, other: int) -> int:
    """How far serial number `number` is after `other`, negative: before it."""
    return (number - other + IDS // 2) % IDS - IDS // 2


def code_of(frame: memoryview, body: int) -> int:
    """The descriptor code of a frame's body, which begins at byte `body`; 0: an empty frame, or another descriptor."""
    start = bytes(frame[body : body + 10])
    if start[:2] == b"\x00\x53" and len(start) > 2:
        return start[2]
    if start[:2] == b"\x00\x80" and len(start) == 10:
        return min(int.from_bytes(start[2:], "big"), 0xFF)
    return 0


class Fields:
    """The fields of the performative in a whole frame.

    `frame` is the frame as bytes, `stop` where its payload begins; each method takes the number of a field, and one
    that is absent or null has the value `default`.

    Raises:
        EnvelopeError: what is in the frame is not a performative, or a field is of another type.
    """

    def __init__(self, frame: bytes) -> None:
        self.frame = frame
        descriptor = value_at(frame, 4 * frame[4] + 1, len(frame))
        content = value_at(frame, descriptor.stop, len(frame))
        if content.type not in LISTS:
            raise EnvelopeError("a performative is not a list")
        self._items = list_items(frame, content)
        self.stop = content.stop

    def place(self, number: int) -> Value | None:
        """Where a field is, None without it."""
        item = self._items[number] if number < len(self._items) else None
        return None if item is None or item.type == 0x40 else item

    def uint(self, number: int, default: int = 0) -> int:
        """A field of type uint or ushort."""
        item = self.place(number)
        if item is None:
            return default
        if item.type not in (0x43, 0x52, 0x70, 0x60):
            raise EnvelopeError(f"field {number} is not an unsigned number")
        return int.from_bytes(self.frame[item.start : item.stop], "big")

    def flag(self, number: int) -> bool:
        """A field of type boolean, False without it."""
        item = self.place(number)
        return item is not None and (item.type == 0x41 or self.frame[item.start : item.stop] == b"\1")

    def octets(self, number: int) -> bytes:
        """The content of a field of variable size, empty without it."""
        item = self.place(number)
        return b"" if item is None else self.frame[item.start : item.stop]

    def state(self, number: int) -> DeliveryState:
        """A field that is a delivery state."""
        item = self.place(number)
        if item is None:
            return DeliveryState.NONE
        # `list_items` gives the described list; its descriptor is before it.
        before = self.frame[: item.start - {0x45: 1, 0xC0: 2}.get(item.type, 5)]
        code = before[-1] if before[-3:-1] == b"\x00\x53" or before[-10:-8] == b"\x00\x80" else -1
        try:
            return DeliveryState(code)
        except ValueError as error:
            raise EnvelopeError(f"field {number} is not a delivery state") from error


class FrameForm:
    """What frames have in common that are like a first one of `size` bytes.

    Its performative and what is before it are the same, but for the values of four bytes in `counters`, the same number
    that rises by one from frame to frame, and the value `free`. `stop` is where its payload begins; `settled` and
    `state` are what they say of their deliveries.
    """

    def __init__(
        self,
        first: Fields,
        counters: Sequence[Value],
        free: Value | None = None,
        *,
        settled: bool,
        state: DeliveryState = DeliveryState.NONE,
    ) -> None:
        self.size, self.stop = len(first.frame), first.stop
        self.settled, self.state = settled, state
        fixed = np.ones(first.stop, np.bool_)
        for _, start, stop in (*counters, *(() if free is None else (free,))):
            fixed[start:stop] = False
        self._columns = np.flatnonzero(fixed)
        self._values = np.frombuffer(first.frame, np.uint8)[self._columns]
        self._counters = [counter.start for counter in counters]
        edges = np.flatnonzero(np.diff(fixed, prepend=False, append=False)).reshape(-1, 2).tolist()
        self._parts = [(begin, stop, bytearray(first.frame[begin:stop])) for begin, stop in edges]
        self._often = 1
        """How many frames of the form were found at a time, last."""

    def fits(self, octets: memoryview, at: int, number: int) -> bool:
        """Whether the one frame at byte `at` is of the form, with its counters at `number`."""
        for begin, stop, part in self._parts:
            if part != octets[at + begin : at + stop]:
                return False
        counted = number.to_bytes(4, "big")
        return all(octets[at + start : at + start + 4] == counted for start in self._counters)

    def count(self, octets: NDArray[np.uint8]) -> int:
        """How many frames of this form are at the begin of `octets`."""
        self._often = count = self._count(octets, max(1, self._often))
        return count

    def _count(self, octets: NDArray[np.uint8], block: int) -> int:
        total, count = len(octets) // self.size, 0
        rows, first = octets[: total * self.size].reshape(total, self.size), self.number(octets)
        while count < total:  # in growing blocks: a frame of another form may come soon
            part = rows[count : count + block]
            equal = np.logical_and.reduce(part[:, self._columns] == self._values, axis=1)
            rising = np.arange(first + count, first + count + len(part))
            for start in self._counters:
                equal &= np.ascontiguousarray(part[:, start : start + 4]).view(">u4").ravel() == rising
            if not equal.all():
                return count + int(equal.argmin())
            count, block = count + len(part), block * _GROWTH
        return count

    def number(self, octets: NDArray[np.uint8] | memoryview) -> int:
        """The first counter of the frame at the begin of `octets`."""
        return int.from_bytes(octets[self._counters[0] : self._counters[0] + 4].tobytes(), "big")


@dataclass(frozen=True, slots=True)
class FramedMessage:
    """The transfer frames of one message, with a delivery id and tag of 0 (`ID_PLACES`), one behind the other.

    `starts`: the offset of each frame's part of the message, in the message and here.
    """

    octets: bytes
    starts: tuple[tuple[int, int], ...]

    @property
    def frames(self) -> int:
        """How many frames there are."""
        return len(self.starts)

    def offset(self, place: int) -> int:
        """Where the byte at `place` of the message is."""
        begin, at = max(start for start in self.starts if start[0] <= place)
        return at + place - begin


class TransferFrames:
    """Makes transfer frames of a link with handle 0 on `channel`, each at most `largest` bytes (512 or more)."""

    def __init__(self, channel: int, *, settled: bool, largest: int) -> None:
        self._channel = channel
        self._settled = _TRUE if settled else _FALSE
        self._room = largest - _FIRST_HEAD.size

    def count(self, size: int) -> int:
        """How many frames a message of `size` bytes takes, at most."""
        return max(1, -(-size // (self._room - _MOST_SHIFT)))

    def framed(self, message: bytes | bytearray, whole: tuple[int | None, ...] = ()) -> FramedMessage:
        """The frames of a message; the eight bytes at each offset in `whole` stay in one frame."""
        octets, starts = bytearray(), []
        for begin, end in self._parts(len(message), [offset for offset in whole if offset is not None]):
            more = _TRUE if end < len(message) else _FALSE
            octets += self._head(end - begin, 0, more) if begin == 0 else self._next_head(end - begin, more)
            starts.append((begin, len(octets)))
            octets += message[begin:end]
        return FramedMessage(bytes(octets), tuple(starts))

    def write(self, message: bytes | bytearray, delivery_id: int, into: bytearray) -> int:
        """Append the frames of a message to `into`; returns how many they are."""
        if len(message) <= self._room:
            into += self._head(len(message), delivery_id, _FALSE)
            into += message
            return 1
        framed, at = self.framed(message), len(into)
        into += framed.octets
        for offset in ID_PLACES:
            into[at + offset : at + offset + 4] = delivery_id.to_bytes(4, "big")
        return framed.frames

    def _parts(self, size: int, whole: list[int]) -> Iterator[tuple[int, int]]:
        begin = 0
        while begin < size or not begin:
            end = min(size, begin + self._room)
            for offset in whole:
                if offset < end < offset + 8:
                    end = offset
            yield begin, end
            begin = end

    def _head(self, size: int, delivery_id: int, more: bytes) -> bytes:
        return _FIRST_HEAD.pack(
            *(_FIRST_HEAD.size + size, 2, 0, self._channel, b"\x00\x53\x14", 0xC0, 16, 6, _UINT_ZERO, _UINT),
            *(delivery_id, b"\xa0\x04", delivery_id, _UINT_ZERO, self._settled, more),
        )

    def _next_head(self, size: int, more: bytes) -> bytes:
        about = (_NEXT_HEAD.size + size, 2, 0, self._channel, b"\x00\x53\x14", 0xC0, 7, 6)
        return _NEXT_HEAD.pack(*about, _UINT_ZERO, 4 * _NULL, more)


def flow_frame(channel: int, *, next_incoming: int, count: int, credit: int) -> bytes:
    """A receiver's flow, for the link with handle 0: `count` is its delivery count, `credit` for so many messages."""
    numbers = (next_incoming, _WINDOW, 0, _WINDOW, 0, count, credit)
    return _frame(channel, Performative.FLOW, [_UINT + number.to_bytes(4, "big") for number in numbers])


def disposition_frame(channel: int, first: int, last: int, state: DeliveryState, *, receiver: bool) -> bytes:
    """Settles the deliveries `first` to `last` with a state, as receiver or sender."""
    outcome = b"\x00\x53" + bytes([state]) + b"\x45"
    role = _TRUE if receiver else _FALSE
    ids = [_UINT + number.to_bytes(4, "big") for number in (first, last)]
    return _frame(channel, Performative.DISPOSITION, [role, *ids, _TRUE, outcome])


def _frame(channel: int, code: Performative, fields: list[bytes]) -> bytes:
    content = b"".join(fields)
    body = b"\x00\x53" + bytes([code, 0xC0, len(content) + 1, len(fields)]) + content
    return FRAME_HEAD.pack(FRAME_HEAD.size + len(body), 2, 0, channel) + body
