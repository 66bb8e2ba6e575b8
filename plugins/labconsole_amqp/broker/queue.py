"""A queue of the embedded broker, and its producers' and consumers' links. Messages are delivered byte for byte."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from labconsole_amqp.link.proton_engine import ENGINE_BYTES, DeliveryTags, ProtonEngine, ffi, lib, set_condition

_TURN_MESSAGES = 256
_TURN_BYTES = 256 * 1024
_BUFFER_BYTES = 64 * 1024
_UNSETTLED_MESSAGES = 32_768  # of the 65,536 delivery tags of a link


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """How much a queue holds, and how much credit one producer gets at most.

    Producers get credit only for free room: `messages` is never exceeded. `size_bytes` is a soft bound: beyond it
    no producer gets new credit, and messages on earlier credit wait in their session's window. `window` is in
    messages; `max_message_size` in bytes, 0 = no limit but `ENGINE_BYTES`.
    """

    messages: int = 100_000
    size_bytes: int = 512 * 1024 * 1024
    window: int = 1000
    max_message_size: int = 0

    @property
    def largest(self) -> int:
        """Bytes of the largest message that is accepted."""
        return self.max_message_size or ENGINE_BYTES


@dataclass(slots=True)
class QueueCounts:
    """Counts of a queue's messages.

    `delivered`: sent to a consumer (and accepted, if unsettled); `requeued`: returned by a consumer, or because it
    left; `rejected`: by a consumer, and dropped.
    """

    received: int = 0
    delivered: int = 0
    requeued: int = 0
    rejected: int = 0


class Queue:
    """First in, first out; competing consumers take turns."""

    def __init__(self, name: str, limits: QueueLimits) -> None:
        self.name = name
        self.limits = limits
        self.counts = QueueCounts()
        self.tags = DeliveryTags()
        self.producers: list[ProducerLink] = []
        self.consumers: deque[ConsumerLink] = deque()
        self.waiting: list[ProducerLink] = []
        self._messages: deque[bytes] = deque()
        self._size_bytes = 0

    @property
    def full(self) -> bool:
        """Whether it has reached its limit of bytes."""
        return self._size_bytes >= self.limits.size_bytes

    def __len__(self) -> int:
        return len(self._messages)

    def put(self, messages: Sequence[bytes]) -> None:
        """Append messages."""
        self._messages.extend(messages)
        self._size_bytes += sum(map(len, messages))
        self.counts.received += len(messages)

    def requeue(self, messages: Sequence[bytes]) -> None:
        """Return messages that a consumer did not accept to the front, in their order."""
        self._messages.extendleft(reversed(messages))
        self._size_bytes += sum(map(len, messages))
        self.counts.requeued += len(messages)

    def work(self) -> bool:
        """Deliver what consumers accept now, and give producers credit for the free room.

        Returns whether anything was delivered: more may be possible once it is written.
        """
        delivered = False
        while self._messages and self._deliver():
            delivered = True
        if not self._messages:
            for consumer_link in self.consumers:
                consumer_link.drained()
        if self.waiting and not self.full:
            waiting, self.waiting = self.waiting, []
            for producer_link in waiting:
                producer_link.take()
        self._grant_credit()
        return delivered

    def _deliver(self) -> bool:
        """Give each consumer one turn; False if none accepted a message."""
        delivered = False
        for consumer_link in tuple(self.consumers):
            usual_bytes = self._size_bytes // max(1, len(self._messages)) + 1
            count = min(consumer_link.room, _TURN_MESSAGES, _TURN_BYTES // usual_bytes + 1, len(self._messages))
            if count > 0:
                pop = self._messages.popleft
                turn = [pop() for _ in range(count)]
                self._size_bytes -= sum(map(len, turn))
                consumer_link.send(turn)
                delivered = True
        self.consumers.rotate(-1)
        return delivered

    def _grant_credit(self) -> None:
        """Top up producers whose credit is below three quarters of their window, as far as there is room."""
        if self.full:
            return
        free = (
            self.limits.messages - len(self._messages) - sum(producer_link.credit for producer_link in self.producers)
        )
        for producer_link in self.producers:
            missing = self.limits.window - producer_link.credit
            if 4 * missing >= self.limits.window and free > 0:
                granted = min(missing, free)
                producer_link.grant(granted)
                free -= granted


class _LinkEnd:
    """The broker's end of a link; `engine` is marked dirty when it has output."""

    def __init__(self, engine: ProtonEngine, link: Any, queue: Queue) -> None:
        self.engine = engine
        self.link = link
        self.queue = queue


class ProducerLink(_LinkEnd):
    """A producer's link. Messages are accepted once they are in the queue.

    The link of a producer that exceeds the queue's limits is closed, and what it sends after that is discarded.
    """

    def __init__(self, engine: ProtonEngine, link: Any, queue: Queue) -> None:
        super().__init__(engine, link, queue)
        self._buffer = ffi.new("char[]", _BUFFER_BYTES)
        self._settled = lib.pn_link_remote_snd_settle_mode(link) == lib.PN_SND_SETTLED
        self._partial_message = bytearray()
        self._refused = False
        queue.producers.append(self)

    @property
    def credit(self) -> int:
        """Messages that the producer may still send; negative if it has sent more than its credit."""
        return int(lib.pn_link_credit(self.link) - lib.pn_link_queued(self.link))

    @property
    def held_bytes(self) -> int:
        """Bytes of a message that has arrived only in part."""
        return len(self._partial_message)

    def grant(self, credit: int) -> None:
        """Give the producer credit for `credit` more messages."""
        lib.pn_link_flow(self.link, credit)
        self.engine.dirty = True

    def take(self) -> None:
        """Move arrived messages into the queue; if that is full, it is called again when there is room."""
        if self._refused:
            self._discard()
        elif self.queue.full:
            if self not in self.queue.waiting:
                self.queue.waiting.append(self)
        elif self.credit < 0:
            self._refuse("amqp:link:transfer-limit-exceeded", "more messages than there was credit for")
        else:
            self._receive_messages()

    def _receive_messages(self) -> None:
        link, buffer, settled_link, accepted = self.link, self._buffer, self._settled, lib.PN_ACCEPTED
        current, recv, update, settle = (
            lib.pn_link_current,
            lib.pn_link_recv,
            lib.pn_delivery_update,
            lib.pn_delivery_settle,
        )
        unpack, largest = ffi.buffer, self.queue.limits.largest
        taken: list[bytes] = []
        for behind in range(lib.pn_link_queued(link) - 1, -1, -1):
            delivery = current(link)
            partial = not behind and lib.pn_delivery_partial(delivery)
            if partial or self._partial_message:
                message = self._complete_message(delivery, partial=partial)
            else:
                size = recv(link, buffer, _BUFFER_BYTES)
                message = unpack(buffer, size)[:] if size >= 0 else None
                if message is not None and size == _BUFFER_BYTES:
                    message += self._remaining_bytes(largest)  # which reads into the same buffer
            if len(self._partial_message) > largest or (message is not None and len(message) > largest):
                self.queue.put(taken)
                self._refuse("amqp:link:message-size-exceeded", f"{self.queue.name} takes at most {largest} bytes")
                return
            if partial:
                break
            if message is not None:
                taken.append(message)
                if not (settled_link or lib.pn_delivery_settled(delivery)):
                    update(delivery, accepted)
            settle(delivery)
        self.queue.put(taken)

    def _complete_message(self, delivery: Any, *, partial: bool) -> bytes | None:
        """The message that arrived in several turns; None while it is incomplete, or if it was aborted."""
        self._partial_message += self._remaining_bytes(self.queue.limits.largest)
        if partial:
            return None
        message, self._partial_message = bytes(self._partial_message), bytearray()
        return None if lib.pn_delivery_aborted(delivery) else message

    def _remaining_bytes(self, largest: int) -> bytes:
        """The rest of the current message that has arrived, at most one buffer more than `largest`."""
        parts, left = [], largest
        while left >= 0 and (size := lib.pn_link_recv(self.link, self._buffer, _BUFFER_BYTES)) > 0:
            parts.append(ffi.buffer(self._buffer, size)[:])
            left -= size
        return b"".join(parts)

    def _refuse(self, condition: str, description: str) -> None:
        set_condition(lib.pn_link_condition(self.link), condition, description)
        lib.pn_link_close(self.link)
        self.engine.dirty = True
        self.end()
        self._refused = True
        self._partial_message.clear()
        self._discard()

    def _discard(self) -> None:
        link, buffer = self.link, self._buffer
        while delivery := lib.pn_link_current(link):
            while lib.pn_link_recv(link, buffer, _BUFFER_BYTES) > 0:
                pass
            if lib.pn_delivery_partial(delivery):
                return
            lib.pn_delivery_settle(delivery)

    def end(self) -> None:
        """Leave the queue: the link is closed or refused."""
        if not self._refused:
            self.queue.producers.remove(self)
            if self in self.queue.waiting:
                self.queue.waiting.remove(self)


class ConsumerLink(_LinkEnd):
    """A consumer's link. Messages that it has not settled return to the queue when it is closed."""

    def __init__(self, engine: ProtonEngine, link: Any, queue: Queue) -> None:
        super().__init__(engine, link, queue)
        self._tags = queue.tags.ring()
        self._session = lib.pn_link_session(link)
        self._settled = lib.pn_link_remote_snd_settle_mode(link) == lib.PN_SND_SETTLED
        self._pending: deque[tuple[Any, bytes]] = deque()
        self._pending_bytes = 0
        queue.consumers.append(self)

    @property
    def room(self) -> int:
        """Messages that the consumer accepts now.

        This is its credit, or 0 while enough output waits for its socket, or while it has too many unsettled bytes.
        """
        if self.engine.blocked or lib.pn_session_outgoing_bytes(self._session) >= _TURN_BYTES:
            return 0
        if self._pending_bytes >= self.queue.limits.size_bytes:
            return 0
        return min(int(lib.pn_link_credit(self.link)), _UNSETTLED_MESSAGES - len(self._pending))

    def send(self, messages: Iterable[bytes]) -> None:
        """Send messages."""
        link, tags, settled, pending = self.link, self._tags, self._settled, self._pending
        new, send, settle, advance = lib.pn_delivery, lib.pn_link_send, lib.pn_delivery_settle, lib.pn_link_advance
        count = 0
        for message in messages:
            delivery = new(link, next(tags))
            send(link, message, len(message))
            if settled:
                settle(delivery)  # which advances as well
            else:
                advance(link)
                pending.append((delivery, message))
                self._pending_bytes += len(message)
            count += 1
        if settled:
            self.queue.counts.delivered += count
        self.engine.dirty = True

    def drained(self) -> None:
        """Notify a consumer that drains its credit that the queue is empty."""
        if lib.pn_link_get_drain(self.link) and lib.pn_link_drained(self.link):
            self.engine.dirty = True

    def process_outcomes(self) -> None:
        """Process the consumer's outcomes of messages, in the order of sending."""
        pending, counts = self._pending, self.queue.counts
        state_of, settle, accepted = lib.pn_delivery_remote_state, lib.pn_delivery_settle, lib.PN_ACCEPTED
        back: list[bytes] = []
        while pending:
            delivery, message = pending[0]
            state = state_of(delivery)
            if state == accepted:
                counts.delivered += 1
            elif state or lib.pn_delivery_settled(delivery):
                self._count_other(state, message, back)
            else:
                break
            pending.popleft()
            self._pending_bytes -= len(message)
            settle(delivery)
        if back:
            self.queue.requeue(back)

    def _count_other(self, state: int, message: bytes, back: list[bytes]) -> None:
        if state in (lib.PN_RELEASED, lib.PN_MODIFIED):
            back.append(message)
        elif state == lib.PN_REJECTED:
            self.queue.counts.rejected += 1
        else:
            # Settled without an outcome: the consumer has it and reports nothing more (AMQP 1.0 part 2, 2.6.12).
            self.queue.counts.delivered += 1

    def end(self) -> None:
        """Leave the queue, and return unsettled messages to it in their order."""
        self.process_outcomes()
        self.queue.requeue([message for _, message in self._pending])
        self._pending.clear()
        self._pending_bytes = 0
        self.queue.consumers.remove(self)
