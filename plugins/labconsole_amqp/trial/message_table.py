"""One row per message, sent and received joined: the latency of each, to be exported beside the samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labconsole.model.trial import Column, DerivedTable, Event, Origin, Samples, Series
from labconsole_amqp.choices import Mode
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial.blocks import ReceivedBlocks, SentBlocks
from labconsole_amqp.trial.joining import Joined, Table
from labconsole_amqp.trial.latency import from_stamps_ns, start_column
from labconsole_amqp.wire.envelope import SENDER_SHIFT, SEQUENCE_MASK

MESSAGES = Series(
    "messages",
    "Messages, from sender to receiver",
    (
        Column("sender", "i8", "", "Index of the sender, as in its role's name"),
        Column("sequence", "i8", "", "Sequence of that sender, from 0, warm-up included"),
        Column("intended_ns", "i8", "ns", "Intended send time"),
        Column("sent_ns", "i8", "ns", "Handed to the link"),
        Column("received_ns", "i8", "ns", "Read out of the link; -1 if it did not come"),
        Column("latency_ns", "i8", "ns", "As the metrics take it; -1 if it did not come"),
        Column("outcome", "i1", "", "0 is good, otherwise the place in OUTCOMES; -1 if it did not come"),
        Column("phase", "u1", "", "Phase in which it was due, as in the samples sent; 0 without phases"),
    ),
    Origin.CALCULATED,
)


def messages(parameters: AmqpParameters, samples: Samples, events: Sequence[Event]) -> tuple[DerivedTable, ...]:
    """Every message sent, in order of sending (of sequence, with numbers); on a console that only receives, every one
    received, in that order.

    There sender and sequence are those in the message's number, times of sending are unknown (-1), and the latency is
    from the stamp. No table without messages.
    """
    if parameters.mode is Mode.RECEIVER:
        received = ReceivedBlocks(parameters, samples)
        table = DerivedTable(MESSAGES, received.rows, lambda: (_received(block, events) for block in received))
    else:
        sent = SentBlocks(parameters, samples)
        table = DerivedTable(MESSAGES, sent.rows, lambda: (_sent(parameters, block) for block in sent))
    return (table,) if table.rows else ()


def _sent(parameters: AmqpParameters, joined: Joined) -> Table:
    sent, received = joined.sent, joined.received
    count = len(sent["seq"])
    place = joined.of_received[joined.matched]
    received_ns, latency_ns = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    outcome = np.full(count, -1, np.int8)
    received_ns[place] = received["received_ns"][joined.matched]
    latency_ns[place] = received_ns[place] - sent[start_column(parameters)][place]
    outcome[place] = received["outcome"][joined.matched]
    return {
        "sender": sent["role"],
        "sequence": sent["seq"],
        "intended_ns": sent["intended_ns"],
        "sent_ns": sent["sent_ns"],
        "received_ns": received_ns,
        "latency_ns": latency_ns,
        "outcome": outcome,
        "phase": sent.get("phase", np.zeros(count, np.uint8)),
    }


def _received(joined: Joined, events: Sequence[Event]) -> Table:
    received = joined.received
    numbers = received["number"]
    unknown = np.full(len(numbers), -1, np.int64)
    return {
        "sender": np.where(numbers < 0, -1, (numbers >> SENDER_SHIFT) - 1),
        "sequence": np.where(numbers < 0, -1, numbers & SEQUENCE_MASK),
        "intended_ns": unknown,
        "sent_ns": unknown,
        "received_ns": received["received_ns"],
        "latency_ns": from_stamps_ns(joined, events),
        "outcome": received["outcome"].astype(np.int8),
        "phase": np.zeros(len(numbers), np.uint8),
    }
