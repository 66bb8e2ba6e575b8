"""The sender role: connects, seals and sends its messages as they are due, and records each of them."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole.model.role import RoleContext
from labconsole.processes import wait_exactly
from labconsole.security.identities import LoadedIdentity
from labconsole_amqp.choices import Loop, Settlement
from labconsole_amqp.envelopes.message_envelope import SealedMessage
from labconsole_amqp.link.sender import Sender, SentBatch
from labconsole_amqp.preflight.checks import CheckName, size_check
from labconsole_amqp.roles.link_role import LinkRole
from labconsole_amqp.roles.message_protection import require_recipient, sender_envelope
from labconsole_amqp.roles.role_commands import FINISH
from labconsole_amqp.roles.schedule import SendSchedule, commanded, full_speed, whole_run
from labconsole_amqp.roles.sealing_pool import SealingPool
from labconsole_amqp.run_payloads import load_payloads
from labconsole_amqp.series import ACKNOWLEDGED, KEY_USES, OPEN_LOOP, SENT, SENT_CHANNEL, WORK_DONE
from labconsole_amqp.wire.envelope import Protection, message_number
from labconsole_amqp.wire.payload import PAYLOAD_FILE
from labconsole_amqp.wire.template import Template, plain_template

_BATCH = 512
_SEALED_BATCH = 256
_AHEAD_PER_THREAD = 128
"""Messages that each crypto thread may be ahead of the link."""
_GATHER_S = 0.060
"""In a closed loop, sealed messages are sent many at a time: a few at a time they would cost each role twice the CPU.
Not longer than until half of those that were ordered are ready, so that the crypto threads always have work."""
_RECORD_NS = 20_000_000
"""How long sent messages wait at most until they are recorded, many at a time: large ones are sent a few at a time."""
_DRAIN_S = 0.0005
"""In a closed loop, a socket that accepts no more is given this time to write: else each acknowledgement wakes it."""
_PUMP_S = 0.1
_WAIT_S = 0.005
"""Interval of polling for a command while nothing is to be sent."""
_LEAVE_S = 2.0
"""How long to wait for acknowledgements before a connection is left."""
_LARGEST_EXAMPLE = 1_000_000
_SLEEP_S = 0.002
"""The end of a wait for a due message is a sleep, since waiting for a socket has steps of 1 ms."""


class SenderRole(LinkRole):
    """Sends messages to the queue: a number of them, or those due in each of two phases."""

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        self._before: Sender | None = None
        """The link before a lost connection."""
        self._sent = context.series(SENT)
        self._acknowledged = context.series(ACKNOWLEDGED)
        self._key_uses = context.series(KEY_USES) if self.parameters.pool_size else None
        self._done = 0
        self._keys: tuple[object, ...] | None = None
        """Where the keys of the envelope are."""
        self._tokens = ExitStack()
        """Tokens that sign messages; one from before a rotation stays open, since a thread may sign with it."""

    def close(self) -> None:
        """Close connection and tokens."""
        super().close()
        self._tokens.close()

    def load(self, identity: LoadedIdentity | None) -> None:
        """Load payloads and keys, and create a message of the largest size. Raises UserError."""
        self._payloads = load_payloads(self.parameters, self.context.file(PAYLOAD_FILE))
        self.use_message_keys(identity)
        largest, number = self._payloads.largest, message_number(self.settings.index, 0)
        plain = self.parameters.protection is Protection.NONE
        self._example = (self._template(largest) if plain else self._envelope.protect(largest, number)).message

    def use_message_keys(self, identity: LoadedIdentity | None) -> None:
        """Load the key that signs, and the one that bodies are encrypted to. Raises UserError."""
        if self._keys == self.settings.message_keys:
            require_recipient(self.settings, self.context)
            return
        if self._key_uses is not None and self._keys is not None:
            raise UserError("the keys of its pool are vouched for by the message identity of its start.")
        announces = self.settings.logs_in_first and self._keys is None
        self._envelope = sender_envelope(self.settings, identity, self.context, self._tokens, announces_login=announces)
        self._keys = self.settings.message_keys

    def leave(self) -> str:
        """Wait for acknowledgements, so that nothing needs to be sent again on the other connection."""
        unsettled, settles = self._link.drain(_LEAVE_S), self.parameters.settlement is Settlement.PRE_SETTLED
        if self._keeps and not settles:
            return ""
        if unsettled:
            return "the broker does not acknowledge its messages"
        return "" if self.connection.engine.written else "its last messages are not written yet"

    @property
    def _keeps(self) -> bool:
        """Whether messages are kept until they are acknowledged."""
        return self.parameters.reconnect > 0

    def prepare(self) -> dict[str, Any]:
        """As `LinkRole`; reports an example of this run's messages (its time stamp is not set). Raises UserError."""
        found = super().prepare()
        if len(self._example) > _LARGEST_EXAMPLE:
            return found
        return {**found, "example": base64.b64encode(self._example).decode()}

    def attach(self) -> int:
        """Attach. Raises UserError."""
        settled = self.parameters.settlement is Settlement.PRE_SETTLED
        link = Sender(self.connection, self.settings.address, settled=settled, keeps=self._keeps, after=self._before)
        self._link = self._before = link
        return self._link.attach_ns

    def check_attached(self) -> None:
        """Check that the broker accepts messages of this size. Raises UserError."""
        with self.preflight.checking(CheckName.MESSAGE_SIZE):
            largest, broker = self._link.max_message_size, self.connection.endpoint.name
            self.preflight.add(size_check(len(self._example), largest, broker, drawn=not self._payloads.one))

    def work(self) -> dict[str, Any]:
        """Send everything, then wait for the last acknowledgement. Raises UserError."""
        wait_exactly()
        cpu_before = time.process_time_ns()
        send = self._send_plain if self.parameters.protection is Protection.NONE else self._send_sealed
        for schedule in self._schedules():
            send(schedule)
            self._drain()
        link = self._link
        self.context.event(
            WORK_DONE,
            f"{self._done} messages sent.",
            end_ns=now_ns(),
            cpu_ns=time.process_time_ns() - cpu_before,
            messages=self._done,
            accepted=link.accepted,
            rejected=link.rejected,
            released=link.released,
        )
        if link.rejected or link.released:
            raise UserError(
                f"The broker did not take {link.rejected + link.released} of {self._done} messages "
                f"({link.rejected} rejected, {link.released} released): check its queue limits."
            )
        return {"sent": self._done, "reconnects": self.reconnects}

    def _schedules(self) -> Iterator[SendSchedule]:
        """Yield the schedule of each phase or step; between two of them, wait for the trial's command."""
        begin_ns = self.context.start_ns
        if self.parameters.is_counted:
            yield whole_run(self.parameters, begin_ns)
            return
        if self.parameters.loop is Loop.BOTH:
            yield full_speed(self.parameters, begin_ns)
        while (command := self._next_phase())["do"] == OPEN_LOOP:
            yield commanded(command, begin_ns, self._done)

    def _next_phase(self) -> dict[str, Any]:
        """Report that the phase or step is over, and wait for the command to begin the next one, or to finish."""
        self.context.report(sent=self._done)
        while (command := self.take_command()) is None:
            if self.context.stop_requested:
                return FINISH
            with self.restoring():
                self._link.pump(_WAIT_S)
            self.context.tick()
        return command

    def _send_plain(self, schedule: SendSchedule) -> None:
        templates = [self._template(body) for body in self._payloads.bodies]
        lengths = np.array([len(template.message) for template in templates])
        batches: list[SentBatch] = []
        record_ns = now_ns() + _RECORD_NS
        try:
            while not (schedule.over(self._done, now_ns()) or self.context.stop_requested):
                wanted = max(0, min(schedule.due(now_ns()) - self._done, _BATCH))
                first = message_number(self.settings.index, self._done)
                if self._payloads.one:
                    sent = self._link.send(templates[0], wanted, first)
                else:
                    places = self._payloads.places(np.arange(first, first + min(wanted, self._link.capacity)))
                    sent = self._link.send_mixed([templates[place] for place in places.tolist()], first)
                count = len(sent)
                if count:
                    self._done += count
                    batches.append(sent)
                with self.restoring():
                    if 0 < count == wanted:
                        self._link.pump(0)
                    else:
                        self._wait(schedule, ready=self._link.capacity > 0)
                if (now := now_ns()) >= record_ns:
                    record_ns = now + _RECORD_NS
                    self._record_plain(schedule, lengths, batches)
                    self._process_acknowledgements()
                self._follow()
        finally:
            self._record_plain(schedule, lengths, batches)

    def _record_plain(self, schedule: SendSchedule, lengths: NDArray[np.int64], batches: list[SentBatch]) -> None:
        """Record the last messages, and empty `batches`; `lengths` are those of the templates."""
        if not batches:
            return
        times_ns = np.concatenate([batch.times_ns for batch in batches])
        stamps_ms = np.concatenate([batch.stamps_ms for batch in batches])
        batches.clear()
        zeros = np.zeros(len(times_ns), np.int64)
        first = message_number(self.settings.index, self._done - len(times_ns))
        places = zeros if self._payloads.one else self._payloads.places(first + np.arange(len(times_ns)))
        self._record(schedule, times_ns, stamps_ms, lengths[places], zeros, zeros)

    def _send_sealed(self, schedule: SendSchedule) -> None:
        threads = self.parameters.crypto_threads
        most = threads * _AHEAD_PER_THREAD
        with SealingPool(self._sealed, threads, self._wake, first=self._done) as ahead:
            while not (schedule.over(self._done, now_ns()) or self.context.stop_requested):
                due = max(self._done, schedule.due(now_ns()))
                ahead.order(min(due, self._done + most))
                if schedule.rate is None and self._done > schedule.first:  # figures count from the first one's sending
                    ahead.gather(min(most // 2, due - self._done), min(_left_s(schedule.end_ns), _GATHER_S))
                    if schedule.over(self._done, now_ns()):
                        break
                batch = ahead.take(min(_SEALED_BATCH, self._link.capacity))
                if batch:
                    sent = self._link.send_messages([sealed.message for sealed in batch], batch[0].stamp_offset)
                    self._done += len(batch)
                    sizes, signs, encrypts = (
                        np.fromiter(values, np.int64, len(batch))
                        for values in (
                            (len(sealed.message) for sealed in batch),
                            (sealed.sign_ns for sealed in batch),
                            (sealed.encrypt_ns for sealed in batch),
                        )
                    )
                    self._record_key_uses(batch)
                    self._record(schedule, sent.times_ns, sent.stamps_ms, sizes, signs, encrypts)
                with self.restoring():
                    if batch:
                        self._link.pump(0)
                    else:
                        self._wait(schedule, ready=due == self._done)
                self._keep_up()

    def _keep_up(self) -> None:
        """Record what was acknowledged, and `_follow`."""
        self._process_acknowledgements()
        self._follow()

    def _follow(self) -> None:
        """Write what is due, and use other identities where the trial says so."""
        self.take_command()
        self.context.tick()

    def _wake(self) -> None:
        """End the link's wait, on whichever connection it is now; any thread may call this."""
        self.connection.wake()

    def _wait(self, schedule: SendSchedule, *, ready: bool) -> None:
        """Wait until the next message is due; if link or messages are not `ready`, for input at most."""
        if schedule.rate is None or not ready:
            if schedule.rate is None and self.connection.engine.blocked:
                time.sleep(_DRAIN_S)
            self._link.pump(min(_left_s(schedule.end_ns), _PUMP_S))
            return
        due_ns = int(schedule.due_ns(self._done))
        self._link.pump(min(max(0.0, _left_s(due_ns) - _SLEEP_S), _PUMP_S))
        left_s = _left_s(due_ns)
        if left_s <= _SLEEP_S:
            time.sleep(left_s)

    def _sealed(self, sequence: int) -> SealedMessage:
        """Message `sequence`, signed, and encrypted in Test 4."""
        number = message_number(self.settings.index, sequence)
        return self._envelope.protect(self._payloads.of_message(number), number)

    def _template(self, payload: bytes) -> Template:
        """The template of the messages of Tests 1 and 2 with this payload."""
        number = message_number(self.settings.index, 0) if self.parameters.numbered else None
        return plain_template(payload, number, durable=self.parameters.durable)

    def _record(
        self,
        schedule: SendSchedule,
        sent_ns: NDArray[np.int64],
        stamps_ms: NDArray[np.int64],
        sizes: NDArray[np.int64],
        sign_ns: NDArray[np.int64],
        encrypt_ns: NDArray[np.int64],
    ) -> None:
        """Record the last messages that were sent, in order."""
        count = len(sent_ns)
        sequence = np.arange(self._done - count, self._done)
        intended_ns = schedule.intended_ns(sequence, sent_ns)
        self._sent.extend(
            seq=sequence,
            intended_ns=intended_ns,
            sent_ns=sent_ns,
            stamp_ms=stamps_ms,
            size=sizes,
            sign_ns=sign_ns,
            encrypt_ns=encrypt_ns,
            phase=schedule.phases(intended_ns),
        )
        self.context.count(SENT_CHANNEL.name, count, (int(sent_ns[0]), int(sent_ns[-1])))

    def _record_key_uses(self, batch: Sequence[SealedMessage]) -> None:
        """Record what the keys of the last messages took, where each has one of its own."""
        uses = [sealed.key_use for sealed in batch if sealed.key_use is not None]
        if self._key_uses is None or not uses:
            return
        loads, signs, destroys = (np.array(column, np.int64) for column in zip(*uses, strict=True))
        sequence = np.arange(self._done - len(uses), self._done)
        self._key_uses.extend(seq=sequence, load_ns=loads, sign_ns=signs, destroy_ns=destroys)

    def _process_acknowledgements(self) -> None:
        acknowledged = self._link.pop_acknowledged_ns()
        if len(acknowledged):
            self._acknowledged.extend(acknowledged_ns=acknowledged)

    def _waiting(self) -> int:
        """How many messages are still not acknowledged, after a while."""
        with self.restoring():
            return self._link.drain(_PUMP_S)
        return self._link.unsettled

    def _drain(self) -> None:
        """Wait until all is written and acknowledged; stop when nothing has moved for `patience`."""
        patience_ns = int(self.parameters.patience * 1e9)
        left, since_ns = (-1, 0), now_ns()
        while (waiting := self._waiting()) or self.connection.engine.blocked:
            self._keep_up()
            if left != (left := (waiting, self.reconnects)):
                since_ns = now_ns()
            elif self.context.stop_requested or now_ns() - since_ns > patience_ns:
                break
        self._process_acknowledgements()
        if self.context.stop_requested:
            return
        within = f"within {self.parameters.patience:g} s"
        if waiting:
            raise UserError(
                f"The broker did not acknowledge {waiting} of {self._done} messages {within}: is its queue full?"
            )
        if self.connection.engine.blocked:
            raise UserError(f"The last messages could not be written {within}: is the link to the broker too slow?")


def _left_s(until_ns: int) -> float:
    """Seconds until then, 0 afterwards."""
    return max(0.0, (until_ns - now_ns()) / 1e9)
