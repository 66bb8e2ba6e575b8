"""A queue of the embedded broker, and the links that fill and empty it. Messages are bytes, passed on unchanged."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from labconsole_amqp.fastlink_wire import TagRing, Wire, ffi, lib, set_condition

_TURN_MESSAGES = 256
_TURN_BYTES = 256 * 1024
_BUFFER_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """How much a queue holds, and how much credit one producer gets at most.

    Producers get credit only for free room: `messages` is never exceeded. `size_bytes` is a soft bound: beyond it
    nobody gets new credit. `window` is in messages; `max_message_size` in bytes, 0 = no limit.
    """

    messages: int = 100_000
    size_bytes: int = 512 * 1024 * 1024
    window: int = 1000
    max_message_size: int = 0


@dataclass(slots=True)
class QueueCounts:
    """What a queue has seen, in messages: taken in, passed on (and accepted, if unsettled), given back to the queue by
    a consumer or its end, and rejected by one (dropped)."""

    taken_in: int = 0
    passed_on: int = 0
    given_back: int = 0
    rejected: int = 0


class Queue:
    """First in, first out; competing consumers take turns."""

    def __init__(self, name: str, limits: QueueLimits) -> None:
        self.name = name
        self.limits = limits
        self.counts = QueueCounts()
        self.inlets: list[Inlet] = []
        self.outlets: deque[Outlet] = deque()
        self._messages: deque[bytes] = deque()
        self._size_bytes = 0

    def __len__(self) -> int:
        return len(self._messages)

    def put(self, messages: Sequence[bytes]) -> None:
        """Take messages in at the end."""
        self._messages.extend(messages)
        self._size_bytes += sum(map(len, messages))
        self.counts.taken_in += len(messages)

    def give_back(self, messages: Sequence[bytes]) -> None:
        """Put messages that a consumer did not take back to the front, in their order."""
        self._messages.extendleft(reversed(messages))
        self._size_bytes += sum(map(len, messages))
        self.counts.given_back += len(messages)

    def work(self) -> bool:
        """Pass on what consumers take now, and give producers credit for the room that makes.

        Returns whether anything was passed on, so that more may be once it is written.
        """
        passed = False
        while self._messages and self._pass_on():
            passed = True
        if not self._messages:
            for outlet in self.outlets:
                outlet.drained()
        self._grant()
        return passed

    def _pass_on(self) -> bool:
        """Give each consumer one turn; False if none could take anything."""
        passed = False
        for outlet in tuple(self.outlets):
            usual_bytes = self._size_bytes // max(1, len(self._messages)) + 1
            count = min(outlet.room, _TURN_MESSAGES, _TURN_BYTES // usual_bytes + 1, len(self._messages))
            if count > 0:
                pop = self._messages.popleft
                turn = [pop() for _ in range(count)]
                self._size_bytes -= sum(map(len, turn))
                outlet.send(turn)
                passed = True
        self.outlets.rotate(-1)
        return passed

    def _grant(self) -> None:
        """Top up producers whose credit fell under three quarters of their window, as far as there is room."""
        if self._size_bytes >= self.limits.size_bytes:
            return
        free = self.limits.messages - len(self._messages) - sum(inlet.credit for inlet in self.inlets)
        for inlet in self.inlets:
            missing = self.limits.window - inlet.credit
            if 4 * missing >= self.limits.window and free > 0:
                granted = min(missing, free)
                inlet.grant(granted)
                free -= granted


class _End:
    """One end of a link: the queue it belongs to, and the wire that is to be flushed when something was put on it."""

    def __init__(self, wire: Wire, link: Any, queue: Queue) -> None:
        self.wire = wire
        self.link = link
        self.queue = queue


class Inlet(_End):
    """A producer's link. Messages are accepted once they are in the queue."""

    def __init__(self, wire: Wire, link: Any, queue: Queue) -> None:
        super().__init__(wire, link, queue)
        self._buffer = ffi.new("char[]", _BUFFER_BYTES)
        self._settled = lib.pn_link_remote_snd_settle_mode(link) == lib.PN_SND_SETTLED
        queue.inlets.append(self)

    @property
    def credit(self) -> int:
        """Messages that the producer may still send."""
        return int(lib.pn_link_credit(self.link))

    def grant(self, credit: int) -> None:
        """Let the producer send `credit` messages more."""
        lib.pn_link_flow(self.link, credit)
        self.wire.dirty = True

    def take(self) -> bool:
        """Move what has come in whole into the queue; False if a message is too large (the link is closed then)."""
        link, buffer, settled_link, accepted = self.link, self._buffer, self._settled, lib.PN_ACCEPTED
        current, recv, update, settle = (
            lib.pn_link_current,
            lib.pn_link_recv,
            lib.pn_delivery_update,
            lib.pn_delivery_settle,
        )
        unpack, limit = ffi.buffer, self.queue.limits.max_message_size
        taken: list[bytes] = []
        for behind in range(lib.pn_link_queued(link) - 1, -1, -1):
            delivery = current(link)
            if not behind and lib.pn_delivery_partial(delivery):
                if limit and lib.pn_delivery_pending(delivery) > limit:
                    return self._refuse(taken)
                break
            size = recv(link, buffer, _BUFFER_BYTES)
            if size >= 0:
                message = unpack(buffer, size)[:]
                if size == _BUFFER_BYTES:
                    message += self._rest()
                if limit and len(message) > limit:
                    return self._refuse(taken)
                taken.append(message)
                if not (settled_link or lib.pn_delivery_settled(delivery)):
                    update(delivery, accepted)
            settle(delivery)
        self.queue.put(taken)
        return True

    def _rest(self) -> bytes:
        parts = []
        while (size := lib.pn_link_recv(self.link, self._buffer, _BUFFER_BYTES)) > 0:
            parts.append(ffi.buffer(self._buffer, size)[:])
        return b"".join(parts)

    def _refuse(self, taken: Sequence[bytes]) -> bool:
        self.queue.put(taken)
        limit = self.queue.limits.max_message_size
        condition = lib.pn_link_condition(self.link)
        set_condition(condition, "amqp:link:message-size-exceeded", f"{self.queue.name} takes at most {limit} bytes")
        return False

    def end(self) -> None:
        """The link is gone."""
        self.queue.inlets.remove(self)


class Outlet(_End):
    """A consumer's link. What it has not settled goes back to the queue when it ends."""

    def __init__(self, wire: Wire, link: Any, queue: Queue) -> None:
        super().__init__(wire, link, queue)
        self._ring = TagRing()
        self._session = lib.pn_link_session(link)
        self._settled = lib.pn_link_remote_snd_settle_mode(link) == lib.PN_SND_SETTLED
        self._pending: deque[tuple[Any, bytes]] = deque()
        queue.outlets.append(self)

    @property
    def room(self) -> int:
        """Messages that the consumer takes now: its credit, or 0 while there is enough for its socket."""
        if self.wire.blocked or lib.pn_session_outgoing_bytes(self._session) >= _TURN_BYTES:
            return 0
        return int(lib.pn_link_credit(self.link))

    def send(self, messages: Iterable[bytes]) -> None:
        """Put messages on the wire."""
        link, tags, settled, pending = self.link, self._ring.tags, self._settled, self._pending
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
            count += 1
        if settled:
            self.queue.counts.passed_on += count
        self.wire.dirty = True

    def drained(self) -> None:
        """The queue is empty: a consumer that asked to drain its credit is told so."""
        if lib.pn_link_get_drain(self.link) and lib.pn_link_drained(self.link):
            self.wire.dirty = True

    def take_outcomes(self) -> None:
        """Take in what the consumer said to the messages sent, in the order of sending."""
        pending, counts = self._pending, self.queue.counts
        state_of, settle, accepted = lib.pn_delivery_remote_state, lib.pn_delivery_settle, lib.PN_ACCEPTED
        back: list[bytes] = []
        while pending:
            delivery, message = pending[0]
            state = state_of(delivery)
            if state == accepted:
                counts.passed_on += 1
            elif state or lib.pn_delivery_settled(delivery):
                self._count_other(state, message, back)
            else:
                break
            pending.popleft()
            settle(delivery)
        if back:
            self.queue.give_back(back)

    def _count_other(self, state: int, message: bytes, back: list[bytes]) -> None:
        if state in (lib.PN_RELEASED, lib.PN_MODIFIED):
            back.append(message)
        elif state == lib.PN_REJECTED:
            self.queue.counts.rejected += 1
        else:
            # Settled without an outcome: the consumer has it and says no more (AMQP 1.0 part 2, 2.6.12).
            self.queue.counts.passed_on += 1

    def end(self) -> None:
        """The link is gone: keep the order of what goes back to the queue."""
        self.take_outcomes()
        self.queue.give_back([message for _, message in self._pending])
        self._pending.clear()
        self.queue.outlets.remove(self)
