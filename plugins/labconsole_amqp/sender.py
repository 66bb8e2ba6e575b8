"""The sender role: connects, seals and sends its messages, in a closed or an open loop, and records each of them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.clock import now_ns
from labconsole.trial import Role, RoleContext, TrialError
from labconsole_amqp.connection import Connection, connect
from labconsole_amqp.envelope import NUMBER_BEFORE_STAMP, Parts, Protection, encode, message_number
from labconsole_amqp.fastlink import Sender, Template
from labconsole_amqp.parameters import Loop, Settlement
from labconsole_amqp.payload import load_payload
from labconsole_amqp.queue_check import require_empty
from labconsole_amqp.role_settings import RoleIdentity, RoleSettings
from labconsole_amqp.samples import ACKNOWLEDGED, CONNECTED, SENT, SENT_CHANNEL, WORK_DONE
from labconsole_amqp.sealing import seal

_BATCH = 512
_SEALED_AHEAD = 16
"""Messages that each crypto thread may be ahead of the link in a closed loop."""
_PUMP_S = 0.1


class SenderRole(Role):
    """Sends `count` messages (after `warm_up` ones) to the queue."""

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        self._settings = RoleSettings.model_validate(context.settings)
        self._parameters = self._settings.parameters
        self._total = self._parameters.per_sender
        self._connection: Connection | None = None
        self._sent = context.series(SENT)
        self._acknowledged = context.series(ACKNOWLEDGED)
        self._done = 0

    def prepare(self) -> dict[str, Any]:
        """Load payload and keys, connect, attach. Raises TrialError."""
        parameters = self._parameters
        encrypted = parameters.protection is Protection.SIGNED_ENCRYPTED
        self._payload = load_payload(parameters.payload, as_string=not encrypted).data
        self._identity = RoleIdentity(self._settings, "the sender")
        if parameters.protection is not Protection.NONE:
            self._signing_key = self._identity.private_key
            self._recipient_key = self._identity.peer_key if encrypted else None
        self._connection = connect(self._identity.endpoint())
        if self._settings.check_queue:
            require_empty(self._connection, parameters, self.context)
        self._link = Sender(
            self._connection, parameters.address, settled=parameters.settlement is Settlement.PRE_SETTLED
        )
        probe, _, _ = self._encoded(0, self._seal() if parameters.protection is not Protection.NONE else None)
        self._link.check_size(len(probe))
        self.context.event(
            CONNECTED,
            f"Connected in {self._connection.times.total_ns / 1e6:.1f} ms.",
            connect_ns=self._connection.times.total_ns,
            attach_ns=self._link.attach_ns,
            tls=self._connection.tls_version,
            cipher=self._connection.cipher,
            container=self._connection.container,
        )
        return {"message_size": len(probe)}

    def run(self) -> dict[str, Any]:
        """Send everything, then wait for the last acknowledgement."""
        cpu_before = time.process_time_ns()
        begin_ns = now_ns()
        if self._parameters.protection is Protection.NONE:
            self._send_plain()
        else:
            self._send_sealed()
        self._drain()
        end_ns = now_ns()
        self.context.event(
            WORK_DONE,
            f"{self._done} messages sent.",
            cpu_ns=time.process_time_ns() - cpu_before,
            messages=self._done,
            begin_ns=begin_ns,
            end_ns=end_ns,
            accepted=self._link.accepted,
            rejected=self._link.rejected,
            released=self._link.released,
        )
        if self._link.rejected or self._link.released:
            raise TrialError(
                f"The broker did not take {self._link.rejected + self._link.released} of {self._done} messages "
                f"({self._link.rejected} rejected, {self._link.released} released): look at its queue limits."
            )
        return {"sent": self._done}

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    def _due(self, begin_ns: int) -> int:
        """How many messages are due by now in an open loop."""
        return min(self._total, int((now_ns() - begin_ns) * self._parameters.rate / 1e9) + 1)

    def _intended(self, begin_ns: int, first: int, count: int) -> NDArray[np.int64]:
        """Intended send times of messages `first`, ... in an open loop."""
        steps = np.arange(first, first + count, dtype=np.float64) * (1e9 / self._parameters.rate)
        return begin_ns + steps.astype(np.int64)

    def _send_plain(self) -> None:
        message, stamp_offset, number_offset = self._encoded(0, None)
        template = Template(message, stamp_offset, number_offset)
        open_loop = self._parameters.loop is Loop.OPEN
        zeros = np.zeros(_BATCH, np.int32)
        begin_ns = self.context.start_ns
        while self._done < self._total and not self.context.stop_requested:
            due = self._due(begin_ns) if open_loop else self._total
            wanted = min(due - self._done, _BATCH)
            sent = self._link.send(template, wanted, message_number(self._settings.index, self._done))
            count = len(sent.times_ns)
            if count:
                intended = self._intended(begin_ns, self._done, count) if open_loop else sent.times_ns
                self._record(intended, sent.times_ns, sent.stamps_ms, len(message), zeros[:count], zeros[:count])
            self._link.pump(self._pause(begin_ns, open_loop) if count < wanted or wanted == 0 else 0)
            self._take_acknowledgements()
            self.context.tick()

    def _pause(self, begin_ns: int, open_loop: bool) -> float:
        """Seconds until the next message is due; in a closed loop just until the broker says something."""
        if not open_loop or self._link.capacity == 0:
            return _PUMP_S
        next_ns = begin_ns + int(self._done * 1e9 / self._parameters.rate)
        return min(max(0.0, (next_ns - now_ns()) / 1e9), _PUMP_S)

    def _send_sealed(self) -> None:
        begin_ns = self.context.start_ns
        open_loop = self._parameters.loop is Loop.OPEN
        ahead = self._parameters.crypto_threads * _SEALED_AHEAD
        waiting: deque[Future[Parts]] = deque()
        begun = 0
        assert self._connection is not None
        wake = self._connection.wake
        with ThreadPoolExecutor(self._parameters.crypto_threads) as threads:
            while self._done < self._total and not self.context.stop_requested:
                due = self._due(begin_ns) if open_loop else min(self._total, self._done + ahead)
                for _ in range(begun, due):
                    future = threads.submit(self._seal)
                    future.add_done_callback(lambda _: wake())
                    waiting.append(future)
                begun = max(begun, due)
                sent = sum(1 for _ in self._send_ready(waiting, begin_ns if open_loop else None))
                self._link.pump(0 if sent else self._pause_sealed(waiting, begun, begin_ns, open_loop))
                self._take_acknowledgements()
                self.context.tick()
            for future in waiting:
                future.cancel()

    def _pause_sealed(self, waiting: deque[Future[Parts]], begun: int, begin_ns: int, open_loop: bool) -> float:
        if open_loop and not waiting and begun < self._total:
            return min(max(0.0, (begin_ns + begun * 1e9 / self._parameters.rate - now_ns()) / 1e9), _PUMP_S)
        return _PUMP_S

    def _send_ready(self, waiting: deque[Future[Parts]], open_since_ns: int | None) -> Iterator[None]:
        """Send the sealed messages at the head, as long as there is credit; yields once per message."""
        while waiting and waiting[0].done() and self._link.capacity:
            parts = waiting.popleft().result()
            message, stamp_offset, _ = self._encoded(self._done, parts)
            sent = self._link.send_messages([message], stamp_offset)
            intended = sent.times_ns if open_since_ns is None else self._intended(open_since_ns, self._done, 1)
            self._record(
                intended,
                sent.times_ns,
                sent.stamps_ms,
                len(message),
                np.array([parts.sign_ns], np.int32),
                np.array([parts.encrypt_ns], np.int32),
            )
            yield

    def _seal(self) -> Parts:
        return seal(self._payload, self._parameters.protection, self._signing_key, self._recipient_key)

    def _encoded(self, sequence: int, parts: Parts | None) -> tuple[bytes, int, int | None]:
        """Message, offset of its stamp, and of its number if it has one."""
        numbered = self._parameters.numbered
        message, stamp_offset = encode(
            parts or Parts(self._payload),
            fields_in=self._parameters.fields_in,
            durable=self._parameters.durable,
            message_id=message_number(self._settings.index, sequence) if numbered else None,
        )
        return message, stamp_offset, stamp_offset - NUMBER_BEFORE_STAMP if numbered else None

    def _record(
        self,
        intended_ns: NDArray[np.int64],
        sent_ns: NDArray[np.int64],
        stamps_ms: NDArray[np.int64],
        size: int,
        sign_ns: NDArray[np.int32],
        encrypt_ns: NDArray[np.int32],
    ) -> None:
        count = len(sent_ns)
        columns: Mapping[str, NDArray[Any]] = {
            "seq": np.arange(self._done, self._done + count),
            "intended_ns": intended_ns,
            "sent_ns": sent_ns,
            "stamp_ms": stamps_ms,
            "size": np.full(count, size, np.int32),
            "sign_ns": sign_ns,
            "encrypt_ns": encrypt_ns,
        }
        self._sent.extend(**columns)
        self._done += count
        self.context.count(SENT_CHANNEL.name, count)

    def _take_acknowledgements(self) -> None:
        acknowledged = self._link.take_acknowledged_ns()
        if len(acknowledged):
            self._acknowledged.extend(acknowledged_ns=acknowledged)

    def _drain(self) -> None:
        """Wait for the last acknowledgements, as long as they keep coming within the operator's patience."""
        patience_ns = int(self._parameters.patience * 1e9)
        left, since_ns = -1, now_ns()
        while waiting := self._link.drain(_PUMP_S):
            self._take_acknowledgements()
            self.context.tick()
            if waiting != left:
                left, since_ns = waiting, now_ns()
            elif self.context.stop_requested or now_ns() - since_ns > patience_ns:
                break
        self._take_acknowledgements()
        if waiting and not self.context.stop_requested:
            raise TrialError(
                f"The broker did not acknowledge {waiting} of {self._done} messages within "
                f"{self._parameters.patience:g} s: is its queue full?"
            )
