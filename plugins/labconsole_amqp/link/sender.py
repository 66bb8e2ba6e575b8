"""The sending end of the fast link: encoded messages, a chunk of deliveries at a time."""

from __future__ import annotations

import itertools
import struct
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.clock import now_ns, wall_ns
from labconsole.errors import UserError
from labconsole_amqp.link.connection import Connection
from labconsole_amqp.link.link_base import ATTACH_TIMEOUT_S, Link
from labconsole_amqp.link.proton_engine import DeliveryTagRing, ffi, lib
from labconsole_amqp.wire.template import Template

_CHUNK_MESSAGES = 256
_CHUNK_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class SentBatch:
    """Times at which messages were given to the engine (ns), and their stamps (ms since the Unix epoch)."""

    times_ns: NDArray[np.int64]
    stamps_ms: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.times_ns)


class Sender(Link):
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
        self._pending: deque[Any] = deque()
        self._acknowledged_ns: list[int] = []
        self._kept: deque[bytes | tuple[Template, int, int]] | None = deque() if keeps and not settled else None
        """The messages of `_pending`, as bytes or as template, number and stamp, and then those of `_again`."""
        self._again: deque[bytes] = deque()
        """Messages of the link before that are to be sent again."""
        lib.pn_link_set_snd_settle_mode(self._link, lib.PN_SND_SETTLED if settled else lib.PN_SND_UNSETTLED)
        lib.pn_terminus_set_address(lib.pn_link_source(self._link), lib.pn_link_name(self._link))
        target = lib.pn_link_target(self._link)
        self.attach_ns = self._attach(target, lib.pn_link_remote_target(self._link), timeout_s)
        self.max_message_size = int(lib.pn_link_remote_max_message_size(self._link))
        self._ring = DeliveryTagRing()
        self._rows: _MessageRows | None = None
        if after is not None:
            self._continue(after)

    def _continue(self, after: Sender) -> None:
        self.sent, self.rejected, self.released = after.sent, after.rejected, after.released
        self._acknowledged_ns = after._acknowledged_ns
        if self._kept is not None and after._kept is not None:
            self._again.extend(_as_bytes(kept) for kept in after._kept)
            self._kept.extend(self._again)

    @property
    def capacity(self) -> int:
        """How many messages may be sent now: the peer's credit, or 0 while the socket accepts no more, or others are to
        be sent again."""
        return 0 if self._again else self._room

    @property
    def _room(self) -> int:
        return 0 if self.connection.engine.blocked else max(0, lib.pn_link_credit(self._link))

    @property
    def accepted(self) -> int:
        """How many unsettled messages the peer has accepted."""
        return 0 if self._settled else self.sent - self.unsettled - self.rejected - self.released

    @property
    def unsettled(self) -> int:
        """How many messages wait for their acknowledgement."""
        return len(self._pending) + len(self._again)

    def send(self, template: Template, count: int, first_number: int = 0) -> SentBatch:
        """Send up to `count` messages from `template`, numbered from `first_number`, as capacity allows.

        Never waits: call `pump` when it sent less than `count`, and to detect a lost connection. Raises UserError if
        the message is larger than the peer's limit.
        """
        self.check_size(len(template.message))
        if self._rows is None or self._rows.template is not template:
            self._rows = _MessageRows(template)
        rows, size = self._rows, len(template.message)
        times: list[int] = []
        stamps: list[int] = []
        while len(times) < count and (capacity := self.capacity):
            chunk = min(count - len(times), capacity, len(rows.starts))
            first = first_number + len(times)
            rows.number(chunk, first)
            self._write(rows.stamped(chunk, stamps), itertools.repeat(size), times)
            if self._kept is not None:
                self._kept.extend(zip(itertools.repeat(template), itertools.count(first), stamps[-chunk:]))
        self.sent += len(times)
        return SentBatch(np.array(times, np.int64), np.array(stamps, np.int64))

    def send_mixed(self, templates: Sequence[Template], first_number: int = 0) -> SentBatch:
        """As `send`, a message from each of `templates` in their order: for messages of several sizes."""
        times: list[int] = []
        stamps: list[int] = []
        while len(times) < len(templates) and (capacity := self.capacity):
            first, chunk, size = len(times), [], 0
            for template in itertools.islice(templates, first, first + min(capacity, _CHUNK_MESSAGES)):
                self.check_size(len(template.message))
                chunk.append(template)
                if (size := size + len(template.message)) >= _CHUNK_BYTES:
                    break
            sizes = [len(template.message) for template in chunk]
            self._write(_mixed(chunk, first_number + first, stamps), sizes, times)
            if self._kept is not None:
                self._kept.extend(zip(chunk, itertools.count(first_number + first), stamps[first:]))
        self.sent += len(times)
        return SentBatch(np.array(times, np.int64), np.array(stamps, np.int64))

    def send_messages(self, messages: Sequence[bytes], stamp_offset: int) -> SentBatch:
        """Send the first of `messages`, as many as there is capacity for.

        The time of sending is written at `stamp_offset` of each (see `Template`).

        Returns and raises as `send`.
        """
        times: list[int] = []
        stamps: list[int] = []
        while len(times) < len(messages) and (capacity := self.capacity):
            chunk = messages[len(times) : len(times) + min(capacity, _CHUNK_MESSAGES)]
            for message in chunk:
                self.check_size(len(message))
            copies: list[bytearray] = []
            self._write(_stamped(chunk, stamp_offset, stamps, copies), map(len, chunk), times)
            if self._kept is not None:
                self._kept.extend(map(bytes, copies))
        self.sent += len(times)
        return SentBatch(np.array(times, np.int64), np.array(stamps, np.int64))

    def _write(self, starts: Iterable[Any], sizes: Iterable[int], times: list[int]) -> None:
        """Send one delivery for each message, and flush; appends the times to `times`."""
        link, tags, pending, settled = self._link, self._ring.tags, self._pending, self._settled
        new, send, advance, settle = lib.pn_delivery, lib.pn_link_send, lib.pn_link_advance, lib.pn_delivery_settle
        for start, size in zip(starts, sizes, strict=False):
            delivery = new(link, next(tags))
            times.append(now_ns())
            send(link, start, size)
            if settled:
                settle(delivery)  # which advances as well
            else:
                advance(link)
                pending.append(delivery)
        self._flush()

    def check_size(self, size: int) -> None:
        """Raises UserError if a message of `size` bytes is above the peer's limit."""
        if self.max_message_size and size > self.max_message_size:
            raise UserError(too_large(size, self.connection.endpoint.name, self.max_message_size))

    def pump(self, timeout_s: float) -> None:
        """Do I/O (see `Connection.pump`) and process acknowledgements and credit. Raises UserError."""
        try:
            super().pump(timeout_s)
        finally:  # what came with the end of the connection counts
            self._process_acknowledgements()
        while self._again and (room := self._room):
            messages = [self._again.popleft() for _ in range(min(room, len(self._again), _CHUNK_MESSAGES))]
            self._write(map(ffi.from_buffer, itertools.repeat("char[]"), messages), map(len, messages), [])

    def _process_acknowledgements(self) -> None:
        pending = self._pending
        state_of, settle, accepted = lib.pn_delivery_remote_state, lib.pn_delivery_settle, lib.PN_ACCEPTED
        at_ns, before = now_ns(), len(pending)
        while pending:
            delivery = pending[0]
            state = state_of(delivery)
            if state != accepted:
                if not (state or lib.pn_delivery_settled(delivery)):
                    break
                self._count_other(state)
            settle(pending.popleft())
        settled = before - len(pending)
        self._acknowledged_ns += [at_ns] * settled
        if self._kept is not None:
            for _ in range(settled):
                self._kept.popleft()

    def _count_other(self, state: int) -> None:
        if state in (lib.PN_RELEASED, lib.PN_MODIFIED):
            self.released += 1
        else:
            # Rejected, or settled without an outcome: the message is not known to have arrived.
            self.rejected += 1

    def pop_acknowledged_ns(self) -> NDArray[np.int64]:
        """When the messages since the last call were acknowledged (ns), in the order of sending."""
        taken, self._acknowledged_ns = self._acknowledged_ns, []
        return np.array(taken, np.int64)

    def drain(self, timeout_s: float) -> int:
        """Wait until everything is written and acknowledged, at most `timeout_s`; returns how many still wait."""
        deadline = time.monotonic() + timeout_s
        while (self.unsettled or not self._written) and (left := deadline - time.monotonic()) > 0:
            self.pump(min(left, 1.0))
        return self.unsettled

    @property
    def _written(self) -> bool:
        return not self.connection.engine.blocked and lib.pn_link_queued(self._link) == 0


def too_large(size: int, peer: str, largest: int) -> str:
    """The sentence, as a clause, for a message above the limit of `peer`; sizes in bytes."""
    limit = f"{peer} takes at most {largest:,}"
    return f"the message has {size:,} bytes, but {limit}: raise its limit or send a smaller payload"


def _as_bytes(kept: bytes | tuple[Template, int, int]) -> bytes:
    """A message that was kept."""
    if isinstance(kept, bytes):
        return kept
    template, number, stamp_ms = kept
    return template.filled(number, stamp_ms)


def _stamped(messages: Iterable[bytes], stamp_offset: int, stamps: list[int], copies: list[bytearray]) -> Iterator[Any]:
    """Yield copies of messages with the current time as their stamp (ms since the Unix epoch).

    Appends the stamps to `stamps`, and the copies to `copies`.
    """
    for message in messages:
        copy = bytearray(message)
        copies.append(copy)
        stamps.append(wall_ns() // 1_000_000)
        struct.pack_into(">q", copy, stamp_offset, stamps[-1])
        yield ffi.from_buffer("char[]", copy)


def _mixed(templates: Sequence[Template], first: int, stamps: list[int]) -> Iterator[Any]:
    """Yield a message from each template, numbered from `first`, with the current time as its stamp (ms).

    Appends the stamps to `stamps`.
    """
    messages = bytearray().join([template.message for template in templates])
    start, place = ffi.from_buffer("char[]", messages), 0
    for number, template in enumerate(templates, first):
        if template.number_offset is not None:
            struct.pack_into(">Q", messages, place + template.number_offset, number)
        stamps.append(wall_ns() // 1_000_000)
        struct.pack_into(">q", messages, place + template.stamp_offset, stamps[-1])
        yield start + place
        place += len(template.message)


class _MessageRows:
    """Rows with copies of a template, so that numpy can patch a chunk of them at once."""

    def __init__(self, template: Template) -> None:
        self.template = template
        size = len(template.message)
        count = max(1, min(_CHUNK_MESSAGES, _CHUNK_BYTES // size))
        self._rows = np.tile(np.frombuffer(template.message, np.uint8), (count, 1))
        start = ffi.from_buffer("char[]", self._rows)
        self.starts = [start + row * size for row in range(count)]
        self._keep = start
        self._stamps = self._rows[:, template.stamp_offset : template.stamp_offset + 8]
        offset = template.number_offset
        self._numbers = None if offset is None else self._rows[:, offset : offset + 8]

    def number(self, count: int, first: int) -> None:
        """Write the numbers from `first` on into the first `count` rows."""
        if self._numbers is not None:
            numbers = np.arange(first, first + count, dtype=">u8")
            self._numbers[:count] = numbers.view(np.uint8).reshape(count, 8)

    def stamped(self, count: int, stamps: list[int]) -> Iterator[Any]:
        """Yield the first `count` rows with the current time as their stamp (ms); appends it to `stamps`."""
        last_ms = -1
        for row in range(count):
            stamp_ms = wall_ns() // 1_000_000
            if stamp_ms != last_ms:
                # Rows of the same millisecond have this stamp already.
                self._stamps[row:count] = np.frombuffer(struct.pack(">q", stamp_ms), np.uint8)
                last_ms = stamp_ms
            stamps.append(stamp_ms)
            yield self.starts[row]
