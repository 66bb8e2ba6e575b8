"""Looking into a queue before a run, on any AMQP 1.0 broker: is it empty, and if not, empty it."""

from __future__ import annotations

from typing import Any

from labconsole_amqp.connection import Connection
from labconsole_amqp.fastlink_link import ATTACH_TIMEOUT_S, Link
from labconsole_amqp.fastlink_wire import lib

_AT_ONCE = 1000


def probe_queue_depth(connection: Connection, address: str, limit: int = 1) -> int:
    """How many messages lie in the queue, counted up to `limit`; they are released again, in their order.

    AMQP has no standard way to ask: the messages are fetched with a credit of `limit` and drain (part 2, 2.6.7).
    Raises TrialError, as an attach does.
    """
    link = _Fetcher(connection, address)
    fetched = link.fetch(limit, lib.PN_RELEASED)
    link.close()
    return fetched


def drain_queue(connection: Connection, address: str, limit: int = 1_000_000) -> int:
    """Throw away at most `limit` messages of the queue; returns how many there were. Raises TrialError."""
    link = _Fetcher(connection, address)
    total = 0
    while total < limit:
        asked = min(limit - total, _AT_ONCE)
        total += (fetched := link.fetch(asked, lib.PN_ACCEPTED))
        if fetched < asked:
            break
    link.close()
    return total


class _Fetcher(Link):
    """A receiver that takes what there is now, settles it, and waits for nothing."""

    def __init__(self, connection: Connection, address: str) -> None:
        super().__init__(connection, address, "receiver")
        lib.pn_terminus_set_address(lib.pn_link_target(self._link), lib.pn_link_name(self._link))
        self._attach(lib.pn_link_source(self._link), lib.pn_link_remote_source(self._link), ATTACH_TIMEOUT_S)

    def fetch(self, limit: int, outcome: int) -> int:
        """Settle up to `limit` messages with `outcome`, once all have come or the peer says there are no more."""
        held: list[Any] = []
        lib.pn_link_drain(self._link, limit)
        late = f"{self.connection.endpoint.name} did not say whether queue {self.address} is empty"

        def complete() -> bool:
            self._check()
            while lib.pn_link_queued(self._link) and not lib.pn_delivery_partial(lib.pn_link_current(self._link)):
                held.append(lib.pn_link_current(self._link))
                lib.pn_link_advance(self._link)
            return not lib.pn_link_draining(self._link) and not lib.pn_link_queued(self._link)

        self.connection.wait(complete, ATTACH_TIMEOUT_S, late)
        for delivery in held:
            lib.pn_delivery_update(delivery, outcome)
            lib.pn_delivery_settle(delivery)
        self.connection.flush()
        return len(held)
