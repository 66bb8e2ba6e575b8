"""Conducts a run of two phases: full speed, all queues emptied, then an open loop at a rate."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from labconsole.clock import now_ns
from labconsole.model.trial import RoleHandle, RunContext
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.roles.link_role import open_loop_command
from labconsole_amqp.roles.receiver_role import COUNT_COMMAND
from labconsole_amqp.series import OPEN_LOOP

_PAUSE_NS: Final = 100_000_000
"""Between the last message of the first phase and the first of the second."""
_LONGEST_DRAIN_S: Final = 3600.0
"""A sender gives up by itself where its messages are no longer acknowledged."""
_POLL_S: Final = 0.02


def conduct_phases(
    parameters: AmqpParameters, context: RunContext, receivers: Sequence[RoleHandle], senders: Sequence[RoleHandle]
) -> None:
    """Return once the open loop is about to begin. Raises UserError."""
    longest_s = parameters.full_speed + _LONGEST_DRAIN_S
    sent = [sender.report(longest_s)["sent"] for sender in senders]
    left = sum(sent) - _received(parameters, receivers, sum(sent))
    begin_ns = now_ns() + _PAUSE_NS
    context.event(
        OPEN_LOOP,
        f"All queues are empty; the open loop begins: {parameters.rate:g} messages per second of each sender."
        if left <= 0
        else f"{left} messages of the first phase did not arrive; the open loop begins all the same.",
        begin_ns=begin_ns,
        first=sent,
    )
    for role in (*receivers, *senders):
        role.command(open_loop_command(begin_ns, sent))


def _received(parameters: AmqpParameters, receivers: Sequence[RoleHandle], sent: int) -> int:
    """How many messages the receivers have once they have all that were sent, or nothing came for the patience."""
    last, since = -1, time.monotonic()
    while True:
        for receiver in receivers:
            receiver.command(COUNT_COMMAND)
        received = sum(int(receiver.report(parameters.patience)["received"]) for receiver in receivers)
        if received >= sent or time.monotonic() - since > parameters.patience:
            return received
        if received != last:
            last, since = received, time.monotonic()
        time.sleep(_POLL_S)
