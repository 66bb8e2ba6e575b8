"""Probes a queue before a run, on any AMQP 1.0 broker: counts its messages, or drains it."""

from __future__ import annotations

import time
from typing import Any

from labconsole_amqp.link.connection import Connection
from labconsole_amqp.link.link_base import ATTACH_TIMEOUT_S, Link
from labconsole_amqp.link.proton_engine import lib
from labconsole_amqp.link.sender import Sender

_DRAIN_BATCH = 1000
_QUIET_S = 0.5


def probe_queue_depth(connection: Connection, address: str, limit: int = 1, quiet_s: float = _QUIET_S) -> int:
    """The number of messages in the queue, counted up to `limit`; they are released again, in their order.

    AMQP has no query for it, and drain (part 2, 2.6.7) makes RabbitMQ 3.10 end the session: so messages are
    fetched with a credit of `limit`, until all have arrived or none for `quiet_s` seconds (more than one round trip).
    Raises UserError, as an attach does.
    """
    link = _ProbeReceiver(connection, address)
    fetched = link.fetch(limit, lib.PN_RELEASED, quiet_s)
    link.close()
    return fetched


def drain_queue(connection: Connection, address: str, limit: int, quiet_s: float = _QUIET_S) -> int:
    """Discard at most `limit` messages of the queue; returns their number. Raises UserError.

    The queue counts as empty when no message has arrived for `quiet_s` seconds.
    """
    link = _ProbeReceiver(connection, address)
    total = 0
    while total < limit:
        wanted = min(limit - total, _DRAIN_BATCH)
        total += (fetched := link.fetch(wanted, lib.PN_ACCEPTED, quiet_s))
        if fetched < wanted:
            break
    link.close()
    return total


def try_attach(connection: Connection, address: str, kind: str) -> tuple[int, int]:
    """Attach a `sender` or `receiver` without credit, and detach it.

    Returns the time of the attach, ns, and the largest message that a sender may send, bytes (0: no limit). Raises
    UserError, as an attach does.
    """
    if kind == "sender":
        sender = Sender(connection, address)
        sender.close()
        return sender.attach_ns, sender.max_message_size
    receiver = _ProbeReceiver(connection, address)
    receiver.close()
    return receiver.attach_ns, 0


class _ProbeReceiver(Link):
    """A receiver that fetches and settles the messages that are in the queue now."""

    def __init__(self, connection: Connection, address: str) -> None:
        super().__init__(connection, address, "receiver")
        lib.pn_link_set_snd_settle_mode(self._link, lib.PN_SND_UNSETTLED)
        lib.pn_terminus_set_address(lib.pn_link_target(self._link), lib.pn_link_name(self._link))
        self.attach_ns = self._attach(
            lib.pn_link_source(self._link), lib.pn_link_remote_source(self._link), ATTACH_TIMEOUT_S
        )

    def fetch(self, limit: int, outcome: int, quiet_s: float) -> int:
        """Settle up to `limit` messages with `outcome`, once all arrived or none for `quiet_s`; returns the count."""
        held: list[Any] = []
        lib.pn_link_flow(self._link, limit - lib.pn_link_credit(self._link))
        quiet_at = time.monotonic() + quiet_s
        while len(held) < limit and (left := quiet_at - time.monotonic()) > 0:
            self.pump(left)
            while lib.pn_link_queued(self._link) and not lib.pn_delivery_partial(lib.pn_link_current(self._link)):
                held.append(lib.pn_link_current(self._link))
                lib.pn_link_advance(self._link)
                quiet_at = time.monotonic() + quiet_s
        # A broker may notice late that this link is closed (RabbitMQ: tens of ms). Messages must not be sent to it
        # meanwhile: they would be returned to the queue, out of order.
        lib.pn_link_flow(self._link, -lib.pn_link_credit(self._link))
        for delivery in held:
            lib.pn_delivery_update(delivery, outcome)
            lib.pn_delivery_settle(delivery)
        self.connection.flush()
        return len(held)
