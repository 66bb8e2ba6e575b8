"""The receiving end of the fast link: batches of messages, checked against templates by numpy where they arrive."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole_amqp.link.connection import Connection
from labconsole_amqp.link.link_base import ATTACH_TIMEOUT_S
from labconsole_amqp.link.message_link import MessageLink
from labconsole_amqp.link.performatives import (
    IDS,
    UINT,
    DeliveryState,
    Fields,
    FrameForm,
    disposition_frame,
    flow_frame,
)
from labconsole_amqp.link.proton_engine import ENGINE_BYTES, lib
from labconsole_amqp.wire.amqp_types import EnvelopeError
from labconsole_amqp.wire.template import Template

_NO_ID = "a message without a delivery id"
_LARGE_BYTES = 1024
"""From this size on, messages are compared one by one."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Received messages in order; all arrays have one element per message.

    `received_ns` is when a message was read from the socket; of several that were read at once, when each was taken
    from what was read. Where `matched`, the message equals one of the receiver's templates, and `stamps_ms` and
    `numbers` hold its stamp and number (-1 without one); elsewhere they are -1, and `raw` maps the message's index to
    its bytes, for the slow path. A message that the sender aborted halfway has size 0 and `raw` b"". `sizes` are bytes
    of the encoded message.
    """

    received_ns: NDArray[np.int64]
    stamps_ms: NDArray[np.int64]
    numbers: NDArray[np.int64]
    sizes: NDArray[np.int64]
    matched: NDArray[np.bool_]
    raw: dict[int, bytes]

    def __len__(self) -> int:
        return len(self.received_ns)

    def part(self, begin: int, stop: int) -> Batch:
        """The messages from index `begin` to `stop`."""
        part = slice(begin, stop)
        raw = {index - begin: message for index, message in self.raw.items() if begin <= index < stop}
        return Batch(
            *(self.received_ns[part], self.stamps_ms[part], self.numbers[part], self.sizes[part]),
            self.matched[part],
            raw,
        )


@dataclass(frozen=True, slots=True)
class _Arrival:
    """Messages of successive delivery ids that have arrived together; `settled` by their sender."""

    batch: Batch
    first_id: int
    settled: bool


class Receiver(MessageLink):
    """Receives messages from `address`; each is accepted as it is returned, unless the sender had settled it.

    On an accepted connection the peer is the sender: once it has detached without an error, no more messages come.

    Args:
        window: credit, messages; topped up each quarter.
        settled: ask for pre-settled messages (at most once).
        templates: messages that are checked in the fast path; none if every message must be decoded.
        max_message_size: bytes above which an incomplete message is refused; `ENGINE_BYTES` if 0.

    `attach_ns` is how long attaching took, `received` the number of messages so far.

    Raises:
        UserError: the address does not exist, or the peer refused otherwise or did not answer.
    """

    def __init__(
        self,
        connection: Connection,
        address: str,
        *,
        window: int = 1000,
        settled: bool = False,
        templates: Sequence[Template] = (),
        max_message_size: int = 0,
        timeout_s: float = ATTACH_TIMEOUT_S,
    ) -> None:
        super().__init__(connection, address, "receiver")
        self.received = 0
        self._failure: UserError | None = None
        """What has ended the link: raised once what was received is returned."""
        self._left = False
        """Whether the peer has detached, and sends no more."""
        self._window = window
        self._largest = max_message_size or ENGINE_BYTES
        self._matchers = {len(template.message): _TemplateMatcher(template) for template in templates}
        self._arrived: deque[_Arrival] = deque()
        self._queued = self._credit = 0
        """Messages in `_arrived`; messages that may still come."""
        self._handle = self._count = self._next_incoming = 0
        """The peer's handle, delivery count and id of its next transfer."""
        self._read_ns = 0
        """The last read from which a message was taken."""
        self._form: FrameForm | None = None
        """That of the last message in one frame."""
        self._begun: tuple[int, bytearray, bool] | None = None
        """A message in several frames that is incomplete: its delivery id, content, and whether it is settled."""
        lib.pn_link_set_snd_settle_mode(self._link, lib.PN_SND_SETTLED if settled else lib.PN_SND_UNSETTLED)
        lib.pn_terminus_set_address(lib.pn_link_target(self._link), lib.pn_link_name(self._link))
        lib.pn_link_set_max_message_size(self._link, max_message_size)
        source = lib.pn_link_source(self._link)
        self.attach_ns = self._attach(source, lib.pn_link_remote_source(self._link), timeout_s)
        self._top_up_credit()
        self._flush()

    def attached(self, channel: int, begin: Fields, attach: Fields) -> None:
        """The peer has answered: so its counts begin."""
        super().attached(channel, begin, attach)
        self._next_incoming, self._handle, self._count = begin.uint(1), attach.uint(1), attach.uint(9)

    def learn(self, template: Template) -> None:
        """Accept messages of this form in the fast path, too: a broker's form of ours, fully checked once.

        It replaces a template of the same length.
        """
        matcher = self._matchers[len(template.message)] = _TemplateMatcher(template)
        for one in self._arrived:
            _check_again(one.batch, matcher, len(template.message))

    def receive(self, limit: int, timeout_s: float, gather_s: float = 0.0) -> Batch:
        """The messages that have arrived, at most `limit`; waits up to `timeout_s` for the first.

        Gathers more for up to `gather_s` after the first, each with its own time of arrival; acknowledgements wait
        meanwhile. So a wake-up for each message costs little more than reading it.

        Raises UserError if the broker closed link or connection, or the connection is lost, and nothing is left to
        be returned; or if a message is too large.
        """
        if self._queued:
            # Acknowledgements and credit of the previous batch are sent first.
            self._flush()
        elif self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        else:
            self._listen(timeout_s, pumps=True)
        taken: list[_Arrival] = []
        self._collect(limit, taken)
        if taken and gather_s:
            end_ns = int(taken[0].batch.received_ns[0]) + int(gather_s * 1e9)
            while (count := sum(len(one.batch) for one in taken)) < limit and (left_ns := end_ns - now_ns()) > 0:
                if self._failure is not None:
                    break
                if self._top_up_credit():
                    self._flush()
                self._listen(left_ns / 1e9, pumps=False)
                self._collect(limit - count, taken)
        self._accept(taken)
        self._top_up_credit()
        batch = _joined([one.batch for one in taken])
        self.received += len(batch)
        return batch

    def _listen(self, timeout_s: float, *, pumps: bool) -> None:
        """Read what comes. Raises UserError if nothing has come before a failure."""
        if self._left:
            self._answer_end(timeout_s)
            return
        try:
            if pumps:
                self.pump(timeout_s)
            else:
                self.connection.listen(timeout_s)
        except UserError as failure:
            if self._engine.is_server and self.is_ended_well:
                self._left = True
                self._answer_end(0.0)
                return
            if not (self._queued or not pumps):
                raise
            self._failure = failure

    def _answer_end(self, timeout_s: float) -> None:
        """Detach and close as the peer does, within the time."""
        if self._engine.over:
            time.sleep(timeout_s)
        lib.pn_link_close(self._link)
        lib.pn_session_close(self._session)
        with suppress(UserError):  # the close of the connection, for which the peer has no reason either
            self.connection.pump(timeout_s)
        if self._engine.remote_closed:
            lib.pn_connection_close(self._engine.connection)
            self._flush()

    def _collect(self, limit: int, taken: list[_Arrival]) -> None:
        """Move at most `limit` messages to `taken`."""
        while self._arrived and limit:
            one = self._arrived.popleft()
            batch, count = one.batch, len(one.batch)
            if count > limit:
                self._arrived.appendleft(_Arrival(batch.part(limit, count), one.first_id + limit, one.settled))
                one, count = _Arrival(batch.part(0, limit), one.first_id, one.settled), limit
            taken.append(one)
            self._queued -= count
            limit -= count

    def _accept(self, taken: Sequence[_Arrival]) -> None:
        """Settle messages, those of successive ids in one frame."""
        ranges: list[tuple[int, int]] = []
        for one in taken:
            if one.settled:
                continue
            first, stop = one.first_id, one.first_id + len(one.batch)
            if ranges and ranges[-1][1] == first:
                first = ranges.pop()[0]
            ranges.append((first, stop))
        for first, stop in ranges:
            ids = first % IDS, (stop - 1) % IDS
            self._engine.put(disposition_frame(self._channel, *ids, DeliveryState.ACCEPTED, receiver=True))

    def _top_up_credit(self) -> bool:
        """Give credit for a quarter of the window or more, if so much is missing; returns whether it did."""
        missing = self._window - self._credit - self._queued
        if missing < max(1, self._window // 4) or self._queued >= self._window:  # the latter: a peer without credit
            return False
        self._credit += missing
        flow = flow_frame(self._channel, next_incoming=self._next_incoming, count=self._count, credit=self._credit)
        self._engine.put(flow)
        return True

    def _take_transfers(self, at: int, size: int, end: int) -> int:
        """Take messages: all that follow in frames like the first, or the next part of one."""
        octets = self._engine.octets[at:end]
        form = self._form
        if form is not None and form.size == size and self._begun is None and (count := form.count(octets)):
            rows = octets[: count * size].reshape(count, size)[:, form.stop :]
            self._arrive(self._checked(rows), form.number(octets), settled=form.settled)
            self._next_incoming = (self._next_incoming + count) % IDS
            return count * size
        transfer = Fields(octets[:size].tobytes())
        if transfer.uint(0) != self._handle:
            raise EnvelopeError("a message for a link that is not open")
        self._next_incoming = (self._next_incoming + 1) % IDS
        if self._begun is not None or transfer.flag(5) or transfer.flag(9):
            self._take_part(transfer)
            return size
        number, settled = transfer.place(1), transfer.flag(4)
        if number is None:
            raise EnvelopeError(_NO_ID)
        self._arrive(self._checked(octets[transfer.stop : size].reshape(1, -1)), transfer.uint(1), settled=settled)
        if number.type == UINT:
            self._form = FrameForm(transfer, [number], transfer.place(2), settled=settled)
        return size

    def _take_part(self, transfer: Fields) -> None:
        """Take a part of a message. Raises UserError: it is too large."""
        if self._begun is None and transfer.place(1) is None:
            raise EnvelopeError(_NO_ID)
        number, content, settled = self._begun or (transfer.uint(1), bytearray(), False)
        content += transfer.frame[transfer.stop :]
        if len(content) > self._largest:
            raise UserError(
                f"{self.connection.endpoint.name} sends a message of more than {self._largest:,} bytes: raise "
                '"Largest message" (max_message_size) if it is meant to be that large'
            )
        settled, self._begun = settled or transfer.flag(4), None
        if transfer.flag(9):
            self._arrive(self._checked(np.zeros((1, 0), np.uint8)), number, settled=True)
        elif transfer.flag(5):
            self._begun = number, content, settled
        else:
            self._arrive(self._checked(np.frombuffer(content, np.uint8).reshape(1, -1)), number, settled=settled)

    def _arrive(self, batch: Batch, first_id: int, *, settled: bool) -> None:
        self._arrived.append(_Arrival(batch, first_id, settled))
        self._queued += len(batch)
        self._credit -= len(batch)
        self._count = (self._count + len(batch)) % IDS

    def _checked(self, rows: NDArray[np.uint8]) -> Batch:
        """Messages of one length, a row each, compared with the template of that length."""
        count, length = rows.shape
        received, sizes = np.fromiter((now_ns() for _ in range(count)), np.int64, count), np.full(count, length)
        if self._read_ns != self._engine.read_ns:
            received[0] = self._read_ns = self._engine.read_ns
        if (matcher := self._matchers.get(length)) is not None:
            matched, stamps, numbers = matcher.check(rows)
        else:
            matched, stamps, numbers = np.zeros(count, np.bool_), np.full(count, -1), np.full(count, -1)
        raw = {} if matched.all() else {index: rows[index].tobytes() for index in np.flatnonzero(~matched).tolist()}
        return Batch(received, stamps, numbers, sizes, matched, raw)


def _check_again(batch: Batch, matcher: _TemplateMatcher, length: int) -> None:
    """Compare the messages of this length that have matched no template."""
    chosen = [index for index, message in batch.raw.items() if len(message) == length]
    if not chosen:
        return
    rows = np.frombuffer(b"".join(batch.raw[index] for index in chosen), np.uint8).reshape(len(chosen), length)
    batch.matched[chosen], batch.stamps_ms[chosen], batch.numbers[chosen] = matcher.check(rows)
    for index in chosen:
        if batch.matched[index]:
            del batch.raw[index]


def _joined(batches: Sequence[Batch]) -> Batch:
    if len(batches) == 1:
        return batches[0]
    none, raw, before = np.zeros(0, np.int64), {}, 0
    for batch in batches:
        raw.update({before + index: message for index, message in batch.raw.items()})
        before += len(batch)
    return Batch(
        np.concatenate([none, *(batch.received_ns for batch in batches)]),
        np.concatenate([none, *(batch.stamps_ms for batch in batches)]),
        np.concatenate([none, *(batch.numbers for batch in batches)]),
        np.concatenate([none, *(batch.sizes for batch in batches)]),
        np.concatenate([np.zeros(0, np.bool_), *(batch.matched for batch in batches)]),
        raw,
    )


class _TemplateMatcher:
    """Compares messages with a template, apart from stamp and number, and reads these."""

    def __init__(self, template: Template) -> None:
        self._stamp, self._number = template.stamp_offset, template.number_offset
        message, begin, small = template.message, 0, list[int]()
        self._large: list[tuple[int, int, bytearray]] = []
        """Large parts, which are compared row by row: where each begins and stops, and what it is."""
        places = [offset for offset in (self._stamp, self._number) if offset is not None]
        for stop in (*sorted(places), len(message)):
            if stop - begin < _LARGE_BYTES:
                small += range(begin, stop)
            else:
                self._large.append((begin, stop, bytearray(message[begin:stop])))
            begin = stop + 8
        self._columns = np.array(small, np.intp)
        """The other bytes that are compared."""
        self._values = np.frombuffer(message, np.uint8)[self._columns]

    def check(self, rows: NDArray[np.uint8]) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
        """Which rows match, and their stamps (ms since the Unix epoch) and numbers; -1 where they do not."""
        stamps, numbers = _integers(rows, self._stamp), np.full(len(rows), -1)
        if self._number is not None:
            numbers = _integers(rows, self._number)
        matched = self.same(rows) & (stamps >= 0)
        if not matched.all():
            stamps[~matched] = numbers[~matched] = -1
        return matched, stamps, numbers

    def same(self, rows: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Which rows equal the template apart from stamp and number."""
        equal: NDArray[np.bool_] = np.logical_and.reduce(rows[:, self._columns] == self._values, axis=1)
        for begin, stop, value in self._large:
            equal &= np.fromiter((value == row.data for row in rows[:, begin:stop]), np.bool_, len(rows))
        return equal


def _integers(rows: NDArray[np.uint8], offset: int) -> NDArray[np.int64]:
    fields = np.ascontiguousarray(rows[:, offset : offset + 8])
    return fields.view(">i8").reshape(len(rows)).astype(np.int64)
