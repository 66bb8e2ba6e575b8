"""The receiving end of the fast link: batches of messages, checked against templates, accepted as they are returned."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole_amqp.link.arrivals import (
    LARGE_BYTES,
    Arrival,
    ArrivalClock,
    Batch,
    Compared,
    Rows,
    TemplateMatcher,
    compared,
    joined,
)
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
        self._matchers = {len(template.message): TemplateMatcher(template) for template in templates}
        self._arrived: deque[Arrival] = deque()
        self._queued = self._credit = 0
        """Messages in `_arrived`; messages that may still come."""
        self._handle = self._count = self._next_incoming = 0
        """The peer's handle, delivery count and id of its next transfer."""
        self._clock = ArrivalClock()
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
        self._matchers[len(template.message)] = TemplateMatcher(template)

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
        taken: list[Arrival] = []
        self._collect(limit, taken)
        if taken and gather_s:
            end_ns = int(taken[0].messages.received_ns[0]) + int(gather_s * 1e9)
            while (count := sum(map(len, taken))) < limit and (left_ns := end_ns - now_ns()) > 0:
                if self._failure is not None or self._left:
                    break
                if self._top_up_credit():
                    self._flush()
                self._listen(left_ns / 1e9, pumps=False)
                self._collect(limit - count, taken)
        self._accept(taken)
        self._top_up_credit()
        batch = joined(taken, self._matchers)
        self.received += len(batch)
        return batch

    def _listen(self, timeout_s: float, *, pumps: bool) -> None:
        """Read what comes. Raises UserError if nothing has come before a failure."""
        if self._left:  # what was received before is returned and accepted
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

    def _collect(self, limit: int, taken: list[Arrival]) -> None:
        """Move at most `limit` messages to `taken`."""
        while self._arrived and limit:
            one = self._arrived.popleft()
            if (count := len(one)) > limit:
                self._arrived.appendleft(one.part(limit, count))
                one, count = one.part(0, limit), limit
            taken.append(one)
            self._queued -= count
            limit -= count

    def _accept(self, taken: Sequence[Arrival]) -> None:
        """Settle messages, those of successive ids in one frame."""
        ranges: list[tuple[int, int]] = []
        for one in taken:
            if one.settled:
                continue
            first, stop = one.first_id, one.first_id + len(one)
            if ranges and ranges[-1][1] == first:
                first = ranges.pop()[0]
            ranges.append((first, stop))
        for first, stop in ranges:
            ids = first % IDS, (stop - 1) % IDS
            self._engine.put(disposition_frame(self._channel, *ids, DeliveryState.ACCEPTED, receiver=True))

    def _top_up_credit(self) -> bool:
        """Give credit for a quarter of the window or more, if so much is missing; returns whether it did."""
        if self._left:
            return False
        missing = self._window - self._credit - self._queued
        if missing < max(1, self._window // 4) or self._queued >= self._window:  # the latter: a peer without credit
            return False
        self._credit += missing
        flow = flow_frame(self._channel, next_incoming=self._next_incoming, count=self._count, credit=self._credit)
        self._engine.put(flow)
        return True

    def _take_transfers(self, at: int, size: int, end: int) -> int:
        """Take messages: all that follow in frames like the first, or the next part of one."""
        form = self._form
        if form is not None and form.size == size and self._begun is None:
            take = self._take_large if size - form.stop >= LARGE_BYTES else self._take_small
            if count := take(form, at, size, end):
                self._next_incoming = (self._next_incoming + count) % IDS
                return count * size
        octets = self._engine.input[at : at + size]
        transfer = Fields(bytes(octets))
        if transfer.uint(0) != self._handle:
            raise EnvelopeError("a message for a link that is not open")
        self._next_incoming = (self._next_incoming + 1) % IDS
        if self._begun is not None or transfer.flag(5) or transfer.flag(9):
            self._take_part(transfer)
            return size
        number, settled = transfer.place(1), transfer.flag(4)
        if number is None:
            raise EnvelopeError(_NO_ID)
        self._arrive_one(octets[transfer.stop :], transfer.uint(1), settled=settled)
        if number.type == UINT:
            self._form = FrameForm(transfer, [number], transfer.place(2), settled=settled)
        return size

    def _take_small(self, form: FrameForm, at: int, size: int, end: int) -> int:
        """Take the messages in frames of the form; they are compared when they are returned."""
        octets = self._engine.octets[at:end]
        if count := form.count(octets):
            rows = octets[: count * size].reshape(count, size)[:, form.stop :].copy()
            self._arrive(
                Rows(self._clock.times(count, self._engine.read_ns), rows), form.number(octets), settled=form.settled
            )
        return count

    def _take_large(self, form: FrameForm, at: int, size: int, end: int) -> int:
        """As `_take_small`; they are compared in place."""
        octets, stop, clock, read_ns = self._engine.input, form.stop, self._clock, self._engine.read_ns
        first = number = form.number(octets[at:])
        matcher, times, found = self._matchers.get(size - stop), list[int](), list[tuple[int, int] | bytes]()
        while at + size <= end and form.fits(octets, at, number):
            times.append(clock.time(read_ns))
            found.append(compared(octets[at + stop : at + size], matcher))
            at, number = at + size, (number + 1) % IDS
        if found:
            self._arrive(Compared(times, size - stop, found), first, settled=form.settled)
        return len(found)

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
            self._arrive_one(memoryview(b""), number, settled=True)
        elif transfer.flag(5):
            self._begun = number, content, settled
        else:
            self._arrive_one(memoryview(content), number, settled=settled)

    def _arrive(self, messages: Rows | Compared, first_id: int, *, settled: bool) -> None:
        self._arrived.append(Arrival(messages, first_id, settled))
        self._queued += len(messages)
        self._credit -= len(messages)
        self._count = (self._count + len(messages)) % IDS

    def _arrive_one(self, message: memoryview, number: int, *, settled: bool) -> None:
        found = compared(message, self._matchers.get(len(message)))
        times = [self._clock.time(self._engine.read_ns)]
        self._arrive(Compared(times, len(message), [found]), number, settled=settled)
