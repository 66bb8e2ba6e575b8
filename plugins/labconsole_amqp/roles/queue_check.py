"""Before a run: is the queue empty? Say so, or drain it, as the operator chose."""

from __future__ import annotations

from labconsole.errors import UserError
from labconsole.model.role import RoleContext
from labconsole.model.trial import REMEDY, Level
from labconsole_amqp.choices import Leftover
from labconsole_amqp.link.api import drain_queue, probe_queue_depth
from labconsole_amqp.link.connection import Connection
from labconsole_amqp.parameters import AmqpParameters, named

_COUNTED = 1000
_MOST_DRAINED = 1_000_000


def require_empty(connection: Connection, parameters: AmqpParameters, context: RoleContext) -> None:
    """Raises UserError if messages lie in the queue and are not to be drained, or lie there after draining."""
    drained = 0
    if parameters.leftover is Leftover.DRAIN:
        drained = drain_queue(connection, parameters.address, _MOST_DRAINED)
        if drained:
            context.event("drained", f"{drained} messages were in the queue and were discarded.", Level.WARNING)
    depth = probe_queue_depth(connection, parameters.address, _COUNTED)
    if depth and drained:
        raise UserError(
            f"The queue {parameters.address} at {connection.endpoint.name} is still not empty after {drained} messages "
            "were discarded: stop the sender, and run again."
        )
    if depth:
        number = f"{depth} messages" if depth < _COUNTED else f"{_COUNTED} messages or more"
        context.event(
            REMEDY,
            f"With leftover = {Leftover.DRAIN} the run discards what is in the queue first.",
            title="Drain the queue and run again",
            parameters={"leftover": Leftover.DRAIN.value},
        )
        raise UserError(
            f"The queue {parameters.address} at {connection.endpoint.name} is not empty, {number} lie in it and would "
            f"spoil the figures: empty it there, or set {named('leftover')} to {Leftover.DRAIN}."
        )
