"""The receiver role: connects, takes messages in, opens and checks each of them (it fails closed), and records them."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from labconsole.clock import now_ns, wall_offset_ns
from labconsole.trial import Level, Role, RoleContext
from labconsole_amqp.amqp_types import EnvelopeError
from labconsole_amqp.connection import Connection, connect
from labconsole_amqp.envelope import NUMBER_BEFORE_STAMP, Parts, Protection, encode, encoded_size, find_stamp
from labconsole_amqp.fastlink import Batch, Receiver, Template
from labconsole_amqp.parameters import Settlement
from labconsole_amqp.payload import load_payload
from labconsole_amqp.queue_check import require_empty
from labconsole_amqp.role_settings import RoleIdentity, RoleSettings
from labconsole_amqp.samples import (
    CONNECTED,
    FAILED_CHANNEL,
    LATENCY_CHANNEL,
    OUTCOMES,
    RECEIVED,
    RECEIVED_CHANNEL,
    WALL_OFFSET,
    WORK_DONE,
)
from labconsole_amqp.sealing import Opened, Outcome, open_sealed

_BATCH = 512
_SEALED_BATCH = 32
"""Fewer at a time when each has to be opened, so that credit and acknowledgements are not held up."""
_PUMP_S = 0.1
_SETTLE_S = 2.0
"""How long to wait for messages that are still on their way, once all senders are done."""
_FAILURES_TOLD = 20


class ReceiverRole(Role):
    """Receives until it is stopped, or until the expected number of messages came."""

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        self._settings = RoleSettings.model_validate(context.settings)
        self._parameters = self._settings.parameters
        self._connection: Connection | None = None
        self._received = context.series(RECEIVED)
        self._count = 0
        self._failed = 0

    def prepare(self) -> dict[str, Any]:
        """Load keys, connect, look into the queue, attach with credit. Raises TrialError."""
        parameters = self._parameters
        protection = parameters.protection
        self._sealed = protection is not Protection.NONE
        self._payload = load_payload(parameters.payload, as_string=protection is not Protection.SIGNED_ENCRYPTED).data
        self._identity = RoleIdentity(self._settings, "the receiver")
        self._verification_key = self._identity.peer_key if self._sealed else None
        encrypted = protection is Protection.SIGNED_ENCRYPTED
        self._decryption_key = self._identity.private_key if encrypted else None
        endpoint = self._identity.endpoint()
        if self._settings.check_queue:
            with connect(endpoint) as first:
                require_empty(first, parameters, self.context)
        self._connection = connect(endpoint)
        size = encoded_size(
            len(self._payload),
            protection,
            parameters.fields_in,
            durable=parameters.durable,
            message_id=parameters.numbered,
        )
        self._link = Receiver(
            self._connection,
            parameters.address,
            window=parameters.credit,
            settled=parameters.settlement is Settlement.PRE_SETTLED,
            templates=() if self._sealed else (self._template(),),
            expected_size=size,
        )
        self._wall_offset_ns = wall_offset_ns()
        self.context.event(WALL_OFFSET, "Offset to Unix time was read.", offset_ns=self._wall_offset_ns)
        self.context.event(
            CONNECTED,
            f"Connected in {self._connection.times.total_ns / 1e6:.1f} ms.",
            connect_ns=self._connection.times.total_ns,
            attach_ns=self._link.attach_ns,
            tls=self._connection.tls_version,
            cipher=self._connection.cipher,
            container=self._connection.container,
        )
        return {}

    def run(self) -> dict[str, Any]:
        """Receive. Ends when the expected messages came, or soon after a stop."""
        cpu_before = time.process_time_ns()
        parameters = self._parameters
        expected = parameters.per_sender * parameters.senders if parameters.receivers == 1 else None
        stopped_ns: int | None = None
        threads = parameters.crypto_threads if self._sealed else 1
        with ThreadPoolExecutor(threads) as pool:
            while expected is None or self._count < expected:
                batch = self._link.receive(_SEALED_BATCH if self._sealed else _BATCH, _PUMP_S)
                if len(batch):
                    self._take(batch, pool)
                self.context.tick()
                if self.context.stop_requested:
                    stopped_ns = stopped_ns or now_ns()
                    if not len(batch) or now_ns() - stopped_ns > _SETTLE_S * 1e9:
                        break
        self.context.event(
            WORK_DONE,
            f"{self._count} messages received.",
            cpu_ns=time.process_time_ns() - cpu_before,
            messages=self._count,
        )
        return {"received": self._count, "failed": self._failed}

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    def _template(self) -> Template:
        numbered = self._parameters.numbered
        message, stamp_offset = encode(
            Parts(self._payload), durable=self._parameters.durable, message_id=0 if numbered else None
        )
        return Template(message, stamp_offset, stamp_offset - NUMBER_BEFORE_STAMP if numbered else None)

    def _take(self, batch: Batch, pool: ThreadPoolExecutor) -> None:
        count = len(batch)
        stamps, numbers = batch.stamps_ms, batch.numbers
        verify_ns, decrypt_ns = np.zeros(count, np.int32), np.zeros(count, np.int32)
        outcomes = np.zeros(count, np.uint8)
        for index, opened in zip(batch.raw, pool.map(self._open, batch.raw.values()), strict=True):
            outcomes[index] = OUTCOMES.index(opened.outcome)
            verify_ns[index], decrypt_ns[index] = opened.verify_ns, opened.decrypt_ns
            if opened.envelope is not None:
                stamps[index] = opened.envelope.stamp_ms
                numbers[index] = -1 if opened.envelope.message_id is None else opened.envelope.message_id
            if opened.outcome is not Outcome.OK:
                self._tell(opened)
            elif not self._sealed:
                self._learn(batch.raw[index])
        self._received.extend(
            number=numbers,
            received_ns=batch.received_ns,
            stamp_ms=stamps,
            size=batch.sizes,
            verify_ns=verify_ns,
            decrypt_ns=decrypt_ns,
            outcome=outcomes,
        )
        self._count += count
        self.context.count(RECEIVED_CHANNEL.name, count)
        good = outcomes == 0
        latencies = batch.received_ns[good] + self._wall_offset_ns - stamps[good] * 1_000_000
        self.context.observe(LATENCY_CHANNEL.name, np.maximum(latencies, 0))

    def _open(self, message: bytes) -> Opened:
        return open_sealed(
            message,
            self._parameters.protection,
            self._verification_key,
            self._decryption_key,
            expected=self._payload,
        )

    def _tell(self, opened: Opened) -> None:
        """Record a message that was refused; the first ones in words."""
        self._failed += 1
        self.context.count(FAILED_CHANNEL.name, 1)
        if self._failed <= _FAILURES_TOLD:
            reason = f"{opened.outcome.value}{f': {opened.reason}' if opened.reason else ''}"
            more = " Further ones are only counted." if self._failed == _FAILURES_TOLD else ""
            self.context.event("refused", f"A message was refused: {reason}.{more}", Level.WARNING)

    def _learn(self, message: bytes) -> None:
        """A broker changed the message's form, not its content: from now on this form passes in the fast path."""
        try:
            stamp_offset = find_stamp(message)
        except EnvelopeError:
            return  # a stamp in a shorter form: such messages stay on the slow path
        if not self._parameters.numbered:
            self._link.learn(Template(message, stamp_offset))
