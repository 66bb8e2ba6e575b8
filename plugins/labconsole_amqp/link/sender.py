"""The sending end of the fast link: encoded messages, a chunk of transfers at a time."""

from __future__ import annotations

import struct
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labconsole.clock import now_ns, wall_ns
from labconsole.errors import UserError
from labconsole_amqp.link.connection import Connection
from labconsole_amqp.link.link_base import ATTACH_TIMEOUT_S
from labconsole_amqp.link.message_link import MessageLink
from labconsole_amqp.link.performatives import (
    ID_PLACES,
    IDS,
    UINT,
    DeliveryState,
    Fields,
    FrameForm,
    TransferFrames,
    disposition_frame,
    serial_difference,
)
from labconsole_amqp.link.proton_engine import lib
from labconsole_amqp.wire.amqp_types import Buffer, EnvelopeError
from labconsole_amqp.wire.template import Template

_CHUNK_MESSAGES = 512
_CHUNK_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class SentBatch:
    """Times at which messages were given to the socket (ns), and their stamps (ms since the Unix epoch).

    Those that were given to it together have the same time.
    """

    times_ns: NDArray[np.int64]
    stamps_ms: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.times_ns)


class Sender(MessageLink):
    """Sends encoded messages to `address`.

    Args:
        settled: pre-settled (at most once); else each message is to be acknowledged (at least once).
        keeps: whether messages are kept until they are acknowledged, so that another link can send them again.
        after: the link before a lost connection: its counts continue, and what it has kept is sent again before
            anything else, with its old stamps.

    `attach_ns` is how long attaching took, `max_message_size` the peer's limit (bytes, 0 = none), `sent` the number of
    messages given to the engine; `accepted`, `rejected` and `released` count the outcomes of unsettled ones.

    Raises:
        UserError: the address does not exist, or the peer refused otherwise or did not answer.
    """

    def __init__(
        self,
        connection: Connection,
        address: str,
        *,
        settled: bool = False,
        keeps: bool = False,
        after: Sender | None = None,
        timeout_s: float = ATTACH_TIMEOUT_S,
    ) -> None:
        super().__init__(connection, address, "sender")
        self.sent = self.rejected = self.released = 0
        self._settled = settled
        self._acknowledged_ns: list[NDArray[np.int64]] = []
        self._kept: deque[Buffer | tuple[Template, int, int]] | None = deque() if keeps and not settled else None
        """The messages that are not acknowledged, as bytes or as template, number and stamp, and then `_waiting`."""
        self._waiting: deque[Buffer] = deque()
        """Messages that wait to be sent: those of the link before, and what window or socket have no room for."""
        self._next_id = self._oldest_id = 0
        """Delivery ids: of the next message, and of the oldest that is not settled; they count on beyond 32 bits."""
        self._early: dict[int, DeliveryState] = {}
        """Outcomes that have come before those of older messages, by delivery id."""
        self._form: FrameForm | None = None
        """That of the last outcome of a single message."""
        self._transfers = self._credit = self._window = 0
        """Frames that were sent; messages that the link, and frames that the session may send."""
        lib.pn_link_set_snd_settle_mode(self._link, lib.PN_SND_SETTLED if settled else lib.PN_SND_UNSETTLED)
        lib.pn_terminus_set_address(lib.pn_link_source(self._link), lib.pn_link_name(self._link))
        target = lib.pn_link_target(self._link)
        self.attach_ns = self._attach(target, lib.pn_link_remote_target(self._link), timeout_s)
        self.max_message_size = int(lib.pn_link_remote_max_message_size(self._link))
        self._frames = TransferFrames(self._channel, settled=settled, largest=self._largest_frame)
        self._rows: _MessageRows | None = None
        if after is not None:
            self._continue(after)

    def _continue(self, after: Sender) -> None:
        self.sent, self.rejected, self.released = after.sent, after.rejected, after.released
        self._acknowledged_ns = after._acknowledged_ns
        if self._kept is not None and after._kept is not None:
            self._waiting.extend(_encoded(kept) for kept in after._kept)
            self._kept.extend(self._waiting)

    @property
    def capacity(self) -> int:
        """How many messages may be sent now: the peer's credit, or 0 while the socket accepts no more, or others are to
        be sent again."""
        return 0 if self._waiting else self._room

    @property
    def _room(self) -> int:
        return 0 if self._engine.blocked else max(0, min(self._credit, self._window))

    def _room_for(self, size: int) -> int:
        """How many messages of `size` bytes may be sent now."""
        return min(self.capacity, max(0, self._window) // self._frames.count(size))

    @property
    def accepted(self) -> int:
        """How many unsettled messages the peer has accepted."""
        return 0 if self._settled else self.sent - self.unsettled - self.rejected - self.released

    @property
    def unsettled(self) -> int:
        """How many messages wait for their acknowledgement."""
        return self._next_id - self._oldest_id + len(self._waiting)

    def send(self, template: Template, count: int, first_number: int = 0) -> SentBatch:
        """Send up to `count` messages from `template`, numbered from `first_number`, as capacity allows.

        Never waits: call `pump` when it sent less than `count`, and to detect a lost connection. Raises UserError if
        the message is larger than the peer's limit.
        """
        size = len(template.message)
        self.check_size(size)
        if self._rows is None or self._rows.template is not template:
            self._rows = _MessageRows(template, self._frames)
        rows, sent = self._rows, _Sending()
        while sent.count < count and (capacity := self._room_for(size)):
            chunk = min(count - sent.count, capacity, rows.count)
            first, stamp_ms = first_number + sent.count, sent.add(chunk)
            if self._kept is not None:
                self._kept.extend((template, number, stamp_ms) for number in range(first, first + chunk))
            self._put(rows.filled(chunk, self._next_id, first, stamp_ms), chunk, chunk * rows.frames)
        self.sent += sent.count
        return sent.batch()

    def send_mixed(self, templates: Sequence[Template], first_number: int = 0) -> SentBatch:
        """As `send`, a message from each of `templates` in their order: for messages of several sizes."""
        sizes = [len(template.message) for template in templates]
        for size in set(sizes):
            self.check_size(size)
        sent = _Sending()
        while places := self._chunk(sizes, sent.count, self.capacity):
            stamp_ms = sent.add(len(places))
            messages = [templates[place].filled(first_number + place, stamp_ms) for place in places]
            if self._kept is not None:
                self._kept.extend(messages)
            self._put_messages(messages)
        self.sent += sent.count
        return sent.batch()

    def send_messages(self, messages: Sequence[bytes], stamp_offset: int) -> SentBatch:
        """Send the first of `messages`, as many as there is capacity for.

        The time of sending is written at `stamp_offset` of each (see `Template`). Those that do not fit into the window
        of the session follow by themselves.

        Returns and raises as `send`.
        """
        for size in set(map(len, messages)):
            self.check_size(size)
        count, sent = min(len(messages), self.capacity), _Sending()
        stamp = sent.add(count).to_bytes(8, "big")
        stamped = [bytearray(message) for message in messages[:count]]
        for message in stamped:
            message[stamp_offset : stamp_offset + 8] = stamp
        if self._kept is not None:
            self._kept.extend(stamped)
        self.sent += count
        self._waiting.extend(stamped)
        self._send_waiting()
        return sent.batch()

    def _chunk(self, sizes: Sequence[int], first: int, room: int) -> range:
        """The messages from `first` on that may be sent together."""
        last, octets, window = first, 0, self._window
        for size in sizes[first : first + min(room, _CHUNK_MESSAGES)]:
            window -= self._frames.count(size)
            if window < 0 or octets >= _CHUNK_BYTES:
                break
            last, octets = last + 1, octets + size
        return range(first, last)

    def _send_waiting(self) -> None:
        """Send what waits."""
        while self._waiting and (places := self._chunk([len(message) for message in self._waiting], 0, self._room)):
            self._put_messages([self._waiting.popleft() for _ in places])

    def _put_messages(self, messages: Sequence[Buffer]) -> None:
        """Send messages as they are."""
        frames, transfers = bytearray(), 0
        for delivery_id, message in enumerate(messages, self._next_id):
            transfers += self._frames.write(message, delivery_id % IDS, frames)
        self._put(memoryview(frames), len(messages), transfers)

    def _put(self, frames: memoryview, messages: int, transfers: int) -> None:
        """Write the frames of messages, or what the socket accepts of them."""
        self._next_id += messages
        if self._settled:
            self._oldest_id = self._next_id
        self._credit -= messages
        self._window -= transfers
        self._transfers += transfers
        self._engine.put(frames)
        self._flush()

    def check_size(self, size: int) -> None:
        """Raises UserError if a message of `size` bytes is above the peer's limit."""
        if self.max_message_size and size > self.max_message_size:
            raise UserError(too_large(size, self.connection.endpoint.name, self.max_message_size))

    def pump(self, timeout_s: float) -> None:
        """Do I/O (see `Connection.pump`) and process acknowledgements and credit. Raises UserError."""
        super().pump(timeout_s)
        self._send_waiting()

    def attached(self, channel: int, begin: Fields, attach: Fields) -> None:
        """The peer has answered: so many frames its session takes."""
        super().attached(channel, begin, attach)
        self._window = begin.uint(2)

    def _take_flow(self, flow: Fields) -> None:
        """Take the peer's credit, and the window of its session."""
        self._window = flow.uint(1) + serial_difference(flow.uint(0), self._transfers)
        if flow.place(4) is not None:
            self._credit = flow.uint(6) + serial_difference(flow.uint(5), self._next_id)

    def _take_dispositions(self, at: int, size: int, end: int) -> int:
        """Take outcomes of messages, of which each may have a frame of its own."""
        octets = self._engine.octets[at:end]
        if self._form is not None and self._form.size == size and (count := self._form.count(octets)):
            self._take_outcome(self._form.number(octets), count, self._form.state, settled=self._form.settled)
            return count * size
        outcome = Fields(octets[:size].tobytes())
        first, last = outcome.uint(1), outcome.uint(2, outcome.uint(1))
        ids = [place for place in (outcome.place(1), outcome.place(2)) if place is not None]
        if (last - first) % IDS >= IDS // 2:
            raise EnvelopeError("a disposition that ends before it begins")
        if outcome.flag(0):
            state, settled = outcome.state(4), outcome.flag(3)
            self._take_outcome(first, (last - first) % IDS + 1, state, settled=settled)
            if first == last and all(place.type == UINT for place in ids):
                self._form = FrameForm(outcome, ids, state=state, settled=settled)
        return size

    def _take_outcome(self, first: int, count: int, state: DeliveryState, *, settled: bool) -> None:
        begin = self._oldest_id + serial_difference(first, self._oldest_id)
        begin, stop = max(begin, self._oldest_id), min(begin + count, self._next_id)
        if begin >= stop or state is DeliveryState.RECEIVED or (state is DeliveryState.NONE and not settled):
            return
        if not settled:
            ids = begin % IDS, (stop - 1) % IDS
            self._engine.put(disposition_frame(self._channel, *ids, state, receiver=False))
        if begin > self._oldest_id:
            self._early |= dict.fromkeys(range(begin, stop), state)
            return
        self._settle(stop - begin, state)
        while self._early and (next_state := self._early.pop(self._oldest_id, None)) is not None:
            self._settle(1, next_state)

    def _settle(self, count: int, state: DeliveryState) -> None:
        """Count the outcome of the oldest messages."""
        self._oldest_id += count
        self._acknowledged_ns.append(np.full(count, now_ns(), np.int64))
        if state in (DeliveryState.RELEASED, DeliveryState.MODIFIED):
            self.released += count
        elif state is not DeliveryState.ACCEPTED:
            # Rejected, or settled without an outcome: the message is not known to have arrived.
            self.rejected += count
        if self._kept is not None:
            for _ in range(count):
                self._kept.popleft()

    def pop_acknowledged_ns(self) -> NDArray[np.int64]:
        """When the messages since the last call were acknowledged (ns), in the order of sending."""
        taken, self._acknowledged_ns = self._acknowledged_ns, []
        return np.concatenate([np.zeros(0, np.int64), *taken])

    def drain(self, timeout_s: float) -> int:
        """Wait until everything is written and acknowledged, at most `timeout_s`; returns how many still wait."""
        deadline = time.monotonic() + timeout_s
        while (self.unsettled or not self._engine.written) and (left := deadline - time.monotonic()) > 0:
            self.pump(min(left, 1.0))
        return self.unsettled


def too_large(size: int, peer: str, largest: int) -> str:
    """The sentence, as a clause, for a message above the limit of `peer`; sizes in bytes."""
    limit = f"{peer} takes at most {largest:,}"
    return f"the message has {size:,} bytes, but {limit}: raise its limit or send a smaller payload"


def _encoded(kept: Buffer | tuple[Template, int, int]) -> Buffer:
    """A message that was kept."""
    if isinstance(kept, tuple):
        template, number, stamp_ms = kept
        return template.filled(number, stamp_ms)
    return kept


class _Sending:
    """What one call has sent: chunks, each with its time."""

    def __init__(self) -> None:
        self.count = 0
        self._chunks: list[tuple[int, int, int]] = []

    def add(self, count: int) -> int:
        """Count a chunk that is being sent now; returns its stamp."""
        stamp_ms = wall_ns() // 1_000_000
        self._chunks.append((now_ns(), stamp_ms, count))
        self.count += count
        return stamp_ms

    def batch(self) -> SentBatch:
        """The times of all."""
        chunks = np.array(self._chunks, np.int64).reshape(-1, 3)
        return SentBatch(chunks[:, 0].repeat(chunks[:, 2]), chunks[:, 1].repeat(chunks[:, 2]))


class _MessageRows:
    """Rows with the frames of a template, so that numpy can fill in a chunk of them at once."""

    def __init__(self, template: Template, frames: TransferFrames) -> None:
        self.template = template
        framed = frames.framed(template.message, (template.stamp_offset, template.number_offset))
        size = len(framed.octets)
        self.count, self.frames = max(1, min(_CHUNK_MESSAGES, _CHUNK_BYTES // size)), framed.frames
        rows = np.tile(np.frombuffer(framed.octets, np.uint8), (self.count, 1))
        self._octets, self._size = rows.data.cast("B"), size
        self._stamp_place = stamp = framed.offset(template.stamp_offset)
        number = template.number_offset
        self._number_place = number = None if number is None else framed.offset(number)
        self._ids = [rows[:, place : place + 4] for place in ID_PLACES]
        self._stamps = rows[:, stamp : stamp + 8]
        self._numbers = None if number is None else rows[:, number : number + 8]

    def filled(self, count: int, first_id: int, first_number: int, stamp_ms: int) -> memoryview:
        """The frames of `count` messages with delivery ids and numbers from these on, and this stamp."""
        if count == 1:
            return self._filled_one(first_id, first_number, stamp_ms)
        ids = (np.arange(first_id, first_id + count) % IDS).astype(">u4").view(np.uint8).reshape(count, 4)
        for place in self._ids:
            place[:count] = ids
        if self._numbers is not None:
            numbers = np.arange(first_number, first_number + count, dtype=">u8")
            self._numbers[:count] = numbers.view(np.uint8).reshape(count, 8)
        self._stamps[:count] = np.frombuffer(struct.pack(">q", stamp_ms), np.uint8)
        return self._octets[: count * self._size]

    def _filled_one(self, delivery_id: int, number: int, stamp_ms: int) -> memoryview:
        """The same for a message alone, as at a rate, without the time that numpy takes to begin."""
        for place in ID_PLACES:
            struct.pack_into(">I", self._octets, place, delivery_id % IDS)
        if self._number_place is not None:
            struct.pack_into(">Q", self._octets, self._number_place, number)
        struct.pack_into(">q", self._octets, self._stamp_place, stamp_ms)
        return self._octets[: self._size]
