"""The receiver role: receives messages, opens and checks each (it fails closed), and records them."""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.clock import now_ns, wall_offset_ns
from labconsole.errors import UserError
from labconsole.model.role import RoleContext
from labconsole.model.trial import Level
from labconsole.security.identities import LoadedIdentity
from labconsole_amqp.choices import BrokerChoice, Loop, Mode, Settlement
from labconsole_amqp.link.arrivals import Batch
from labconsole_amqp.link.receiver import Receiver
from labconsole_amqp.parameters import field_label
from labconsole_amqp.preflight.checks import awaited_queue_check, own_queue_check
from labconsole_amqp.roles.link_role import LinkRole, await_command
from labconsole_amqp.roles.message_key_pool import ListedKeys
from labconsole_amqp.roles.message_openers import MessageOpeners, Opener
from labconsole_amqp.roles.role_commands import KEY_LISTS
from labconsole_amqp.roles.schedule import SendSchedule, commanded, whole_run
from labconsole_amqp.run_payloads import load_payloads
from labconsole_amqp.series import (
    FAILED_CHANNEL,
    LATENCY_CHANNEL,
    OUTCOMES,
    QUEUE_TIME_CHANNEL,
    RECEIVED,
    RECEIVED_CHANNEL,
    WALL_OFFSET,
    WORK_DONE,
    Phase,
    ReceiverEnd,
    latency_from_stamp_ns,
)
from labconsole_amqp.wire.envelope import (
    SENDER_SHIFT,
    SEQUENCE_MASK,
    Protection,
)
from labconsole_amqp.wire.payload import PAYLOAD_FILE
from labconsole_amqp.wire.sign_encrypt import OpenedMessage, Outcome
from labconsole_amqp.wire.template import Template, learn_template, plain_template

_P99 = 0.99

_BATCH = 512
_SEALED_BATCH = 128
"""Fewer at a time where each is opened, so that credit and acknowledgements are not delayed."""
_PUMP_S = 0.1
_GATHER_S = 0.004
"""How long messages are gathered after the first at full speed, so that checking and recording each costs little. At a
rate, the next message would be read late while the gathered ones are checked."""
_SEALED_GATHER_S = 0.020
"""The same for messages that are opened: senders need this long to seal some."""
_SETTLE_S = 2.0
"""How long one of several receivers waits for a message once all senders are done: its share is not known."""
_MAX_REFUSAL_EVENTS = 20
_LARGEST_NUMBER = 2**63 - 1


class DistinctNumbers:
    """Numbers of messages, each counted once, as ranges: its memory grows with gaps, and not with hours of messages."""

    def __init__(self) -> None:
        self.count = 0
        self._begins: list[int] = []
        self._ends: list[int] = []
        """First number of each range, and the one after its last, rising."""

    def add(self, numbers: NDArray[np.int64]) -> None:
        """Add numbers in any order, of which some may have been added before."""
        distinct = np.unique(numbers)
        for run in np.split(distinct, np.flatnonzero(np.diff(distinct) > 1) + 1):
            if len(run):
                self._add_range(int(run[0]), int(run[-1]) + 1)

    def _add_range(self, begin: int, end: int) -> None:
        """Merge the range with those that it meets."""
        met = slice(bisect_left(self._ends, begin), bisect_right(self._begins, end))
        begins, ends = self._begins[met], self._ends[met]
        self.count -= sum(ends) - sum(begins)
        begin, end = min([begin, *begins]), max([end, *ends])
        self.count += end - begin
        self._begins[met], self._ends[met] = [begin], [end]


class ReceiverRole(LinkRole):
    """Receives until all messages have arrived, no more arrive, or it is stopped."""

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        self._sealed = self.parameters.protection is not Protection.NONE
        self._received = context.series(RECEIVED)
        self._learnt: dict[int, Template] = {}
        """What a broker has made of our templates, by the place of the payload."""
        self._places: dict[int, int] = {}
        """The place of the payload of a message that equals a template, by its length."""
        self._count = 0
        parameters = self.parameters
        twice = parameters.numbered and (parameters.reconnect > 0 or parameters.mode is Mode.RECEIVER)
        self._numbers = DistinctNumbers() if twice else None
        """The numbers that have come, where some may come twice."""
        self._failed = 0
        self._senders_done = parameters.mode is Mode.RECEIVER
        self._senders_reconnects = 0
        address = self.settings.address
        self._to_come = parameters.per_sender * parameters.sharing(address, parameters.senders)
        self._is_alone = parameters.sharing(address, parameters.receivers) == 1
        """Whether all messages of its queue are its own."""
        self._open_loops: list[SendSchedule] = []
        self._latencies: list[NDArray[np.int64]] = []
        """Of a step of a sweep, ns."""

    def load(self, identity: LoadedIdentity | None) -> None:
        """Load the payloads that are expected, and keys. Raises UserError."""
        self._payloads = load_payloads(self.parameters, self.context.file(PAYLOAD_FILE))
        listed = self._await_listed_keys() if self.parameters.pool_size else None
        self._openers = MessageOpeners(self._payloads.expects, listed)
        self.use_message_keys(identity)
        if self._sealed and not self.parameters.envelope.is_hardened:
            self._openers.require_signer(self.settings)
        self._wall_offset_ns = wall_offset_ns()
        self.context.event(WALL_OFFSET, "Offset to Unix time was read.", offset_ns=self._wall_offset_ns)

    def _await_listed_keys(self) -> ListedKeys:
        """Wait for the lists of message keys, which senders make meanwhile. Raises UserError: the run was stopped."""
        command = await_command(self.context)
        assert command["do"] == KEY_LISTS
        return ListedKeys(command, self.settings)

    def use_message_keys(self, identity: LoadedIdentity | None) -> None:
        """Load the signer's certificate, the key that decrypts, and the CRLs. Raises UserError."""
        self._openers.use(self.settings, identity, self.context)

    def leave(self) -> str:
        """What is not read yet returns to the queue, and comes over the other connection; not if it is settled."""
        settled = self.parameters.settlement is Settlement.PRE_SETTLED
        return "messages on their way are pre-settled, and would be lost" if settled else ""

    def attach(self) -> int:
        """Attach with credit. Raises UserError."""
        parameters = self.parameters
        number, bodies = 0 if parameters.numbered else None, () if self._sealed else self._payloads.bodies
        templates = [plain_template(body, number, durable=parameters.durable) for body in bodies]
        self._places = {len(template.message): place for place, template in enumerate(templates)}
        self._link = Receiver(
            self.connection,
            self.settings.address,
            window=parameters.credit,
            settled=parameters.settlement is Settlement.PRE_SETTLED,
            templates=templates,
            max_message_size=parameters.max_message_size,
        )
        for place, template in self._learnt.items():
            self._use_template(place, template)
        return self._link.attach_ns

    def check_attached(self) -> None:
        """Say what is known of the queue, unless it was counted."""
        if self.parameters.mode is Mode.RECEIVER:
            self.preflight.add(awaited_queue_check())
        elif self.parameters.broker is BrokerChoice.EMBEDDED:
            self.preflight.add(own_queue_check())

    def work(self) -> dict[str, Any]:
        """Receive until the end. Raises UserError."""
        cpu_before = time.process_time_ns()
        if self.parameters.is_steady and self.parameters.mode is Mode.BOTH:
            self._open_loops = [whole_run(self.parameters, self.context.start_ns)] * self.parameters.senders
        end, last_ns = None, now_ns()
        encrypted = self.parameters.protection is Protection.SIGNED_ENCRYPTED
        threads = self.parameters.crypto_threads if encrypted else 1
        with ThreadPoolExecutor(threads) as pool:
            while end is None:
                count = self._receive(pool, threads)
                if count != 0:
                    last_ns = now_ns()
                self.context.tick()
                end = self._end_reason(count == 0, (now_ns() - last_ns) / 1e9)
        self.context.event(
            WORK_DONE,
            f"{self._count} messages received.",
            end=end,
            cpu_ns=time.process_time_ns() - cpu_before,
            messages=self._count,
        )
        return {"received": self._count, "failed": self._failed}

    def _receive(self, pool: ThreadPoolExecutor, threads: int) -> int | None:
        """Receive and record a batch; returns its size, None after a lost connection."""
        batch: Batch | None = None
        with self.restoring():
            limit, gather_s = (_SEALED_BATCH, _SEALED_GATHER_S) if self._sealed else (_BATCH, _GATHER_S)
            batch = self._link.receive(limit, _PUMP_S, gather_s if self._at_full_speed else 0.0)
        self._handle_command()  # before they are opened: what protects them may have come just before them
        if batch is None:
            return None
        if len(batch):
            self._record_batch(batch, pool, threads)
        return len(batch)

    def _handle_command(self) -> None:
        """Execute the trial's commands."""
        while (command := self.take_command()) is not None:
            self._execute(command)

    def _execute(self, command: Mapping[str, Any]) -> None:
        match command["do"]:
            case "count":
                self.context.report(received=self._different)
            case "latency":
                latencies = np.concatenate([np.zeros(0, np.int64), *self._latencies])
                p99 = int(np.quantile(latencies, _P99, method="inverted_cdf")) if len(latencies) else None
                self.context.report(p99_ns=p99, count=len(latencies))
            case "open loop":
                start_ns = self.context.start_ns
                self._open_loops = [commanded(command, start_ns, sequence) for sequence in command["first"]]
                self._latencies = []
            case "all sent":
                self._senders_done, self._to_come = True, command["sent"]
                self._senders_reconnects = command["reconnects"]

    def _end_reason(self, quiet: bool, quiet_s: float) -> ReceiverEnd | None:
        """Why to finish now, None to continue; `quiet_s`: seconds since the last message. Raises UserError."""
        parameters = self.parameters
        if self.context.stop_requested:
            return ReceiverEnd.STOPPED
        if not (self._senders_done and quiet):
            return None
        # An empty batch after the last expected one: duplicates and unknown messages are counted, too.
        enough = self._is_alone and self._different >= self._to_come
        # Without numbers, after a lost connection, some of them may have come twice, and others be still to come.
        if enough and (self._numbers is not None or not (self.reconnects or self._senders_reconnects)):
            return ReceiverEnd.COMPLETE
        if parameters.mode is Mode.BOTH:
            settles = enough or not self._is_alone
            longest_s = min(_SETTLE_S, parameters.patience) if settles else parameters.patience
        elif self._count:
            longest_s = parameters.longest_gap
        elif not self._is_alone:
            longest_s = parameters.wait_for_peer
        elif quiet_s > parameters.wait_for_peer:
            raise UserError(
                f"No message came within {parameters.wait_for_peer:g} s: start sending on the other console, to the "
                f"same queue {self.settings.address}, or set {field_label('wait_for_peer')} higher."
            )
        else:
            return None
        return ReceiverEnd.QUIET if quiet_s > longest_s else None

    @property
    def _at_full_speed(self) -> bool:
        return not self._open_loops and self.parameters.loop in (Loop.CLOSED, Loop.BOTH)

    @property
    def _different(self) -> int:
        """How many different messages have come, as far as they can be distinguished."""
        return self._count if self._numbers is None else self._numbers.count

    def _record_batch(self, batch: Batch, pool: ThreadPoolExecutor, threads: int) -> None:
        """Check, record and count the messages of one batch."""
        count = len(batch)
        stamps, numbers = batch.stamps_ms, batch.numbers
        verify_ns, decrypt_ns = np.zeros(count, np.int64), np.zeros(count, np.int64)
        outcomes = np.zeros(count, np.uint8)
        for index in np.flatnonzero(self._others_payload(batch)).tolist():
            outcomes[index] = OUTCOMES.index(Outcome.PAYLOAD_DIFFERS)
            self._record_refusal(OpenedMessage(Outcome.PAYLOAD_DIFFERS, None))
        learnt: set[int] = set()
        everything = self._open_all(list(batch.raw.values()), pool, threads)
        for index, (opener, decoded) in zip(batch.raw, everything, strict=True):
            opened = opener.accept(decoded)
            outcomes[index] = OUTCOMES.index(opened.outcome)
            verify_ns[index], decrypt_ns[index] = opened.verify_ns, opened.decrypt_ns
            if opened.envelope is not None:
                number = opened.envelope.message_id
                stamps[index] = opened.envelope.stamp_ms
                numbers[index] = -1 if number is None or number > _LARGEST_NUMBER else number
            if opened.outcome is not Outcome.OK:
                if opened.outcome not in self.parameters.duplicate_outcomes:
                    self._record_refusal(opened)
            elif not self._sealed and len(batch.raw[index]) not in learnt:
                learnt.add(len(batch.raw[index]))
                self._learn_template(batch.raw[index], opened.payload)
        self._received.extend(
            number=numbers,
            received_ns=batch.received_ns,
            stamp_ms=stamps,
            size=batch.sizes,
            verify_ns=verify_ns,
            decrypt_ns=decrypt_ns,
            outcome=outcomes,
        )
        self.context.count(RECEIVED_CHANNEL.name, count, (int(batch.received_ns[0]), int(batch.received_ns[-1])))
        if self._numbers is not None:
            self._numbers.add(numbers)
        self._observe_latency(batch.received_ns, stamps, numbers, outcomes == 0)
        self._count += count

    def _others_payload(self, batch: Batch) -> NDArray[np.bool_]:
        """Which messages equal a template, but that of another message's payload."""
        if self._payloads.one or not self.parameters.numbered:
            return np.zeros(len(batch), np.bool_)
        found = np.array([self._places.get(size, -1) for size in batch.sizes.tolist()], np.int64)
        return np.asarray(batch.matched & (found != self._payloads.places(batch.numbers)))

    def _open_all(
        self, messages: list[bytes], pool: ThreadPoolExecutor, threads: int
    ) -> list[tuple[Opener, OpenedMessage]]:
        """Open messages, on several threads if they are decrypted (which releases the GIL)."""
        if threads == 1 or len(messages) == 1:
            return self._openers.open_all(messages)
        parts = [messages[start::threads] for start in range(min(threads, len(messages)))]
        opened: list[tuple[Opener, OpenedMessage]] = [None] * len(messages)  # type: ignore[list-item]
        for start, part in enumerate(pool.map(self._openers.open_all, parts)):
            opened[start::threads] = part
        return opened

    def _observe_latency(
        self,
        received_ns: NDArray[np.int64],
        stamps_ms: NDArray[np.int64],
        numbers: NDArray[np.int64],
        good: NDArray[np.bool_],
    ) -> None:
        """Report latencies to the live view: as the evaluation does, but without the sender's samples."""
        parameters = self.parameters
        if not (parameters.is_counted or self._open_loops):
            return  # at full speed only throughput is measured
        if parameters.numbered:
            sender, sequence = (numbers >> SENDER_SHIFT) - 1, numbers & SEQUENCE_MASK
        else:
            sender, sequence = np.zeros_like(numbers), np.arange(self._count, self._count + len(received_ns))
        if self._open_loops:
            own = (sender >= 0) & (sender < parameters.senders)
            first = np.array([schedule.first for schedule in self._open_loops])[np.where(own, sender, 0)]
            schedule = self._open_loops[0]
            warm_up = parameters.warm_up if schedule.phase is Phase.WHOLE else 0
            # A message beyond the last sequence is not from this run.
            counted = good & own & (sequence >= first + warm_up) & (sequence < first + schedule.count)
            due_ns = schedule.due_ns((sequence - first + schedule.first)[counted])
            latencies = (received_ns[counted] - due_ns)[schedule.phases(due_ns) == schedule.phase]
        else:
            counted = good & (sequence >= parameters.warm_up)
            if parameters.mode is Mode.BOTH:
                counted &= sequence < parameters.per_sender
            latencies = latency_from_stamp_ns(received_ns[counted], self._wall_offset_ns, stamps_ms[counted])
        if parameters.loop is Loop.SWEEP:
            self._latencies.append(latencies)
        channel = QUEUE_TIME_CHANNEL if parameters.loop is Loop.CLOSED else LATENCY_CHANNEL
        self.context.observe(channel.name, latencies)

    def _record_refusal(self, opened: OpenedMessage) -> None:
        """Count a refused message; the first ones are recorded as events, too."""
        self._failed += 1
        self.context.count(FAILED_CHANNEL.name, 1)
        if self._failed <= _MAX_REFUSAL_EVENTS:
            reason = f"{opened.outcome.value}{f': {opened.reason}' if opened.reason else ''}"
            more = " Further ones are only counted." if self._failed == _MAX_REFUSAL_EVENTS else ""
            self.context.event("refused", f"A message was refused: {reason}.{more}", Level.WARNING)

    def _learn_template(self, message: bytes, payload: bytes | None) -> None:
        """Accept the form of a good message in the fast path from now on: a broker has changed it."""
        template = learn_template(message, numbered=self.parameters.numbered)
        if template is not None and payload is not None:
            self._use_template(self._payloads.bodies.index(payload), template)

    def _use_template(self, place: int, template: Template) -> None:
        self._learnt[place] = template
        self._places[len(template.message)] = place
        self._link.learn(template)
